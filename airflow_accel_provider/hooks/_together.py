"""Asking several things at once, within one time limit; what gets no answer is unknown."""

from __future__ import annotations

import logging
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import TYPE_CHECKING, TypeVar

from airflow_accel_provider.exceptions import GoogleApiError

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping

log = logging.getLogger(__name__)

_AT_ONCE = 12

Key = TypeVar("Key", bound="Hashable")
Answer = TypeVar("Answer")


def ask_together(calls: Mapping[Key, Callable[[], Answer]], *, seconds: float) -> dict[Key, Answer]:
    """Return the answers of calls that were made at once, by their keys.

    Calls that Google refuses and those that are late are left out; a line in the log says so. Nothing is raised.
    """
    if not calls:
        return {}
    pool = ThreadPoolExecutor(min(_AT_ONCE, len(calls)), thread_name_prefix="ask")
    try:
        futures = {key: pool.submit(call) for key, call in calls.items()}
        done, late = wait(futures.values(), timeout=seconds)
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
    if late:
        log.info("unknown reason=late what=%s", ",".join(str(key) for key, each in futures.items() if each in late))
    return {key: each.result() for key, each in futures.items() if each in done and _is_answered(key, each)}


def _is_answered(key: Hashable, future: Future[Answer]) -> bool:
    error = future.exception()
    if error is None:
        return True
    if not isinstance(error, GoogleApiError):
        raise error
    log.info("unknown what=%s error=%s", key, error)
    return False
