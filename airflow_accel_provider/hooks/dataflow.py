"""Dataflow jobs: find, read, cancel."""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from dataclasses import replace
from itertools import accumulate, islice
from typing import TYPE_CHECKING, TypeVar

from airflow_accel_provider.core.jobs import Importance, Job, JobState, Message, ScalingEvent
from airflow_accel_provider.exceptions import GoogleApiError
from airflow_accel_provider.hooks import _wire
from airflow_accel_provider.hooks._fields import unreadable
from airflow_accel_provider.hooks._retry import retrying

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Mapping, Sequence
    from datetime import datetime

    from airflow_accel_provider.hooks.session import GoogleSession

T = TypeVar("T")

MOST_MESSAGES = 5_000
"""Job messages (and scaling events) kept of one reading, the newest ones."""

MOST_CHARACTERS = 2_000_000
"""Characters kept of one reading's messages together, of the newest ones; to judge them takes a second or two."""

# Of a thousand messages each; what a job says beyond is not read.
_MOST_PAGES = 100

# For how long a list that lacks a region's answer is asked for again.
_LIST_SECONDS = 30.0

# Labels need JOB_VIEW_DESCRIPTION and the zones that were used JOB_VIEW_ALL, which also carries every step of the
# pipeline; the field mask leaves those at the service.
_FULL_VIEW = {
    "view": "JOB_VIEW_ALL",
    "fields": "id,name,type,location,currentState,currentStateTime,createTime,labels,serviceResources",
}


class DataflowHook:
    """Dataflow as the core sees it. Every method raises :class:`GoogleApiError` when the service can't answer."""

    def __init__(self, session: GoogleSession) -> None:
        self._session = session

    def find(self, name: str, region: str) -> tuple[Job, ...]:
        """Return every job of exactly this name, finished ones too, with labels; the newest first."""
        hits = retrying(lambda: tuple(self._list(region, {"name": name, "filter": "ALL"})), seconds=_LIST_SECONDS)
        # A job that is gone between the two reads is no hit; one whose name is not told may be one.
        jobs = [self._named(hit, region) for hit in hits if hit.name in {name, ""}]
        found = [job for job in jobs if job and job.name == name]
        return tuple(sorted(found, key=_created, reverse=True))

    def list_active(self, region: str) -> tuple[Job, ...]:
        """Return the summaries (no labels) of all jobs that haven't ended."""
        return tuple(self._list(region, {"filter": "ACTIVE"}))

    def get(self, job_id: str, region: str) -> Job | None:
        """Return a job with labels and zones, or ``None`` when the service doesn't know it."""
        try:
            value = self._session.request("dataflow", "GET", f"{self._jobs(region)}/{job_id}", params=_FULL_VIEW)
        except GoogleApiError as error:
            if error.status == 404:
                return None
            raise
        job = _wire.job_from_json(value, full=True)
        if job.id not in {job_id, ""}:
            raise unreadable("dataflow", "job", f"it is job {job.id}, and {job_id} was asked for")
        return replace(job, id=job_id, region=job.region or region)

    def messages(
        self,
        job_id: str,
        region: str,
        *,
        since: datetime | None = None,
        minimum: Importance = Importance.BASIC,
    ) -> tuple[tuple[Message, ...], tuple[ScalingEvent, ...]]:
        """Return the job's messages of at least an importance, and its scaling events, oldest first.

        Of more than :data:`MOST_MESSAGES`, or :data:`MOST_CHARACTERS`, the newest are kept, since the reason of an end
        stands at the end.
        """
        params = {"minimumImportance": _wire.importance_to_wire(minimum), "pageSize": 1000}
        if since:
            params["startTime"] = _wire.time_to_wire(since)
        messages: deque[Message] = deque(maxlen=MOST_MESSAGES)
        scaling: deque[ScalingEvent] = deque(maxlen=MOST_MESSAGES)
        pages = self._session.pages("dataflow", f"{self._jobs(region)}/{job_id}/messages", params=params)
        for page in islice(pages, _MOST_PAGES):
            messages.extend(_wire.messages_from_json(page))
            scaling.extend(_wire.scaling_from_json(page))
        # Pages may repeat what stands at their edges.
        return _newest(_in_time(messages)), _in_time(scaling)

    def cancel(self, job_id: str, region: str) -> None:
        """Ask for a job's cancellation; one that has ended, is being cancelled, or isn't known, needs none."""
        self._request_state(job_id, region, JobState.CANCELLED, on_the_way={JobState.CANCELLING})

    def drain(self, job_id: str, region: str) -> None:
        """Ask a streaming job to finish what it has taken in; one that is ending in any way needs no asking."""
        on_the_way = {JobState.DRAINING, JobState.CANCELLING}
        self._request_state(job_id, region, JobState.DRAINED, on_the_way=on_the_way)

    def _request_state(self, job_id: str, region: str, state: JobState, *, on_the_way: Container[JobState]) -> None:
        wish = {"requestedState": _wire.state_to_wire(state)}
        try:
            self._session.request("dataflow", "PUT", f"{self._jobs(region)}/{job_id}", body=wish, idempotent=True)
        except GoogleApiError as error:
            if error.status not in {400, 404, 409, 412}:
                raise
            job = self.get(job_id, region)
            if job and not (job.state.is_terminal or job.state in on_the_way):
                raise

    def _named(self, hit: Job, region: str) -> Job | None:
        job = self.get(hit.id, region)
        if job and not (job.name or hit.name):
            # An incomplete answer must not read as "there is no such job".
            raise unreadable("dataflow", "job", f"job {hit.id} has no name")
        return replace(job, name=job.name or hit.name) if job else None

    def _list(self, region: str, params: Mapping[str, str]) -> Iterable[Job]:
        for page in self._session.pages("dataflow", self._jobs(region), params={**params, "pageSize": 1000}):
            if page.get("failedLocation"):
                # An incomplete list must not read as "there is no such job".
                raise GoogleApiError(503, "failedLocation", f"{region} didn't answer", "dataflow", "GET jobs")
            yield from _wire.jobs_from_json(page, region)

    def _jobs(self, region: str) -> str:
        return f"projects/{self._session.project}/locations/{region}/jobs"


def _created(job: Job) -> float:
    return job.created_at.timestamp() if job.created_at else 0.0


def _newest(messages: Sequence[Message]) -> tuple[Message, ...]:
    sizes = accumulate(len(message.text) for message in reversed(messages))
    kept = bisect_right(list(sizes), MOST_CHARACTERS)
    return tuple(messages[len(messages) - kept :])


def _in_time(events: Iterable[T]) -> tuple[T, ...]:
    return tuple(sorted(dict.fromkeys(events), key=lambda event: event.at))  # type: ignore[attr-defined]
