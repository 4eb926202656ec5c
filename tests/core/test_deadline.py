"""When a try's time is over its job is ended, and nothing else is started."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_accel_provider.core.deadline import Deadline
from airflow_accel_provider.core.decisions import Cancel, Finish, GiveUp, Launch, Wait
from airflow_accel_provider.core.failures import FailureKind
from airflow_accel_provider.core.fallback import decide
from airflow_accel_provider.core.jobs import JobState
from airflow_accel_provider.core.policy import Policy
from airflow_accel_provider.core.record import Outcome, resume
from airflow_accel_provider.core.report import report
from airflow_accel_provider.core.search import is_searching
from tests.core.drawn_records import MOMENT
from tests.core.test_fallback import EU, US, WITH_L4, after, planned, running, seen

HOUR = timedelta(hours=1)
IN_AN_HOUR = Policy(deadline=Deadline.after(MOMENT, HOUR))


def test_it_counts_down() -> None:
    """The time left shrinks to nothing, and is over at the deadline itself."""
    deadline = Deadline.after(MOMENT, HOUR)
    assert [deadline.left(after(minutes)) for minutes in (0, 59, 60, 99)] == [
        HOUR,
        timedelta(minutes=1),
        timedelta(0),
        timedelta(0),
    ]
    assert [deadline.is_over(after(minutes)) for minutes in (59, 60)] == [False, True]


@given(st.datetimes(timezones=st.just(MOMENT.tzinfo)), st.timedeltas(timedelta(seconds=1), timedelta(days=366)))
def test_it_travels(at: object, limit: timedelta) -> None:
    """A deadline reads back as it was written, alone and in a policy."""
    deadline = Deadline(at=at, limit=limit)  # type: ignore[arg-type]
    policy = Policy(deadline=deadline)
    assert Deadline.from_json(deadline.to_json()) == deadline
    assert Policy.from_json(policy.to_json()) == policy


def test_before_it_nothing_changes() -> None:
    """Until the deadline a running job is waited for."""
    assert isinstance(decide(running(), seen(workers=(WITH_L4,)), IN_AN_HOUR, after(59)), Wait)


@pytest.mark.parametrize("state", [state for state in JobState if not state.is_terminal])
def test_a_living_job_is_ended(state: JobState) -> None:
    """At the deadline a job in any living state is asked to end, also one that somebody else drains for ever."""
    decision = decide(running(), seen(state, workers=(WITH_L4,)), IN_AN_HOUR, after(60))
    assert isinstance(decision, Cancel)
    attempt = decision.record.attempts[-1]
    assert (attempt.outcome, attempt.failure) == (Outcome.CANCELLING, IN_AN_HOUR.deadline.failure)  # type: ignore[union-attr]


def test_its_end_is_seen_and_told() -> None:
    """The task fails when its job has ended, in one sentence, and moves to no other place."""
    asked = decide(running(), seen(), IN_AN_HOUR, after(60))
    waiting = decide(asked.record, seen(JobState.CANCELLING), IN_AN_HOUR, after(61))
    assert isinstance(waiting, Wait)
    ended = decide(waiting.record, seen(JobState.CANCELLED), IN_AN_HOUR, after(62))
    assert isinstance(ended, GiveUp)
    assert ended.failure.kind is FailureKind.TIMEOUT
    assert report("score", ended.record, ended.failure) == (
        f"score failed on {US} (job job-1), timeout: execution_timeout (3600 s) has passed."
    )


def test_a_job_that_does_not_end_is_named() -> None:
    """A job that was not seen to end within cancel_timeout is named, and stays the record's."""
    asked = decide(running(), seen(), IN_AN_HOUR, after(60))
    late = decide(asked.record, seen(), IN_AN_HOUR, after(66))
    assert isinstance(late, GiveUp)
    assert late.record.open
    assert "job job-1 in us-central1 was asked to cancel (execution_timeout (3600 s) has passed)" in (
        late.failure.explanation
    )


def test_a_job_that_is_done_by_then_is_a_success() -> None:
    """Work that was done when the job was asked to end is not thrown away."""
    asked = decide(running(), seen(workers=(WITH_L4,)), IN_AN_HOUR, after(60))
    assert isinstance(decide(asked.record, seen(JobState.DONE), IN_AN_HOUR, after(61)), Finish)


def test_a_proof_at_the_deadline_is_a_success() -> None:
    """A streaming job whose accelerator is seen at the last look is left running."""
    policy = replace(IN_AN_HOUR, wait_until="proven")
    assert isinstance(decide(running(), seen(workers=(WITH_L4,)), policy, after(60)), Finish)


def test_a_wish_to_drain_holds_here_too() -> None:
    """With drain_pipeline the deadline asks for a drain, as any other end by the user does."""
    decision = decide(running(), seen(), replace(IN_AN_HOUR, drain=True), after(60))
    assert decision.record.attempts[-1].outcome is Outcome.DRAINING


def test_nothing_is_started_after_it() -> None:
    """When there is no time left no place is tried, neither the first nor the next."""
    first = decide(planned(US, EU), None, IN_AN_HOUR, after(60))
    assert isinstance(first, GiveUp)
    assert report("score", first.record, first.failure) == (
        "score failed, timeout: execution_timeout (3600 s) has passed before anything was started."
    )
    assert isinstance(decide(planned(US, EU), None, IN_AN_HOUR, after(59)), Launch)


@pytest.mark.parametrize("limit", [HOUR, None])
def test_a_retry_has_its_whole_time(limit: timedelta | None) -> None:
    """A try that finds a job which an earlier one ended for its time sees that end, and begins anew at the first place.

    Also when the user has taken the limit away meanwhile; the try that asked for the end is over with it.
    """
    asked = decide(running(), seen(workers=(WITH_L4,)), IN_AN_HOUR, after(60)).record
    ended = decide(asked, seen(JobState.CANCELLED), IN_AN_HOUR, after(61))
    assert isinstance(ended, GiveUp)

    policy = Policy(deadline=Deadline.after(after(65), limit) if limit else None)
    for found, snapshot in ((ended.record, None), (asked, seen(JobState.CANCELLED))):
        resumed, stale = resume(found, max_tries=0, now=after(65), project="acme-ml-prod", prefix="score")
        assert stale == ()
        assert isinstance(
            decide(resumed, seen(JobState.CANCELLING), policy, after(66)), Launch if not snapshot else Wait
        )
        decision = decide(resumed, snapshot, policy, after(66))
        assert isinstance(decision, Launch)
        assert (decision.record.round, decision.record.attempts[-1].candidate) == (2, 0)
        assert is_searching(ended.record, policy)
