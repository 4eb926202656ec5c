"""What a trigger notes before it acts is known to whoever follows the job next."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given

from airflow_accel_provider.core.failures import Failure, FailureKind, Scope
from airflow_accel_provider.core.notes import is_left_running, note_of, recall
from airflow_accel_provider.core.placement import Placement
from airflow_accel_provider.core.record import Attempt, Outcome, Record, UnknownVersionError
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
