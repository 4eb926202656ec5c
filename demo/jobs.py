"""What became of jobs and batches, read from the emulator's ledger alone."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from math import inf
from typing import TYPE_CHECKING, Any

from demo.batches import as_jobs

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

OVER = {"done", "failed", "cancelled", "drained", "updated"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A job: its states in lower-case words, who asked for its end, and when it lived.

    ``born`` and ``died`` are numbers of events, which tell order where times are equal; ``made`` and ``ended`` are
    seconds since the epoch. ``held`` is for how many seconds it had VMs with accelerators that are gone by now.
    """

    id: str
    name: str
    region: str
    labels: Mapping[str, str]
    states: tuple[str, ...]
    asked_by: tuple[str, ...] = ()
    born: int
    died: float = inf
    made: float
    ended: float | None = None
    held: float = 0.0

    @property
    def state(self) -> str:
        """The newest state."""
        return self.states[-1]

    @property
    def is_over(self) -> bool:
        """Whether it has ended."""
        return self.state in OVER


def jobs_of(ledger: Mapping[str, Any]) -> list[Job]:
    """Return all jobs that a part of the ledger tells of from their making on, oldest first."""
    told: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for event in as_jobs(ledger)["events"]:
        # A batch's id is one in its region alone.
        known = event.get("location") or "", event.get("job_id") or ""
        if event["kind"] == "dataflow.job.created":
            told[known] = []
        if known in told:
            told[known].append(event)
    return [_job(*events) for events in told.values()]


def overlap(jobs: Sequence[Job]) -> list[tuple[Job, Job]]:
    """Return which jobs lived at one time."""
    pairs = [(one, other) for n, one in enumerate(jobs) for other in jobs[n + 1 :]]
    return [(one, other) for one, other in pairs if one.born < other.died and other.born < one.died]


def _job(made: Mapping[str, Any], *events: Mapping[str, Any]) -> Job:
    changes = [event for event in events if event["kind"] == "dataflow.job.state"]
    states = [str(event["state"]).removeprefix("JOB_STATE_").lower() for event in changes]
    over = next((event for event, state in zip(changes, states, strict=True) if state in OVER), None)
    return Job(
        id=made["job_id"],
        name=made.get("name") or made["job_id"],
        region=made["location"],
        labels=made.get("labels") or {},
        states=("made", *states),
        asked_by=tuple(event["principal"] for event in events if event["kind"] == "dataflow.job.requested"),
        born=made["seq"],
        died=over["seq"] if over else inf,
        made=_seconds(made),
        ended=_seconds(over) if over else None,
        held=_held(events),
    )


def _held(events: Sequence[Mapping[str, Any]]) -> float:
    held, vms = 0.0, dict[str, float]()
    for event in events:
        if event["kind"] == "compute.instance.created" and event.get("accelerator"):
            vms[event["instance"]] = _seconds(event)
        elif event["kind"] == "compute.instance.deleted" and event["instance"] in vms:
            held += _seconds(event) - vms.pop(event["instance"])
    return held


def _seconds(event: Mapping[str, Any]) -> float:
    return datetime.fromisoformat(event["time"]).timestamp()
