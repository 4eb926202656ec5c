"""The emulator's faults that spoil what is told: fields left out, other values, other times; and who may call it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any

import pytest
import requests
from connections import google_session

from airflow_accel_provider.emulator.spoiling import OPTIONAL, spoiled

if TYPE_CHECKING:
    from collections.abc import Iterator

    from emulators import Emulator
    from google.auth.transport.requests import AuthorizedSession

REGION = "compute.regions.get"
ANSWER: dict[str, Any] = {
    "jobs": [{"id": "1", "name": "a", "currentState": "X", "labels": {"k": "v"}, "createTime": "2026-03-02T06:00:00Z"}],
    "items": {"zones/z": {"instances": [{"name": "w", "guestAccelerators": [{"acceleratorCount": 1}]}]}},
    "nextPageToken": "more",
}


@pytest.fixture(autouse=True)
def _no_fault_is_left(emulator: Emulator) -> Iterator[None]:
    yield
    emulator.admin("DELETE", "faults")


def test_named_fields_are_left_out_at_any_depth() -> None:
    """The fields that are named are gone, wherever they stand, and nothing else is."""
    told = spoiled(ANSWER, missing=["labels", "guestAccelerators"])
    assert told["jobs"] == [{key: value for key, value in ANSWER["jobs"][0].items() if key != "labels"}]
    assert told["items"] == {"zones/z": {"instances": [{"name": "w"}]}}


def test_what_is_optional_leaves_names_and_ids() -> None:
    """Without all that is optional, things can still be found by their names and ids, and nothing more is told."""
    assert spoiled(ANSWER, missing=OPTIONAL) == {
        "jobs": [{"id": "1", "name": "a"}],
        "items": {"zones/z": {"instances": [{"name": "w"}]}},
        "nextPageToken": "more",
    }


def test_other_values_and_times_are_told() -> None:
    """Fields that are there get another value, and all times are moved."""
    told = spoiled(ANSWER, instead={"currentState": "Y", "notThere": 1}, skew=-3600)
    assert told["jobs"][0] | {"labels": {}} == {
        "id": "1",
        "name": "a",
        "currentState": "Y",
        "labels": {},
        "createTime": "2026-03-02T05:00:00.000000Z",
    }
    assert "notThere" not in told


def test_spoiled_answers_are_counted_and_in_the_ledger(emulator: Emulator, session: AuthorizedSession) -> None:
    """A call that is told badly was carried out; the fault is used up, and the ledger says so."""
    emulator.fail(REGION, missing=["quotas"])
    mark = emulator.mark()
    address = f"{emulator.url}/compute/v1/projects/{emulator.project}/regions/us-central1"
    assert "quotas" not in session.get(address).json()
    assert "quotas" in session.get(address).json()
    assert [call["status"] for call in emulator.calls(REGION, since=mark)] == [200, 200]
    (met,) = emulator.events("fault.met", since=mark)
    assert (met["method"], met["action"]) == (REGION, {"missing": ["quotas"]})


@pytest.mark.parametrize("skew", [3600, -3600])
def test_a_clock_that_is_off_shows_in_the_date(emulator: Emulator, session: AuthorizedSession, skew: int) -> None:
    """An answer's own date is moved with the times in it; every other answer has the right one."""
    emulator.fail(REGION, skew=skew)
    address = f"{emulator.url}/compute/v1/projects/{emulator.project}/regions/us-central1"
    off, right = (parsedate_to_datetime(session.get(address).headers["Date"]) - datetime.now(UTC) for _ in range(2))
    assert abs(off - timedelta(seconds=skew)) < timedelta(seconds=60)
    assert abs(right) < timedelta(seconds=60)


@pytest.mark.parametrize(
    ("action", "words"),
    [
        ({"missing": "all"}, "action.missing 'all' is not a list of fields' names or 'optional'"),
        ({"missing": []}, "action.missing [] is not"),
        ({"instead": ["x"]}, "action.instead ['x'] is not an object of fields and their values"),
        ({"skew": "soon"}, "action.skew 'soon' is not a number of seconds"),
        ({}, "action needs one of status, reset, delay, truncate, missing, instead, skew"),
    ],
)
def test_a_wish_that_makes_no_sense_is_told(emulator: Emulator, action: dict[str, Any], words: str) -> None:
    """A malformed fault is one error that says what is wrong."""
    wish = {"method": REGION, "action": action}
    answer = requests.post(f"{emulator.url}/_emulator/faults", json=wish, timeout=30)
    assert answer.status_code == 400
    assert words in answer.json()["error"]["message"]


def test_the_token_endpoint_fails_in_its_own_form(emulator: Emulator) -> None:
    """A fault of the token endpoint has OAuth's form."""
    emulator.fail("oauth2.token", status=400, message="No.")
    emulator.fail("oauth2.token", status=503, message="Later.")
    answers = [requests.post(f"{emulator.url}/token", timeout=30).json() for _ in range(2)]
    assert answers == [
        {"error": "invalid_grant", "error_description": "No."},
        {"error": "internal_failure", "error_description": "Later."},
    ]


def test_accounts_that_are_not_there_are_told(emulator: Emulator) -> None:
    """A change of an account that is not there, or to a standing that is none, changes nothing and says so."""
    wish = {"airflow": "gone", "nobody": "good"}
    answer = requests.put(f"{emulator.url}/_emulator/accounts", json=wish, timeout=30)
    assert answer.status_code == 400
    assert "no account 'nobody'" in answer.json()["error"]["message"]
    assert "airflow 'gone' is none of 'good', 'key deleted', 'disabled'" in answer.json()["error"]["message"]
    assert emulator.admin("GET", "accounts") == {"accounts": {"airflow": "good", "pipeline": "good"}}
    assert google_session(emulator).token()
