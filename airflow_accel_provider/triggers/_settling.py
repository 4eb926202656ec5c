"""How long after its start a trigger must not fire."""

from __future__ import annotations

from airflow.sdk.configuration import conf

_SCHEDULER_ROUNDS = 3.0


def settling_seconds() -> float:
    """Return how long after its start a trigger must not fire.

    The supervisor of the worker that deferred reports its end up to ``min_heartbeat_interval`` late, and the scheduler
    reads that within a few of its rounds. If the task runs again by then, Airflow 3.3 takes the report for the end of
    the new run and fails it as killed externally.
    """
    late = conf.getint("workers", "min_heartbeat_interval", fallback=5)
    return late + _SCHEDULER_ROUNDS if late else 0.0
