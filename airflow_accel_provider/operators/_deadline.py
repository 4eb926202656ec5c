"""Holding a try to its time: Airflow starts that anew after each deferral, and does not count while deferred."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from airflow_accel_provider.core.deadline import Deadline

if TYPE_CHECKING:
    from airflow.sdk import Context

LATE = timedelta(minutes=2)
"""How long after a trigger should have fired Airflow wakes the task without it; later there is no triggerer."""


def deadline_of(context: Context, limit: timedelta | None) -> Deadline | None:
    """Return when the try ends, counted from its start, which a deferral keeps; ``None`` without a limit."""
    return Deadline.after(context["ti"].start_date, limit) if limit else None


@contextmanager
def held_to(deadline: Deadline | None) -> Iterator[None]:
    """Interrupt what is done within by ``AirflowTaskTimeout`` when the time is over, in place of Airflow's own alarm.

    Nothing is interrupted once the block was left, nor when the time was over before: what is left to do then is to end
    the job. Outside a process's main thread there is no alarm.
    """
    left = deadline.left(datetime.now(UTC)).total_seconds() if deadline else 0
    if not left:
        yield
        return
    from airflow.sdk.execution_time.timeout import timeout

    with timeout(left):
        yield
