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

    Pauses double with jitter, and are never shorter than the service's Retry-After asks. The last error is raised when
    the next try would begin too late, and says what was tried; 0 seconds mean a single try.
    """
    began = clock()
    deadline = began + seconds
    attempt = 0
    while True:
        try:
            return call()
        except GoogleApiError as error:
            pause = max(_pause(attempt), error.retry_after or 0)
            if not error.is_transient or clock() + pause >= deadline:
                if attempt:
                    error.tried = f" (asked {attempt + 1} times in {clock() - began:.0f} s)"
                raise
        sleep(pause)
        attempt += 1


def _pause(attempt: int) -> float:
    longest: float = min(_FIRST_PAUSE * 2.0 ** min(attempt, 10), _LONGEST_PAUSE)
    return longest * _jitter.uniform(0.5, 1.0)
