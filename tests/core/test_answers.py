"""HTTP answers read as an object or as one short error, and the trying again."""

from __future__ import annotations

import json
import pickle
import re
from dataclasses import dataclass, field
from datetime import UTC, datetime

import pytest

from airflow_accel_provider.exceptions import AcceleratorLaunchError, GoogleApiError
from airflow_accel_provider.hooks._answers import object_of, plain, retry_after
from airflow_accel_provider.hooks._retry import retrying


@dataclass
class Answer:
    status_code: int = 200
    text: str = ""
    headers: dict[str, str] = field(default_factory=dict)


def error_of(answer: Answer) -> GoogleApiError:
    with pytest.raises(GoogleApiError) as caught:
        object_of(answer, "dataflow", "GET jobs")
    return caught.value


def test_an_object_is_returned() -> None:
    """A JSON object is returned as it stands, an empty body as an empty object."""
    assert object_of(Answer(text='{"a": [1]}'), "dataflow", "GET jobs") == {"a": [1]}
    assert object_of(Answer(text="", status_code=204), "dataflow", "GET jobs") == {}


@pytest.mark.parametrize(
    ("body", "reason", "message"),
    [
        (
            {
                "error": {
                    "code": 403,
                    "message": "No.",
                    "status": "PERMISSION_DENIED",
                    "errors": [{"reason": "forbidden"}],
                }
            },
            "forbidden",
            "No.",
        ),
        ({"error": {"code": 403, "message": "No.", "status": "PERMISSION_DENIED"}}, "PERMISSION_DENIED", "No."),
        (
            {"error": {"message": "No.", "details": [{"@type": "ErrorInfo", "reason": "SERVICE_DISABLED"}]}},
            "SERVICE_DISABLED",
            "No.",
        ),
        ([{"error": {"message": "No.", "status": "PERMISSION_DENIED"}}], "PERMISSION_DENIED", "No."),
        ({"error": "invalid_grant", "error_description": "Bad key."}, "invalid_grant", "Bad key."),
        ({}, "http403", "{}"),
    ],
)
def test_every_form_of_google_error_is_understood(body: object, reason: str, message: str) -> None:
    """An error gives Google's reason and sentence, in whichever of its forms the service wrote it."""
    error = error_of(Answer(status_code=403, text=json.dumps(body)))
    assert (error.status, error.reason, error.message) == (403, reason, message)


def test_a_page_instead_of_json_is_a_short_error() -> None:
    """A proxy's HTML page becomes one short line without markup."""
    page = "<html><head><title>x</title></head><body><h1>502</h1><p>Bad &amp; gone</p>" + "<p>long</p>" * 500
    error = error_of(Answer(status_code=502, text=page))
    assert error.message.startswith("502 Bad & gone long")
    assert len(error.message) <= 300
    assert "<" not in str(error)


@pytest.mark.parametrize("text", ['{"a": [1, 2', "<html>login</html>", "[1, 2]", '"text"'])
def test_a_success_without_an_object_is_an_error_worth_retrying(text: str) -> None:
    """A cut answer, a page or another JSON value with status 200 is a transient error, never a decoding error."""
    error = error_of(Answer(text=text))
    assert error.is_transient
    assert "not a JSON object" in error.message


@pytest.mark.parametrize(("status", "transient"), [(0, True), (404, False), (403, False), (429, True), (503, True)])
def test_which_statuses_are_transient(status: int, transient: bool) -> None:
    """No answer, 429 and 5xx may pass; what Google refuses stays refused."""
    assert GoogleApiError(status, "x", "y", "s", "m").is_transient is transient


def test_computes_rate_limit_is_transient() -> None:
    """Compute Engine's 403 rateLimitExceeded is a matter of time."""
    assert GoogleApiError(403, "rateLimitExceeded", "y", "compute", "m").is_transient


def test_errors_survive_pickling_and_serialising() -> None:
    """An error that crosses a process border keeps everything it says."""
    error = GoogleApiError(503, "backendError", "later", "dataflow", "GET jobs", retry_after=3.0)
    copy = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own
    assert (str(copy), copy.retry_after) == (str(error), 3.0)
    _, args, kwargs = error.serialize()
    assert str(GoogleApiError(*args, **kwargs)) == str(error)
    launch = AcceleratorLaunchError("The launcher ended with code 1.", ("ValueError: no",))
    assert str(launch) == "The launcher ended with code 1.\n  ValueError: no"


@pytest.mark.parametrize(
    ("said", "seconds"),
    [("7", 7.0), ("", None), ("soon", None), ("-1", None), ("Sun, 29 Nov 2026 12:00:30 GMT", 30.0)],
)
def test_retry_after_is_read_as_seconds_or_date(said: str, seconds: float | None) -> None:
    """Retry-After may be a number of seconds or a date."""
    assert retry_after({"Retry-After": said}, datetime(2026, 11, 29, 12, tzinfo=UTC)) == seconds


def test_a_date_is_held_against_the_services_own_clock() -> None:
    """A Retry-After date means seconds after the answer's own date, whatever the time is here."""
    said = {"Retry-After": "Sun, 29 Nov 2026 12:00:30 GMT", "Date": "Sun, 29 Nov 2026 12:00:10 GMT"}
    assert retry_after(said, datetime(2026, 11, 29, 13, tzinfo=UTC)) == 20


def test_no_secret_is_told() -> None:
    """Tokens, assertions and keys that an answer repeats are left out of what is told."""
    said = "bad eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJh.c2lnbmVk for ya29.a0Af_x-y and -----BEGIN PRIVATE KEY-----\nMIIE\n"
    assert plain(said) == "bad *** for *** and ***"


def test_plain_text_is_one_line() -> None:
    """Line breaks and runs of blanks become single blanks."""
    assert plain("a\n\n  b\tc") == "a b c"


class Clock:
    """A clock that only sleeping moves."""

    def __init__(self) -> None:
        self.now = 0.0
        self.pauses: list[float] = []

    def __call__(self) -> float:
        """Return the time."""
        return self.now

    def sleep(self, seconds: float) -> None:
        """Let time pass."""
        self.now += seconds
        self.pauses.append(seconds)


class Flaky:
    """A call that fails with the given errors and then succeeds."""

    def __init__(self, *errors: GoogleApiError) -> None:
        self.errors = list(errors)
        self.calls = 0

    def __call__(self) -> str:
        """Fail as told, then succeed."""
        self.calls += 1
        if self.errors:
            raise self.errors.pop(0)
        return "ok"


def unavailable(wait: float | None = None) -> GoogleApiError:
    return GoogleApiError(503, "backendError", "later", "dataflow", "GET jobs", retry_after=wait)


def test_transient_errors_are_tried_again_with_growing_pauses() -> None:
    """Each pause is about twice the one before."""
    clock, call = Clock(), Flaky(unavailable(), unavailable(), unavailable())
    assert retrying(call, seconds=30, clock=clock, sleep=clock.sleep) == "ok"
    assert [0.25 <= p / 2**n <= 0.5 for n, p in enumerate(clock.pauses)] == [True] * 3


def test_retry_after_is_honoured() -> None:
    """The next try comes no sooner than the service asked."""
    clock, call = Clock(), Flaky(unavailable(wait=7))
    assert retrying(call, seconds=30, clock=clock, sleep=clock.sleep) == "ok"
    assert 7.25 <= clock.now <= 7.5


def test_a_wait_beyond_the_budget_is_not_begun() -> None:
    """When the service asks for more time than there is, its error is raised at once and says so."""
    clock, call = Clock(), Flaky(unavailable(wait=60))
    with pytest.raises(GoogleApiError, match=r"later \(told to wait 60 s, with 30 s left for trying\)$"):
        retrying(call, seconds=30, clock=clock, sleep=clock.sleep)
    assert clock.now == 0


def test_the_last_error_says_what_was_tried() -> None:
    """After the budget the failure names the call, how often and how long it was asked, and the last answer."""
    clock, call = Clock(), Flaky(*[unavailable(wait=12) for _ in range(9)])
    with pytest.raises(GoogleApiError) as caught:
        retrying(call, seconds=30, clock=clock, sleep=clock.sleep)
    told = r"later \(asked 3 times in 2\d s, told to wait 12 s, with [45] s left for trying\)"
    assert re.fullmatch(rf"dataflow GET jobs: 503 \(backendError\): {told}", str(caught.value))


@pytest.mark.parametrize("thrown", [0.5, 0.75, 1.0])
def test_chance_spreads_the_pauses(monkeypatch: pytest.MonkeyPatch, thrown: float) -> None:
    """Pauses are between half and all of what doubling makes them, by the dice."""

    class Dice:
        def uniform(self, low: float, high: float) -> float:
            assert (low, high) == (0.5, 1.0)
            return thrown

    monkeypatch.setattr("airflow_accel_provider.hooks._retry._jitter", Dice())
    clock, call = Clock(), Flaky(*[unavailable() for _ in range(6)])
    assert retrying(call, seconds=60, clock=clock, sleep=clock.sleep) == "ok"
    assert clock.pauses == [thrown * pause for pause in (0.5, 1, 2, 4, 8, 8)]


def test_the_budget_is_bounded() -> None:
    """A service that stays away is given up within the budget."""
    clock, call = Clock(), Flaky(*[unavailable() for _ in range(100)])
    with pytest.raises(GoogleApiError):
        retrying(call, seconds=30, clock=clock, sleep=clock.sleep)
    assert 15 < clock.now < 30


@pytest.mark.parametrize("error", [GoogleApiError(404, "notFound", "no", "s", "m"), unavailable()])
def test_a_single_try_is_a_single_try(error: GoogleApiError) -> None:
    """A refusal is never tried again, and nothing is without a budget."""
    clock, call = Clock(), Flaky(error)
    with pytest.raises(GoogleApiError):
        retrying(call, seconds=0 if error.is_transient else 30, clock=clock, sleep=clock.sleep)
    assert call.calls == 1
