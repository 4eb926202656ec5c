"""The record of one task instance: who owns the jobs, which life this is, and every attempt so far.

It is plain JSON with a version. The worker keeps it in ``task_state_store``; the trigger carries a copy and echoes
it in its event. It holds ids, places and outcomes, never the user's options.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Any

from airflow_accel_provider.core.failures import Failure
from airflow_accel_provider.core.identity import item_digest, job_name
from airflow_accel_provider.core.jobs import Service
from airflow_accel_provider.core.placement import Placement
from airflow_accel_provider.core.proof import Proof
from airflow_accel_provider.core.usage import Spent

VERSION = 1
RECORD_KEY = "accel_job"
"""The key of ``task_state_store`` under which a task instance's record is kept."""


class UnknownVersionError(ValueError):
    """A record, event or argument of a version that this release does not know. Nothing is cancelled because of it."""


class Outcome(StrEnum):
    """How far an attempt came. ``intent`` is written before submission, so that a crash cannot hide a job.

    ``cancelling`` and ``draining`` say what its job was asked for, ``running`` that it was proven and left running.
    """

    INTENT = "intent"
    SUBMITTED = "submitted"
    CANCELLING = "cancelling"
    DRAINING = "draining"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def is_open(self) -> bool:
        """Tell whether there is still something to decide about this attempt."""
        return self in {Outcome.INTENT, Outcome.SUBMITTED} or self.is_ending

    @property
    def is_ending(self) -> bool:
        """Tell whether the attempt's job was asked to end."""
        return self in {Outcome.CANCELLING, Outcome.DRAINING}


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One submission of one candidate.

    ``n`` counts from 1 within the life and is part of the job's name. ``candidate`` is the place in the user's
    order, from 0; ``round`` the pass over that order (an Airflow retry begins another). ``failure`` of a
    ``cancelling`` or ``draining`` attempt is the reason for that. ``bare_since`` and ``lost_since`` hold when workers
    were first seen without the device and when the service first denied knowing the job. ``spent`` is what a Spark
    batch used until its end.
    """

    n: int
    candidate: int
    round: int
    placement: Placement
    job_name: str
    intent_at: datetime
    outcome: Outcome = Outcome.INTENT
    job_id: str | None = None
    zone: str | None = None
    submitted_at: datetime | None = None
    cancel_requested_at: datetime | None = None
    ended_at: datetime | None = None
    failure: Failure | None = None
    proof: Proof | None = None
    bare_since: datetime | None = None
    lost_since: datetime | None = None
    spent: Spent | None = None

    @property
    def is_proven(self) -> bool:
        """Tell whether the accelerator was seen."""
        return self.proof is not None and self.proof.status == "seen"

    @property
    def has_succeeded(self) -> bool:
        """Tell whether the attempt gave the user what the task is for."""
        return self.outcome in {Outcome.DONE, Outcome.RUNNING} and self.failure is None

    def to_json(self) -> dict[str, Any]:
        """Return the attempt as plain JSON, leaving out what is not known."""
        value = {
            "n": self.n,
            "candidate": self.candidate,
            "round": self.round,
            "placement": str(self.placement),
            "job_name": self.job_name,
            "outcome": str(self.outcome),
            "job_id": self.job_id,
            "zone": self.zone,
            "failure": self.failure.to_json() if self.failure else None,
            "proof": self.proof.to_json() if self.proof else None,
            "spent": self.spent.to_json() if self.spent else None,
        }
        times = {name: at.isoformat() for name in _TIMES if (at := getattr(self, name))}
        return {name: item for name, item in value.items() if item is not None} | times

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Attempt:
        """Return the attempt that :meth:`to_json` wrote."""
        read: dict[str, Any] = dict(value)
        read["placement"] = Placement.parse(read["placement"])
        read["outcome"] = Outcome(read["outcome"])
        read |= {name: datetime.fromisoformat(read[name]) for name in _TIMES if name in read}
        if "failure" in read:
            read["failure"] = Failure.from_json(read["failure"])
        if "proof" in read:
            read["proof"] = Proof.from_json(read["proof"])
        if "spent" in read:
            read["spent"] = Spent.from_json(read["spent"])
        return cls(**read)


_TIMES = ("intent_at", "submitted_at", "cancel_requested_at", "ended_at", "bare_since", "lost_since")


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedPlace:
    """One candidate as the newest plan sees it: its place, and why it was put aside if it was.

    ``reservation`` names the one it draws on; ``any`` says that those which any machine may use have room.
    """

    placement: Placement
    rejected: Failure | None = None
    warnings: tuple[str, ...] = ()
    reservation: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the row as plain JSON."""
        value: dict[str, Any] = {"placement": str(self.placement)}
        if self.rejected:
            value["rejected"] = self.rejected.to_json()
        if self.warnings:
            value["warnings"] = list(self.warnings)
        if self.reservation:
            value["reservation"] = self.reservation
        return value

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> PlannedPlace:
        """Return the row that :meth:`to_json` wrote."""
        rejected = value.get("rejected")
        return cls(
            placement=Placement.parse(value["placement"]),
            rejected=Failure.from_json(rejected) if rejected else None,
            warnings=tuple(value.get("warnings", ())),
            reservation=value.get("reservation"),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """All that outlives a process.

    ``owner`` is minted once per task instance, ``life`` counts the user's wishes, ``max_tries`` is Airflow's figure
    when this life began (a clear raises it). ``ended`` is set once the outcome was reported, so that the next try in
    the same life begins another round after a failure. ``killed`` is set by this task's own kill. ``service`` runs the
    jobs. ``crashes`` counts the triggers that ended without an event. ``item`` is a digest of what a mapped task was
    expanded over, ``None`` for a task that is not mapped: the same index may mean another item by the next try.
    """

    owner: str
    life: int
    max_tries: int
    started_at: datetime
    project: str
    prefix: str
    round: int = 1
    plan: tuple[PlannedPlace, ...] = ()
    attempts: tuple[Attempt, ...] = ()
    ended: bool = False
    killed: bool = False
    service: Service = "dataflow"
    crashes: int = 0
    item: str | None = None

    @property
    def current(self) -> Attempt | None:
        """The newest attempt of this round, open or not."""
        return self.attempts[-1] if self.attempts and self.attempts[-1].round == self.round else None

    @property
    def open(self) -> Attempt | None:
        """The attempt about which there is still something to decide, if any."""
        alive = self.alive
        return alive if alive and alive.outcome.is_open else None

    @property
    def alive(self) -> Attempt | None:
        """The attempt whose job may be alive, if any: the open one, or one that was left running."""
        last = self.attempts[-1] if self.attempts else None
        return last if last and (last.outcome.is_open or last.outcome is Outcome.RUNNING) else None

    @property
    def this_round(self) -> tuple[Attempt, ...]:
        """The attempts of the current pass over the candidates."""
        return tuple(attempt for attempt in self.attempts if attempt.round == self.round)

    def with_attempt(self, attempt: Attempt) -> Record:
        """Return the record with an attempt added, or put in the place of the one with the same ``n``."""
        return replace(self, attempts=(*(old for old in self.attempts if old.n != attempt.n), attempt))

    def about(self, item: str | None) -> Record:
        """Return the record with the digest of an item."""
        return replace(self, item=item_digest(self.owner, item) if item is not None else None)

    def is_about_another(self, item: str | None) -> bool:
        """Tell whether the task now stands for another item than the one that the record is about, as far as known."""
        return None not in (self.item, item) and self.about(item).item != self.item

    def intend(self, candidate: int, placement: Placement, now: datetime) -> Record:
        """Return the record with a new attempt, not yet submitted."""
        n = len(self.attempts) + 1
        name = job_name(self.prefix, owner=self.owner, life=self.life, attempt=n)
        return self.with_attempt(
            Attempt(n=n, candidate=candidate, round=self.round, placement=placement, job_name=name, intent_at=now)
        )

    def draws_on_reservation(self, attempt: Attempt) -> bool:
        """Tell whether the attempt's place was to come out of a reservation."""
        places = self.plan[attempt.candidate : attempt.candidate + 1]
        return any(place.reservation for place in places)

    def label(self, attempt: Attempt) -> str:
        """Return how people see the attempt: the candidate's number, with a letter when it was tried more than once."""
        of_candidate = [a.n for a in self.attempts if (a.candidate, a.round) == (attempt.candidate, attempt.round)]
        letter = chr(ord("a") + of_candidate.index(attempt.n)) if len(of_candidate) > 1 else ""
        return f"{attempt.candidate + 1}{letter}"

    def to_json(self) -> dict[str, Any]:
        """Return the record as plain JSON."""
        return {
            "v": VERSION,
            "owner": self.owner,
            "life": self.life,
            "max_tries": self.max_tries,
            "started_at": self.started_at.isoformat(),
            "project": self.project,
            "prefix": self.prefix,
            "round": self.round,
            "plan": [place.to_json() for place in self.plan],
            "attempts": [attempt.to_json() for attempt in self.attempts],
            "ended": self.ended,
            "killed": self.killed,
            "service": self.service,
            **({"crashes": self.crashes} if self.crashes else {}),
            **({"item": self.item} if self.item else {}),
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Record:
        """Return the record that :meth:`to_json` wrote. Raises :class:`UnknownVersionError`."""
        check_version(value, "record")
        read = {name: item for name, item in value.items() if name != "v"}
        read["started_at"] = datetime.fromisoformat(read["started_at"])
        read["plan"] = tuple(PlannedPlace.from_json(place) for place in read["plan"])
        read["attempts"] = tuple(Attempt.from_json(attempt) for attempt in read["attempts"])
        return cls(**read)


def check_version(value: Mapping[str, Any], what: str) -> None:
    """Raise :class:`UnknownVersionError` unless the value was written by a release that wrote the same form."""
    found = value.get("v")
    if found != VERSION:
        raise UnknownVersionError(
            f"This {what} has version {found!r}; this release reads version {VERSION}. Nothing was cancelled. "
            "Finish the running tasks with the release that started them, or clear them."
        )


def begin(
    *,
    owner: str,
    max_tries: int,
    now: datetime,
    project: str,
    prefix: str,
    service: Service = "dataflow",
    item: str | None = None,
) -> Record:
    """Return the record of a task instance that has none; ``item`` is what it was expanded over, as a text."""
    fresh = Record(
        owner=owner,
        life=1,
        max_tries=max_tries,
        started_at=now,
        project=project,
        prefix=prefix,
        service=service,
    )
    return fresh.about(item)


def resume(
    record: Record, *, max_tries: int, now: datetime, project: str, prefix: str, item: str | None = None
) -> tuple[Record, Sequence[Attempt]]:
    """Return the record as this try must see it, and the attempts of an earlier life whose jobs must end first.

    A life ends when the user clears the task (Airflow then raises ``max_tries``), after this task's own kill, or when
    its map index has come to mean another item. Within a life, a try after a reported failure starts another round over
    the candidates; any other try takes over what runs, or what was reached.
    """
    if max_tries > record.max_tries or record.killed or record.is_about_another(item):
        stale = (record.alive,) if record.alive else ()
        fresh = begin(owner=record.owner, max_tries=max_tries, now=now, project=project, prefix=prefix, item=item)
        return replace(fresh, life=record.life + 1, service=record.service), stale
    record = _asked_anew(record.about(item), now)
    has_succeeded = record.current is not None and record.current.has_succeeded
    if record.ended and not has_succeeded:
        return replace(record, round=record.round + 1, ended=False), ()
    return record, ()


def _asked_anew(record: Record, now: datetime) -> Record:
    """Give a job that was asked to end by an earlier try, and has not, the whole time for it again."""
    if record.open is None or not record.open.outcome.is_ending:
        return record
    return record.with_attempt(replace(record.open, cancel_requested_at=now))
