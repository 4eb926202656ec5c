"""Where next? One pure decision over the record, what a poll saw, the user's policy and the time.

Both modes, the trigger and every retry ask this module and no other. It is handed everything and changes nothing: each
decision carries the record as it must be written before anybody acts on it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Literal

from airflow_accel_provider.core.accelerators import Gpu
from airflow_accel_provider.core.failures import DEFAULT_FALLBACK_ON, Failure, FailureKind, Resource, Scope
from airflow_accel_provider.core.jobs import Job, JobState, Snapshot
from airflow_accel_provider.core.locations import region_of
from airflow_accel_provider.core.placement import Placement
from airflow_accel_provider.core.proof import ProofStatus, prove, unseen
from airflow_accel_provider.core.record import Attempt, Outcome, PlannedPlace, Record


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """What the user decided beforehand.

    ``start_timeout`` bounds the wait for a first worker, ``cancel_timeout`` the wait for a cancelled job's end.
    ``grace`` is how long workers may run without the device before it counts as missing (a VM has its accelerators from
    its creation, so a second look is enough), ``lost_after`` how long the service may deny knowing a job.
    """

    fallback_on: tuple[FailureKind, ...] = DEFAULT_FALLBACK_ON
    on_unproven: Literal["warn", "fail"] = "warn"
    start_timeout: timedelta = timedelta(minutes=30)
    cancel_timeout: timedelta = timedelta(minutes=5)
    grace: timedelta = timedelta(seconds=3)
    lost_after: timedelta = timedelta(minutes=2)

    def to_json(self) -> dict[str, Any]:
        """Return the policy as plain JSON, durations in seconds."""
        return {
            "fallback_on": [str(kind) for kind in self.fallback_on],
            "on_unproven": self.on_unproven,
            **{name: getattr(self, name).total_seconds() for name in _DURATIONS},
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Policy:
        """Return the policy that :meth:`to_json` wrote."""
        return cls(
            fallback_on=tuple(FailureKind(kind) for kind in value["fallback_on"]),
            on_unproven=value["on_unproven"],
            **{name: timedelta(seconds=value[name]) for name in _DURATIONS},
        )


_DURATIONS = ("start_timeout", "cancel_timeout", "grace", "lost_after")


@dataclass(frozen=True, slots=True)
class Launch:
    """Submit the record's open attempt."""

    record: Record


@dataclass(frozen=True, slots=True)
class Cancel:
    """Cancel the job of the record's open attempt, then ask again."""

    record: Record


@dataclass(frozen=True, slots=True)
class Wait:
    """Look again later."""

    record: Record


@dataclass(frozen=True, slots=True)
class Finish:
    """The job did its work."""

    record: Record


@dataclass(frozen=True, slots=True)
class GiveUp:
    """Nothing more will be tried; ``failure`` is what the task fails with."""

    record: Record
    failure: Failure


Decision = Launch | Cancel | Wait | Finish | GiveUp


def decide(record: Record, snapshot: Snapshot | None, policy: Policy, now: datetime) -> Decision:
    """Return what to do now.

    ``snapshot`` is what the newest poll saw of the open attempt's job, or ``None`` when nothing was read.
    """
    attempt = record.open
    if attempt is None:
        return _after(record, policy, now)
    if snapshot is None:
        return Wait(record)
    if snapshot.job is None:
        return _unknown_job(record, attempt, policy, now)
    attempt = _observe(attempt, snapshot, snapshot.job, now)
    record = record.with_attempt(attempt)
    if snapshot.job.state.is_terminal:
        return _ended(record, attempt, snapshot, policy, now)
    if attempt.outcome is Outcome.CANCELLING:
        return _cancelling(record, attempt, snapshot.job.state, policy, now)
    trouble = _trouble(record, attempt, snapshot, policy, now)
    return Cancel(record.with_attempt(cancelling(attempt, trouble, now))) if trouble else Wait(record)


def cancelling(attempt: Attempt, reason: Failure, now: datetime) -> Attempt:
    """Return the attempt as it is once its job is asked to cancel."""
    return replace(attempt, outcome=Outcome.CANCELLING, failure=reason, cancel_requested_at=now)


def _observe(attempt: Attempt, snapshot: Snapshot, job: Job, now: datetime) -> Attempt:
    """Fold what the poll saw into the attempt. A device that was seen once stays seen."""
    submitted = Outcome.SUBMITTED if attempt.outcome is Outcome.INTENT else attempt.outcome
    seen = replace(
        attempt,
        outcome=submitted,
        job_id=job.id,
        submitted_at=attempt.submitted_at or job.created_at or now,
        zone=attempt.zone or (job.zones[0] if job.zones else None),
        lost_since=None,
    )
    if seen.is_proven or not snapshot.workers:
        return seen
    proof = prove(seen.placement.accelerator, snapshot.workers, now)
    if proof is None:
        return seen
    bare_since = (seen.bare_since or now) if proof.status is ProofStatus.ABSENT else None
    return replace(seen, proof=proof, zone=proof.zone or seen.zone, bare_since=bare_since)


def _unknown_job(record: Record, attempt: Attempt, policy: Policy, now: datetime) -> Decision:
    if attempt.outcome is Outcome.INTENT:
        return Launch(record)
    lost_since = attempt.lost_since or now
    if now - lost_since < policy.lost_after:
        return Wait(record.with_attempt(replace(attempt, lost_since=lost_since)))
    failure = Failure(
        kind=FailureKind.SERVICE,
        scope=Scope.JOB,
        explanation=f"the service no longer knows job {attempt.job_id} in {attempt.placement.region}",
    )
    return GiveUp(_close(record, attempt, Outcome.FAILED, failure, now), failure)


def _cancelling(record: Record, attempt: Attempt, state: JobState, policy: Policy, now: datetime) -> Decision:
    if now - (attempt.cancel_requested_at or now) < policy.cancel_timeout:
        # A pending job may not take the request at once, and a request may be lost: asking again does no harm.
        return Wait(record) if state is JobState.CANCELLING else Cancel(record)
    reason = attempt.failure.explanation if attempt.failure else "it had to end"
    failure = Failure(
        kind=FailureKind.SERVICE,
        scope=Scope.JOB,
        explanation=(
            f"job {attempt.job_id} in {attempt.placement.region} was asked to cancel ({reason}) and did not end within "
            f"{policy.cancel_timeout.total_seconds():g} s; nothing else was started, look at that job first"
        ),
    )
    return GiveUp(record, failure)


def _ended(record: Record, attempt: Attempt, snapshot: Snapshot, policy: Policy, now: datetime) -> Decision:
    state = snapshot.job.state if snapshot.job else JobState.UNKNOWN
    if state is JobState.DONE:
        return _done(record, attempt, snapshot, policy, now)
    if attempt.outcome is Outcome.CANCELLING:
        return _after(_close(record, attempt, Outcome.CANCELLED, attempt.failure, now), policy, now)
    failure = _read(attempt, snapshot) or Failure(
        kind=FailureKind.CANCELLED, scope=Scope.NONE, explanation=f"somebody ended the job (it is {state})"
    )
    outcome = Outcome.CANCELLED if failure.kind is FailureKind.CANCELLED else Outcome.FAILED
    return _after(_close(record, attempt, outcome, failure, now), policy, now)


def _done(record: Record, attempt: Attempt, snapshot: Snapshot, policy: Policy, now: datetime) -> Decision:
    """Judge a job that did its work: a success, unless its workers were bare, or unseen and the user wants proof."""
    proof = attempt.proof
    if proof is None:
        proof = unseen(now, readable=snapshot.workers is not None)
    done = replace(attempt, proof=proof)
    if proof.status is ProofStatus.SEEN or (proof.status is not ProofStatus.ABSENT and policy.on_unproven == "warn"):
        return Finish(_close(record, done, Outcome.DONE, None, now))
    unseen_how = _bare(done) if proof.status is ProofStatus.ABSENT else f"it is {proof.status.replace('_', ' ')}"
    failure = _missing(done, f"the job is done, but nobody saw the accelerator: {unseen_how}")
    return GiveUp(_close(record, done, Outcome.DONE, failure, now), failure)


def _trouble(record: Record, attempt: Attempt, snapshot: Snapshot, policy: Policy, now: datetime) -> Failure | None:
    """Return why a living job must be cancelled, if it must."""
    if attempt.is_proven:
        return None
    if attempt.bare_since:
        grace_over = now - attempt.bare_since >= policy.grace
        return _missing(attempt, _bare(attempt)) if grace_over else None
    waited = now - (attempt.submitted_at or now)
    late = waited >= policy.start_timeout and not snapshot.workers_seen
    failure = _read(attempt, snapshot, late=late)
    if failure is None or late:
        return failure
    # The service goes on trying for a while: worth cutting short only when there is another place to go.
    has_next = _next_place(record.with_attempt(_closed(attempt, Outcome.CANCELLED, failure, now)), policy) is not None
    return failure if failure.kind in policy.fallback_on and has_next else None


def _read(attempt: Attempt, snapshot: Snapshot, *, late: bool = False) -> Failure | None:
    # Parsing a DAG loads this module; the table of what failures say waits until a job is looked at.
    from airflow_accel_provider.core.classification import Signals, classify

    signals = Signals(
        messages=snapshot.messages,
        state=snapshot.job.state if snapshot.job else None,
        region=attempt.placement.region,
        workers_seen=snapshot.workers_seen,
        accelerator_confirmed=attempt.is_proven,
        start_timeout=late,
    )
    return classify(signals)


def _bare(attempt: Attempt) -> str:
    proof = attempt.proof
    where = f"worker {proof.machine_type} in {proof.zone}" if proof else "a worker"
    return f"{where} runs without {attempt.placement.accelerator}"


def _missing(attempt: Attempt, explanation: str) -> Failure:
    return Failure(
        kind=FailureKind.ACCELERATOR_MISSING,
        scope=Scope.JOB,
        resource=Resource.ACCELERATOR,
        zone=attempt.zone,
        region=attempt.placement.region,
        explanation=explanation,
    )


def _closed(attempt: Attempt, outcome: Outcome, failure: Failure | None, now: datetime) -> Attempt:
    if failure and failure.zone is None and failure.scope is Scope.ZONE:
        failure = replace(failure, zone=attempt.zone or attempt.placement.zone)
    return replace(attempt, outcome=outcome, failure=failure, ended_at=now)


def _close(record: Record, attempt: Attempt, outcome: Outcome, failure: Failure | None, now: datetime) -> Record:
    return record.with_attempt(_closed(attempt, outcome, failure, now))


def close(record: Record, failure: Failure, now: datetime) -> Record:
    """Return the record with its open attempt ended by a failure, such as a launcher that never made a job."""
    attempt = record.open
    return _close(record, attempt, Outcome.FAILED, failure, now) if attempt else record


def _after(record: Record, policy: Policy, now: datetime) -> Decision:
    """Decide with no job alive: the first launch, the next place, or the end."""
    last = record.current
    if last and last.outcome is Outcome.DONE:
        return Finish(record)
    if last and last.failure and not may_move(last, policy):
        return GiveUp(record, last.failure)
    place = _next_place(record, policy)
    if place is None:
        return GiveUp(record, exhausted(record))
    candidate, placement = place
    return Launch(record.intend(candidate, placement, now))


def may_move(attempt: Attempt, policy: Policy) -> bool:
    """Tell whether another place may be tried after this attempt.

    Never once the accelerator was seen: the place was right, whatever failed later. Never after somebody cancelled.
    """
    if attempt.failure is None or attempt.is_proven or attempt.failure.kind is FailureKind.CANCELLED:
        return False
    return attempt.failure.kind in policy.fallback_on


def is_searching(record: Record, policy: Policy) -> bool:
    """Tell whether the next decision is about where to go, so that a fresh plan is worth its calls."""
    last = record.current
    return record.open is None and (last is None or may_move(last, policy))


def exhausted(record: Record) -> Failure:
    """Return the failure of a search that found no place: that of the last attempt, else of the first rejection."""
    tried = [attempt.failure for attempt in record.this_round if attempt.failure]
    skipped = [place.rejected for place in record.plan if place.rejected]
    reasons = tried[::-1] + skipped
    nothing = Failure(kind=FailureKind.CONFIGURATION, scope=Scope.NONE, explanation="there is no candidate")
    return reasons[0] if reasons else nothing


def _next_place(record: Record, policy: Policy) -> tuple[int, Placement] | None:
    """Return the first candidate, in the user's order, that is neither rejected, tried nor ruled out by a failure."""
    hinted = _hinted(record, policy)
    if hinted:
        return hinted
    tried = {attempt.candidate for attempt in record.this_round}
    for index, place in enumerate(record.plan):
        if index not in tried and place.rejected is None and blocked_by(record, place.placement) is None:
            return index, place.placement
    return None


def _hinted(record: Record, policy: Policy) -> tuple[int, Placement] | None:
    """Return a second try of the same candidate, pinned to a zone of its region that the stockout itself named."""
    last = record.current
    if last is None or last.failure is None or last.placement.zone or not may_move(last, policy):
        return None
    if last.failure.kind is not FailureKind.STOCKOUT:
        return None
    zones = [zone for zone in last.failure.hint_zones if region_of(zone) == last.placement.region]
    fresh = [zone for zone in zones if zone != last.failure.zone]
    return (last.candidate, last.placement.pinned(fresh[0])) if fresh else None


def blocked_by(record: Record, placement: Placement) -> Attempt | None:
    """Return the attempt of this round whose failure also speaks about this placement, if any."""
    return next((attempt for attempt in record.this_round if _speaks_of(attempt, placement)), None)


def _speaks_of(attempt: Attempt, placement: Placement) -> bool:
    failure = attempt.failure
    if failure is None:
        return False
    same_accelerator = _type(attempt.placement) == _type(placement)
    if failure.scope is Scope.PROJECT:
        return isinstance(placement.accelerator, Gpu)
    if failure.scope is Scope.REGION:
        short_of_accelerator = failure.resource in {Resource.ACCELERATOR, None}
        return failure.region == placement.region and (same_accelerator or not short_of_accelerator)
    if failure.scope is Scope.ZONE:
        same_shape = same_accelerator and attempt.placement.machine_type == placement.machine_type
        return same_shape and placement.zone is not None and placement.zone == failure.zone
    return False


def _type(placement: Placement) -> str:
    return str(getattr(placement.accelerator, "type", "cpu"))


def plan_of(record: Record, places: tuple[PlannedPlace, ...]) -> Record:
    """Return the record under a newer plan."""
    return replace(record, plan=places)
