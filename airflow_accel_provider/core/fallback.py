"""What now? One pure decision over the record, what a poll saw, the user's policy and the time.

Both modes, the trigger and every retry ask this module and no other. It is handed everything and changes nothing: each
decision carries the record as it must be written before anybody acts on it.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from airflow_accel_provider.core.deadline import Deadline
from airflow_accel_provider.core.decisions import Cancel, Decision, Finish, GiveUp, Launch, Wait
from airflow_accel_provider.core.failures import Failure, FailureKind, Resource, Scope
from airflow_accel_provider.core.jobs import JobState, Service, Snapshot
from airflow_accel_provider.core.observing import is_bare, is_settled, observe
from airflow_accel_provider.core.policy import Policy
from airflow_accel_provider.core.proof import SOURCE_VMS, ProofStatus, unseen
from airflow_accel_provider.core.record import Attempt, Outcome, Record
from airflow_accel_provider.core.search import exhausted, is_of_past_time, may_move, next_place
from airflow_accel_provider.core.usage import SOURCE_END


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
    attempt = observe(attempt, snapshot, snapshot.job, now)
    record = record.with_attempt(attempt)
    if snapshot.job.state.is_terminal:
        return _ended(record, attempt, snapshot, policy, now)
    if attempt.outcome.is_ending:
        return _ending(record, attempt, snapshot.job.state, policy, now)
    return _living(record, attempt, snapshot, policy, now)


def _living(record: Record, attempt: Attempt, snapshot: Snapshot, policy: Policy, now: datetime) -> Decision:
    state = snapshot.job.state if snapshot.job else JobState.UNKNOWN
    if policy.wait_until == "proven" and state is JobState.RUNNING and _suffices(attempt, snapshot, policy, now):
        proof = attempt.proof or unseen(now, readable=False)
        return Finish(record.with_attempt(replace(attempt, outcome=Outcome.RUNNING, proof=proof)))
    if policy.deadline and policy.is_over(now):
        return Cancel(record.with_attempt(timing_out(attempt, policy.deadline, policy, now)))
    if state in _LEAVING:
        return Wait(record)
    trouble = _trouble(record, attempt, snapshot, policy, now)
    return Cancel(record.with_attempt(cancelling(attempt, trouble, now))) if trouble else Wait(record)


_LEAVING = frozenset({JobState.CANCELLING, JobState.DRAINING, JobState.RESOURCE_CLEANING_UP})
"""States that lead to an end by themselves; what somebody else is ending is not for us to end, nor to move."""


def cancelling(attempt: Attempt, reason: Failure, now: datetime) -> Attempt:
    """Return the attempt as it is once its job is asked to cancel."""
    return replace(attempt, outcome=Outcome.CANCELLING, failure=reason, cancel_requested_at=now)


def ending(attempt: Attempt, reason: str, policy: Policy, now: datetime) -> Attempt:
    """Return the attempt as it is once its job is asked to end by the user's wish: to drain, if that is the wish.

    Whether the job can drain is seen when it is asked: a batch job, or one without workers, is cancelled.
    """
    return _as_wished(attempt, Failure(kind=FailureKind.CANCELLED, scope=Scope.NONE, explanation=reason), policy, now)


def timing_out(attempt: Attempt, deadline: Deadline, policy: Policy, now: datetime) -> Attempt:
    """Return the attempt as it is once its job is asked to end since the try has no time left."""
    return _as_wished(attempt, deadline.failure, policy, now)


def _as_wished(attempt: Attempt, failure: Failure, policy: Policy, now: datetime) -> Attempt:
    asked = cancelling(attempt, failure, now)
    return replace(asked, outcome=Outcome.DRAINING) if policy.drain else asked


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


def _ending(record: Record, attempt: Attempt, state: JobState, policy: Policy, now: datetime) -> Decision:
    is_draining = attempt.outcome is Outcome.DRAINING
    if now - (attempt.cancel_requested_at or now) < policy.cancel_timeout:
        # A pending job may not take the request at once, and a request may be lost: asking again does no harm. A job
        # that somebody drains can be cancelled, as drains may take for ever.
        heeds = _LEAVING if is_draining else _LEAVING - {JobState.DRAINING}
        return Wait(record) if state in heeds else Cancel(record)
    reason = attempt.failure.explanation if attempt.failure else "it had to end"
    failure = Failure(
        kind=FailureKind.SERVICE,
        scope=Scope.JOB,
        explanation=(
            f"job {attempt.job_id} in {attempt.placement.region} was asked to {'drain' if is_draining else 'cancel'} "
            f"({reason}) and did not end within {policy.cancel_timeout.total_seconds():g} s; nothing else was started, "
            "look at that job first"
        ),
    )
    return GiveUp(record, failure)


def _ended(record: Record, attempt: Attempt, snapshot: Snapshot, policy: Policy, now: datetime) -> Decision:
    state = snapshot.job.state if snapshot.job else JobState.UNKNOWN
    if state is JobState.DONE:
        return _done(record, attempt, snapshot, policy, now)
    if attempt.outcome.is_ending:
        return _after(_close(record, attempt, Outcome.CANCELLED, attempt.failure, now), policy, now)
    deed = "replaced the job by another" if state is JobState.UPDATED else "ended the job"
    failure = (
        _short(record, attempt, snapshot, policy, now)
        or _read(record, attempt, snapshot)
        or Failure(kind=FailureKind.CANCELLED, scope=Scope.NONE, explanation=f"somebody {deed} (it is {state})")
    )
    outcome = Outcome.CANCELLED if failure.kind is FailureKind.CANCELLED else Outcome.FAILED
    return _after(_close(record, attempt, outcome, failure, now), policy, now)


def _short(record: Record, attempt: Attempt, snapshot: Snapshot, policy: Policy, now: datetime) -> Failure | None:
    """Return what a cancelled job was short of that never had a worker, when another place may have it.

    That is what this task cancels for, perhaps by a process that died before it could write so. The service's own
    times tell whether it waited for too long.
    """
    job = snapshot.job
    if job is None or job.state is not JobState.CANCELLED or attempt.is_proven or snapshot.workers_seen:
        return None
    waiting = replace(snapshot, job=replace(job, state=JobState.RUNNING))
    lasted = job.state_at - job.created_at if job.state_at and job.created_at else timedelta()
    failure = _read(record, attempt, waiting, late=lasted >= policy.start_timeout)
    return failure if failure and _goes_on(record, attempt, failure, policy, now) else None


def _done(record: Record, attempt: Attempt, snapshot: Snapshot, policy: Policy, now: datetime) -> Decision:
    """Judge a job that did its work: a success, unless its workers were bare, or unseen and the user wants proof."""
    proof = attempt.proof if is_settled(attempt.proof, attempt, policy, now) else None
    if proof is None:
        is_batch = record.service == "dataproc"
        source = SOURCE_END if is_batch else SOURCE_VMS
        proof = unseen(now, readable=is_batch or snapshot.workers is not None, source=source)
    done = replace(attempt, proof=proof)
    if proof.status is ProofStatus.SEEN or (proof.status is not ProofStatus.ABSENT and policy.on_unproven == "warn"):
        return Finish(_close(record, done, Outcome.DONE, None, now))
    unseen_how = (
        _bare(done, record.service) if proof.status is ProofStatus.ABSENT else f"it is {proof.status.replace('_', ' ')}"
    )
    failure = _missing(done, f"the job is done, but nobody saw the accelerator: {unseen_how}")
    return GiveUp(_close(record, done, Outcome.DONE, failure, now), failure)


def _suffices(attempt: Attempt, snapshot: Snapshot, policy: Policy, now: datetime) -> bool:
    """Tell whether a running job may be left alone, given what is known of its accelerator."""
    return attempt.is_proven or (policy.on_unproven == "warn" and _is_hidden(attempt, snapshot, policy, now))


def _is_hidden(attempt: Attempt, snapshot: Snapshot, policy: Policy, now: datetime) -> bool:
    """Tell whether workers may have come up that nobody may look at; waiting longer would not show them."""
    return (
        snapshot.workers is None
        and (snapshot.workers_seen or snapshot.are_workers_unknown)
        and attempt.bare_since is None
        and _is_overdue(attempt, snapshot, policy, now)
    )


def _is_overdue(attempt: Attempt, snapshot: Snapshot, policy: Policy, now: datetime) -> bool:
    """Tell whether the time for a first worker is over, by the service's clock: each of our machines has its own."""
    by_ours = now - (attempt.submitted_at or now)
    return (by_ours if snapshot.age is None else snapshot.age) >= policy.start_timeout


def _trouble(record: Record, attempt: Attempt, snapshot: Snapshot, policy: Policy, now: datetime) -> Failure | None:
    """Return why a living job must be cancelled, if it must."""
    if policy.wait_until == "done" and snapshot.job and snapshot.job.is_streaming:
        return _endless()
    if attempt.is_proven:
        return None
    if attempt.bare_since:
        return _missing(attempt, _bare(attempt, record.service)) if is_bare(attempt, policy, now) else None
    if policy.wait_until == "proven" and _is_hidden(attempt, snapshot, policy, now):
        return _missing(attempt, "nobody saw the accelerator: its workers are unreadable")
    # What was not read says nothing of workers.
    is_unstarted = not (snapshot.workers_seen or snapshot.are_workers_unknown)
    late = is_unstarted and _is_overdue(attempt, snapshot, policy, now)
    failure = _read(record, attempt, snapshot, late=late)
    if failure is None or late:
        return failure
    # The service goes on trying for a while: worth cutting short only when there is another place to go.
    return failure if _goes_on(record, attempt, failure, policy, now) else None


def _goes_on(record: Record, attempt: Attempt, failure: Failure, policy: Policy, now: datetime) -> bool:
    """Tell whether another place comes after an attempt that ends so."""
    ended = record.with_attempt(_closed(attempt, Outcome.CANCELLED, failure, now))
    return failure.kind in policy.fallback_on and next_place(ended, policy) is not None


def _read(record: Record, attempt: Attempt, snapshot: Snapshot, *, late: bool = False) -> Failure | None:
    # Parsing a DAG loads this module; the table of what failures say waits until a job is looked at.
    from airflow_accel_provider.core.classification import Signals, classify

    signals = Signals(
        service=record.service,
        runtime_version=snapshot.job.runtime_version if snapshot.job else None,
        messages=snapshot.messages,
        state=snapshot.job.state if snapshot.job else None,
        region=attempt.placement.region,
        workers_seen=snapshot.workers_seen,
        accelerator_confirmed=attempt.is_proven,
        start_timeout=late,
        reservation_requested=record.draws_on_reservation(attempt),
    )
    return classify(signals)


def _endless() -> Failure:
    return Failure(
        kind=FailureKind.CONFIGURATION,
        scope=Scope.JOB,
        explanation=(
            'it is a streaming job, which has no end to wait for; give wait_until="proven" to leave it running once '
            "its accelerator is seen"
        ),
    )


def _bare(attempt: Attempt, service: Service) -> str:
    proof = attempt.proof
    if service == "dataproc":
        return (
            f"executors run without {attempt.placement.accelerator}, by the service's own figures; those that get no "
            "GPU may be replaced for ever"
        )
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
    if last and last.has_succeeded:
        return Finish(record)
    if last and is_of_past_time(last, policy):
        record, last = replace(record, round=record.round + 1), None
    if last and last.failure and not may_move(last, policy):
        return GiveUp(record, last.failure)
    if policy.deadline and policy.is_over(now):
        return GiveUp(record, policy.deadline.failure)
    place = next_place(record, policy)
    if place is None:
        return GiveUp(record, exhausted(record))
    candidate, placement = place
    return Launch(record.intend(candidate, placement, now))
