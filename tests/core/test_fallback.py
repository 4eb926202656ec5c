"""The decision: where next, when to cancel, when to stop."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_accel_provider.core.decisions import Cancel, Decision, Finish, GiveUp, Launch, Wait
from airflow_accel_provider.core.failures import Failure, FailureKind, Resource, Scope
from airflow_accel_provider.core.fallback import cancelling, close, decide
from airflow_accel_provider.core.jobs import Importance, Job, JobState, Message, ScalingEvent, Snapshot, Worker
from airflow_accel_provider.core.placement import Placement
from airflow_accel_provider.core.policy import Policy
from airflow_accel_provider.core.record import Outcome, PlannedPlace, Record, begin, resume
from airflow_accel_provider.core.search import is_searching
from tests.core.drawn_records import MOMENT, records
from tests.core.test_classification import STOCKOUT, TRACEBACK

POLICY = Policy()
US, EU, T4 = (
    Placement.parse(text)
    for text in (
        "nvidia-l4 on g2-standard-8 in us-central1",
        "nvidia-l4 on g2-standard-8 in europe-west4",
        "nvidia-tesla-t4 on n1-standard-8 in us-central1",
    )
)
WITH_L4 = Worker(
    name="w",
    status="running",
    machine_type="g2-standard-8",
    zone="us-central1-a",
    accelerators=(("nvidia-l4", 1),),
)
BARE = replace(WITH_L4, accelerators=())
QUOTA_FULL = Failure(
    kind=FailureKind.QUOTA,
    scope=Scope.REGION,
    region="europe-west4",
    metric="NVIDIA_L4_GPUS",
    resource=Resource.ACCELERATOR,
    explanation="needs at least 1 of NVIDIA_L4_GPUS; 0 of 1 left",
)


def planned(*places: Placement | PlannedPlace) -> Record:
    record = begin(owner="f" * 32, max_tries=0, now=MOMENT, project="acme-ml-prod", prefix="score")
    rows = tuple(place if isinstance(place, PlannedPlace) else PlannedPlace(placement=place) for place in places)
    return replace(record, plan=rows)


def running(*places: Placement | PlannedPlace) -> Record:
    """Return a record whose first candidate was submitted at MOMENT."""
    record = launched(planned(*places or (US, EU, T4)))
    attempt = record.attempts[-1]
    return record.with_attempt(replace(attempt, outcome=Outcome.SUBMITTED, job_id="job-1", submitted_at=MOMENT))


def launched(record: Record) -> Record:
    decision = decide(record, None, POLICY, MOMENT)
    assert isinstance(decision, Launch)
    return decision.record


def seen(
    state: JobState = JobState.RUNNING,
    *texts: str,
    workers: tuple[Worker, ...] | None = (),
    scaling: tuple[ScalingEvent, ...] = (),
) -> Snapshot:
    messages = tuple(Message(text=text, importance=Importance.ERROR, at=MOMENT) for text in texts)
    job = Job(id="job-1", name="score", region="us-central1", state=state)
    return Snapshot(job=job, messages=messages, workers=workers, scaling=scaling)


def after(minutes: float) -> datetime:
    return MOMENT + timedelta(minutes=minutes)


def place_of(decision: Decision) -> Placement:
    assert isinstance(decision, Launch)
    return decision.record.attempts[-1].placement


def test_the_first_place_first() -> None:
    """The search begins with the user's first candidate."""
    assert place_of(decide(planned(US, EU), None, POLICY, MOMENT)) == US


def test_rejected_places_are_passed_over() -> None:
    """A candidate that the plan put aside is not launched."""
    record = planned(PlannedPlace(placement=US, rejected=QUOTA_FULL), T4)

    assert place_of(decide(record, None, POLICY, MOMENT)) == T4


def test_nothing_left_to_try() -> None:
    """When every candidate is put aside nothing is started, and the first reason is the task's failure."""
    decision = decide(planned(PlannedPlace(placement=EU, rejected=QUOTA_FULL)), None, POLICY, MOMENT)

    assert isinstance(decision, GiveUp)
    assert decision.failure == QUOTA_FULL


def test_stockout_is_cut_short_when_there_is_another_place() -> None:
    """A stockout that the service still retries is cancelled at once when another candidate is left."""
    decision = decide(running(), seen(JobState.RUNNING, STOCKOUT), POLICY, after(1))

    assert isinstance(decision, Cancel)
    assert decision.record.open is not None
    assert decision.record.open.failure is not None
    assert decision.record.open.failure.zone == "us-central1-a"


def test_the_last_place_is_given_its_time() -> None:
    """A stockout at the last candidate is left to the service's own retries until start_timeout."""
    record = running(US)

    assert isinstance(decide(record, seen(JobState.RUNNING, STOCKOUT), POLICY, after(1)), Wait)
    assert isinstance(decide(record, seen(JobState.RUNNING, STOCKOUT), POLICY, after(31)), Cancel)


def test_a_cancelled_attempt_ends_before_the_next_begins() -> None:
    """The next place is launched only once the cancelled job has reached a terminal state."""
    cancelled = decide(running(), seen(JobState.RUNNING, STOCKOUT), POLICY, after(1)).record

    assert isinstance(decide(cancelled, seen(JobState.CANCELLING), POLICY, after(2)), Wait)
    assert place_of(decide(cancelled, seen(JobState.CANCELLED), POLICY, after(3))) == EU


def test_a_cancel_that_did_not_take_is_repeated() -> None:
    """A pending job that ignores the first request is asked again."""
    cancelled = decide(running(), seen(JobState.PENDING, STOCKOUT), POLICY, after(1)).record

    assert isinstance(decide(cancelled, seen(JobState.PENDING), POLICY, after(2)), Cancel)


def test_a_cancel_that_never_ends() -> None:
    """A job that does not end within cancel_timeout stops the search and is named."""
    cancelled = decide(running(), seen(JobState.RUNNING, STOCKOUT), POLICY, after(1)).record

    decision = decide(cancelled, seen(JobState.CANCELLING), POLICY, after(6.1))

    assert isinstance(decision, GiveUp)
    assert "job-1" in decision.failure.explanation
    assert decision.record.open is not None


def test_a_job_that_finished_while_it_was_cancelled() -> None:
    """A job that is done before the cancel takes is a success."""
    cancelled = decide(running(), seen(JobState.RUNNING, STOCKOUT), POLICY, after(1)).record

    assert isinstance(decide(cancelled, seen(JobState.DONE), POLICY, after(2)), Finish)


def test_proof() -> None:
    """A worker VM with the device is proof, and names the zone."""
    decision = decide(running(), seen(workers=(WITH_L4,)), POLICY, after(2))

    assert isinstance(decision, Wait)
    attempt = decision.record.attempts[-1]
    assert attempt.is_proven
    assert attempt.zone == "us-central1-a"


def test_proof_outlives_the_workers() -> None:
    """What was seen once stays proven when the VMs are gone."""
    proven = decide(running(), seen(workers=(WITH_L4,)), POLICY, after(2)).record

    decision = decide(proven, seen(JobState.DONE, workers=()), POLICY, after(9))

    assert isinstance(decision, Finish)
    assert decision.record.attempts[-1].is_proven


def test_a_missing_device_is_believed_after_the_grace() -> None:
    """Workers without the device are cancelled only when the grace is over, and no other place is tried."""
    bare = decide(running(), seen(workers=(BARE,)), POLICY, after(2))
    assert isinstance(bare, Wait)

    cancel = decide(bare.record, seen(workers=(BARE,)), POLICY, after(2.1))
    assert isinstance(cancel, Cancel)

    ended = decide(cancel.record, seen(JobState.CANCELLED), POLICY, after(4))
    assert isinstance(ended, GiveUp)
    assert ended.failure.kind is FailureKind.ACCELERATOR_MISSING
    assert "g2-standard-8 in us-central1-a runs without nvidia-l4" in ended.failure.explanation


def test_a_device_that_comes_late() -> None:
    """A device that appears within the grace is proof after all."""
    bare = decide(running(), seen(workers=(BARE,)), POLICY, after(2)).record

    assert decide(bare, seen(workers=(WITH_L4,)), POLICY, after(2.01)).record.attempts[-1].is_proven


def test_finished_without_the_device() -> None:
    """A job that did its work on bare workers fails, whatever on_unproven says: its results cost CPU hours."""
    bare = decide(running(), seen(workers=(BARE,)), POLICY, after(2)).record

    decision = decide(bare, seen(JobState.DONE, workers=()), POLICY, after(2.01))

    assert isinstance(decision, GiveUp)
    assert decision.failure.kind is FailureKind.ACCELERATOR_MISSING


def test_a_vm_that_is_not_up_shows_nothing() -> None:
    """A VM in provisioning is neither proof nor its absence."""
    record = decide(running(), seen(workers=(replace(WITH_L4, status="provisioning"),)), POLICY, after(2)).record

    assert record.attempts[-1].proof is None


def test_proven_once_never_moves() -> None:
    """After the accelerator was seen no failure is a reason to try another place, not even a stockout."""
    proven = decide(running(), seen(workers=(WITH_L4,)), POLICY, after(2)).record

    decision = decide(proven, seen(JobState.FAILED, STOCKOUT), POLICY, after(9))

    assert isinstance(decision, GiveUp)


@pytest.mark.parametrize(
    ("texts", "kind"), [([TRACEBACK], FailureKind.USER_CODE), (["It broke."], FailureKind.UNKNOWN)]
)
def test_code_and_riddles_do_not_move(texts: list[str], kind: FailureKind) -> None:
    """A pipeline that raised, or failed in unknown words, is not tried elsewhere."""
    decision = decide(running(), seen(JobState.FAILED, *texts), POLICY, after(2))

    assert isinstance(decision, GiveUp)
    assert decision.failure.kind is kind


def test_the_same_words_mean_the_reservation_where_there_is_one() -> None:
    """Words about reserved capacity are about the reservation in a place that has one, and else about the zone."""
    words = "Insufficient reserved capacity. Contact customer support to increase your reservation."
    mine = PlannedPlace(placement=US, reservation="projects/acme/zones/us-central1-a/reservations/l4-pool")
    ended = seen(JobState.FAILED, words)

    assert place_of(decide(running(US, T4), ended, POLICY, after(1))) == T4
    decision = decide(running(mine, T4), ended, POLICY, after(1))
    assert isinstance(decision, GiveUp)
    assert decision.failure.explanation == "the reservation has no room left for this job"


def test_the_user_decides_what_moves() -> None:
    """A kind named in fallback_on moves to the next place, one that is not named does not."""
    wide = replace(POLICY, fallback_on=(FailureKind.UNKNOWN,))

    assert place_of(decide(running(), seen(JobState.FAILED, "It broke."), wide, after(2))) == EU
    assert isinstance(decide(running(), seen(JobState.FAILED, STOCKOUT), wide, after(2)), GiveUp)


@pytest.mark.parametrize("state", [JobState.CANCELLED, JobState.UPDATED, JobState.DRAINED])
def test_ended_by_a_person(state: JobState) -> None:
    """A job that somebody ended in the console fails the task and starts nothing."""
    decision = decide(running(), seen(state), replace(POLICY, fallback_on=tuple(FailureKind)), after(2))

    assert isinstance(decision, GiveUp)
    assert decision.failure.kind is FailureKind.CANCELLED


@pytest.mark.parametrize("state", [state for state in JobState if not state.is_terminal])
def test_living_states_wait(state: JobState) -> None:
    """Every state that is not terminal, unknown ones too, is waited through."""
    assert isinstance(decide(running(), seen(state), POLICY, after(1)), Wait)


@pytest.mark.parametrize(("policy", "expected"), [(POLICY, Finish), (replace(POLICY, on_unproven="fail"), GiveUp)])
@pytest.mark.parametrize(("workers", "status"), [((), "finished_unseen"), (None, "unreadable")])
def test_unproven(policy: Policy, expected: type[Decision], workers: tuple[Worker, ...] | None, status: str) -> None:
    """A job that finished unseen succeeds with that remark, or fails when the user wants proof."""
    decision = decide(running(), seen(JobState.DONE, workers=workers), policy, after(2))

    assert isinstance(decision, expected)
    proof = decision.record.attempts[-1].proof
    assert proof is not None
    assert proof.status == status


def test_start_timeout_needs_silence() -> None:
    """A job whose workers came up, by the autoscaler's count, is not late."""
    up = (ScalingEvent(kind="current_num_workers_changed", at=MOMENT, current_workers=1),)

    assert isinstance(decide(running(), seen(workers=None, scaling=up), POLICY, after(31)), Wait)
    assert isinstance(decide(running(), seen(workers=None), POLICY, after(31)), Cancel)


def test_an_intent_is_submitted_again() -> None:
    """An attempt that was intended and has no job is launched under the same name."""
    record = launched(planned(US))

    decision = decide(record, Snapshot(job=None), POLICY, after(1))

    assert isinstance(decision, Launch)
    assert decision.record == record


def test_a_lost_job() -> None:
    """A job the service denies knowing for two minutes ends the search; a short denial does not."""
    denied = decide(running(), Snapshot(job=None), POLICY, after(1))
    assert isinstance(denied, Wait)
    assert isinstance(decide(denied.record, Snapshot(job=None), POLICY, after(3)), GiveUp)

    found = decide(denied.record, seen(), POLICY, after(2)).record
    assert isinstance(decide(found, Snapshot(job=None), POLICY, after(4)), Wait)


def test_a_hint_pins_the_same_candidate() -> None:
    """Zones that a stockout names are tried next, in the same region, as a second try of the same candidate."""
    texts = [f'{STOCKOUT} "zonesAvailable": "europe-west4-a,us-central1-a,us-central1-b"']

    decision = decide(running(), seen(JobState.FAILED, *texts), POLICY, after(2))

    assert place_of(decision) == US.pinned("us-central1-b")
    assert [decision.record.label(attempt) for attempt in decision.record.attempts] == ["1a", "1b"]


def test_a_zone_is_not_tried_twice() -> None:
    """A later candidate pinned to the zone that was just out of stock is skipped; another zone is not."""
    same, other = US.pinned("us-central1-a"), US.pinned("us-central1-b")

    decision = decide(running(US, same, other), seen(JobState.FAILED, STOCKOUT), POLICY, after(2))

    assert place_of(decision) == other


def test_a_regional_quota_rules_the_region_out() -> None:
    """A quota that is used up speaks about the accelerator in the whole region, and about no other accelerator."""
    text = "QUOTA_EXCEEDED: Quota 'NVIDIA_L4_GPUS' exceeded. Limit: 1.0 in region us-central1."

    decision = decide(running(US, US.pinned("us-central1-f"), T4), seen(JobState.FAILED, text), POLICY, after(2))

    assert place_of(decision) == T4


def test_a_global_quota_rules_all_gpus_out() -> None:
    """The project-wide cap leaves no GPU anywhere, but CPUs."""
    cpu = Placement.parse("cpu on n2-standard-8 in us-central1")
    text = "QUOTA_EXCEEDED: Quota 'GPUS_ALL_REGIONS' exceeded. Limit: 0.0 globally."

    assert place_of(decide(running(US, EU, T4, cpu), seen(JobState.FAILED, text), POLICY, after(2))) == cpu


def test_a_freed_quota_brings_a_place_back() -> None:
    """A candidate that was skipped is tried after all when a newer plan has room for it, in the user's order."""
    record = close(running(), Failure(kind=FailureKind.STOCKOUT, scope=Scope.NONE, explanation="x"), after(1))

    fresh = replace(record, plan=(record.plan[0], PlannedPlace(placement=EU), record.plan[2]))

    assert place_of(decide(fresh, None, POLICY, after(2))) == EU


def test_a_finished_record_stays_finished() -> None:
    """A try that finds its job done returns it instead of starting another."""
    done = decide(running(), seen(JobState.DONE, workers=()), POLICY, after(2)).record

    assert isinstance(decide(done, None, POLICY, after(9)), Finish)


def test_cancelling_keeps_its_reason() -> None:
    """The reason of a cancel becomes the attempt's failure, whatever the job says when it ends."""
    record = running()
    attempt = record.attempts[-1]
    record = record.with_attempt(cancelling(attempt, QUOTA_FULL, after(1)))

    ended = decide(record, seen(JobState.FAILED, "It broke."), POLICY, after(2)).record

    assert ended.attempts[0].failure == QUOTA_FULL
    assert ended.attempts[0].outcome is Outcome.CANCELLED


@given(st.builds(Policy, fallback_on=st.lists(st.sampled_from(FailureKind), max_size=4).map(tuple)))
def test_policies_round_trip(policy: Policy) -> None:
    """A policy comes back from JSON as it was written."""
    assert Policy.from_json(policy.to_json()) == policy


@given(records(), st.sampled_from(JobState), st.sampled_from([(), None, (WITH_L4,), (BARE,)]), st.integers(0, 99))
def test_never_two_at_once(record: Record, state: JobState, workers: tuple[Worker, ...] | None, minutes: int) -> None:
    """No decision ever leaves two attempts open, or tries a rejected place."""
    decision = decide(record, seen(state, workers=workers), POLICY, after(minutes))

    assert len([attempt for attempt in decision.record.attempts if attempt.outcome.is_open]) <= 1
    if isinstance(decision, Launch):
        assert decision.record.plan[decision.record.attempts[-1].candidate].rejected is None


def test_quotas_are_read_only_when_they_matter() -> None:
    """A fresh plan is asked for before the first launch and before a move, not when the search is over."""
    started = running()
    stocked_out = close(started, Failure(kind=FailureKind.STOCKOUT, scope=Scope.NONE, explanation="x"), after(1))
    raised = close(started, Failure(kind=FailureKind.USER_CODE, scope=Scope.JOB, explanation="x"), after(1))
    done = decide(started, seen(JobState.DONE, workers=()), POLICY, after(2)).record

    assert [is_searching(r, POLICY) for r in (planned(US), stocked_out)] == [True, True]
    assert [is_searching(r, POLICY) for r in (started, raised, done)] == [False, False, False]


def test_a_job_that_was_cancelled_while_short_moves_on() -> None:
    """A job without a worker that is found cancelled, and says what its zone lacked, is followed by the next place."""
    decision = decide(running(), seen(JobState.CANCELLED, STOCKOUT), POLICY, after(3))

    assert place_of(decision) == EU
    assert decision.record.attempts[0].failure is not None
    assert decision.record.attempts[0].failure.kind is FailureKind.STOCKOUT


@pytest.mark.parametrize(
    ("places", "snapshot"),
    [
        ((US,), seen(JobState.CANCELLED, STOCKOUT)),
        ((US, EU), seen(JobState.CANCELLED, STOCKOUT, workers=(WITH_L4,))),
        ((US, EU), seen(JobState.CANCELLED)),
        ((US, EU), seen(JobState.CANCELLED, TRACEBACK)),
        ((US, EU), seen(JobState.DRAINED, STOCKOUT)),
    ],
    ids=["last place", "had a worker", "short of nothing", "user code", "drained"],
)
def test_what_else_was_cancelled_stays_so(places: tuple[Placement, ...], snapshot: Snapshot) -> None:
    """Any other job that is found cancelled was ended by somebody, and nothing else is started."""
    decision = decide(running(*places), snapshot, POLICY, after(3))

    assert isinstance(decision, GiveUp)
    assert decision.failure.kind is FailureKind.CANCELLED


def by_google(created: float, answered: float, state: JobState = JobState.RUNNING) -> Snapshot:
    """Return a look without a worker at a job, with minutes of the service's clock."""
    bare = seen(state)
    assert bare.job
    job = replace(bare.job, created_at=after(created), state_at=after(answered))
    return replace(bare, job=job, at=after(answered))


@pytest.mark.parametrize("skew", [-600, -60, 0, 60, 600])
def test_waits_are_told_by_the_services_clock(skew: float) -> None:
    """However far this machine's clock is off, a job has the whole start_timeout, and no more."""
    early, late = by_google(skew, skew + 29), by_google(skew, skew + 31)

    assert isinstance(decide(running(), early, POLICY, after(29)), Wait)
    assert isinstance(decide(running(), late, POLICY, after(31)), Cancel)


def test_a_wait_that_was_cut_by_a_process_that_died() -> None:
    """A job without a worker that is found cancelled after start_timeout is followed by the next place; sooner not."""
    late, early = (by_google(0, minutes, JobState.CANCELLED) for minutes in (31, 29))

    assert place_of(decide(running(), late, POLICY, after(32))) == EU
    assert isinstance(decide(running(), early, POLICY, after(32)), GiveUp)


def test_what_nobody_could_read_cancels_nothing() -> None:
    """Where neither VMs nor messages can be read nothing is known of workers, and no wait is too long."""
    unread = replace(seen(workers=None), messages_read=False)

    assert isinstance(decide(running(), unread, POLICY, after(300)), Wait)


def test_an_unread_streaming_job_is_judged_after_its_time() -> None:
    """A task that waits for proof alone does not wait for ever for what nobody may read: on_unproven decides."""
    unread = replace(seen(workers=None), messages_read=False)
    lenient, strict = (replace(POLICY, wait_until="proven", on_unproven=unproven) for unproven in ("warn", "fail"))

    assert isinstance(decide(running(), unread, lenient, after(29)), Wait)
    assert isinstance(decide(running(), unread, lenient, after(31)), Finish)
    assert isinstance(decide(running(), unread, strict, after(31)), Cancel)


def test_a_new_try_gives_a_cancel_its_time_again() -> None:
    """A job that an earlier try asked to end, and that has not, is asked again before the next try gives it up."""
    asked = running()
    asked = asked.with_attempt(cancelling(asked.attempts[0], QUOTA_FULL, MOMENT))
    record, _ = resume(asked, max_tries=0, now=after(60), project=asked.project, prefix=asked.prefix)

    assert isinstance(decide(record, seen(), POLICY, after(61)), Cancel)
    assert isinstance(decide(record, seen(), POLICY, after(66)), GiveUp)
