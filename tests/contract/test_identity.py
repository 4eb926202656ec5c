"""Who calls: key files, tokens, self-signed JWTs and impersonation, with the unmodified google-auth."""

from __future__ import annotations

import json
import stat
import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import google.auth.exceptions
import jwt
import pytest
import requests
from emulators import Emulator, running
from google.auth import impersonated_credentials
from google.auth.transport.requests import AuthorizedSession, Request
from google.oauth2 import service_account

if TYPE_CHECKING:
    from pathlib import Path

SCOPES = ["https://www.googleapis.com/auth/cloud-platform"]
LIST_BUCKETS = "storage.buckets.list"


def credentials(emulator: Emulator, identity: str) -> service_account.Credentials:
    return service_account.Credentials.from_service_account_file(str(emulator.keys[identity]), scopes=SCOPES)


def impersonated(emulator: Emulator, source: Any, target: str, delegates: list[str] | None = None) -> Any:
    endpoint = f"{emulator.url}/v1/projects/-/serviceAccounts/{emulator.email(target)}:generateAccessToken"
    return impersonated_credentials.Credentials(
        source_credentials=source,
        target_principal=emulator.email(target),
        target_scopes=SCOPES,
        delegates=delegates,
        iam_endpoint_override=endpoint,
    )


def assertion(emulator: Emulator, identity: str = "airflow", **changes: object) -> str:
    """Return a JWT as google-auth signs it for itself, but for ``changes``; None leaves a claim out."""
    key = json.loads(emulator.keys[identity].read_text())
    now = int(time.time())
    claims: dict[str, object] = {
        "iss": key["client_email"],
        "sub": key["client_email"],
        "aud": "https://storage.googleapis.com/",
        "iat": now,
        "exp": now + 3600,
        **changes,
    }
    held = {name: value for name, value in claims.items() if value is not None}
    return jwt.encode(held, key["private_key"], algorithm="RS256", headers={"kid": key["private_key_id"]})


def status_of(emulator: Emulator, bearer: str) -> int:
    headers = {"Authorization": f"Bearer {bearer}"}
    return requests.get(f"{emulator.url}/storage/v1/b", headers=headers, timeout=30).status_code


@pytest.mark.parametrize("identity", ["airflow", "pipeline"])
def test_each_key_speaks_for_its_account(emulator: Emulator, identity: str) -> None:
    """A call with a token of a key file is recorded as that file's account."""
    since = emulator.mark()
    AuthorizedSession(credentials(emulator, identity)).get(f"{emulator.url}/storage/v1/b").raise_for_status()
    assert [call["principal"] for call in emulator.calls(LIST_BUCKETS, since=since)] == [emulator.email(identity)]


def test_key_files_are_private_and_in_googles_format(emulator: Emulator) -> None:
    """Only its owner can read a key file, and google-auth finds the project and account in it."""
    for name, path in emulator.keys.items():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        key = json.loads(path.read_text())
        assert (key["type"], key["project_id"]) == ("service_account", emulator.project)
        assert (key["client_email"], key["token_uri"]) == (emulator.email(name), f"{emulator.url}/token")


def test_keys_stay_and_their_address_follows(tmp_path: Path) -> None:
    """After a restart on another port the keys are the same and lead to the new address; old tokens still hold."""
    with running(tmp_path) as first:
        before = json.loads(first.keys["airflow"].read_text())
        signed = credentials(first, "airflow")
        signed.refresh(Request())
    with running(tmp_path) as second:
        after = json.loads(second.keys["airflow"].read_text())
        assert status_of(second, signed.token) == 200
    assert after["private_key"] == before["private_key"]
    assert after["token_uri"] == f"{second.url}/token"


def test_a_self_signed_jwt_is_a_bearer(emulator: Emulator) -> None:
    """What typed clients sign for themselves is accepted without a visit to the token endpoint."""
    since = emulator.mark()
    signed = credentials(emulator, "pipeline").with_always_use_jwt_access(True)
    signed._create_self_signed_jwt("https://storage.googleapis.com/")
    AuthorizedSession(signed).get(f"{emulator.url}/storage/v1/b").raise_for_status()
    assert [call["principal"] for call in emulator.calls(LIST_BUCKETS, since=since)] == [emulator.email("pipeline")]
    assert emulator.calls("oauth2.token", since=since) == []


@pytest.mark.parametrize(
    "changes",
    [
        {"exp": 1, "iat": 0},
        {"exp": None},
        {"iat": None},
        {"iat": int(time.time()) + 3600, "exp": int(time.time()) + 7200},
        {"exp": int(time.time()) + 50_000},
        {"iss": "stranger@acme-ml-prod.iam.gserviceaccount.com"},
        {"sub": "pipeline@acme-ml-prod.iam.gserviceaccount.com"},
        {"aud": "https://example.com/"},
        {"aud": "https://evil.example/x.googleapis.com/.."},
        {"aud": None},
    ],
)
def test_jwts_that_do_not_hold_are_refused(emulator: Emulator, changes: dict[str, object]) -> None:
    """A JWT that has ended, starts later, lasts too long, or names another account or audience is no bearer."""
    assert status_of(emulator, assertion(emulator)) == 200
    assert status_of(emulator, assertion(emulator, **changes)) == 401


def test_forged_bearers_are_refused(emulator: Emulator) -> None:
    """A signature by another account's key, an altered one, none at all and an invented token are all refused."""
    good = assertion(emulator)
    header, claims, signature = good.split(".")
    other_claims = assertion(emulator, "pipeline").split(".")[1]
    unsigned = jwt.encode(jwt.decode(good, options={"verify_signature": False}), "", algorithm="none")
    symmetric = jwt.encode({"iss": emulator.email("airflow")}, "x" * 32, algorithm="HS256")
    for forged in (f"{header}.{other_claims}.{signature}", f"{header}.{claims}.", unsigned, symmetric, "ya29.made-up"):
        assert status_of(emulator, forged) == 401


def test_a_token_assertion_is_no_bearer(emulator: Emulator) -> None:
    """A JWT that was meant for the token endpoint cannot be used in place of a token, nor the other way round."""
    for_token = assertion(emulator, aud=f"{emulator.url}/token")
    assert status_of(emulator, for_token) == 401
    form = {"grant_type": "urn:ietf:params:oauth:grant-type:jwt-bearer", "assertion": for_token}
    assert requests.post(f"{emulator.url}/token", data=form, timeout=30).status_code == 200
    refused = requests.post(f"{emulator.url}/token", data={**form, "assertion": assertion(emulator)}, timeout=30)
    assert (refused.status_code, refused.json()["error"]) == (400, "invalid_grant")


def test_ended_tokens_are_refused(emulator: Emulator) -> None:
    """An issued token stops working at its end."""
    token = emulator.google.identities.tokens.issue(emulator.email("airflow"), seconds=3600)
    assert status_of(emulator, token) == 200
    emulator.google.database.execute("UPDATE tokens SET ends = ? WHERE ends > ?", (time.time() - 1, time.time()))
    assert status_of(emulator, token) == 401


@pytest.mark.parametrize("body", [b"", b"grant_type=password", b"\xff\xfe", b"grant_type=%FF&assertion=x"])
def test_the_token_endpoint_refuses_in_oauths_form(emulator: Emulator, body: bytes) -> None:
    """Whatever is wrong with a token request, the answer is OAuth's error object."""
    answer = requests.post(f"{emulator.url}/token", data=body, timeout=30)
    assert answer.status_code == 400
    assert set(answer.json()) == {"error", "error_description"}


def test_impersonation_makes_calls_of_the_other_account(emulator: Emulator) -> None:
    """Who may impersonate an account calls as that account."""
    since = emulator.mark()
    as_pipeline = impersonated(emulator, credentials(emulator, "airflow"), "pipeline")
    AuthorizedSession(as_pipeline).get(f"{emulator.url}/storage/v1/b").raise_for_status()
    assert [call["principal"] for call in emulator.calls(LIST_BUCKETS, since=since)] == [emulator.email("pipeline")]
    [issued] = [event for event in emulator.events("token.issued", since=since) if event["by"] == "impersonation"]
    assert issued["chain"] == [emulator.email("airflow")]


def test_impersonation_goes_through_delegates(emulator: Emulator) -> None:
    """Every link of a chain of delegates must be allowed to impersonate the next."""
    source = credentials(emulator, "airflow")
    impersonated(emulator, source, "pipeline", [emulator.email("airflow")]).refresh(Request())
    with pytest.raises(google.auth.exceptions.RefreshError, match="getAccessToken"):
        impersonated(emulator, source, "airflow", [emulator.email("pipeline")]).refresh(Request())


def test_impersonation_is_a_one_way_street(emulator: Emulator) -> None:
    """The pipeline's account may not impersonate Airflow's, and unknown accounts are not there."""
    source = credentials(emulator, "pipeline")
    with pytest.raises(google.auth.exceptions.RefreshError, match=r"iam\.serviceAccounts\.getAccessToken"):
        impersonated(emulator, source, "airflow").refresh(Request())
    with pytest.raises(google.auth.exceptions.RefreshError, match="not found"):
        impersonated(emulator, source, "nobody").refresh(Request())


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"scope": []}, "at least one scope"),
        ({"lifetime": "7200s"}, "at most 3600s"),
        ({"lifetime": "0s"}, "more than 0s"),
        ({"lifetime": "soon"}, "lifetime"),
        ({"delegates": ["projects/p/serviceAccounts/x"]}, "Invalid form of account ID"),
        ({"delegates": "airflow"}, "delegates"),
    ],
)
def test_impersonation_refuses_bad_requests(
    emulator: Emulator, session: AuthorizedSession, change: dict[str, object], words: str
) -> None:
    """A request for a token without a scope, with a wrong lifetime or wrong delegates is refused with the reason."""
    url = f"{emulator.url}/v1/projects/-/serviceAccounts/{emulator.email('pipeline')}:generateAccessToken"
    answer = session.post(url, json={"scope": SCOPES, **change})
    assert answer.status_code == 400
    assert words in answer.json()["error"]["message"]


def test_impersonated_tokens_end_when_asked(emulator: Emulator, session: AuthorizedSession) -> None:
    """An impersonated token lives as long as was asked for."""
    url = f"{emulator.url}/v1/projects/-/serviceAccounts/{emulator.email('pipeline')}:generateAccessToken"
    answer = session.post(url, json={"scope": SCOPES, "lifetime": "300s"}).json()
    remaining = datetime.fromisoformat(answer["expireTime"]) - datetime.now(UTC)
    assert timedelta(seconds=240) < remaining <= timedelta(seconds=300)
    assert emulator.google.identities.principal(answer["accessToken"]) == emulator.email("pipeline")


def test_a_call_without_a_bearer_is_told_so(emulator: Emulator) -> None:
    """Only storage takes anonymous calls; elsewhere the answer is 401 with a challenge."""
    url = f"{emulator.url}/v1/projects/-/serviceAccounts/{emulator.email('pipeline')}:generateAccessToken"
    answer = requests.post(url, json={"scope": SCOPES}, timeout=30)
    assert (answer.status_code, answer.json()["error"]["status"]) == (401, "UNAUTHENTICATED")
    assert answer.headers["WWW-Authenticate"].startswith("Bearer")
    since = emulator.mark()
    assert requests.get(f"{emulator.url}/storage/v1/b", timeout=30).status_code == 200
    assert [call["principal"] for call in emulator.calls(LIST_BUCKETS, since=since)] == [None]


def test_no_token_is_ever_in_the_ledger(emulator: Emulator, session: AuthorizedSession) -> None:
    """Neither headers nor authorising query parameters are recorded."""
    token = emulator.google.identities.tokens.issue(emulator.email("airflow"), seconds=60)
    session.get(f"{emulator.url}/storage/v1/b", params={"access_token": token, "key": "k-secret", "prefix": "p"})
    recorded = json.dumps(emulator.admin("GET", "ledger"))
    assert '"prefix": ["p"]' in recorded
    for secret in (token, session.credentials.token, "k-secret"):
        assert secret not in recorded


def test_airflows_google_hook_gets_its_credentials_here(emulator: Emulator, monkeypatch: pytest.MonkeyPatch) -> None:
    """Airflow's own hook, with the connection that ``accel emulator env`` prints, calls as airflow@."""
    from airflow.providers.google.common.hooks.base_google import GoogleBaseHook

    from airflow_accel_provider.cli.emulator import environment

    address = {"url": emulator.url, "project": emulator.project, "keys": emulator.keys}
    for name, value in environment(address).items():
        monkeypatch.setenv(name, value)
    hook = GoogleBaseHook(gcp_conn_id="google_cloud_default")
    assert hook.project_id == emulator.project
    since = emulator.mark()
    AuthorizedSession(hook.get_credentials()).get(f"{emulator.url}/storage/v1/b").raise_for_status()
    assert [call["principal"] for call in emulator.calls(LIST_BUCKETS, since=since)] == [emulator.email("airflow")]
