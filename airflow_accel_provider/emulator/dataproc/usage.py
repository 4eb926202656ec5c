"""What a batch uses: snapshots while it runs, a sum once it is over. Numbers are the service's: milli, and as texts."""

from __future__ import annotations

import math
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from airflow_accel_provider.emulator.dataproc.batches import Phase
from airflow_accel_provider.emulator.dataproc.tables import SPARK_ACCELERATORS
from airflow_accel_provider.emulator.ledger import rfc3339

if TYPE_CHECKING:
    from airflow_accel_provider.emulator.dataproc.batches import Batch
    from airflow_accel_provider.emulator.dataproc.wishes import Wish

SNAPSHOT_SECONDS = 60.0
"""Between two snapshots, and from the start to the first; the time scale divides it."""

NO_TYPE = "UNSPECIFIED"
MILLI_DCU_PER_CORE = 1000
"""A core with 4 GB is 0.6 DCU and 0.1 a GB. https://cloud.google.com/dataproc-serverless/pricing, read 2026-11."""


def snapshot(batch: Batch, *, now: datetime, interval: float) -> dict[str, Any] | None:
    """Return what a running batch used when that was last looked at, every ``interval`` real seconds; None before."""
    if batch.started is None or batch.is_over:
        return None
    started = datetime.fromisoformat(batch.started)
    looks = math.floor((now - started).total_seconds() / interval)
    if looks < 1:
        return None
    wish = batch.wish
    dcu, storage, premium = _dcu(wish), wish.disk_gb * wish.executors, wish.premium_compute
    shown = {
        "milliDcuPremium" if premium and wish.names_types else "milliDcu": str(dcu),
        "shuffleStorageGbPremium" if wish.premium_disk and wish.names_types else "shuffleStorageGb": str(storage),
        "snapshotTime": rfc3339(started + timedelta(seconds=looks * interval)),
    }
    return {**shown, **_accelerators(batch, "milliAccelerator", 1)}


def approximate(batch: Batch) -> dict[str, Any] | None:
    """Return what a batch that is over used in all; None for one that never ran."""
    if batch.started is None or not batch.is_over:
        return None
    begun, ended = datetime.fromisoformat(batch.started), datetime.fromisoformat(batch.state_time)
    seconds = max(1, math.ceil((ended - begun).total_seconds()))
    wish = batch.wish
    return {
        "milliDcuSeconds": str(_dcu(wish) * seconds),
        "shuffleStorageGbSeconds": str(wish.disk_gb * wish.executors * seconds),
        "updateTime": batch.state_time,
        **_accelerators(batch, "milliAcceleratorSeconds", seconds),
    }


def _dcu(wish: Wish) -> int:
    return (wish.driver_cores + wish.cores * wish.executors) * MILLI_DCU_PER_CORE


def _type_word(name: str) -> str:
    """Return an accelerator type as a word like ``UNSPECIFIED``; how the service writes it is not known."""
    return name.upper().replace("-", "_")


def _accelerators(batch: Batch, field: str, seconds: int) -> dict[str, str]:
    """Return the fields about accelerators: by type from 3.0 on, else one number with its type."""
    wish = batch.wish
    if wish.accelerator is None:
        return {} if wish.names_types else {"acceleratorType": NO_TYPE}
    known = SPARK_ACCELERATORS[wish.accelerator]
    is_there = batch.shows_gpus and batch.phase is not Phase.CHURNING
    number = str(wish.executors * wish.gpus * 1000 * seconds if is_there else 0)
    return (
        {f"{field}{known.label}": number}
        if wish.names_types
        else {"acceleratorType": _type_word(known.name), field: number}
    )
