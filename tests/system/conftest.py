"""A real Airflow and a local Google, once for each mode of the operator."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from demo.home import running
from tests.system.driver import Driver

if TYPE_CHECKING:
    from collections.abc import Iterator

MODES = {"deferrable": "True", "synchronous": "False"}


@pytest.fixture(scope="package", params=MODES)
def google_and_airflow(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Driver]:
    """Run both for all tests of a mode; the mode is Airflow's own setting, as no DAG says otherwise."""
    mode: str = request.param
    directory = tmp_path_factory.mktemp(mode)
    variables = {"AIRFLOW__OPERATORS__DEFAULT_DEFERRABLE": MODES[mode]}
    with running(directory, world="plenty", variables=variables) as home:
        home.airflow.api.unpause("score_digits")
        yield Driver(home=home, mode=mode)
