"""What the emulator's ledger says of a story, and what it must not say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Self

OVER = frozenset({"DONE", "SUCCEEDED", "FAILED", "CANCELLED", "UPDATED", "DRAINED"})
WELL = frozenset({"DONE", "SUCCEEDED"})


@dataclass(slots=True, kw_only=True)
class Job:
    """A job or batch as the ledger tells of it; times are seconds since the epoch."""

    id: str
    name: str
    region: str
    labels: Mapping[str, str]
    number: int
    made: float
    state: str = "PENDING"
    ended: float | None = None
    over: int | None = None
    """The number of the event that ended it, which tells order where times are equal."""
    is_asked_to_end: bool = False
    held: float = 0.0
    """For how many seconds it has had VMs with accelerators."""
    vms: dict[str, float] = field(default_factory=dict)

    @property
    def owner(self) -> str | None:
        """Whose it is."""
        return self.labels.get("accel-owner")

    @property
    def is_live(self) -> bool:
        """Tell whether it has not ended."""
        return self.over is None


@dataclass(frozen=True, slots=True)
class Account:
    """All jobs of a stretch of the ledger, oldest first."""

    jobs: Sequence[Job]

    @classmethod
    def of(cls, events: Sequence[Mapping[str, Any]]) -> Self:
        """Read events."""
        jobs: dict[tuple[str, str], Job] = {}
        for event in events:
            # A batch's id is one in its region alone.
            known = event.get("location") or "", event.get("job_id") or event.get("batch_id") or ""
            if event["kind"] in {"dataflow.job.created", "dataproc.batch.created"}:
                jobs[known] = _made(event)
            elif job := jobs.get(known):
                _tell(job, event)
        return cls(tuple(jobs.values()))

    def but(self, names: Mapping[str, str]) -> Self:
        """Return it without the jobs of other people, by their ids."""
        return type(self)(tuple(job for job in self.jobs if job.id not in names))

    def twice(self) -> Sequence[str]:
        """Return a sentence for each job that was made while another lived."""
        return [
            f"{later.name} was made while {earlier.name} lived"
            for number, earlier in enumerate(self.jobs)
            for later in self.jobs[number + 1 :]
            if earlier.over is None or earlier.over > later.number
        ]


def _made(event: Mapping[str, Any]) -> Job:
    id_ = event.get("job_id") or event["batch_id"]
    return Job(
        id=id_,
        name=event.get("name") or id_,
        region=event["location"],
        labels=event.get("labels") or {},
        number=event["seq"],
        made=_seconds(event),
    )


def _tell(job: Job, event: Mapping[str, Any]) -> None:
    kind = event["kind"]
    if kind.endswith(".state"):
        job.state = event["state"].removeprefix("JOB_STATE_")
        if job.state in OVER:
            job.ended, job.over = _seconds(event), event["seq"]
    elif kind.endswith(".requested"):
        job.is_asked_to_end = True
    elif kind == "compute.instance.created" and event.get("accelerator"):
        job.vms[event["instance"]] = _seconds(event)
    elif kind == "compute.instance.deleted" and event["instance"] in job.vms:
        job.held += _seconds(event) - job.vms.pop(event["instance"])


def _seconds(event: Mapping[str, Any]) -> float:
    return datetime.fromisoformat(event["time"]).timestamp()
