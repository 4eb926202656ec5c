"""Trying a call again, within a bounded time."""

from __future__ import annotations

import random
import time
from typing import TYPE_CHECKING, TypeVar

from airflow_accel_provider.exceptions import GoogleApiError

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

_FIRST_PAUSE = 0.5
_LONGEST_PAUSE = 8.0
_jitter = random.SystemRandom()


def retrying(
    call: Callable[[], T],
    *,
    seconds: float,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> T:
    """Return what the call returns, trying again after transient errors as long as ``seconds`` allow.

    Pauses double with jitter, and come on top of what the service's Retry-After asks, so that those who were told the
    same do not come back together. The last error is raised when the next try would begin too late, and says what was
    tried; 0 seconds mean a single try.
    """
    began = clock()
    deadline = began + seconds
    attempt = 0
    while True:
        try:
            return call()
        except GoogleApiError as error:
            pause = _pause(attempt) + (error.retry_after or 0)
            if not error.is_transient or clock() + pause >= deadline:
                error.tried = _tried(error, attempt + 1, clock() - began, seconds)
                raise
        sleep(pause)
        attempt += 1


def _tried(error: GoogleApiError, times: int, lasted: float, seconds: float) -> str:
    """Say how often was asked and for how long, and where the service asked to wait for longer than there was time."""
    parts = [f"asked {times} times in {lasted:.0f} s"] if times > 1 else []
    if seconds and error.is_transient and error.retry_after and error.retry_after >= seconds - lasted:
        parts.append(f"told to wait {error.retry_after:.0f} s, with {seconds - lasted:.0f} s left for trying")
    return f" ({', '.join(parts)})" if parts else ""


def _pause(attempt: int) -> float:
    longest: float = min(_FIRST_PAUSE * 2.0 ** min(attempt, 10), _LONGEST_PAUSE)
    return longest * _jitter.uniform(0.5, 1.0)
