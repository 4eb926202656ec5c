"""Worker VMs: what Compute Engine shows of a Dataflow job."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_accel_provider.exceptions import GoogleApiError
from airflow_accel_provider.hooks import _wire
from airflow_accel_provider.hooks._fields import unreadable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from airflow_accel_provider.core.jobs import Worker
    from airflow_accel_provider.hooks.session import GoogleSession


class WorkersHook:
    """Worker VMs by the label that Dataflow puts on them.

    Every method raises :class:`GoogleApiError` when they can't be read, which is not the same as none.
    """

    def __init__(self, session: GoogleSession) -> None:
        self._session = session

    def workers_of(self, job_id: str, *, region: str | None = None) -> tuple[Worker, ...]:
        """Return the worker VMs of one job; only zones of its region, where it is given, must have answered."""
        wanted = f"labels.{_wire.JOB_ID_LABEL}={job_id}"
        return tuple(_wire.worker_from_json(value) for value in self._instances(wanted, region))

    def all_workers(self) -> dict[str, tuple[Worker, ...]]:
        """Return the worker VMs of every Dataflow job in the project, by job id."""
        workers: dict[str, tuple[Worker, ...]] = {}
        for value in self._instances(f"labels.{_wire.JOB_ID_LABEL}:*", None):
            labels = value.get("labels")
            job_id = labels.get(_wire.JOB_ID_LABEL) if isinstance(labels, dict) else None
            if not isinstance(job_id, str):
                # Somebody's worker it is, and whoever misses one must not take it for none.
                raise unreadable("compute", "instances", "a VM does not say whose worker it is")
            workers[job_id] = (*workers.get(job_id, ()), _wire.worker_from_json(value))
        return workers

    def _instances(self, wanted: str, region: str | None) -> Iterator[Mapping[str, Any]]:
        path = f"projects/{self._session.project}/aggregated/instances"
        params = {"filter": wanted, "returnPartialSuccess": "true", "maxResults": 500}
        silent: list[str] = []
        seen = False
        for page in self._session.pages("compute", path, params=params):
            silent += [zone for zone in _wire.unreachable_from_json(page) if zone.startswith(region or zone)]
            for value in _wire.instances_from_json(page):
                seen = True
                yield value
        if silent and not seen:
            raise GoogleApiError(503, "unreachable", f"no answer from {', '.join(silent)}", "compute", f"GET {path}")
