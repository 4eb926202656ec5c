"""Reading quotas: of all regions at once, each once, within a time limit."""

from __future__ import annotations

import logging
from concurrent.futures import ThreadPoolExecutor, wait
from functools import partial
from typing import TYPE_CHECKING

from airflow_accel_provider.core.quota import GLOBAL, Quota, Readings
from airflow_accel_provider.exceptions import GoogleApiError
from airflow_accel_provider.hooks import _wire

if TYPE_CHECKING:
    from collections.abc import Iterable

    from airflow_accel_provider.hooks.session import GoogleSession

log = logging.getLogger(__name__)

_AT_ONCE = 8


def read_quotas(session: GoogleSession, regions: Iterable[str], *, seconds: float = 10.0) -> Readings:
    """Return the quotas of the project (under :data:`GLOBAL`) and of each region.

    What can't be read within ``seconds`` (forbidden, failing, late, or the service says that it doesn't know) is
    ``None``. Nothing is raised.
    """
    places = list(dict.fromkeys([GLOBAL, *regions]))
    pool = ThreadPoolExecutor(min(_AT_ONCE, len(places)), thread_name_prefix="quota")
    try:
        readings = {place: pool.submit(partial(_read, session, place, seconds)) for place in places}
        done, late = wait(readings.values(), timeout=seconds)
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
    if late:
        log.info(
            "quota unknown reason=late places=%s", ",".join(p for p, reading in readings.items() if reading in late)
        )
    return {place: reading.result() if reading in done else None for place, reading in readings.items()}


def _read(session: GoogleSession, place: str, seconds: float) -> dict[str, Quota] | None:
    path = f"projects/{session.project}" if place == GLOBAL else f"projects/{session.project}/regions/{place}"
    try:
        # Half the time for trying again: what is given up must also end by itself.
        value = session.request("compute", "GET", path, timeout=seconds, retry_seconds=seconds / 2)
    except GoogleApiError as error:
        log.info("quota unknown place=%s error=%s", place, error)
        return None
    return _wire.quotas_from_json(value)
