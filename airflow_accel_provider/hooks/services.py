"""Looking at jobs and ending them, by the service that runs them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from airflow_accel_provider.hooks import ending, polling, spark

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow_accel_provider.core.jobs import Service, Snapshot
    from airflow_accel_provider.core.record import Attempt
    from airflow_accel_provider.hooks.session import GoogleSession

_LOOKS = {"dataflow": polling.look, "dataproc": spark.look}
_ENDS = {"dataflow": ending.end, "dataproc": spark.end}


def look(session: GoogleSession, service: Service, region: str, wanted: Mapping[str, bool]) -> dict[str, Snapshot]:
    """Return what a service shows of each wanted job of a region.

    ``wanted`` maps a job's id to whether its accelerator is still to be proven. Raises :class:`GoogleApiError`.
    """
    looked = _LOOKS[service](session, region, wanted)
    return {job_id: replace(snapshot, at=session.told_at) for job_id, snapshot in looked.items()}


def end(session: GoogleSession, service: Service, attempt: Attempt) -> None:
    """Ask a service to end the attempt's job, as the attempt says. Raises :class:`GoogleApiError`."""
    _ENDS[service](session, attempt)
