"""The server itself: routing, hostile requests, the admin API and faults."""

from __future__ import annotations

import json
import socket
import time
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest
import requests
from google.api_core import exceptions
from google.api_core.retry import Retry
from google.cloud import storage

if TYPE_CHECKING:
    from collections.abc import Iterator

    from emulators import Emulator
    from google.auth.transport.requests import AuthorizedSession

LIST_BUCKETS = "storage.buckets.list"
ONE_TRY = None


@pytest.fixture(autouse=True)
def _no_faults_left(emulator: Emulator) -> Iterator[None]:
    yield
    emulator.admin("DELETE", "faults")


def raw(emulator: Emulator, request: bytes) -> bytes:
    """Send bytes and return all that comes back."""
    address = urlsplit(emulator.url)
    with socket.create_connection((address.hostname, address.port), timeout=30) as connection:
        connection.sendall(request)
        connection.shutdown(socket.SHUT_WR)
        return b"".join(iter(lambda: connection.recv(65536), b""))


@pytest.mark.parametrize(
    ("request_line", "status", "words"),
    [
        ("GET /nothing/here", 404, "was not found"),
        ("GET /compute/v1/projects/p/zones/z/disks", 501, "compute.disks.list"),
        ("POST /v1/projects/p/regions/r/clusters", 501, "dataproc.projects.regions.clusters.create"),
        ("POST /storage/v1/b/bucket/o/a%2Fb/moveTo/o/c%2Fd", 501, "storage.objects.move"),
        ("GET /storage/v1/b/bucket/o/a%2Fb/iam", 501, "storage.objects.getIamPolicy"),
        ("PATCH /storage/v1/b", 405, "GET or POST"),
        ("DELETE /token", 405, "POST"),
        ("OPTIONS /storage/v1/b", 405, "OPTIONS"),
        ("BREW /storage/v1/b", 405, "BREW"),
    ],
)
def test_what_is_not_there_is_named(
    session: AuthorizedSession, emulator: Emulator, request_line: str, status: int, words: str
) -> None:
    """A method that Google has and the emulator hasn't is 501 with its id; the rest is 404, or 405 for the verb."""
    verb, path = request_line.split()
    answer = session.request(verb, emulator.url + path)
    assert answer.status_code == status
    assert words in answer.json()["error"]["message"]


@pytest.mark.parametrize("body", [b"{", b"[]", b"\xff\xfe\x00", b'"text"', b'{"a":' * 200_000])
def test_bodies_that_are_no_json_objects_are_refused(
    session: AuthorizedSession, emulator: Emulator, body: bytes
) -> None:
    """A body that isn't a JSON object is the caller's mistake, however it is broken."""
    answer = session.post(f"{emulator.url}/storage/v1/b", data=body)
    assert answer.status_code == 400
    assert "Traceback" not in answer.text
    assert answer.json()["error"]["errors"][0]["reason"] == "parseError"


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"labels": 3}, "'labels' (an object)"),
        ({"labels": {"a": ["b"]}}, "'labels.a' (TYPE_STRING)"),
        ({"name": True}, "'name' (TYPE_STRING)"),
        ({"versioning": {"enabled": "yes"}}, "'versioning.enabled' (TYPE_BOOL)"),
        ({"lifecycle": {"rule": [{"condition": {"age": "old"}}]}}, "'lifecycle.rule[0].condition.age' (TYPE_INT32)"),
    ],
)
def test_values_of_a_wrong_kind_are_named(
    session: AuthorizedSession, emulator: Emulator, body: dict[str, object], words: str
) -> None:
    """A field of a wrong kind is refused with its path, wherever it is."""
    answer = session.post(f"{emulator.url}/storage/v1/b", json={"name": "acme-kinds", **body})
    assert answer.status_code == 400
    assert words in answer.json()["error"]["message"]


def test_misspelt_fields_are_refused(session: AuthorizedSession, emulator: Emulator) -> None:
    """The newer APIs refuse a field that they don't know, by its name."""
    url = f"{emulator.url}/v1/projects/-/serviceAccounts/{emulator.email('pipeline')}:generateAccessToken"
    answer = session.post(url, json={"scopes": ["x"]})
    assert answer.status_code == 400
    assert 'Unknown name "scopes"' in answer.json()["error"]["message"]


def test_oversized_bodies_are_refused(session: AuthorizedSession, emulator: Emulator) -> None:
    """A JSON body of more than 20 MiB is 413, and the connection that sent it isn't served further."""
    answer = session.post(f"{emulator.url}/storage/v1/b", data=b" " * (20 * 1024 * 1024 + 1))
    assert answer.status_code == 413
    assert answer.json()["error"]["code"] == 413


@pytest.mark.parametrize(
    "query",
    ["$alt=json", "$alt=json;enum-encoding=int", "alt=json&prettyPrint=false&fields=items(name)&key=k", "a=%FF&b&=&"],
)
def test_googles_standard_parameters_do_no_harm(session: AuthorizedSession, emulator: Emulator, query: str) -> None:
    """The parameters that Google's clients add to every call are tolerated."""
    assert session.get(f"{emulator.url}/storage/v1/b?{query}").status_code == 200


@pytest.mark.parametrize(
    "content_type",
    ["", "multipart/related", 'multipart/related; boundary="b"', "multipart/mixed; boundary=b", "text/plain"],
)
@pytest.mark.parametrize("path", ["/upload/storage/v1/b/none/o?uploadType=multipart", "/batch/storage/v1"])
@pytest.mark.parametrize("body", [b"", b"--b", b"--b\r\n\r\n{}\r\n--b--", b"--b\r\n\r\nGET\r\n--b--\r\n"])
def test_broken_multipart_bodies_are_refused(
    session: AuthorizedSession, emulator: Emulator, path: str, content_type: str, body: bytes
) -> None:
    """A multipart body that cannot be taken apart is the caller's mistake."""
    answer = session.post(emulator.url + path, data=body, headers={"Content-Type": content_type})
    assert answer.status_code == 400
    assert answer.json()["error"]["code"] == 400


def test_bytes_that_are_no_http_are_refused(emulator: Emulator) -> None:
    """Garbage on the socket, a lying length and a missing Host end with an error or a closed connection."""
    assert raw(emulator, b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n").startswith(b"HTTP/1.1 400")
    assert b"200" not in raw(
        emulator, b"POST /storage/v1/b HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99\r\n\r\n{}"
    )
    assert b" 400 " in raw(emulator, b"GET /_emulator/health HTTP/1.1\r\n\r\n")
    assert b" 403 " in raw(emulator, b"GET /_emulator/health HTTP/1.0\r\n\r\n")


@pytest.mark.parametrize("path", ["/_emulator/ledger", "/_emulator/world", "/storage/v1/b"])
@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example"},
        {"Host": "localhost.evil.example"},
        {"Host": "[::1"},
        {"Host": "localhost:x"},
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
    ],
)
def test_web_pages_of_other_sites_are_kept_out(emulator: Emulator, path: str, headers: dict[str, str]) -> None:
    """A request that another site's page made a browser send is refused, on every path."""
    answer = requests.get(emulator.url + path, headers=headers, timeout=30)
    assert answer.status_code == 403
    assert answer.json()["error"]["status"] == "PERMISSION_DENIED"


def test_both_names_of_loopback_work(emulator: Emulator) -> None:
    """The emulator answers under localhost and under 127.0.0.1."""
    port = urlsplit(emulator.url).port
    for host in ("localhost", "127.0.0.1"):
        health = requests.get(f"http://{host}:{port}/_emulator/health", timeout=30).json()
        assert (health["status"], health["url"], health["project"]) == ("ok", emulator.url, emulator.project)


def test_the_ledger_has_every_call_in_order(emulator: Emulator, session: AuthorizedSession) -> None:
    """Calls are recorded with their parameters, principal and status, also those that failed."""
    since = emulator.mark()
    session.get(f"{emulator.url}/storage/v1/b/acme-missing", params={"projection": "full"})
    session.get(f"{emulator.url}/storage/v1/b")
    *_, first, second = emulator.admin("GET", "ledger", since=since)["calls"]
    assert (first["method"], first["status"], first["path"]) == ("storage.buckets.get", 404, {"bucket": "acme-missing"})
    assert (first["query"], first["principal"]) == ({"projection": ["full"]}, emulator.email("airflow"))
    assert (second["method"], second["status"]) == (LIST_BUCKETS, 200)
    assert first["seq"] < second["seq"]
    assert first["time"] <= second["time"]


def test_the_world_can_be_changed(emulator: Emulator) -> None:
    """The world is read and changed while the emulator runs; an unknown one is an error that names the nearest."""
    before = emulator.admin("GET", "world")["name"]
    emulator.enter("nowhere")
    assert emulator.admin("GET", "world")["name"] == "nowhere"
    answer = requests.put(f"{emulator.url}/_emulator/world", json={"name": "no-qouta"}, timeout=30)
    assert answer.status_code == 400
    assert "Did you mean no-quota?" in answer.json()["error"]["message"]
    emulator.enter(before)


@pytest.mark.parametrize(
    ("verb", "path", "body", "status"),
    [
        ("GET", "nothing", None, 404),
        ("POST", "world", {"name": "plenty"}, 405),
        ("PUT", "world", "not an object", 400),
        ("GET", "ledger?since=-1", None, 400),
        ("GET", "ledger?since=x", None, 400),
    ],
)
def test_the_admin_api_refuses_in_googles_form(
    emulator: Emulator, verb: str, path: str, body: object, status: int
) -> None:
    """Whatever is wrong with an admin request, the answer says so as Google's APIs do."""
    answer = requests.request(verb, f"{emulator.url}/_emulator/{path}", json=body, timeout=30)
    assert answer.status_code == status
    assert answer.json()["error"]["code"] == status


def test_a_status_fault_is_used_up(emulator: Emulator, session: AuthorizedSession) -> None:
    """A fault answers as often as was asked for, can be read back with its use, and then is over."""
    emulator.fail(LIST_BUCKETS, times=2, status=503, retry_after=7, message="Try later.")
    answers = [session.get(f"{emulator.url}/storage/v1/b", headers={"x": "1"}, timeout=30) for _ in range(3)]
    assert [answer.status_code for answer in answers] == [503, 503, 200]
    assert answers[0].headers["Retry-After"] == "7"
    assert answers[0].json()["error"]["message"] == "Try later."
    [fault] = emulator.admin("GET", "faults")["faults"]
    assert (fault["method"], fault["times"], fault["used"]) == (LIST_BUCKETS, 2, 2)


def test_clients_survive_faults(emulator: Emulator, google_environment: None) -> None:
    """Google's storage client retries over errors, resets and cut answers as it does with the real service."""
    emulator.fail(LIST_BUCKETS, status=503)
    emulator.fail(LIST_BUCKETS, status=502, html="<html>Bad Gateway</html>")
    emulator.fail(LIST_BUCKETS, reset="before")
    emulator.fail(LIST_BUCKETS, truncate=True)
    since = emulator.mark()
    quick = Retry(initial=0.05, maximum=0.05, timeout=60)
    assert list(storage.Client().list_buckets(retry=quick.with_predicate(lambda _: True))) is not None
    assert [call["status"] for call in emulator.calls(LIST_BUCKETS, since=since)] == [503, 502, 0, 200, 200]


def test_a_reset_before_does_nothing_and_one_after_has_done_it(emulator: Emulator, google_environment: None) -> None:
    """A connection may be cut before a call is carried out or when only its answer is lost."""
    client = storage.Client()
    emulator.fail("storage.buckets.insert", reset="before")
    with pytest.raises((requests.ConnectionError, exceptions.GoogleAPICallError)):
        client.create_bucket("acme-reset", retry=ONE_TRY)
    assert client.lookup_bucket("acme-reset") is None
    emulator.fail("storage.buckets.insert", reset="after")
    with pytest.raises((requests.ConnectionError, exceptions.GoogleAPICallError)):
        client.create_bucket("acme-reset", retry=ONE_TRY)
    client.get_bucket("acme-reset").delete()


def test_a_delay_is_real_time(emulator: Emulator, session: AuthorizedSession) -> None:
    """A delay makes one call wait and no other."""
    emulator.fail(LIST_BUCKETS, delay=0.5)
    started = time.monotonic()
    session.get(f"{emulator.url}/storage/v1/b").raise_for_status()
    assert time.monotonic() - started >= 0.5


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ({"method": "storage.bucket.list", "action": {"status": 503}}, "'storage.buckets.list' is"),
        ({"method": LIST_BUCKETS, "times": 0, "action": {"status": 503}}, "times 0"),
        ({"method": LIST_BUCKETS, "action": {"status": 200}}, "200"),
        ({"method": LIST_BUCKETS, "action": {"explode": True}}, "unknown action 'explode'"),
        ({"method": LIST_BUCKETS, "action": {}}, "needs one of"),
        ({"method": LIST_BUCKETS, "action": {"delay": -1}}, "delay -1"),
        ({"method": LIST_BUCKETS, "action": {"delay": "long"}}, "delay 'long'"),
        ({"method": LIST_BUCKETS, "action": {"reset": True}}, "reset True"),
        ({"method": LIST_BUCKETS, "action": {"status": 503, "html": 7}}, "html 7"),
        ({"method": LIST_BUCKETS, "action": {"delay": 1, "message": "m"}}, "belong to a status"),
        ({"method": LIST_BUCKETS, "actoin": {"status": 503}}, "unknown field 'actoin'"),
        ({"method": [], "action": []}, "action is not an object"),
    ],
)
def test_bad_faults_are_refused(emulator: Emulator, fault: dict[str, object], words: str) -> None:
    """A fault that cannot be is refused, with everything that is wrong with it."""
    answer = requests.post(f"{emulator.url}/_emulator/faults", json=fault, timeout=30)
    assert answer.status_code == 400
    assert words in answer.json()["error"]["message"]
    assert emulator.admin("GET", "faults") == {"faults": []}


def test_a_batch_goes_through_faults_and_the_ledger(emulator: Emulator, session: AuthorizedSession) -> None:
    """Calls inside a batch are recorded, carry the batch's identity and meet faults like any other."""
    emulator.fail(LIST_BUCKETS, status=503)
    part = "--b\r\nContent-Type: application/http\r\nContent-ID: <{0}>\r\n\r\nGET /storage/v1/b HTTP/1.1\r\n\r\n\r\n"
    body = "".join(part.format(number) for number in range(2)) + "--b--"
    since = emulator.mark()
    headers = {"Content-Type": "multipart/mixed; boundary=b"}
    answer = session.post(f"{emulator.url}/batch/storage/v1", data=body, headers=headers)
    assert answer.text.count("Content-ID: <response-") == 2
    calls = emulator.calls(LIST_BUCKETS, since=since)
    assert [(call["status"], call["principal"]) for call in calls] == [
        (503, emulator.email("airflow")),
        (200, emulator.email("airflow")),
    ]
    assert json.dumps({"kind": "storage#buckets"})[1:-1] in answer.text


def test_a_cut_call_cuts_its_batch(emulator: Emulator) -> None:
    """The calls of a batch share one connection: a reset of one of them loses all answers."""
    emulator.fail(LIST_BUCKETS, reset="after")
    body = "--b\r\nContent-Type: application/http\r\n\r\nGET /storage/v1/b HTTP/1.1\r\n\r\n\r\n--b--"
    headers = {"Content-Type": "multipart/mixed; boundary=b"}
    with pytest.raises(requests.ConnectionError):
        requests.post(f"{emulator.url}/batch/storage/v1", data=body, headers=headers, timeout=30)
