"""The record survives its journey through JSON and tells one life from the next."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_accel_provider.core.placement import Placement
from airflow_accel_provider.core.record import Outcome, Record, UnknownVersionError, begin, resume
from tests.core.drawn_records import MOMENT, records

L4 = Placement.parse("nvidia-l4 on g2-standard-8 in us-central1")


def a_record() -> Record:
    return begin(owner="f" * 32, max_tries=1, now=MOMENT, project="acme-ml-prod", prefix="score")


def resumed(record: Record, *, max_tries: int) -> tuple[Record, tuple[object, ...]]:
    fresh, stale = resume(record, max_tries=max_tries, now=MOMENT, project="acme-ml-prod", prefix="score")
    return fresh, tuple(stale)


@given(records())
def test_round_trip(record: Record) -> None:
    """A record comes back from JSON as it was written."""
    assert Record.from_json(json.loads(json.dumps(record.to_json()))) == record


@given(records(), st.integers() | st.none() | st.text())
def test_unknown_version(record: Record, version: object) -> None:
    """A record of another version is refused by a sentence that says nothing was cancelled."""
    value = record.to_json() | {"v": version}
    if version == 1:
        return
    with pytest.raises(UnknownVersionError, match="Nothing was cancelled"):
        Record.from_json(value)


def test_a_retry_takes_over_what_runs() -> None:
    """A try in the same life sees the same open attempt, under the same name."""
    record = a_record().intend(0, L4, MOMENT)

    again, stale = resumed(record, max_tries=1)

    assert again == record
    assert stale == ()


def test_a_clear_begins_a_new_life() -> None:
    """After a clear the old life's open attempt is stale and the next attempt has another name."""
    record = a_record().intend(0, L4, MOMENT)

    fresh, stale = resumed(record, max_tries=2)

    assert fresh.life == 2
    assert stale == (record.open,)
    assert fresh.intend(0, L4, MOMENT).attempts[-1].job_name != record.attempts[-1].job_name


def test_an_own_kill_begins_a_new_life() -> None:
    """A task that was killed on its worker does not take over the job it cancelled."""
    fresh, _ = resumed(replace(a_record(), killed=True), max_tries=1)

    assert fresh.life == 2
    assert not fresh.killed


def test_a_retry_after_a_reported_end_goes_round_again() -> None:
    """An Airflow retry tries every place again, under new names, and keeps the history."""
    record = a_record().intend(0, L4, MOMENT)
    record = record.with_attempt(replace(record.attempts[0], outcome=Outcome.FAILED))

    again, _ = resumed(replace(record, ended=True), max_tries=1)

    assert again.this_round == ()
    assert again.intend(0, L4, MOMENT).attempts[-1].n == 2


def test_labels_of_tries() -> None:
    """A candidate that was tried twice shows as 1a and 1b, one that was tried once as its number."""
    record = a_record()
    for candidate in (0, 0, 1):
        record = record.intend(candidate, L4, MOMENT)

    assert [record.label(attempt) for attempt in record.attempts] == ["1a", "1b", "2"]
