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


ITEMS = ('{"day": 1}', '{"day": 2}')


def about(item: str | None) -> Record:
    return a_record().about(item).intend(0, L4, MOMENT)


@pytest.mark.parametrize("item", [*ITEMS, None])
def test_the_same_item_keeps_its_job(item: str | None) -> None:
    """A retry of a mapped task whose index means the same item takes over what runs."""
    record = about(item)

    again, stale = resume(record, max_tries=1, now=MOMENT, project="acme-ml-prod", prefix="score", item=item)

    assert (again, tuple(stale)) == (record, ())


def test_another_item_inherits_nothing() -> None:
    """When a map index means another item, the job of the old one is stale and the new one's has another name."""
    record = about(ITEMS[0])

    fresh, stale = resume(record, max_tries=1, now=MOMENT, project="acme-ml-prod", prefix="score", item=ITEMS[1])

    assert (fresh.life, fresh.item) == (2, about(ITEMS[1]).item)
    assert tuple(stale) == record.attempts
    assert fresh.intend(0, L4, MOMENT).attempts[0].job_name != record.attempts[0].job_name


def test_an_item_is_not_shown() -> None:
    """A record stands for its item by a digest that differs from owner to owner."""
    other = replace(a_record(), owner="e" * 32)

    assert ITEMS[0] not in json.dumps(about(ITEMS[0]).to_json())
    assert other.about(ITEMS[0]).item != about(ITEMS[0]).item


def test_an_item_that_was_not_written_is_no_other() -> None:
    """A record that says nothing of its item, as an older one, is taken over and says it from then on."""
    again, stale = resume(about(None), max_tries=1, now=MOMENT, project="acme-ml-prod", prefix="score", item=ITEMS[0])

    assert (again.life, again.item, tuple(stale)) == (1, about(ITEMS[0]).item, ())
