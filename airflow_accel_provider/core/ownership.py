"""Whose a job is: what its labels claim, and what becomes of it when the claim is held against the task's record.

Two Airflows may share a project, and even ids of DAGs, runs and tasks. So a job is a task's only when the owner in the
task's own record says so, and what is not known for certain is never cancelled.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from airflow_accel_provider.core.identity import ATTEMPT, DAG, LIFE, MAP_INDEX, OWNER, RUN, TASK, label_value
from airflow_accel_provider.core.jobs import Job, JobState, Service
from airflow_accel_provider.core.record import Attempt, Outcome, Record
from airflow_accel_provider.core.spark.labels import spark_label

_OWN_NAME = re.compile(r"[a-z](?:[a-z0-9-]*[a-z0-9])?-[0-9a-f]{12}")

OVER = frozenset({"success", "failed", "upstream_failed", "skipped", "removed"})
"""States after which Airflow does nothing more for a task instance unless somebody clears it."""

ENDING = frozenset({JobState.CANCELLING, JobState.DRAINING})
"""States of a job that was asked to end: to cancel one that is drained would lose what it has taken in."""


class VerdictKind(StrEnum):
    """What a job is: a task's, nobody's any more, known to no task here, or not to be told.

    Only orphans are ever cancelled.
    """

    OWNED = "owned"
    ORPHAN = "orphan"
    UNCLAIMED = "unclaimed"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """What a job's labels say of the task instance that started it, each id in the form of a label."""

    owner: str
    life: int
    attempt: int
    dag: str
    task: str
    run: str
    map_index: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """A job that this provider started, here or in another Airflow."""

    service: Service
    job: Job
    claim: Claim

    def names(self, label: str, text: str) -> bool:
        """Tell whether one of the claim's labels stands for this id."""
        return label == label_form(text, self.service)


@dataclass(frozen=True, slots=True, kw_only=True)
class Missing:
    """Airflow answered, and has no such ``dag``, ``run``, ``task`` instance, or ``record`` of it."""

    what: Literal["dag", "run", "task", "record"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Unreadable:
    """Airflow could not be asked, or its answer not be read; ``reason`` is a sentence without its full stop."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """A task instance that a claim names: its state (``None`` before it is scheduled) and its record."""

    state: str | None
    record: Record


Known = Holder | Missing | Unreadable
"""What Airflow says of the task instance that a claim names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What a job is, and the reason: a sentence without its full stop."""

    kind: VerdictKind
    reason: str


def label_form(text: str, service: Service) -> str:
    """Return an id as the service's labels hold it."""
    value = label_value(text)
    return spark_label(value) if service == "dataproc" else value


def may_be_ours(name: str) -> bool:
    """Tell whether a job's name has the form of those given here, which is cheaper to know than its labels."""
    return bool(_OWN_NAME.fullmatch(name))


def claim_of(labels: Mapping[str, str]) -> Claim | None:
    """Return what labels claim, or ``None`` where they are not, or not wholly, this provider's."""
    said = [labels.get(key, "") for key in (OWNER, DAG, TASK, RUN)]
    numbers = [_number(labels.get(key, missing)) for key, missing in ((LIFE, ""), (ATTEMPT, ""), (MAP_INDEX, "-1"))]
    life, attempt, map_index = numbers
    if not all(said) or life is None or attempt is None or map_index is None:
        return None
    owner, dag, task, run = said
    return Claim(owner=owner, life=life, attempt=attempt, dag=dag, task=task, run=run, map_index=map_index)


def started(job: Job, service: Service) -> Started | None:
    """Return the job with its claim, or ``None`` when this provider did not start it."""
    claim = claim_of(dict(job.labels or ()))
    return Started(service=service, job=job, claim=claim) if claim else None


def judge(each: Started, known: Known, *, given_up: Collection[str] = ()) -> Verdict:
    """Return whose a job is; ``given_up`` are owners, as ids or as labels, whose jobs a person says are nobody's.

    That counts where no record here knows the job. One whose task could not be asked for is unknown in any case.
    """
    if isinstance(known, Unreadable):
        return Verdict(kind=VerdictKind.UNKNOWN, reason=known.reason)
    if isinstance(known, Holder) and each.names(each.claim.owner, known.record.owner):
        return _of_its_task(each, known)
    is_given_up = any(owner == each.claim.owner or each.names(each.claim.owner, owner) for owner in given_up)
    if is_given_up and each.job.state not in ENDING:
        return Verdict(kind=VerdictKind.ORPHAN, reason=f"{_stranger(known)}, and its owner was given up")
    return Verdict(kind=VerdictKind.UNCLAIMED, reason=_stranger(known))


def _stranger(known: Holder | Missing) -> str:
    if isinstance(known, Holder):
        return "that task instance has another owner: it was made anew, or the job is another Airflow's"
    return _MISSING[known.what]


_MISSING: Mapping[str, str] = {
    "dag": "no DAG of that name is here: the job is another Airflow's, or the DAG was deleted",
    "run": "no such run is here: it was deleted, or the job is another Airflow's",
    "task": "no such task instance is in that run: it was removed, or the job is another Airflow's",
    "record": "that task instance keeps no record: its run was made anew, or the job is another Airflow's",
}


def _of_its_task(each: Started, holder: Holder) -> Verdict:
    """Judge a job whose owner is the task instance's own."""
    record, claim = holder.record, each.claim
    if claim.life < record.life:
        return _orphan(
            f"the task has begun anew since: the job is of life {claim.life}, the task in life {record.life}"
        )
    if each.job.state in ENDING:
        return _owned(f"it is {each.job.state} already")
    attempt = next((one for one in record.attempts if one.n == claim.attempt), None)
    if attempt is None or claim.life > record.life:
        return _unknown(f"the task's record knows no attempt {claim.attempt} of life {claim.life}")
    return _of_its_attempt(each.job, attempt, holder)


def _of_its_attempt(job: Job, attempt: Attempt, holder: Holder) -> Verdict:
    record = holder.record
    if attempt.outcome is Outcome.RUNNING and not record.killed:
        return _owned("it was proven and left running, as asked")
    if attempt.job_id not in {None, job.id}:
        return _unknown(f"the task's record has the job {attempt.job_id} for this attempt; this one may be its update")
    if record.alive is not attempt:
        return _orphan(f"the task's record says that it ended ({attempt.outcome})")
    if holder.state in OVER:
        return _orphan(f"its task is over ({holder.state}), and nobody waits for it")
    return _owned(f"its task is {holder.state or 'not scheduled yet'}")


def _owned(reason: str) -> Verdict:
    return Verdict(kind=VerdictKind.OWNED, reason=reason)


def _orphan(reason: str) -> Verdict:
    return Verdict(kind=VerdictKind.ORPHAN, reason=reason)


def _unknown(reason: str) -> Verdict:
    return Verdict(kind=VerdictKind.UNKNOWN, reason=reason)


def _number(label: str) -> int | None:
    """Return the number that a label holds; where labels begin with a letter, ``n7`` is 7."""
    digits = label.removeprefix("n")
    return int(digits) if re.fullmatch(r"-1|[0-9]{1,9}", digits) else None
