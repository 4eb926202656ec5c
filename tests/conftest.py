"""What holds for all tests."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

# Triggers wait for supervisors to report before they fire; where this is 0, as here, there is nothing to wait for.
# Stacks of real Airflow processes set their own.
os.environ["AIRFLOW__WORKERS__MIN_HEARTBEAT_INTERVAL"] = "0"

ROOT = Path(__file__).parent
LEVELS = ("system", "integration", "kills", "chaos", "contract", "core")
"""The folders of tests, those whose files take longest first: what begins last should not keep others waiting."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Where several processes share the tests, file by file, let each begin with what takes longest."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        items.sort(key=lambda item: LEVELS.index(item.path.relative_to(ROOT).parts[0]))
