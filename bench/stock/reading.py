"""What became of jobs, read from the emulator's ledger alone."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from bench.stock.subjects import subject_in

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

MADE = ("dataflow.job.created", "dataproc.batch.created")
CHANGED = ("dataflow.job.state", "dataproc.batch.state")
ASKED = ("dataflow.job.requested", "dataproc.batch.requested")
OVER = {"DONE", "FAILED", "CANCELLED", "DRAINED", "SUCCEEDED"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One job or batch; times are seconds since the epoch, ``ended`` is None as long as it lives."""

    id: str
    region: str
    subject: str
    made: float
    state: str = "CREATED"
    ended: float | None = None
    asked_to_end: bool = False


def jobs_of(ledger: Mapping[str, Any]) -> list[Job]:
    """Return all jobs that a part of the ledger tells of from their making on, oldest first."""
    jobs: dict[tuple[str, str], Job] = {}
    for event in ledger["events"]:
        # A batch's id is one in its region alone.
        region, id_ = known = event.get("location") or "", event.get("job_id") or event.get("batch_id") or ""
        if event["kind"] in MADE:
            owner = subject_in(f"{event.get('name')} {event.get('labels')}") or ""
            jobs[known] = Job(id=id_, region=region, subject=owner, made=seconds(event))
        elif known in jobs:
            jobs[known] = after(jobs[known], event)
    return list(jobs.values())


def after(job: Job, event: Mapping[str, Any]) -> Job:
    """Return a job after one more event."""
    if event["kind"] in ASKED:
        return replace(job, asked_to_end=True)
    if event["kind"] not in CHANGED:
        return job
    state = event["state"].removeprefix("JOB_STATE_")
    return replace(job, state=state, ended=seconds(event) if state in OVER else None)


def seconds(event: Mapping[str, Any]) -> float:
    """Return an event's time."""
    return datetime.fromisoformat(event["time"]).timestamp()


def most_at_once(jobs: Iterable[Job]) -> int:
    """Return how many jobs lived at the same moment."""
    # Where one ends at the moment in which another begins, they did not live together.
    moments = sorted([(job.made, 1) for job in jobs] + [(job.ended, -1) for job in jobs if job.ended is not None])
    most = alive = 0
    for _, step in moments:
        alive += step
        most = max(most, alive)
    return most
