"""Is a batch's GPU there? The service's usage figures, on its own clock, and what is decided over them."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_accel_provider.core.accelerators import Cpu, Gpu
from airflow_accel_provider.core.decisions import Cancel, Finish, GiveUp, Launch, Wait
from airflow_accel_provider.core.fallback import decide
from airflow_accel_provider.core.jobs import Importance, Job, JobState, Message, Snapshot
from airflow_accel_provider.core.placement import Placement
from airflow_accel_provider.core.policy import Policy
from airflow_accel_provider.core.proof import ProofStatus
from airflow_accel_provider.core.record import Outcome, PlannedPlace, Record, begin
from airflow_accel_provider.core.report import attempt_line, report
from airflow_accel_provider.core.result import result
from airflow_accel_provider.core.usage import SOURCE_END, SOURCE_NOW, UNNAMED, InUse, Spent, prove_in_use, prove_spent
from tests.core.drawn_records import MOMENT

GRACE = timedelta(minutes=5)
POLICY = Policy(grace=GRACE, lost_after=timedelta(seconds=30))
L4, ELSEWHERE, A100 = (
    Placement.parse(text) for text in ("l4 in us-central1", "l4 in europe-west4", "a100-40 in us-central1")
)
STOCKOUT = (
    "The zone 'projects/acme/zones/us-central1-a' does not have enough resources available to fulfill the request."
    " Consider zones us-central1-b."
)


def after(minutes: float) -> datetime:
    return MOMENT + timedelta(minutes=minutes)


def submitted(*places: Placement) -> Record:
    """Return a record whose first place has a batch since MOMENT."""
    begun = begin(owner="f" * 32, max_tries=0, now=MOMENT, project="acme", prefix="etl", service="dataproc")
    planned = replace(begun, plan=tuple(PlannedPlace(placement=place) for place in places or (L4, ELSEWHERE, A100)))
    launched = decide(planned, None, POLICY, MOMENT)
    assert isinstance(launched, Launch)
    attempt = launched.record.attempts[-1]
    done = replace(attempt, outcome=Outcome.SUBMITTED, job_id=attempt.job_name, submitted_at=MOMENT)
    return launched.record.with_attempt(done)


def seen(state: JobState = JobState.RUNNING, *texts: str, version: str = "2.3", **said: Any) -> Snapshot:
    """Return a look at the batch, which has been in this state since a minute after MOMENT."""
    job = Job(id="b", name="b", region="us-central1", state=state, state_at=after(1), runtime_version=version)
    messages = tuple(Message(text=text, importance=Importance.ERROR, at=MOMENT) for text in texts)
    has_run = state != JobState.PENDING
    return Snapshot(job=job, messages=messages, **{"has_run": has_run, **said})


def using(minutes: float, **gpus: int) -> InUse:
    return InUse(at=after(minutes), gpus={name.replace("_", "-"): number for name, number in gpus.items()})


@pytest.mark.parametrize(
    ("gpus", "count"),
    [({"l4": 2000}, 2), ({"l4": 1000}, 1), ({"l4": 400}, 1), ({UNNAMED: 3000}, 3), ({"l4": 1999}, 2)],
)
def test_a_single_gpu_is_proof(gpus: dict[str, int], count: int) -> None:
    """One GPU of the wanted type in use proves it; the count is that of thousandths, at least one."""
    proof = prove_in_use(Gpu("l4", 2), InUse(at=MOMENT, gpus=gpus))
    assert (proof.status, proof.source, proof.at, proof.count) == (ProofStatus.SEEN, SOURCE_NOW, MOMENT, count)


@pytest.mark.parametrize("gpus", [{}, {"l4": 0}, {"a100-40": 2000}])
def test_none_or_another_is_none(gpus: dict[str, int]) -> None:
    """Figures without a GPU, or with one of another type, show that the wanted one is absent at that moment."""
    assert prove_in_use(Gpu("l4", 1), InUse(at=MOMENT, gpus=gpus)).status is ProofStatus.ABSENT
    ended = prove_spent(Gpu("l4", 1), Spent(gpu_seconds={name: 1.0 for name in gpus if gpus[name]}), MOMENT)
    assert ended.status is ProofStatus.ABSENT


def test_cpus_need_no_gpu() -> None:
    """A batch on CPUs is proven by any figure."""
    assert prove_in_use(Cpu(), InUse(at=MOMENT)).status is ProofStatus.SEEN
    assert prove_spent(Cpu(), Spent(), MOMENT).status is ProofStatus.SEEN


@given(st.dictionaries(st.sampled_from(["l4", "a100-40"]), st.floats(0, 1e9)), st.floats(0, 1e9), st.floats(0, 1e9))
def test_figures_survive_json(gpus: dict[str, float], dcu: float, storage: float) -> None:
    """What was used is read as it was written, in the record too."""
    spent = Spent(gpu_seconds=gpus, dcu_seconds=dcu, storage_gb_seconds=storage)
    assert Spent.from_json(spent.to_json()) == spent
    record = submitted()
    record = record.with_attempt(replace(record.attempts[-1], spent=spent))
    assert Record.from_json(record.to_json()) == record


def test_a_record_of_before_is_dataflows() -> None:
    """A record that names no service is one of Dataflow jobs."""
    value = submitted().to_json()
    assert value.pop("service") == "dataproc"
    assert Record.from_json(value).service == "dataflow"


def test_executors_without_gpu_are_cancelled_after_the_grace() -> None:
    """A batch that goes on running without a GPU, by ever newer figures, is cancelled once the grace is over."""
    record = submitted()
    for minutes in (2, 4, 6.9):
        waited = decide(record, seen(in_use=using(minutes)), POLICY, after(minutes))
        assert isinstance(waited, Wait)
        record = waited.record
    over = decide(record, seen(in_use=using(7)), POLICY, after(7))
    assert isinstance(over, Cancel)
    attempt = over.record.attempts[-1]
    assert attempt.failure
    assert attempt.failure.kind == "accelerator_missing"
    assert "executors run without l4" in attempt.failure.explanation


def test_an_old_figure_is_not_many() -> None:
    """One figure without a GPU that the service does not renew never cancels, however long ago it was."""
    record = submitted()
    for minutes in (2, 20, 200):
        decision = decide(record, seen(in_use=using(1.5)), POLICY, after(minutes))
        assert isinstance(decision, Wait)
        record = decision.record


def test_figures_from_before_the_run_say_nothing() -> None:
    """Figures that are older than the batch's running state, or of one that still waits, count for nothing."""
    for snapshot in (seen(in_use=using(0.5)), seen(JobState.PENDING, in_use=using(3))):
        decision = decide(submitted(), snapshot, POLICY, after(3))
        assert decision.record.attempts[-1].proof is None


def test_seen_once_stays_seen() -> None:
    """A GPU that was in use once is proof, though later figures have none."""
    record = decide(submitted(), seen(in_use=using(2)), POLICY, after(2)).record
    record = decide(record, seen(in_use=using(3, l4=2000)), POLICY, after(3)).record
    later = decide(record, seen(in_use=using(60)), POLICY, after(60))
    assert isinstance(later, Wait)
    assert later.record.attempts[-1].is_proven


def test_a_late_gpu_is_in_time() -> None:
    """A batch whose first figures lack the GPU and whose sum has it is done and proven."""
    record = decide(submitted(), seen(in_use=using(2)), POLICY, after(2)).record
    ended = seen(JobState.DONE, spent=Spent(gpu_seconds={"l4": 120.0}))
    done = decide(record, ended, POLICY, after(3))
    assert isinstance(done, Finish)
    proof = done.record.attempts[-1].proof
    assert proof
    assert (proof.status, proof.source) == (ProofStatus.SEEN, SOURCE_END)
    assert attempt_line(done.record.attempts[-1]) == "l4 in us-central1: done, l4 seen."


@pytest.mark.parametrize("early", [True, False])
def test_done_before_anybody_looked(early: bool) -> None:
    """A batch that is done without a sum is unseen, even where an early figure lacked the GPU: the user decides."""
    record = submitted()
    if early:
        record = decide(record, seen(in_use=using(2)), POLICY, after(2)).record
    done = decide(record, seen(JobState.DONE), POLICY, after(3))
    assert isinstance(done, Finish)
    proof = done.record.attempts[-1].proof
    assert proof
    assert (proof.status, proof.source) == (ProofStatus.FINISHED_UNSEEN, SOURCE_END)
    strict = decide(record, seen(JobState.DONE), replace(POLICY, on_unproven="fail"), after(3))
    assert isinstance(strict, GiveUp)


def test_a_sum_without_gpu_fails() -> None:
    """A batch that is done and never had a GPU, by the service's own sum, fails and never moves."""
    done = decide(submitted(), seen(JobState.DONE, spent=Spent(dcu_seconds=60.0)), POLICY, after(3))
    assert isinstance(done, GiveUp)
    assert done.failure.kind == "accelerator_missing"
    assert "executors run without l4" in done.failure.explanation


def test_what_an_ended_batch_is_billed_for_changes_nothing() -> None:
    """A batch that was cancelled for its missing GPU stays without it, whatever the sum says."""
    record = decide(submitted(), seen(in_use=using(2)), POLICY, after(2)).record
    cancelled = decide(record, seen(in_use=using(8)), POLICY, after(8))
    ended = seen(JobState.CANCELLED, spent=Spent(gpu_seconds={"l4": 9.0}))
    decision = decide(cancelled.record, ended, POLICY, after(9))
    assert isinstance(decision, GiveUp)
    assert decision.failure.kind == "accelerator_missing"
    movable = replace(POLICY, fallback_on=(*POLICY.fallback_on, decision.failure.kind))
    assert isinstance(decide(cancelled.record, ended, movable, after(9)), Launch)


def test_a_stockout_moves_on() -> None:
    """A batch that failed for want of stock is followed by the next place, never by a zone of the same region."""
    decision = decide(submitted(), seen(JobState.FAILED, STOCKOUT, has_run=False), POLICY, after(1))
    assert isinstance(decision, Launch)
    assert decision.record.attempts[-1].placement == ELSEWHERE


def test_a_queue_that_ended_rules_out_the_region() -> None:
    """A batch whose time in the queue was over says that its region has none of the accelerator."""
    text = "timed out waiting for resources: spark.dataproc.executor.provisioning.allocationTimeout of 1620s"
    record = submitted(L4, Placement.parse("l4:2 in us-central1"), A100)
    decision = decide(record, seen(JobState.FAILED, text, version="3.0", has_run=False), POLICY, after(27))
    assert isinstance(decision, Launch)
    assert decision.record.attempts[-1].placement == A100


def test_waiting_too_long_moves_on() -> None:
    """A batch that still waits for machines when start_timeout is over is cancelled, one that runs is not."""
    late = decide(submitted(), seen(JobState.PENDING), POLICY, after(31))
    assert isinstance(late, Cancel)
    failure = late.record.attempts[-1].failure
    assert failure
    assert (failure.kind, failure.scope) == ("stockout", "region")
    assert isinstance(decide(submitted(), seen(JobState.RUNNING), POLICY, after(31)), Wait)


def test_code_that_fails_on_its_gpu_never_moves() -> None:
    """A batch that fails after it used its GPU fails the task, whatever its words."""
    ended = seen(JobState.FAILED, STOCKOUT, spent=Spent(gpu_seconds={"l4": 5.0}))
    decision = decide(submitted(), ended, POLICY, after(3))
    assert isinstance(decision, GiveUp)
    assert decision.failure.kind == "user_code"


@pytest.mark.parametrize(
    ("text", "kind", "said"),
    [
        ("Cancelling batch as ttl exceeded", "configuration", "its ttl was over"),
        ("Batch cancellation requested", "cancelled", "somebody cancelled the job"),
    ],
)
def test_who_ended_it(text: str, kind: str, said: str) -> None:
    """A batch that its ttl ended is told from one that somebody cancelled; neither moves."""
    decision = decide(submitted(), seen(JobState.CANCELLED, text), POLICY, after(3))
    assert isinstance(decision, GiveUp)
    assert decision.failure.kind == kind
    assert said in report("etl", decision.record, decision.failure)


def test_a_deleted_batch_is_given_up() -> None:
    """A batch that the service no longer knows is given up after half a minute, and nothing else is started."""
    gone = Snapshot(job=None)
    waited = decide(submitted(), gone, POLICY, after(3))
    assert isinstance(waited, Wait)
    decision = decide(waited.record, gone, POLICY, after(3.6))
    assert isinstance(decision, GiveUp)
    assert "no longer knows" in decision.failure.explanation


def test_the_result_leads_to_the_batch() -> None:
    """The value's addresses are those of the batch's page."""
    done = decide(submitted(), seen(JobState.DONE, spent=Spent(gpu_seconds={"l4": 1.0})), POLICY, after(3))
    value = result(done.record)
    assert value["zone"] is None
    assert "/dataproc/batches/us-central1/" in value["attempts"][0]["url"]
