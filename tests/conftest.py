"""What holds for all tests."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

# Triggers wait for supervisors to report before they fire; where this is 0, as here, there is nothing to wait for.
# Stacks of real Airflow processes set their own.
os.environ["AIRFLOW__WORKERS__MIN_HEARTBEAT_INTERVAL"] = "0"

ROOT = Path(__file__).parent
LEVELS = ("system", "integration", "chaos", "contract", "core")
"""The folders of tests, those whose files take longest first: what begins last should not keep others waiting."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Where several processes share the tests, give each file to one of them, and all that share an Airflow to one.

    First, since what divides the tests reads the groups in the same hook.
    """
    if "PYTEST_XDIST_WORKER" not in os.environ:
        return
    for item in items:
        level = item.path.relative_to(ROOT).parts[0]
        item.add_marker(pytest.mark.xdist_group(level if level == "system" else item.path.stem))
    items.sort(key=lambda item: LEVELS.index(item.path.relative_to(ROOT).parts[0]))
