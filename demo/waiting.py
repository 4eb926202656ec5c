"""Waiting for a condition, with a limit and a reason."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


def wait_for(what: str, condition: Callable[[], T], *, seconds: float, every: float = 0.3) -> T:
    """Return the condition's first true value; raise ``TimeoutError`` naming what was waited for."""
    end = time.monotonic() + seconds
    while True:
        if value := condition():
            return value
        if time.monotonic() > end:
            raise TimeoutError(f"Waited {seconds:.0f} s for {what}.")
        time.sleep(every)
