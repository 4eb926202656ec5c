"""Tokens that are not to be had: outages pass within the budget, refusals are one sentence that says what to do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import requests
from connections import google_session
from stand_in import StandIn

from airflow_accel_provider.core.failures import FailureKind
from airflow_accel_provider.exceptions import GoogleApiError
from airflow_accel_provider.hooks.credentials import launcher_credentials
from airflow_accel_provider.hooks.session import GoogleSession

if TYPE_CHECKING:
    from collections.abc import Iterator

    from emulators import Emulator

GET_PROJECT = "compute.projects.get"
TOKEN = "oauth2.token"
IMPERSONATE = "iamcredentials.projects.serviceAccounts.generateAccessToken"
OUTAGES: dict[str, dict[str, Any]] = {
    "429": {"status": 429, "retry_after": 1},
    "500": {"status": 500},
    "502 in HTML": {"status": 502, "html": "<html><h1>Bad Gateway</h1></html>"},
    "503": {"status": 503},
    "504": {"status": 504},
    "cut before": {"reset": "before"},
    "cut after": {"reset": "after"},
    "half an answer": {"truncate": True},
}


@pytest.fixture(autouse=True)
def _all_is_well_again(emulator: Emulator) -> Iterator[None]:
    yield
    emulator.admin("DELETE", "faults")
    emulator.admin("PUT", "accounts", {"airflow": "good", "pipeline": "good"})


def read_project(session: GoogleSession, **limits: Any) -> dict[str, Any]:
    return session.request("compute", "GET", f"projects/{session.project}", **limits)


def refused(session: GoogleSession, **limits: Any) -> GoogleApiError:
    with pytest.raises(GoogleApiError) as caught:
        read_project(session, **limits)
    return caught.value


def session_of(emulator: Emulator, method: str) -> GoogleSession:
    """Return a session whose token needs the method."""
    chain = emulator.email("pipeline") if method == IMPERSONATE else None
    return google_session(emulator, impersonation_chain=chain)


@pytest.mark.parametrize("method", [TOKEN, IMPERSONATE])
@pytest.mark.parametrize("outage", OUTAGES)
def test_an_outage_passes_unnoticed(emulator: Emulator, outage: str, method: str) -> None:
    """A token endpoint that is out of order once is asked again, and the call it was needed for is made once."""
    emulator.fail(method, **OUTAGES[outage])
    mark = emulator.mark()
    assert read_project(session_of(emulator, method))["name"] == emulator.project
    assert len(emulator.calls(method, since=mark)) == 2
    assert len(emulator.calls(GET_PROJECT, since=mark)) == 1


@pytest.mark.parametrize("method", [TOKEN, IMPERSONATE])
def test_an_outage_that_stays_is_one_transient_error(emulator: Emulator, method: str) -> None:
    """After the budget the error names the call, the connection, the endpoint's last words and what was tried."""
    emulator.fail(method, times=1000, status=503, message="It is not to be.")
    error = refused(session_of(emulator, method), retry_seconds=2)
    assert (error.status, error.is_transient, error.kind) == (503, True, FailureKind.SERVICE)
    assert f"compute GET projects/{emulator.project}: 503" in str(error)
    assert "no access token for connection 'gcp': It is not to be. (asked " in str(error)
    assert "{" not in str(error)


def test_the_endpoints_wish_to_wait_is_honoured(emulator: Emulator) -> None:
    """What the token endpoint says of waiting is kept, or told where it is longer than the budget."""
    emulator.fail(TOKEN, status=429, retry_after=60)
    error = refused(google_session(emulator), retry_seconds=5)
    assert error.retry_after == 60
    assert "(told to wait 60 s, with 5 s left for trying)" in str(error)


REFUSALS = {
    "Invalid JWT Signature.": "the key was deleted or disabled",
    "Invalid grant: account not found": "deleted or disabled",
    "Token has been expired or revoked.": "sign in anew",
    "Something that nobody knows.": "look at the connection's credentials",
}


@pytest.mark.parametrize("said", REFUSALS)
def test_a_refusal_is_told_once_and_says_what_to_do(emulator: Emulator, said: str) -> None:
    """A refusal by the token endpoint is not tried again; its sentence names the connection and what to do."""
    emulator.fail(TOKEN, times=10, status=400, message=said)
    mark = emulator.mark()
    error = refused(google_session(emulator))
    assert (error.status, error.is_transient, error.kind) == (401, False, FailureKind.CONFIGURATION)
    assert f"Google gives connection 'gcp' no access token (invalid_grant: {said.rstrip('.')}): " in str(error)
    assert REFUSALS[said] in str(error)
    assert "{" not in str(error)
    assert len(emulator.calls(TOKEN, since=mark)) == 1


def test_a_wrong_clock_is_told(emulator: Emulator, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine whose clock is an hour and more off is told so, in Google's words and ours."""
    from datetime import timedelta

    from google.auth import _helpers

    right = _helpers.utcnow
    monkeypatch.setattr(_helpers, "utcnow", lambda: right() + timedelta(hours=3))
    error = refused(google_session(emulator))
    assert "Token must be a short-lived token" in str(error)
    assert "the clock of this machine is wrong" in str(error)
    assert error.kind is FailureKind.CONFIGURATION


def test_a_missing_permission_is_a_permission(emulator: Emulator) -> None:
    """An account that may not act as another lacks a permission; one that is not there is a mistake."""
    lacking = refused(google_session(emulator, "pipeline", impersonation_chain=emulator.email("airflow")))
    assert lacking.kind is FailureKind.PERMISSION
    assert "grant roles/iam.serviceAccountTokenCreator" in str(lacking)
    nobody = refused(google_session(emulator, impersonation_chain="nobody@acme-ml-prod.iam.gserviceaccount.com"))
    assert nobody.kind is FailureKind.CONFIGURATION
    assert "look at impersonation_chain" in str(nobody)


def test_a_deleted_key_ends_with_its_token(emulator: Emulator) -> None:
    """With a deleted key the token at hand stays good; when it ends, the key's refusal is told."""
    session = google_session(emulator)
    session.token()
    emulator.admin("PUT", "accounts", {"airflow": "key deleted"})
    assert read_project(session)["name"] == emulator.project
    session.identity.credentials.token = "ended"
    error = refused(session)
    assert "the key was deleted or disabled" in str(error)
    emulator.admin("PUT", "accounts", {"airflow": "good"})
    assert read_project(session)["name"] == emulator.project


def test_a_disabled_account_has_nothing(emulator: Emulator) -> None:
    """A disabled account's tokens are good no more, and it gets no other."""
    session = google_session(emulator)
    session.token()
    emulator.admin("PUT", "accounts", {"airflow": "disabled"})
    mark = emulator.mark()
    assert "the service account was deleted or disabled" in str(refused(session))
    assert len(emulator.calls(TOKEN, since=mark)) == 1


def test_an_expired_token_is_changed_once(emulator: Emulator) -> None:
    """A call that is refused with 401 is repeated once with a new token, one that changes something, too."""
    session = google_session(emulator)
    session.token()
    emulator.fail(GET_PROJECT, status=401)
    mark = emulator.mark()
    read_project(session)
    assert [call["status"] for call in emulator.calls(GET_PROJECT, since=mark)] == [401, 200]
    emulator.fail(GET_PROJECT, times=2, status=401)
    assert refused(session).kind is FailureKind.PERMISSION


@pytest.mark.parametrize("answer", ["<html>Sign in</html>", [], {}, {"access_token": "x", "expires_in": "soon"}])
def test_a_success_without_a_token_is_no_token(emulator: Emulator, answer: Any) -> None:
    """An answer of 200 that holds no token is an error that names the connection, whatever it is instead."""
    with StandIn({"/token": answer}) as endpoint:
        session = google_session(emulator)
        session.identity.credentials._token_uri = f"{endpoint.url}/token"
        error = refused(session, retry_seconds=0)
    assert "connection 'gcp'" in str(error)
    assert error.status in {401, 502}


def test_no_secret_is_in_any_error(emulator: Emulator) -> None:
    """What was sent to the token endpoint and what it gave stand in no error, also where the answer repeats it."""
    key = json.loads(emulator.keys["airflow"].read_text())
    echoed = f"{key['private_key']} eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJh.c2lnbmF0dXJl ya29.abcdefgh-_"
    emulator.fail(TOKEN, times=2, status=400, message=echoed)
    error = refused(google_session(emulator))
    for secret in (key["private_key"].splitlines()[3], "eyJhbGci", "ya29.abc"):
        assert secret not in f"{error} {error!r} {error.__cause__.__class__}"


# --- the broker of a launcher


def ask_broker(session: GoogleSession) -> requests.Response:
    with launcher_credentials(session) as env:
        config = json.loads(Path(env["GOOGLE_APPLICATION_CREDENTIALS"]).read_text())
        subject = Path(config["credential_source"]["file"]).read_text()
        return requests.post(config["token_url"], data={"subject_token": subject}, timeout=60)


def test_the_broker_outlasts_an_outage(emulator: Emulator) -> None:
    """A launcher gets its token although the token endpoint was out of order when it asked."""
    emulator.fail(TOKEN, times=2, status=503)
    assert ask_broker(google_session(emulator)).json()["access_token"]


def test_the_broker_tells_what_to_do(emulator: Emulator) -> None:
    """A launcher hears of a refusal in the same sentence as the task, as a refusal that it need not try again."""
    emulator.admin("PUT", "accounts", {"airflow": "key deleted"})
    answer = ask_broker(google_session(emulator))
    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_grant")
    assert "connection 'gcp' no access token" in answer.json()["error_description"]
    assert "put a new one into the connection" in answer.json()["error_description"]
