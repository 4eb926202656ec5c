"""Requests that no client of Google's sends: each is refused, none makes a method fail, none gets past the gate."""

from __future__ import annotations

import gzip
import json
import re
import socket
from contextlib import suppress
from typing import TYPE_CHECKING
from urllib.parse import quote, urlsplit

import pytest
import requests

from airflow_accel_provider.emulator.services import METHODS
from airflow_accel_provider.emulator.wire import Method

if TYPE_CHECKING:
    from emulators import Emulator
    from google.auth.transport.requests import AuthorizedSession

# By the documentation: storage takes bare clients, and the token endpoint is where tokens come from.
OPEN = re.compile(r"storage\.(buckets|objects)\.\w+|oauth2\.token")
BODIES = {
    "broken": b"{",
    "a list": b"[]",
    "no UTF-8": b'{"name": "\xff\xfe"}',
    "nested": b'{"a":' * 100_000,
    "a huge number": b'{"name": ' + b"9" * 10_000 + b"}",
    "no number": b'{"name": NaN, "labels": {"a": Infinity}}',
    "half a character": b'{"name": "\\ud800", "labels": {"\\udfff": "\\u0000"}}',
    "everything null": b'{"name": null, "labels": null, "environment": null, "launchParameter": null}',
    "wrong kinds": b'{"name": {}, "labels": [], "environment": 7, "launchParameter": "x", "pysparkBatch": []}',
    "squeezed": gzip.compress(b"{}"),
}
NAMES = ("..", ".", "%2e%2e", "../../x", "a%00b", "a'b\"c", "{region}", "\u202e", "x" * 4_000, "-1", "*", "?a=b#c")


def path_of(method: Method, name: str = "x") -> str:
    return re.sub(r"\{(\w+)(?::\w+)?\}", lambda _: quote(name, safe=""), method.path)


def ids(method: Method) -> str:
    return f"{method.verb} {method.path}"


def raw(emulator: Emulator, request: bytes) -> bytes:
    """Send bytes and return what comes back until the connection ends, in whatever way it does."""
    address = urlsplit(emulator.url)
    answer = b""
    with (
        socket.create_connection((address.hostname, address.port), timeout=30) as connection,
        suppress(ConnectionError),
    ):
        connection.sendall(request)
        while piece := connection.recv(65536):
            answer += piece
    return answer


@pytest.mark.parametrize("method", METHODS, ids=ids)
def test_every_method_asks_for_a_token(emulator: Emulator, method: Method) -> None:
    """Every method of every service refuses a call without a token, but storage's and the token endpoint itself."""
    assert method.open is bool(OPEN.fullmatch(method.id))
    url = emulator.url + path_of(method)
    bare = requests.request(method.verb, url, timeout=30)
    assert (bare.status_code == 401) is not method.open
    for said in ("Bearer wrong", "Bearer a.b.c", "Basic YTpi", "Bearer", f"bearer {'x' * 9_000}"):
        if said != "Bearer" or not method.open:
            answer = requests.request(method.verb, url, headers={"Authorization": said}, timeout=30)
            assert answer.status_code == 401, said


def test_a_batch_is_no_way_round(emulator: Emulator, session: AuthorizedSession) -> None:
    """A call inside a batch needs a token as it does alone, and reaches no admin path."""
    calls = ("GET /compute/v1/projects/p/regions", "DELETE /_emulator/faults", "POST /batch/storage/v1")
    part = "--b\r\nContent-Type: application/http\r\n\r\n{0} HTTP/1.1\r\n\r\n\r\n"
    body = "".join(part.replace("{0}", call) for call in calls) + "--b--"
    headers = {"Content-Type": "multipart/mixed; boundary=b"}
    bare = requests.post(f"{emulator.url}/batch/compute/v1", data=body, headers=headers, timeout=30)
    assert re.findall(r"HTTP/1.1 (\d+)", bare.text) == ["401", "404", "404"]
    signed = session.post(f"{emulator.url}/batch/compute/v1", data=body, headers=headers)
    assert re.findall(r"HTTP/1.1 (\d+)", signed.text)[1:] == ["404", "404"]


@pytest.mark.parametrize("method", [each for each in METHODS if each.verb != "GET"], ids=ids)
def test_malformed_bodies_are_the_callers_mistake(
    emulator: Emulator, session: AuthorizedSession, method: Method
) -> None:
    """No body makes a method fail, or do anything: it is refused."""
    url = emulator.url + path_of(method)
    found = {name: session.request(method.verb, url, data=body).status_code for name, body in BODIES.items()}
    assert {name: status for name, status in found.items() if not 400 <= status < 500} == {}


@pytest.mark.parametrize("method", [each for each in METHODS if "{" in each.path and each.verb == "GET"], ids=ids)
def test_no_name_leads_astray(emulator: Emulator, session: AuthorizedSession, method: Method) -> None:
    """A name that is none is not found, whatever signs it holds; no name makes a method fail or opens a file."""
    found = {}
    for name in NAMES:
        answer = session.get(emulator.url + path_of(method, name))
        found[name] = answer.status_code
        assert "root:" not in answer.text
    assert {name: status for name, status in found.items() if status >= 500} == {}


@pytest.mark.parametrize(
    "query", ["filter=" + "(" * 3_000, "filter=a%3D%22", "pageToken=%00", "maxResults=-1", "a=" * 999]
)
@pytest.mark.parametrize("method", [each for each in METHODS if each.id.lower().endswith("list")], ids=ids)
def test_no_question_makes_a_list_fail(
    emulator: Emulator, session: AuthorizedSession, method: Method, query: str
) -> None:
    """Filters, page tokens and sizes that are none are refused or passed over."""
    answer = session.get(f"{emulator.url}{path_of(method)}?{query}")
    assert answer.status_code < 500


@pytest.mark.parametrize(
    "head",
    [
        b"GET /storage/v1/b HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n",
        b"GET /storage/v1/b HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * 200_000 + b"\r\n\r\n",
        b"POST /storage/v1/b HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
        b"POST /storage/v1/b HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n{}",
        b"POST /storage/v1/b HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n",
        b"GET /storage/v1/b HTTP/1.1\r\nHost: localhost\r\nX: a\x00b\r\n\r\n",
    ],
    ids=["two-hosts", "long-header", "negative", "two-lengths", "no-chunk", "zero"],
)
def test_malformed_requests_are_refused(emulator: Emulator, head: bytes) -> None:
    """What is not HTTP as it should be is refused before any method sees it."""
    since = emulator.mark()
    assert raw(emulator, head)[:10] in {b"HTTP/1.1 4", b""}
    assert emulator.admin("GET", "ledger", since=since)["calls"] == []


@pytest.mark.parametrize(
    "host",
    [
        "localhost.",
        "127.0.0.1.nip.io",
        "0.0.0.0",  # noqa: S104 - refused
        "[::1]",
        "127.0.0.1:80@evil.example",
        "localhost:80/x",
        "127.1",
        "",
        "a b",
    ],
)
def test_only_loopbacks_own_names_are_served(emulator: Emulator, host: str) -> None:
    """A name that was made to point at this machine is refused, also on admin paths."""
    for path in ("/storage/v1/b", "/_emulator/ledger", "/token"):
        head = f"GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
        assert re.match(rb"HTTP/1.1 4(?:00|03) ", raw(emulator, head.encode()))


def test_only_loopback_is_listened_on(emulator: Emulator) -> None:
    """No other address of this machine answers, nor does loopback of the newer protocol."""
    port = urlsplit(emulator.url).port
    for address in (*_others(), "127.0.0.2", "::1"):
        with pytest.raises(OSError, match=r"refused|assign|unreachable|not supported|timed out"):
            socket.create_connection((address, port), timeout=5)


def _others() -> list[str]:
    """Return the address by which others would reach this machine, if it has one. Nothing is sent to find out."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
        try:
            asked.connect(("192.0.2.1", 9))
        except OSError:
            return []
        return [asked.getsockname()[0]]


def test_slow_clients_keep_nobody_waiting(emulator: Emulator) -> None:
    """While a hundred clients never finish their requests, others are answered."""
    address = urlsplit(emulator.url)
    slow = [socket.create_connection((address.hostname, address.port), timeout=30) for _ in range(100)]
    try:
        for each in slow:
            each.sendall(b"POST /storage/v1/b HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n{")
        assert requests.get(f"{emulator.url}/_emulator/health", timeout=30).status_code == 200
    finally:
        for each in slow:
            each.close()


def test_what_was_refused_is_told_without_harm(emulator: Emulator, session: AuthorizedSession) -> None:
    """An error that repeats what was sent is JSON that a browser shows as text."""
    answer = session.get(f"{emulator.url}/storage/v1/b/{quote('<script>alert(1)</script>', safe='')}")
    assert answer.headers["Content-Type"].startswith("application/json")
    assert json.loads(answer.text)["error"]["code"] in {400, 404}
