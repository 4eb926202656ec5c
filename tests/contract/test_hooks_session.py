"""Sessions: who they are, what they make of a connection, and how they bear a bad network."""

from __future__ import annotations

import json
import socket
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest
from airflow.sdk import Connection
from connections import connection, google_session, plain_connection
from stand_in import StandIn

from airflow_accel_provider.exceptions import AcceleratorConfigurationError, GoogleApiError
from airflow_accel_provider.hooks.session import GoogleSession

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from emulators import Emulator

GET_PROJECT = "compute.projects.get"
CANCEL = "dataflow.projects.locations.jobs.update"
CREATE = "dataflow.projects.locations.jobs.create"
TOKEN = "iamcredentials.projects.serviceAccounts.generateAccessToken"


@pytest.fixture(autouse=True)
def _no_fault_is_left(emulator: Emulator) -> Iterator[None]:
    yield
    emulator.admin("DELETE", "faults")


def read_project(session: GoogleSession, **limits: Any) -> dict[str, Any]:
    return session.request("compute", "GET", f"projects/{session.project}", **limits)


def principals(emulator: Emulator, since: int, method: str = GET_PROJECT) -> list[str]:
    return [call["principal"] for call in emulator.calls(method, since=since)]


def refusal(connection: Connection, **arguments: Any) -> str:
    with pytest.raises(AcceleratorConfigurationError) as caught:
        GoogleSession.from_connection(connection, **arguments)
    assert "'gcp'" in str(caught.value)
    return str(caught.value)


# --- who calls


def test_a_session_calls_as_the_connections_key(emulator: Emulator) -> None:
    """The principal of a call is the account whose key the connection holds."""
    mark = emulator.mark()
    read_project(google_session(emulator, "pipeline"))
    assert principals(emulator, mark) == [emulator.email("pipeline")]


@pytest.mark.parametrize("as_text", [True, False])
def test_a_key_may_be_text_or_object(emulator: Emulator, as_text: bool) -> None:
    """keyfile_dict is taken as JSON text and as an object."""
    text = emulator.keys["airflow"].read_text()
    session = GoogleSession.from_connection(connection(emulator, keyfile_dict=text if as_text else json.loads(text)))
    assert read_project(session)["name"] == emulator.project


def test_a_key_file_and_old_prefixed_extras_are_read(emulator: Emulator) -> None:
    """key_path works, and so do extras with the long prefix that old connections carry."""
    prefix = "extra__google_cloud_platform__"
    extras = {
        f"{prefix}key_path": str(emulator.keys["airflow"]),
        f"{prefix}project": "other",
        "endpoint_url": emulator.url,
    }
    session = GoogleSession.from_connection(plain_connection(**extras))
    assert session.project == "other"


def test_default_credentials_are_used_where_the_connection_has_none(
    emulator: Emulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A connection without a key means the application default credentials."""
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(emulator.keys["pipeline"]))
    mark = emulator.mark()
    read_project(GoogleSession.from_connection(connection(emulator, keyfile_dict=None)))
    assert principals(emulator, mark) == [emulator.email("pipeline")]


@pytest.mark.parametrize("form", ["argument", "argument list", "extra", "extra with spaces"])
def test_impersonation_is_understood_in_every_form(emulator: Emulator, form: str) -> None:
    """impersonation_chain is a text or a list, an argument or the connection's."""
    target = emulator.email("pipeline")
    mark = emulator.mark()
    if form.startswith("argument"):
        session = google_session(emulator, impersonation_chain=[target] if "list" in form else target)
    else:
        extra = f" {target} " if "spaces" in form else target
        session = GoogleSession.from_connection(connection(emulator, impersonation_chain=extra))
    read_project(session)
    assert principals(emulator, mark) == [target]
    assert principals(emulator, mark, TOKEN) == [emulator.email("airflow")]


@pytest.mark.parametrize("as_text", [True, False])
def test_impersonation_goes_through_delegates(emulator: Emulator, as_text: bool) -> None:
    """All accounts of a chain but the last are delegates, in a list or in the connection's comma-separated text."""
    chain = [emulator.email("airflow"), emulator.email("pipeline")]
    mark = emulator.mark()
    if as_text:
        session = GoogleSession.from_connection(connection(emulator, impersonation_chain=", ".join(chain)))
    else:
        session = google_session(emulator, impersonation_chain=chain)
    read_project(session)
    assert principals(emulator, mark) == [emulator.email("pipeline")]
    (issued,) = [event for event in emulator.events("token.issued", since=mark) if event["by"] == "impersonation"]
    assert issued["chain"] == [emulator.email("airflow"), emulator.email("airflow")]


def test_an_impersonation_that_is_not_granted_is_a_refusal(emulator: Emulator) -> None:
    """The account that may not impersonate gets Google's sentence as an error that is not tried again."""
    session = google_session(emulator, "pipeline", impersonation_chain=emulator.email("airflow"))
    mark = emulator.mark()
    with pytest.raises(GoogleApiError, match=r"getAccessToken' denied") as caught:
        read_project(session)
    assert not caught.value.is_transient
    assert principals(emulator, mark) == []


def test_an_impersonated_account_brings_its_project(emulator: Emulator) -> None:
    """Without a project in the connection, the project is the impersonated account's, as in the google provider."""
    session = GoogleSession.from_connection(
        connection(emulator, project=None), impersonation_chain="x@else-where.iam.gserviceaccount.com"
    )
    assert session.project == "else-where"


def test_the_project_comes_from_argument_extra_or_key(emulator: Emulator) -> None:
    """project_id= wins over the connection's project, which wins over the key's."""
    keyed = connection(emulator, project=None)
    assert GoogleSession.from_connection(keyed).project == emulator.project
    assert GoogleSession.from_connection(connection(emulator, project="extra")).project == "extra"
    assert GoogleSession.from_connection(keyed, project_id="argument").project == "argument"


@pytest.mark.parametrize("impersonated", [True, False])
def test_the_quota_project_is_sent(emulator: Emulator, impersonated: bool) -> None:
    """quota_project_id travels as x-goog-user-project, of the impersonated account too."""
    chain = emulator.email("pipeline") if impersonated else None
    with StandIn() as compute:
        session = GoogleSession.from_connection(
            connection(emulator, endpoints={"compute": compute.url}),
            quota_project_id="billing-project",
            impersonation_chain=chain,
        )
        read_project(session)
    assert compute.headers["x-goog-user-project"] == "billing-project"


# --- what can't be used


def test_a_connection_of_another_type_is_refused() -> None:
    """A connection of another type is named with its type."""
    assert "of type 'aws'" in refusal(plain_connection("aws"))


def test_an_extra_that_is_no_json_is_refused() -> None:
    """An extra that is no JSON object is said to be none."""
    broken = Connection(conn_id="gcp", conn_type="google_cloud_platform", extra="{broken")
    assert "its extra is not a JSON object" in refusal(broken)


@pytest.mark.parametrize(
    ("extras", "words"),
    [
        ({"key_path": "/no/such/key.json"}, "/no/such/key.json"),
        ({"key_path": "/etc/hostname"}, "extension"),
        ({"keyfile_dict": "{broken"}, "Invalid key JSON"),
        ({"keyfile_dict": '{"type": "service_account"}'}, "'private_key' is missing"),
        ({"keyfile_dict": '{"private_key": "-----BEGIN PRIVATE KEY-----\\nxx"}'}, "fields"),
        ({"keyfile_dict": "{}", "key_path": "/x.json", "is_anonymous": True}, "mutually exclusive"),
        ({"credential_config_file": "{broken"}, "not a valid json"),
        ({"is_anonymous": True}, "no project is known"),
        ({"is_anonymous": True, "project": "p", "endpoints": {"dataflw": "http://localhost:1"}}, "'dataflow'"),
        ({"is_anonymous": True, "project": "p", "endpoints": "http://localhost:1"}, "must be an object"),
        ({"is_anonymous": True, "project": "p", "endpoint_url": "localhost:8085"}, "endpoint_url 'localhost:8085'"),
        ({"is_anonymous": True, "project": "p", "impersonation_chain": "nobody"}, "'nobody' is not the e-mail"),
    ],
)
def test_a_mistake_in_the_connection_is_one_clear_error(extras: dict[str, Any], words: str) -> None:
    """Each mistake is one error that names the connection and what is wrong."""
    assert words in refusal(plain_connection(**extras))


def test_a_key_never_stands_in_an_error(emulator: Emulator) -> None:
    """An error about a key that can't be read shows nothing of the key."""
    key = json.loads(emulator.keys["airflow"].read_text())
    secret = key["private_key"].splitlines()[5]
    key["private_key"] = key["private_key"].replace(secret, f"{secret[:-9]}!!!")
    assert secret[:20] not in refusal(plain_connection(keyfile_dict=json.dumps(key)))


# --- a bad network


def test_transient_failures_of_reads_pass_unnoticed(emulator: Emulator) -> None:
    """A read that fails twice and then works has worked."""
    emulator.fail(GET_PROJECT, times=2, status=503)
    mark = emulator.mark()
    assert read_project(google_session(emulator))["name"] == emulator.project
    assert [call["status"] for call in emulator.calls(GET_PROJECT, since=mark)] == [503, 503, 200]


@pytest.mark.parametrize("action", [{"reset": "before"}, {"truncate": True}, {"status": 502, "html": "<h1>Bad</h1>"}])
def test_a_cut_connection_or_a_page_is_tried_again(emulator: Emulator, action: dict[str, Any]) -> None:
    """A reset, a cut answer and a proxy's page are transient."""
    emulator.fail(GET_PROJECT, **action)
    assert read_project(google_session(emulator))["name"] == emulator.project


@pytest.mark.parametrize(
    ("action", "status", "words"),
    [
        ({"status": 503}, 503, "dataflow|compute"),
        ({"status": 502, "html": "<html><body><h1>Bad gateway</h1></body></html>"}, 502, r": Bad gateway$"),
        ({"truncate": True}, None, "GET projects/"),
        ({"reset": "before"}, 0, "no answer"),
        ({"delay": 3}, 0, "timed out|Timeout"),
    ],
)
def test_a_failure_that_stays_is_a_short_error(
    emulator: Emulator, action: dict[str, Any], status: int | None, words: str
) -> None:
    """Within no budget for trying again, every kind of failure is one GoogleApiError of one short line."""
    emulator.fail(GET_PROJECT, **action)
    session = google_session(emulator)
    session.token()
    with pytest.raises(GoogleApiError, match=words) as caught:
        read_project(session, retry_seconds=0, timeout=1)
    assert caught.value.is_transient
    assert status in (None, caught.value.status)
    assert len(str(caught.value)) < 400


def test_retry_after_is_honoured(emulator: Emulator) -> None:
    """The next try comes no sooner than the service asks."""
    emulator.fail(GET_PROJECT, status=429, retry_after=2)
    session = google_session(emulator)
    session.token()
    begun = time.monotonic()
    read_project(session)
    assert time.monotonic() - begun >= 2


def test_a_refusal_is_not_tried_again(emulator: Emulator) -> None:
    """A 403 is told at once, in the service's words."""
    emulator.fail(GET_PROJECT, times=1, status=403, message="Not yours.")
    mark = emulator.mark()
    with pytest.raises(GoogleApiError, match=r"compute GET projects/.*: 403 \(forbidden\): Not yours\."):
        read_project(google_session(emulator))
    assert len(emulator.calls(GET_PROJECT, since=mark)) == 1


def test_a_create_is_never_repeated(emulator: Emulator) -> None:
    """A create whose answer was lost is not sent a second time."""
    emulator.fail(CREATE, times=3, status=503)
    session = google_session(emulator)
    mark = emulator.mark()
    with pytest.raises(GoogleApiError):
        session.request("dataflow", "POST", f"projects/{session.project}/locations/us-central1/jobs", body={})
    assert len(emulator.calls(CREATE, since=mark)) == 1


def test_a_server_that_is_not_there_is_no_answer(emulator: Emulator) -> None:
    """A refused connection is an error with status 0."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"http://localhost:{free.getsockname()[1]}"
    session = GoogleSession.from_connection(connection(emulator, endpoint_url=address))
    with pytest.raises(GoogleApiError, match="no answer") as caught:
        read_project(session, retry_seconds=0)
    assert caught.value.status == 0


def test_a_revoked_token_is_fetched_anew(emulator: Emulator) -> None:
    """A token that Google no longer takes is changed for a new one."""
    session = google_session(emulator)
    session.token()
    session.identity.credentials.token = "revoked"
    assert read_project(session)["name"] == emulator.project


def test_many_threads_share_one_token(emulator: Emulator) -> None:
    """Calls from many threads at once fetch one token."""
    session = google_session(emulator)
    mark = emulator.mark()
    threads = [threading.Thread(target=read_project, args=[session]) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(emulator.calls(GET_PROJECT, since=mark)) == 8
    assert len(emulator.events("token.issued", since=mark)) == 1


# --- files


@pytest.fixture
def stored(emulator: Emulator, google_environment: None) -> str:
    from google.cloud import storage

    blob = storage.Client(project=emulator.project).create_bucket("hooks-session").blob("pipelines/a b&c?é.py")
    blob.upload_from_string(b"print(1)\r\n\xff" * 100_000)
    return f"gs://hooks-session/{blob.name}"


def test_files_are_downloaded_as_they_are(emulator: Emulator, stored: str, tmp_path: Path) -> None:
    """A file is fetched byte by byte, whatever its name, also when the connection breaks once."""
    emulator.fail("storage.objects.get", status=503)
    emulator.fail("storage.objects.get", truncate=True)
    google_session(emulator).download(stored, tmp_path / "x.py")
    assert (tmp_path / "x.py").read_bytes() == b"print(1)\r\n\xff" * 100_000


def test_a_file_that_is_not_there_leaves_nothing(emulator: Emulator, tmp_path: Path) -> None:
    """A missing file is Google's 404, and no local file."""
    with pytest.raises(GoogleApiError, match="404"):
        google_session(emulator).download("gs://no-such-bucket-here/x.py", tmp_path / "x.py")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("uri", ["gs://bucket", "gs://bucket/", "gs:///x", "/local", "gs://bucket/folder/"])
def test_what_is_no_file_is_one_clear_error(emulator: Emulator, uri: str, tmp_path: Path) -> None:
    """An address that names no file is refused before anything is asked."""
    with pytest.raises(AcceleratorConfigurationError, match="not the address of a file"):
        google_session(emulator).download(uri, tmp_path / "x.py")
