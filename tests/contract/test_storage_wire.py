"""Cloud Storage on the wire: what clients rely on beneath their methods, and what they must not get away with."""

from __future__ import annotations

import base64
import json
import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest
import requests
from emulators import Emulator, running

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

KIBIBYTE = 1024
CHUNK = 256 * KIBIBYTE


@pytest.fixture
def bucket(emulator: Emulator) -> Iterator[str]:
    """Return the address of a bucket's objects; anonymous calls reach it."""
    name = f"acme-{uuid.uuid4().hex[:12]}"
    assert requests.post(f"{emulator.url}/storage/v1/b", json={"name": name}, timeout=30).ok
    yield name
    objects = f"{emulator.url}/storage/v1/b/{name}/o"
    for item in requests.get(objects, timeout=30).json().get("items", ()):
        requests.delete(item["selfLink"], timeout=30)
    assert requests.delete(f"{emulator.url}/storage/v1/b/{name}", timeout=30).status_code == 204


def put(emulator: Emulator, bucket: str, name: str, data: bytes, **query: str) -> requests.Response:
    url = f"{emulator.url}/upload/storage/v1/b/{bucket}/o"
    return requests.post(url, data=data, params={"uploadType": "media", "name": name, **query}, timeout=30)


def begin(emulator: Emulator, bucket: str, name: str = "grown", **metadata: Any) -> str:
    url = f"{emulator.url}/upload/storage/v1/b/{bucket}/o"
    answer = requests.post(url, json=metadata, params={"uploadType": "resumable", "name": name}, timeout=30)
    assert answer.status_code == 200
    return answer.headers["Location"]


def send(location: str, data: bytes, content_range: str | None = None) -> requests.Response:
    headers = {} if content_range is None else {"Content-Range": content_range}
    return requests.put(location, data=data, headers=headers, timeout=30)


def media(emulator: Emulator, bucket: str, name: str, **headers: str) -> requests.Response:
    url = f"{emulator.url}/download/storage/v1/b/{bucket}/o/{name}"
    return requests.get(url, params={"alt": "media"}, headers=headers, timeout=30)


@pytest.mark.parametrize(
    ("header", "data", "content_range"),
    [
        ("bytes=0-3", b"0123", "bytes 0-3/10"),
        ("bytes=7-", b"789", "bytes 7-9/10"),
        ("bytes=-2", b"89", "bytes 8-9/10"),
        ("bytes=8-99", b"89", "bytes 8-9/10"),
        ("bytes=-99", b"0123456789", None),
        ("bytes=0-9", b"0123456789", None),
        ("lines=1-2", b"0123456789", None),
    ],
)
def test_ranges(emulator: Emulator, bucket: str, header: str, data: bytes, content_range: str | None) -> None:
    """Any form of byte range gives those bytes, with 206 and their place when they aren't all."""
    put(emulator, bucket, "digits", b"0123456789").raise_for_status()
    answer = media(emulator, bucket, "digits", Range=header)
    assert answer.status_code == (206 if content_range else 200)
    assert (answer.content, answer.headers.get("Content-Range")) == (data, content_range)


def test_a_range_beyond_the_end(emulator: Emulator, bucket: str) -> None:
    """A range that begins beyond the end is 416 and tells the size."""
    put(emulator, bucket, "digits", b"0123456789").raise_for_status()
    answer = media(emulator, bucket, "digits", Range="bytes=10-")
    assert (answer.status_code, answer.headers["Content-Range"]) == (416, "bytes */10")


def test_an_unchanged_object_is_not_sent_again(emulator: Emulator, bucket: str) -> None:
    """Reading an object unless it still has a known generation is 304 while it has."""
    stored = put(emulator, bucket, "same", b"x").json()
    answer = requests.get(stored["selfLink"], params={"ifGenerationNotMatch": stored["generation"]}, timeout=30)
    assert (answer.status_code, answer.content) == (304, b"")


def test_an_interrupted_upload_goes_on(emulator: Emulator, bucket: str) -> None:
    """A client may ask how far an upload is and go on from there, even sending some bytes twice."""
    data = bytes(range(256)) * 3 * KIBIBYTE
    location, total = begin(emulator, bucket), len(data)
    asked = send(location, b"", f"bytes */{total}")
    assert (asked.status_code, asked.headers.get("Range")) == (308, None)
    first = send(location, data[:CHUNK], f"bytes 0-{CHUNK - 1}/{total}")
    assert (first.status_code, first.headers["Range"]) == (308, f"bytes=0-{CHUNK - 1}")
    again = send(location, data[: 2 * CHUNK], f"bytes 0-{2 * CHUNK - 1}/*")
    assert again.headers["Range"] == f"bytes=0-{2 * CHUNK - 1}"
    assert send(location, b"", "bytes */*").headers["Range"] == f"bytes=0-{2 * CHUNK - 1}"
    last = send(location, data[2 * CHUNK :], f"bytes {2 * CHUNK}-{total - 1}/{total}")
    assert (last.status_code, last.json()["size"]) == (200, str(total))
    assert media(emulator, bucket, "grown").content == data
    assert send(location, b"", f"bytes */{total}").json()["generation"] == last.json()["generation"]


def test_an_upload_outlives_a_restart(tmp_path: Path) -> None:
    """An upload that was begun before a restart can be finished after it."""
    with running(tmp_path) as emulator:
        requests.post(f"{emulator.url}/storage/v1/b", json={"name": "acme-restart"}, timeout=30).raise_for_status()
        location = begin(emulator, "acme-restart", contentType="text/plain").removeprefix(emulator.url)
        assert send(emulator.url + location, b"a" * CHUNK, f"bytes 0-{CHUNK - 1}/*").status_code == 308
    with running(tmp_path) as emulator:
        finished = send(emulator.url + location, b"b", f"bytes {CHUNK}-{CHUNK}/{CHUNK + 1}")
        assert (finished.status_code, finished.json()["contentType"]) == (200, "text/plain")
        assert media(emulator, "acme-restart", "grown").content == b"a" * CHUNK + b"b"


@pytest.mark.parametrize(
    ("content_range", "size"),
    [
        ("bytes 262144-262144/262145", 1),
        ("bytes 0-99/*", 100),
        ("bytes 0-9/20", 3),
        ("bytes 5-2/20", 3),
        ("bytes=0-2/3", 3),
        ("bytes 0-2/-3", 3),
        ("", 3),
    ],
)
def test_chunks_that_do_not_fit_are_refused(emulator: Emulator, bucket: str, content_range: str, size: int) -> None:
    """A gap, an odd chunk that isn't the last, and a Content-Range that lies are refused; the upload stays empty."""
    location = begin(emulator, bucket)
    assert send(location, b"x" * size, content_range).status_code == 400
    assert send(location, b"", "bytes */*").headers.get("Range") is None


def test_a_cancelled_upload_is_gone(emulator: Emulator, bucket: str) -> None:
    """A cancelled upload can't be gone on with, and an invented one never could."""
    location = begin(emulator, bucket)
    assert requests.delete(location, timeout=30).status_code == 499
    assert send(location, b"x").status_code == 404
    assert send(location.replace("upload_id=", "upload_id=x"), b"x").status_code == 404


def test_an_upload_keeps_its_precondition_to_the_end(emulator: Emulator, bucket: str) -> None:
    """An upload that began when there was no object fails when there is one at its end."""
    url = f"{emulator.url}/upload/storage/v1/b/{bucket}/o"
    query = {"uploadType": "resumable", "name": "raced", "ifGenerationMatch": "0"}
    location = requests.post(url, params=query, timeout=30).headers["Location"]
    put(emulator, bucket, "raced", b"winner").raise_for_status()
    assert send(location, b"loser").status_code == 412
    assert media(emulator, bucket, "raced").content == b"winner"


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ({"uploadType": "carrier-pigeon"}, "carrier-pigeon"),
        ({"name": ""}, "name is missing"),
        ({"name": "x" * 1025}, "Disallowed object name"),
        ({"name": ".."}, "Disallowed object name"),
        ({"name": "a\nb"}, "Disallowed object name"),
        ({"ifGenerationMatch": "new"}, "'new' is not a whole number"),
    ],
)
def test_bad_uploads_are_refused(emulator: Emulator, bucket: str, query: dict[str, str], words: str) -> None:
    """An upload of an unknown kind, without a proper name or with a bad precondition is refused with the reason."""
    answer = put(emulator, bucket, **{"name": "ok", "data": b"x", **query})  # type: ignore[arg-type]
    assert answer.status_code == 400
    assert words in answer.json()["error"]["message"]


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ({"pageToken": "!"}, "pageToken"),
        ({"pageToken": base64.b64encode(b"\xff").decode()}, "pageToken"),
        ({"maxResults": "many"}, "'many' is not a whole number"),
        ({"maxResults": "-1"}, "maxResults"),
        ({"matchGlob": "[z-a]"}, "matchGlob"),
    ],
)
def test_bad_listings_are_refused(emulator: Emulator, bucket: str, query: dict[str, str], words: str) -> None:
    """A page token, page size or glob that can't be is refused with the reason."""
    put(emulator, bucket, "a", b"").raise_for_status()
    answer = requests.get(f"{emulator.url}/storage/v1/b/{bucket}/o", params=query, timeout=30)
    assert answer.status_code == 400
    assert words in answer.json()["error"]["message"]


@pytest.mark.parametrize("body", [{}, {"sourceObjects": []}, {"sourceObjects": [{"name": "a"}] * 33}])
def test_composing_takes_one_to_thirty_two(emulator: Emulator, bucket: str, body: dict[str, Any]) -> None:
    """Composing nothing or more than 32 objects is refused."""
    answer = requests.post(f"{emulator.url}/storage/v1/b/{bucket}/o/whole/compose", json=body, timeout=30)
    assert answer.status_code == 400
    assert "1 to 32" in answer.json()["error"]["message"]


def test_both_line_ends_divide_a_multipart_upload(emulator: Emulator, bucket: str) -> None:
    """Multipart uploads come byte for byte, whether their lines end as HTTP wants or as some clients write them."""
    data = b"\r\n--x\n\r--b-\n\x00"
    for newline in (b"\r\n", b"\n"):
        metadata = json.dumps({"name": "parted"}).encode()
        lines = [b"--b", b"Content-Type: application/json", b"", metadata]
        lines += [b"--b", b"Content-Type: image/png", b"", data, b"--b--", b""]
        url = f"{emulator.url}/upload/storage/v1/b/{bucket}/o?uploadType=multipart"
        headers = {"Content-Type": "multipart/related; boundary=b"}
        answer = requests.post(url, data=newline.join(lines), headers=headers, timeout=30)
        assert answer.status_code == 200
        assert answer.json()["contentType"] == "image/png"
        assert media(emulator, bucket, "parted").content == data


@pytest.mark.parametrize("content_type", ["text/plain\r\nX-Evil: 1", "töxt/plain", "\x00"])
def test_types_that_could_be_no_header_are_refused(emulator: Emulator, bucket: str, content_type: str) -> None:
    """A content type that couldn't be sent with a download is refused when it is set."""
    assert put(emulator, bucket, "typed", b"x").status_code == 200
    url = f"{emulator.url}/storage/v1/b/{bucket}/o/typed"
    answer = requests.patch(url, json={"contentType": content_type}, timeout=30)
    assert answer.status_code == 400
    assert "contentType" in answer.json()["error"]["message"]
    assert media(emulator, bucket, "typed").content == b"x"


def test_refused_uploads_leave_nothing_behind(emulator: Emulator, bucket: str) -> None:
    """Uploads, copies and compositions that are refused leave no bytes on the disk."""
    put(emulator, bucket, "one", b"x").raise_for_status()
    before = sorted((emulator.directory / "objects").iterdir())
    objects = f"{emulator.url}/storage/v1/b/{bucket}/o"
    parts = [{"name": "one", "generation": "first"}]
    related = b'--b\r\n\r\n{"metadata": 3}\r\n--b\r\n\r\nx\r\n--b--\r\n'
    refused = [
        put(emulator, bucket, "two", b"x", ifGenerationMatch="new"),
        put(emulator, bucket, "one", b"x", ifGenerationMatch="0"),
        requests.post(f"{objects}/two/compose", json={"sourceObjects": parts}, timeout=30),
        requests.post(f"{objects}/one/copyTo/b/acme-not-there/o/two", timeout=30),
        requests.post(f"{objects}/one/copyTo/b/{bucket}/o/two?ifGenerationMatch=1", timeout=30),
        requests.post(f"{objects}/one/rewriteTo/b/{bucket}/o/two", json={"contentType": "\n"}, timeout=30),
        requests.post(
            f"{emulator.url}/upload/storage/v1/b/{bucket}/o?uploadType=multipart&name=two",
            data=related,
            headers={"Content-Type": "multipart/related; boundary=b"},
            timeout=30,
        ),
    ]
    assert [answer.status_code for answer in refused] == [400, 412, 400, 404, 412, 400, 400]
    assert sorted((emulator.directory / "objects").iterdir()) == before


def test_of_many_writers_one_wins(emulator: Emulator, bucket: str) -> None:
    """Of writers that all want to be the first, exactly one is."""
    with ThreadPoolExecutor(12) as pool:
        answers = list(pool.map(lambda n: put(emulator, bucket, "lock", b"%d" % n, ifGenerationMatch="0"), range(12)))
    winners = [number for number, answer in enumerate(answers) if answer.status_code == 200]
    assert [answer.status_code for answer in answers].count(412) == 11
    assert media(emulator, bucket, "lock").content == b"%d" % winners[0]


@pytest.mark.parametrize("resumable", [False, True])
def test_the_discovery_client_uploads_and_reads(emulator: Emulator, bucket: str, resumable: bool) -> None:
    """google-api-python-client, with its own multipart form, stores and reads bytes."""
    from google.oauth2 import service_account
    from googleapiclient.discovery import build_from_document
    from googleapiclient.discovery_cache import get_static_doc
    from googleapiclient.http import MediaInMemoryUpload

    credentials = service_account.Credentials.from_service_account_file(str(emulator.keys["pipeline"]))
    # It sends media uploads over TLS whatever its endpoint option says, so the document gets the address.
    document = {**json.loads(get_static_doc("storage", "v1")), "rootUrl": f"{emulator.url}/"}
    scoped = credentials.with_scopes(["https://www.googleapis.com/auth/cloud-platform"])
    client = build_from_document(document, credentials=scoped)
    data = b"\x00\r\n" * CHUNK
    body = MediaInMemoryUpload(data, "image/png", chunksize=CHUNK, resumable=resumable)
    stored = client.objects().insert(bucket=bucket, body={"name": "a/b"}, media_body=body).execute()
    assert (stored["name"], stored["contentType"], stored["size"]) == ("a/b", "image/png", str(len(data)))
    assert client.objects().get_media(bucket=bucket, object="a/b").execute() == data


def test_a_bucket_of_another_project_is_refused(emulator: Emulator) -> None:
    """Buckets are created in the emulator's project and in no other."""
    url = f"{emulator.url}/storage/v1/b"
    answer = requests.post(url, params={"project": "someone-elses"}, json={"name": "acme-other"}, timeout=30)
    assert answer.status_code == 403
