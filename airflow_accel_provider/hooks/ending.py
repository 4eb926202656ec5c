"""Ending the job of an attempt in the way the attempt says."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_accel_provider.core.jobs import JobState
from airflow_accel_provider.core.record import Attempt, Outcome
from airflow_accel_provider.exceptions import GoogleApiError
from airflow_accel_provider.hooks.dataflow import DataflowHook
from airflow_accel_provider.hooks.workers import WorkersHook

if TYPE_CHECKING:
    from airflow_accel_provider.hooks.session import GoogleSession


def end(session: GoogleSession, attempt: Attempt) -> None:
    """Ask the service to end the attempt's job; its end is for the caller to see.

    A ``draining`` attempt's job is drained if it can be, any other is cancelled. Raises :class:`GoogleApiError`.
    """
    if attempt.job_id is None:
        return
    hook, region = DataflowHook(session), attempt.placement.region
    if attempt.outcome is Outcome.DRAINING and _can_drain(session, hook, attempt):
        hook.drain(attempt.job_id, region)
    else:
        hook.cancel(attempt.job_id, region)


def _can_drain(session: GoogleSession, hook: DataflowHook, attempt: Attempt) -> bool:
    """Tell whether there is anything to drain: only streaming jobs can, and one without workers would never end so."""
    job = hook.get(attempt.job_id or "", attempt.placement.region)
    if job is None or not job.is_streaming:
        return False
    if job.state is JobState.DRAINING or attempt.is_proven:
        return job.state in {JobState.DRAINING, JobState.RUNNING}
    return job.state is JobState.RUNNING and _has_workers(session, attempt)


def _has_workers(session: GoogleSession, attempt: Attempt) -> bool:
    try:
        return bool(WorkersHook(session).workers_of(attempt.job_id or "", region=attempt.placement.region))
    except GoogleApiError:
        # Where nobody may look, what the user asked for is done.
        return True
