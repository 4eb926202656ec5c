"""What holds for all stories."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """Keep what asyncio says of processes that died in the middle of a story out of the tests' output."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)
