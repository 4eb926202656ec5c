"""Jobs without an end: what the task waits for, what it leaves running, and how it ends what it left."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from airflow_accel_provider.core.decisions import Cancel, Decision, Finish, GiveUp, Launch, Wait
from airflow_accel_provider.core.failures import DEFAULT_FALLBACK_ON, FailureKind
from airflow_accel_provider.core.fallback import cancelling, decide, ending
from airflow_accel_provider.core.jobs import JobState, JobType, ScalingEvent, Snapshot, Worker
from airflow_accel_provider.core.placement import Placement
from airflow_accel_provider.core.policy import Policy
from airflow_accel_provider.core.proof import ProofStatus
from airflow_accel_provider.core.record import Attempt, Outcome, Record, resume
from airflow_accel_provider.core.report import attempt_line, report
from airflow_accel_provider.core.result import result
from airflow_accel_provider.core.search import is_searching
from tests.core.drawn_records import MOMENT
from tests.core.test_classification import STOCKOUT
from tests.core.test_fallback import BARE, EU, QUOTA_FULL, US, WITH_L4, after, running, seen
from tests.core.test_follow import Service, followed

DONE, PROVEN = Policy(), Policy(wait_until="proven")
DRAIN = Policy(wait_until="proven", drain=True)
CPU = Placement.parse("cpu on n2-standard-8 in us-central1")
ONE_UP = ScalingEvent(kind="current_num_workers_changed", at=MOMENT, current_workers=1)


def streaming(
    state: JobState = JobState.RUNNING, *texts: str, workers: tuple[Worker, ...] | None = (WITH_L4,)
) -> Snapshot:
    """Return a look at a streaming job."""
    snapshot = seen(state, *texts, workers=workers)
    assert snapshot.job
    return replace(snapshot, job=replace(snapshot.job, type=JobType.STREAMING))


def left_running(record: Record | None = None) -> Record:
    """Return a record whose job was proven and left running."""
    decision = decide(record or running(), streaming(), PROVEN, after(1))
    assert isinstance(decision, Finish)
    return decision.record


def last(decision: Decision) -> Attempt:
    return decision.record.attempts[-1]


# --- what was decided beforehand


@pytest.mark.parametrize("policy", [DONE, PROVEN, DRAIN])
def test_the_wish_survives_json(policy: Policy) -> None:
    """What a task waits for, and whether it drains, comes back from JSON as it was written."""
    assert Policy.from_json(json.loads(json.dumps(policy.to_json()))) == policy


def test_a_policy_without_the_wish_waits_for_the_end() -> None:
    """A policy that was written before there was a choice waits for the job's end and cancels."""
    old = {key: value for key, value in DRAIN.to_json().items() if key not in {"wait_until", "drain"}}
    assert Policy.from_json(old) == DONE


# --- until proven


def test_a_proven_job_is_left_running() -> None:
    """Once the accelerator is seen on a running job the task is over, and its value says that the job runs."""
    record = left_running()
    (attempt,) = record.attempts
    assert (attempt.outcome, attempt.is_proven, attempt.ended_at) == (Outcome.RUNNING, True, None)
    value = result(record)
    assert (value["state"], value["job_id"], value["zone"]) == ("running", "job-1", "us-central1-a")
    assert [(row["outcome"], row["ended_at"], row["failure"]) for row in value["attempts"]] == [("running", None, None)]
    assert attempt_line(attempt) == f"{US}: left running, 1 x nvidia-l4 seen in us-central1-a."


def test_a_job_without_accelerator_is_proven_by_a_worker() -> None:
    """A job on plain machines is left running as soon as one of its workers is up."""
    up = replace(WITH_L4, machine_type="n2-standard-8", accelerators=())
    booting = replace(up, status="staging")
    assert isinstance(decide(running(CPU), streaming(workers=(booting,)), PROVEN, after(1)), Wait)
    assert last(decide(running(CPU), streaming(workers=(up,)), PROVEN, after(1))).outcome is Outcome.RUNNING


def test_a_batch_job_may_be_left_running_too() -> None:
    """A batch job is left running when the task waits for the proof alone."""
    assert last(decide(running(), seen(workers=(WITH_L4,)), PROVEN, after(1))).outcome is Outcome.RUNNING


def test_an_unproven_job_is_waited_for() -> None:
    """A running job without workers is no reason to stop looking."""
    assert isinstance(decide(running(), streaming(workers=()), PROVEN, after(1)), Wait)


def test_a_stockout_moves_a_streaming_job_on() -> None:
    """A job that waits for its proof moves on after a stockout, and is cancelled for it even where drains are asked."""
    decision = decide(running(), streaming(JobState.RUNNING, STOCKOUT, workers=()), DRAIN, after(1))
    assert isinstance(decision, Cancel)
    assert last(decision).outcome is Outcome.CANCELLING
    ended = decide(decision.record, streaming(JobState.CANCELLED, workers=()), DRAIN, after(2))
    assert isinstance(ended, Launch)
    assert last(ended).placement == EU


def test_a_bare_streaming_job_is_cancelled() -> None:
    """Workers without the device cancel a job that waits for its proof."""
    bare = decide(running(), streaming(workers=(BARE,)), PROVEN, after(1))
    decision = decide(bare.record, streaming(workers=(BARE,)), PROVEN, after(2))
    assert isinstance(decision, Cancel)
    assert last(decision).outcome is Outcome.CANCELLING


def test_a_job_that_ended_before_its_proof_is_judged_as_ever() -> None:
    """A job that is done before its proof succeeds with a warning, or fails where proof is wanted."""
    warned = decide(running(), seen(JobState.DONE), PROVEN, after(1))
    assert isinstance(warned, Finish)
    assert last(warned).outcome is Outcome.DONE
    assert isinstance(decide(running(), seen(JobState.DONE), replace(PROVEN, on_unproven="fail"), after(1)), GiveUp)


def hidden() -> Snapshot:
    """Return a look at a streaming job whose worker VMs nobody may list."""
    return replace(streaming(workers=None), scaling=(ONE_UP,))


def test_workers_that_nobody_may_see_end_the_wait_in_time() -> None:
    """When workers are up and unreadable for all of start_timeout, the job is left running and called unproven."""
    assert isinstance(decide(running(), hidden(), PROVEN, after(29)), Wait)
    decision = decide(running(), hidden(), PROVEN, after(31))
    assert isinstance(decision, Finish)
    proof = last(decision).proof
    assert proof is not None
    assert (last(decision).outcome, proof.status) == (Outcome.RUNNING, ProofStatus.UNREADABLE)
    assert attempt_line(last(decision)) == f"{US}: left running, accelerator unreadable."


def test_workers_that_nobody_may_see_fail_where_proof_is_wanted() -> None:
    """With on_unproven="fail" such a job is cancelled, as nobody would ever prove it."""
    decision = decide(running(), hidden(), replace(PROVEN, on_unproven="fail"), after(31))
    assert isinstance(decision, Cancel)
    failure = last(decision).failure
    assert failure is not None
    assert failure.kind is FailureKind.ACCELERATOR_MISSING


# --- until done


@pytest.mark.parametrize("state", [JobState.PENDING, JobState.QUEUED, JobState.RUNNING])
@pytest.mark.parametrize("workers", [(), (WITH_L4,)])
def test_waiting_for_the_end_of_a_streaming_job_is_an_error(state: JobState, workers: tuple[Worker, ...]) -> None:
    """A job that says it is streaming is cancelled, and the task fails with what to write instead."""
    decision = decide(running(), streaming(state, workers=workers), DONE, after(1))
    assert isinstance(decision, Cancel)
    ended = decide(decision.record, streaming(JobState.CANCELLED, workers=()), DONE, after(2))
    assert isinstance(ended, GiveUp)
    assert ended.failure.kind is FailureKind.CONFIGURATION
    text = report("score", ended.record, ended.failure)
    assert text == (
        f"score failed on {US} (job job-1), configuration: it is a streaming job, which has no end to wait for; give "
        'wait_until="proven" to leave it running once its accelerator is seen.'
    )


# --- every state, both wishes

ALIVE = [JobState.UNKNOWN, JobState.STOPPED, JobState.QUEUED, JobState.PENDING, JobState.PAUSING, JobState.PAUSED]
LEAVING = [JobState.DRAINING, JobState.CANCELLING, JobState.RESOURCE_CLEANING_UP]
EXPECTED: dict[JobState, tuple[type[Decision], Outcome]] = {
    **dict.fromkeys([*ALIVE, *LEAVING], (Wait, Outcome.SUBMITTED)),
    JobState.DONE: (Finish, Outcome.DONE),
    JobState.FAILED: (GiveUp, Outcome.FAILED),
    **dict.fromkeys([JobState.CANCELLED, JobState.DRAINED, JobState.UPDATED], (GiveUp, Outcome.CANCELLED)),
}


@pytest.mark.parametrize("policy", [DONE, PROVEN], ids=["done", "proven"])
@pytest.mark.parametrize("state", JobState)
def test_every_state_of_a_proven_job(state: JobState, policy: Policy) -> None:
    """Each state of a proven batch job leads to the same decision whatever is waited for, but for a running one."""
    in_mode = (Finish, Outcome.RUNNING) if policy is PROVEN else (Wait, Outcome.SUBMITTED)
    kind, outcome = EXPECTED.get(state, in_mode)
    decision = decide(running(US), seen(state, workers=(WITH_L4,)), policy, after(1))
    assert (type(decision), last(decision).outcome) == (kind, outcome)


@pytest.mark.parametrize("state", JobState)
@pytest.mark.parametrize("policy", [PROVEN, DRAIN], ids=["cancel", "drain"])
def test_every_state_of_a_job_that_must_end(state: JobState, policy: Policy) -> None:
    """A job that was asked to end is asked again until it heeds, and counts as ended in every terminal state."""
    record = left_running(running(US))
    asked = record.with_attempt(ending(record.attempts[-1], "the task was cleared", policy, after(1)))
    decision = decide(asked, streaming(state), policy, after(2))
    heeds = {*LEAVING} - ({JobState.DRAINING} if policy is PROVEN else set())
    if state.is_terminal:
        assert decision.record.open is None
        assert last(decision).outcome is (Outcome.DONE if state is JobState.DONE else Outcome.CANCELLED)
    else:
        assert type(decision) is (Wait if state in heeds else Cancel)
        assert last(decision).outcome is (Outcome.DRAINING if policy is DRAIN else Outcome.CANCELLING)


@pytest.mark.parametrize("state", LEAVING)
def test_what_somebody_else_ends_is_left_to_them(state: JobState) -> None:
    """A job that somebody cancels or drains in the console is not taken for one to move elsewhere."""
    decision = decide(running(), streaming(state, STOCKOUT, workers=()), PROVEN, after(40))
    assert isinstance(decision, Wait)
    assert last(decision).failure is None


def test_a_replaced_job_says_so() -> None:
    """A job that was updated in place is told as replaced by another."""
    decision = decide(running(US), streaming(JobState.UPDATED), PROVEN, after(1))
    assert isinstance(decision, GiveUp)
    assert decision.failure.explanation == "somebody replaced the job by another (it is updated)"


def test_a_drain_that_takes_too_long_is_named() -> None:
    """When a drain outlasts cancel_timeout the task fails naming the job, and nothing else is started."""
    record = left_running()
    asked = record.with_attempt(ending(record.attempts[-1], "the task was cleared", DRAIN, after(1)))
    decision = decide(asked, streaming(JobState.DRAINING), DRAIN, after(7))
    assert isinstance(decision, GiveUp)
    assert decision.failure.explanation.startswith(
        "job job-1 in us-central1 was asked to drain (the task was cleared) and did not end within 300 s"
    )
    assert decision.record.open is not None


# --- over tries and lives


def resumed(record: Record, *, max_tries: int = 0) -> tuple[Record, tuple[Attempt, ...]]:
    fresh, stale = resume(record, max_tries=max_tries, now=MOMENT, project="acme-ml-prod", prefix="score")
    return fresh, tuple(stale)


@pytest.mark.parametrize("ended", [False, True], ids=["before", "after"])
def test_a_crash_around_the_report_starts_no_second_job(*, ended: bool) -> None:
    """A try that begins after the job was left running takes that job for its result and plans nothing."""
    again, stale = resumed(replace(left_running(), ended=ended))
    assert stale == ()
    assert not is_searching(again, PROVEN)
    decision = decide(again, None, PROVEN, after(9))
    assert isinstance(decision, Finish)
    assert result(decision.record)["job_id"] == "job-1"


def test_a_crash_after_the_report_of_a_done_job_starts_no_second_job() -> None:
    """A try that begins after a job's success was written down takes that success."""
    done = decide(running(), seen(JobState.DONE, workers=(WITH_L4,)), DONE, after(9)).record
    again, _ = resumed(replace(done, ended=True))
    assert isinstance(decide(again, None, DONE, after(10)), Finish)


def test_a_crash_before_the_report_of_an_unproven_job_is_no_success() -> None:
    """A done job that failed for want of proof still fails when the report had to be made by another try."""
    strict = replace(DONE, on_unproven="fail", fallback_on=(*DEFAULT_FALLBACK_ON, FailureKind.ACCELERATOR_MISSING))
    unproven = decide(running(), seen(JobState.DONE), strict, after(9)).record
    again, _ = resumed(unproven)
    assert isinstance(decide(again, None, strict, after(10)), GiveUp)


@pytest.mark.parametrize("killed", [False, True], ids=["cleared", "killed"])
def test_a_clear_ends_what_was_left_running(*, killed: bool) -> None:
    """A new life is told of the job that the old one left running, so that it is ended first."""
    record = replace(left_running(), ended=True, killed=killed)
    fresh, stale = resumed(record, max_tries=0 if killed else 1)
    assert (fresh.life, fresh.attempts) == (2, ())
    assert stale == (record.attempts[-1],)


def test_ending_is_as_asked() -> None:
    """A user's end is a drain where that is wished, else a cancel; moving on is always a cancel."""
    attempt = running().attempts[-1]
    assert ending(attempt, "why", DRAIN, after(1)).outcome is Outcome.DRAINING
    assert ending(attempt, "why", PROVEN, after(1)).outcome is Outcome.CANCELLING
    assert cancelling(attempt, QUOTA_FULL, after(1)).outcome is Outcome.CANCELLING


# --- following


async def test_following_stops_at_the_proof() -> None:
    """The follower of a job that is to be proven returns at the proof, and asks nothing of the job."""
    service = Service({1: WITH_L4})
    done = await followed(service, policy=PROVEN)
    assert done.failure is None
    assert done.record.attempts[-1].outcome is Outcome.RUNNING
    assert service.asked_to_cancel == []
    assert service.now <= MOMENT + timedelta(minutes=1)


async def test_following_sees_a_drain_through() -> None:
    """The follower asks a job that must drain until it heeds, and returns when it has ended."""
    record = left_running()
    asked = record.with_attempt(ending(record.attempts[-1], "the task was cleared", DRAIN, MOMENT))
    service = Service()
    done = await followed(service, asked, DRAIN)
    assert done.record.open is None
    assert [attempt.outcome for attempt in service.ended] == [Outcome.DRAINING]


def test_times_of_a_left_job_survive_json() -> None:
    """A record with a job left running comes back from JSON as it was written."""
    record = left_running()
    assert Record.from_json(json.loads(json.dumps(record.to_json()))) == record
    assert isinstance(record.attempts[-1].submitted_at, datetime)
