"""A local Google in a process of its own, which this process's connections lead to."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from demo.processes import Processes
from tests.integration.local_google import LocalGoogle

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def started_google(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalGoogle]:
    """Start one emulator for all tests that ask for it."""
    directory = tmp_path_factory.mktemp("local_google")
    processes = Processes(directory)
    try:
        yield LocalGoogle.start(processes, directory / "emulator")
    finally:
        processes.stop()


@pytest.fixture
def google(started_google: LocalGoogle, monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalGoogle]:
    """Return the emulator in the world of plenty, with Airflow's default connection leading to it.

    The worker's own credentials are those of the other account, so that whoever uses them by mistake is found out.
    """
    for name, value in started_google.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", started_google.keys["pipeline"])
    started_google.emulator.set_world("plenty")
    yield started_google
    started_google.heal()
