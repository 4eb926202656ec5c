"""Whose a job is, by its labels and the record of the task that they name."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_accel_provider.core.identity import job_labels, job_name
from airflow_accel_provider.core.jobs import Job, JobState, Service
from airflow_accel_provider.core.ownership import (
    OVER,
    Claim,
    Holder,
    Known,
    Missing,
    Started,
    Unreadable,
    Verdict,
    VerdictKind,
    judge,
    label_form,
    may_be_ours,
    started,
)
from airflow_accel_provider.core.placement import Placement
from airflow_accel_provider.core.record import Outcome, Record, begin
from airflow_accel_provider.core.spark.labels import spark_labels
from tests.core.drawn_records import MOMENT

L4 = Placement.parse("nvidia-l4 on g2-standard-8 in us-central1")
OWNER = "7f" * 16
LIVE = ["running", "deferred", "queued", "scheduled", "up_for_retry", "up_for_reschedule", "restarting", None]
IDS = {"dag_id": "Nightly.scores", "task_id": "score", "run_id": "scheduled__2026-03-02T00:00:00+00:00"}


def job(
    *, life: int = 1, attempt: int = 1, service: Service = "dataflow", state: str = "running", id_: str = "j1"
) -> Job:
    labels = job_labels(owner=OWNER, life=life, attempt=attempt, map_index=3, **IDS)
    said = spark_labels(labels) if service == "dataproc" else labels
    return Job(id=id_, name="n", region="us-central1", state=JobState(state), labels=tuple(sorted(said.items())))


def of(job_: Job, service: Service = "dataflow") -> Started:
    found = started(job_, service)
    assert found
    return found


def record(outcome: Outcome = Outcome.SUBMITTED, *, job_id: str | None = "j1", life: int = 1, tries: int = 1) -> Record:
    """Return a record whose attempts but the last were cancelled."""
    made = begin(owner=OWNER, max_tries=0, now=MOMENT, project="acme", prefix="score")
    made = replace(made, life=life)
    for n in range(1, tries + 1):
        made = made.intend(0, L4, MOMENT)
        last = n == tries
        changed = {"outcome": outcome, "job_id": job_id} if last else {"outcome": Outcome.CANCELLED, "job_id": f"j{n}"}
        made = made.with_attempt(replace(made.attempts[-1], **changed))  # type: ignore[arg-type]
    return made


def verdict(known: Known, *, given_up: tuple[str, ...] = (), **said: object) -> Verdict:
    return judge(of(job(**said)), known, given_up=given_up)  # type: ignore[arg-type]


@pytest.mark.parametrize("service", ["dataflow", "dataproc"])
def test_labels_are_read_back(service: Service) -> None:
    """A job's labels name its task instance in either service's form, and numbers come back as numbers."""
    found = of(job(life=2, attempt=13, service=service), service)
    claim = found.claim
    assert (claim.life, claim.attempt, claim.map_index) == (2, 13, 3)
    assert found.names(claim.owner, OWNER)
    assert [found.names(*pair) for pair in ((claim.dag, "Nightly.scores"), (claim.run, IDS["run_id"]))] == [True, True]
    assert not found.names(claim.dag, "nightly.scores")


@given(st.text(min_size=1, max_size=250), st.text(min_size=1, max_size=250))
def test_ids_keep_apart_in_either_form(one: str, other: str) -> None:
    """Different ids never have the same label."""
    for service in ("dataflow", "dataproc"):
        assert (label_form(one, service) == label_form(other, service)) == (one == other)


@pytest.mark.parametrize(
    "missing", ["accel-owner", "accel-life", "accel-attempt", "accel-dag", "accel-task", "accel-run"]
)
def test_a_job_without_all_labels_is_not_ours(missing: str) -> None:
    """Without its owner, numbers and ids a job is not this provider's, and so is one with numbers that are none."""
    labels = dict(job().labels or ())
    assert started(replace(job(), labels=tuple(labels.items())), "dataflow")
    assert started(replace(job(), labels=tuple((labels | {missing: ""}).items())), "dataflow") is None
    assert started(replace(job(), labels=tuple((labels | {"accel-life": "one"}).items())), "dataflow") is None


@given(st.text(max_size=80), st.uuids(), st.integers(1, 9), st.integers(1, 30))
def test_every_name_we_give_has_our_form(prefix: str, owner: object, life: int, attempt: int) -> None:
    """No job of ours is passed over for its name."""
    assert may_be_ours(job_name(prefix, owner=str(owner), life=life, attempt=attempt))
    assert not may_be_ours("nightly-scores")


@pytest.mark.parametrize("state", LIVE)
@pytest.mark.parametrize("outcome", [Outcome.INTENT, Outcome.SUBMITTED, Outcome.CANCELLING, Outcome.DRAINING])
def test_a_live_task_owns_its_job(state: str | None, outcome: Outcome) -> None:
    """While its task is in any state from which it may go on, the open attempt's job is owned."""
    known = Holder(state=state, record=record(outcome, job_id=None if outcome is Outcome.INTENT else "j1"))
    assert verdict(known).kind is VerdictKind.OWNED


@pytest.mark.parametrize("state", sorted(OVER))
def test_a_task_that_is_over_owns_nothing(state: str) -> None:
    """When its task is over the open attempt's job is nobody's, and the reason says how the task ended."""
    said = verdict(Holder(state=state, record=record()))
    assert said.kind is VerdictKind.ORPHAN
    assert state in said.reason


@pytest.mark.parametrize("state", [*LIVE, *sorted(OVER)])
def test_a_job_left_running_is_owned(state: str | None) -> None:
    """A job that was proven and left running on purpose is owned, whatever became of its task, by any id."""
    known = Holder(state=state, record=record(Outcome.RUNNING))
    assert verdict(known).kind is VerdictKind.OWNED
    assert verdict(known, id_="its-update").kind is VerdictKind.OWNED


def test_a_kill_takes_back_what_was_left_running() -> None:
    """A job that was left running is nobody's once its task was killed and is over."""
    killed = replace(record(Outcome.RUNNING), killed=True)
    assert verdict(Holder(state="failed", record=killed)).kind is VerdictKind.ORPHAN
    assert verdict(Holder(state="queued", record=killed)).kind is VerdictKind.OWNED


@pytest.mark.parametrize("outcome", [Outcome.DONE, Outcome.FAILED, Outcome.CANCELLED])
def test_a_job_that_its_record_says_has_ended(outcome: Outcome) -> None:
    """A job that still runs although the record says that it ended is nobody's, even while its task goes on."""
    assert verdict(Holder(state="deferred", record=record(outcome))).kind is VerdictKind.ORPHAN
    earlier = Holder(state="deferred", record=record(job_id="j2", tries=2))
    assert verdict(earlier, attempt=1).kind is VerdictKind.ORPHAN
    assert verdict(earlier, attempt=2, id_="j2").kind is VerdictKind.OWNED


def test_an_earlier_life() -> None:
    """A job of an earlier life is nobody's; one of a life or an attempt that the record does not know is unknown."""
    known = Holder(state="deferred", record=record(life=2))
    assert verdict(known, life=1).kind is VerdictKind.ORPHAN
    assert verdict(known, life=3).kind is VerdictKind.UNKNOWN
    assert verdict(known, life=2, attempt=7).kind is VerdictKind.UNKNOWN


def test_another_job_of_the_same_attempt() -> None:
    """A job that has the attempt's labels and another id, as an update makes it, is unknown."""
    assert verdict(Holder(state="failed", record=record()), id_="its-update").kind is VerdictKind.UNKNOWN


def test_another_owner() -> None:
    """Where the task instance has another owner the job is unclaimed, and nobody's only when that owner is given up."""
    others = Holder(state="failed", record=replace(record(), owner="e" * 32))
    assert verdict(others).kind is VerdictKind.UNCLAIMED
    assert verdict(others, given_up=(OWNER,)).kind is VerdictKind.ORPHAN
    assert verdict(others, given_up=("e" * 32,)).kind is VerdictKind.UNCLAIMED


@pytest.mark.parametrize("what", ["dag", "run", "task", "record"])
def test_what_is_not_here(what: str) -> None:
    """A job whose DAG, run, task or record is not here is unclaimed, and nobody's only when its owner is given up."""
    missing = Missing(what=what)  # type: ignore[arg-type]
    assert verdict(missing).kind is VerdictKind.UNCLAIMED
    assert verdict(missing, given_up=("another",)).kind is VerdictKind.UNCLAIMED
    assert verdict(missing, given_up=(OWNER,)).kind is VerdictKind.ORPHAN


def test_what_cannot_be_read_is_unknown() -> None:
    """A job whose task could not be asked for is unknown with the reason, even when its owner is given up."""
    said = verdict(Unreadable(reason="Airflow answered 403"), given_up=(OWNER,))
    assert said == Verdict(kind=VerdictKind.UNKNOWN, reason="Airflow answered 403")


def test_an_owner_is_given_up_by_its_id_or_its_label() -> None:
    """Where labels must begin with a letter an owner has another form there, and either form names it."""
    batch = of(job(service="dataproc"), "dataproc")
    assert batch.claim.owner != OWNER
    for name in (OWNER, batch.claim.owner):
        assert judge(batch, Missing(what="run"), given_up=(name,)).kind is VerdictKind.ORPHAN


@pytest.mark.parametrize("state", ["draining", "cancelling"])
def test_what_is_ending_is_left_to_end(state: str) -> None:
    """A job that is being drained or cancelled is never an orphan: a cancel would lose what it has taken in."""
    assert verdict(Holder(state="failed", record=record()), state=state).kind is VerdictKind.OWNED
    assert verdict(Missing(what="run"), given_up=(OWNER,), state=state).kind is VerdictKind.UNCLAIMED


known_things = st.one_of(
    st.builds(Missing, what=st.sampled_from(["dag", "run", "task", "record"])),
    st.builds(Unreadable, reason=st.text(max_size=10)),
    st.builds(
        Holder,
        state=st.sampled_from([*LIVE, *sorted(OVER)]),
        record=st.builds(
            lambda outcome, life, owner: replace(record(outcome, life=life), owner=owner),
            st.sampled_from(Outcome),
            st.integers(1, 3),
            st.sampled_from([OWNER, "e" * 32]),
        ),
    ),
)


@given(known_things, st.integers(1, 3), st.integers(1, 3))
def test_only_what_is_certainly_ours_is_an_orphan(known: Known, life: int, attempt: int) -> None:
    """Nothing is nobody's unless the record of the task that it names has its very owner."""
    claim = Claim(owner=OWNER, life=life, attempt=attempt, dag="d", task="t", run="r")
    said = judge(Started(service="dataflow", job=job(), claim=claim), known)
    if said.kind is VerdictKind.ORPHAN:
        assert isinstance(known, Holder)
        assert known.record.owner == OWNER
