"""What one look at a job adds to its attempt."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from airflow_accel_provider.core.jobs import Job, JobState, Snapshot
from airflow_accel_provider.core.policy import Policy
from airflow_accel_provider.core.proof import Proof, ProofStatus, prove
from airflow_accel_provider.core.record import Attempt, Outcome
from airflow_accel_provider.core.usage import SOURCE_NOW, InUse, prove_in_use, prove_spent


def observe(attempt: Attempt, snapshot: Snapshot, job: Job, now: datetime) -> Attempt:
    """Fold what the poll saw into the attempt. A device that was seen once stays seen."""
    submitted = Outcome.SUBMITTED if attempt.outcome is Outcome.INTENT else attempt.outcome
    seen = replace(
        attempt,
        outcome=submitted,
        job_id=job.id,
        submitted_at=attempt.submitted_at or submitted_at(attempt, job, now),
        zone=attempt.zone or (job.zones[0] if job.zones else None),
        spent=snapshot.spent or attempt.spent,
        lost_since=None,
    )
    # What a batch that we end is billed for no longer matters: its reason to end stands.
    if seen.is_proven or seen.outcome.is_ending:
        return seen
    if snapshot.spent:
        return replace(seen, proof=prove_spent(seen.placement.accelerator, snapshot.spent, now))
    if snapshot.in_use:
        return _with_usage(seen, job, snapshot.in_use)
    return _with_workers(seen, snapshot, now)


def submitted_at(attempt: Attempt, job: Job, now: datetime) -> datetime:
    """Return when a job was submitted: as the service says, but not before it was meant to be, nor in the future.

    The service's clock need not be ours. How long a job has waited is told by the service's, where it says the time.
    """
    return max(min(job.created_at or now, now), min(attempt.intent_at, now))


def is_bare(attempt: Attempt, policy: Policy, now: datetime) -> bool:
    """Tell whether workers ran without the device for the whole grace.

    Usage figures are held against the service's own clock, so that one old figure is never taken for many.
    """
    proof = attempt.proof
    if attempt.bare_since is None or proof is None or proof.status is not ProofStatus.ABSENT:
        return False
    until = proof.at if proof.source == SOURCE_NOW else now
    return until - attempt.bare_since >= policy.grace


def is_settled(proof: Proof | None, attempt: Attempt, policy: Policy, now: datetime) -> bool:
    """Tell whether a proof says all there is to say of a job that is done.

    VMs are bare from their creation; an executor may get its GPU a while after its batch began.
    """
    if proof is None:
        return False
    is_early = proof.status is ProofStatus.ABSENT and proof.source == SOURCE_NOW
    return not is_early or is_bare(attempt, policy, now)


def _with_workers(attempt: Attempt, snapshot: Snapshot, now: datetime) -> Attempt:
    proof = prove(attempt.placement.accelerator, snapshot.workers or (), now)
    if proof is None:
        return attempt
    bare_since = (attempt.bare_since or now) if proof.status is ProofStatus.ABSENT else None
    return replace(attempt, proof=proof, zone=proof.zone or attempt.zone, bare_since=bare_since)


def _with_usage(attempt: Attempt, job: Job, in_use: InUse) -> Attempt:
    proof = prove_in_use(attempt.placement.accelerator, in_use)
    if proof.status is ProofStatus.SEEN:
        return replace(attempt, proof=proof, bare_since=None)
    # Figures from before the batch ran say nothing, nor does one that has begun to end.
    if job.state is not JobState.RUNNING or (job.state_at and in_use.at < job.state_at):
        return attempt
    return replace(attempt, proof=proof, bare_since=attempt.bare_since or in_use.at)
