"""How a wait ends for its task: with a value, an exception, or a skip."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from airflow.sdk.exceptions import (
    AirflowException,
    AirflowRescheduleException,
    AirflowSensorTimeout,
    AirflowSkipException,
)

from airflow_accel_provider.core.waiting.answers import Met, Never
from airflow_accel_provider.exceptions import job_error

if TYPE_CHECKING:
    from airflow_accel_provider.triggers._wait import Settled


def value_of(task_id: str, settled: Settled, *, limit: float) -> dict[str, Any]:
    """Return the value of a wait that was met, or raise what the task fails with; ``limit`` is its time in seconds."""
    if isinstance(settled, Met):
        return settled.value
    if isinstance(settled, Never):
        failure = settled.failure
        stop = "" if failure.explanation.endswith("?") else "."
        raise job_error(failure.kind, f"{task_id} failed: {failure.explanation}{stop}")
    raise AirflowSensorTimeout(f"{task_id} timed out after {limit:g} s: {settled.reason}.")


@contextmanager
def skipping(*, wanted: bool) -> Iterator[None]:
    """Turn a failure into a skip where that is wanted, keeping its text as the reason."""
    try:
        yield
    except (AirflowRescheduleException, AirflowSkipException):
        raise
    except AirflowException as failed:
        if not wanted:
            raise
        raise AirflowSkipException(str(failed)) from failed
