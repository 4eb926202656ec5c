"""What holds for all stories."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest
import structlog


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """Keep what tasks log, and asyncio of processes that died in the middle of a story, out of the tests' output."""
    before = structlog.get_config()
    logging.disable(logging.CRITICAL)
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    yield
    structlog.configure(**before)
    logging.disable(logging.NOTSET)
