"""What a trigger notes before it acts is known to whoever follows the job next."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given

from airflow_accel_provider.core.failures import Failure, FailureKind, Scope
from airflow_accel_provider.core.notes import heard, is_left_running, note_of, recall, word_of
from airflow_accel_provider.core.placement import Placement
from airflow_accel_provider.core.record import Attempt, Outcome, Record, UnknownVersionError, begin
from tests.core.drawn_records import MOMENT, records

L4 = Placement.parse("nvidia-l4 on g2-standard-8 in us-central1")
STOCKOUT = Failure(kind=FailureKind.STOCKOUT, scope=Scope.ZONE, explanation="zone pool exhausted")
RUNS = Attempt(
    n=1,
    candidate=0,
    round=1,
    placement=L4,
    job_name="score-1",
    intent_at=MOMENT,
    outcome=Outcome.SUBMITTED,
    job_id="2026-1",
    submitted_at=MOMENT,
)
ENDING = replace(RUNS, outcome=Outcome.CANCELLING, failure=STOCKOUT, cancel_requested_at=MOMENT)


def test_the_reason_of_a_cancel_is_recalled() -> None:
    """One that starts anew in the middle of a cancel knows when and why it was asked for."""
    assert recall(RUNS, json.loads(json.dumps(note_of(ENDING)))) == ENDING


@given(records())
def test_a_note_is_about_its_job_alone(record: Record) -> None:
    """A note about another job changes nothing."""
    for attempt in record.attempts:
        assert recall(attempt, note_of(ENDING)) == attempt


@pytest.mark.parametrize("nothing", [None, "", [], 7])
def test_no_note_says_nothing(nothing: object) -> None:
    """Where nothing was noted the attempt is as it was."""
    assert recall(RUNS, nothing) is RUNS


def test_an_unknown_note_is_refused() -> None:
    """A note of another version is refused by a sentence that says that nothing was cancelled."""
    with pytest.raises(UnknownVersionError, match=r"note has version 2.*Nothing was cancelled"):
        recall(RUNS, note_of(ENDING) | {"v": 2})


def test_left_running() -> None:
    """Only a note that says so makes of a job one that is meant to go on."""
    assert is_left_running(RUNS, note_of(replace(RUNS, outcome=Outcome.RUNNING)))
    assert not is_left_running(RUNS, note_of(ENDING))
    assert not is_left_running(RUNS, None)


def of(attempt: Attempt) -> Record:
    """Return a record with one attempt."""
    fresh = begin(owner="a" * 32, max_tries=1, now=MOMENT, project="acme", prefix="score")
    return fresh.with_attempt(attempt)


@pytest.mark.parametrize("outcome", [Outcome.CANCELLING, Outcome.DRAINING])
@pytest.mark.parametrize("kind", FailureKind)
@pytest.mark.parametrize("scope", Scope)
def test_the_next_try_hears_what_was_asked(outcome: Outcome, kind: FailureKind, scope: Scope) -> None:
    """The next try knows by a key alone what the job was asked for, of what kind the reason was and how far it goes."""
    asked = replace(RUNS, outcome=outcome, failure=replace(STOCKOUT, kind=kind, scope=scope))
    word = word_of(asked)
    assert word
    told = heard(of(RUNS), ["accel_note", "return_value", word]).open
    assert told
    assert told.failure
    assert (told.outcome, told.failure.kind, told.failure.scope) == (outcome, kind, scope)
    assert told.failure.region == "us-central1"


@pytest.mark.parametrize("key", ["", ".", "accel_note", "accel_asked_v2.1.cancelling.stockout.zone", "accel_asked_v1"])
def test_other_keys_say_nothing(key: str) -> None:
    """XComs of the user, or of another release, tell the next try nothing."""
    assert heard(of(RUNS), [key]) == of(RUNS)


def test_a_word_is_about_its_attempt_alone() -> None:
    """A word about another attempt, or of what the record has better, changes nothing; no end asked for, no word."""
    word = word_of(ENDING)
    assert word == "accel_asked_v1.1.cancelling.stockout.zone", "Tries that run across an upgrade read it."
    assert heard(of(replace(RUNS, n=2)), [word]) == of(replace(RUNS, n=2))
    assert heard(of(ENDING), [word]) == of(ENDING)
    assert heard(of(replace(ENDING, outcome=Outcome.CANCELLED)), [word]).open is None
    assert word_of(RUNS) is None
    left = word_of(replace(RUNS, outcome=Outcome.RUNNING))
    assert left
    assert heard(of(RUNS), [left]) == heard(of(RUNS), [word, left]) == of(RUNS)
