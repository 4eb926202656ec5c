"""Cloud Storage, as the unmodified google-cloud-storage client sees it."""

from __future__ import annotations

import base64
import hashlib
import random
import uuid
from typing import TYPE_CHECKING

import pytest
from google.api_core import exceptions
from google.cloud import storage

if TYPE_CHECKING:
    from collections.abc import Iterator

    from emulators import Emulator

MEBIBYTE = 1024 * 1024


@pytest.fixture
def client(google_environment: None) -> storage.Client:
    return storage.Client()


@pytest.fixture
def bucket(client: storage.Client) -> Iterator[storage.Bucket]:
    created = client.create_bucket(f"acme-{uuid.uuid4().hex[:12]}", location="europe-west4")
    yield created
    created.delete(force=True)


def noise(size: int) -> bytes:
    return random.Random(size).randbytes(size)  # noqa: S311


def test_a_bucket_is_what_its_creator_made_it(client: storage.Client, bucket: storage.Bucket) -> None:
    """A bucket is found by name and in the list, with its location and class."""
    found = client.get_bucket(bucket.name)
    assert (found.location, found.location_type, found.storage_class) == ("EUROPE-WEST4", "region", "STANDARD")
    assert bucket.name in [listed.name for listed in client.list_buckets()]


def test_a_bucket_is_created_once(client: storage.Client, bucket: storage.Bucket) -> None:
    """Creating a bucket a second time is a conflict."""
    with pytest.raises(exceptions.Conflict, match="already own it"):
        client.create_bucket(bucket.name)


@pytest.mark.parametrize("name", ["Upper", "ab", "goog-mine", "a..b", "under__goog1e_google", "x" * 64])
def test_bucket_names_that_google_refuses_are_refused(client: storage.Client, name: str) -> None:
    """A bucket name that Cloud Storage wouldn't take is an error that repeats it."""
    with pytest.raises(exceptions.BadRequest, match=f"Invalid bucket name: '{name}'"):
        client.create_bucket(storage.Bucket(client, name=name))


def test_a_bucket_with_objects_stays(bucket: storage.Bucket) -> None:
    """A bucket that holds objects is not deleted."""
    bucket.blob("a").upload_from_string("1")
    with pytest.raises(exceptions.Conflict, match="not empty"):
        bucket.delete()


def test_what_is_missing_is_said(client: storage.Client, bucket: storage.Bucket) -> None:
    """A missing bucket and a missing object are told apart by Google's messages."""
    with pytest.raises(exceptions.NotFound, match="bucket does not exist"):
        client.get_bucket("acme-not-there")
    with pytest.raises(exceptions.NotFound, match=f"No such object: {bucket.name}/gone"):
        bucket.blob("gone").download_as_bytes()
    assert bucket.get_blob("gone") is None


@pytest.mark.parametrize("name", ["plain", "a/b/c.txt", "späße ☃/ü", "100% sure? #1&x=y+z", "%2F", "a//b/"])
def test_any_object_name_comes_back(bucket: storage.Bucket, name: str) -> None:
    """Bytes, type and name of an object are the same when they come back, whatever the name."""
    data = b"content\r\n\x00--"
    bucket.blob(name).upload_from_string(data, content_type="text/plain")
    found = bucket.get_blob(name)
    assert (found.name, found.content_type, found.size) == (name, "text/plain", len(data))
    assert found.download_as_bytes() == data
    assert [blob.name for blob in bucket.list_blobs()] == [name]


def test_digests_are_those_of_the_bytes(bucket: storage.Bucket) -> None:
    """MD5 and CRC32C are right, so clients can check what they download."""
    data = noise(100_000)
    blob = bucket.blob("noise")
    blob.upload_from_string(data, checksum="md5")
    assert blob.md5_hash == base64.b64encode(hashlib.md5(data, usedforsecurity=False).digest()).decode()
    assert blob.download_as_bytes(checksum="crc32c") == data


def test_damaged_uploads_are_refused(bucket: storage.Bucket) -> None:
    """An upload whose bytes don't match the digest that came with them leaves no object."""
    blob = bucket.blob("damaged")
    blob.md5_hash = base64.b64encode(b"0" * 16).decode()
    with pytest.raises(exceptions.BadRequest, match="doesn't match calculated MD5"):
        blob.upload_from_string(b"right")
    assert not blob.exists()


def test_a_large_object_comes_in_chunks(bucket: storage.Bucket, emulator: Emulator) -> None:
    """A resumable upload of 20 MiB in 5 MiB chunks is one object, and any range of it can be read."""
    data, since = noise(20 * MEBIBYTE), emulator.mark()
    bucket.blob("large", chunk_size=5 * MEBIBYTE).upload_from_string(data)
    statuses = [call["status"] for call in emulator.calls("storage.objects.insert", since=since)]
    assert statuses == [200, 308, 308, 308, 200]
    blob = bucket.get_blob("large")
    assert blob.size == len(data)
    assert blob.download_as_bytes() == data
    assert blob.download_as_bytes(start=7 * MEBIBYTE, end=7 * MEBIBYTE + 9) == data[7 * MEBIBYTE : 7 * MEBIBYTE + 10]
    with bucket.blob("large", chunk_size=8 * MEBIBYTE).open("rb") as file:
        assert hashlib.sha256(file.read()).digest() == hashlib.sha256(data).digest()


def test_a_stream_of_unknown_length_is_one_object(bucket: storage.Bucket) -> None:
    """A file that is written bit by bit becomes an object when it is closed, and not before."""
    data = noise(600_000)
    with bucket.blob("stream").open("wb", chunk_size=256 * 1024) as file:
        file.write(data[:400_000])
        assert not bucket.blob("stream").exists()
        file.write(data[400_000:])
    assert bucket.blob("stream").download_as_bytes() == data


def test_an_empty_object_is_an_object(bucket: storage.Bucket) -> None:
    """An object may have no bytes at all."""
    bucket.blob("empty").upload_from_string(b"")
    assert bucket.get_blob("empty").size == 0
    assert bucket.blob("empty").download_as_bytes() == b""


def test_listing_by_prefix_and_delimiter(bucket: storage.Bucket) -> None:
    """A delimiter folds what lies behind it into prefixes, one each."""
    for name in ("a/1", "a/2", "a/b/3", "c", "d/4"):
        bucket.blob(name).upload_from_string(name)
    top = bucket.list_blobs(delimiter="/")
    assert [blob.name for blob in top] == ["c"]
    assert sorted(top.prefixes) == ["a/", "d/"]
    inner = bucket.list_blobs(prefix="a/", delimiter="/")
    assert [blob.name for blob in inner] == ["a/1", "a/2"]
    assert sorted(inner.prefixes) == ["a/b/"]


@pytest.mark.parametrize("page_size", [1, 2, 3, 7, 50])
def test_pages_hold_everything_once(bucket: storage.Bucket, page_size: int) -> None:
    """However small the pages, all objects and prefixes come once each, in order."""
    names = [f"n{number:02}" for number in range(8)] + [f"m{number % 3}/x{number}" for number in range(8)]
    for name in names:
        bucket.blob(name).upload_from_string(b"")
    listed = bucket.list_blobs(delimiter="/", page_size=page_size)
    assert [blob.name for blob in listed] == sorted(name for name in names if "/" not in name)
    assert sorted(listed.prefixes) == ["m0/", "m1/", "m2/"]
    assert [blob.name for blob in bucket.list_blobs(page_size=page_size)] == sorted(names)


def test_listing_between_offsets(bucket: storage.Bucket) -> None:
    """Offsets cut a listing at names, the end excluded."""
    for name in "abcde":
        bucket.blob(name).upload_from_string(b"")
    assert [blob.name for blob in bucket.list_blobs(start_offset="b", end_offset="d")] == ["b", "c"]


@pytest.mark.parametrize(
    ("glob", "expected"),
    [
        ("*.txt", ["a.txt"]),
        ("**.txt", ["a.txt", "x/b.txt", "x/y/c.txt"]),
        ("x/**", ["x/b.txt", "x/y/c.txt", "x/y/d.csv"]),
        ("x/*", ["x/b.txt"]),
        ("**/*.{csv,tsv}", ["x/y/d.csv"]),
        ("x/y/[a-c].???", ["x/y/c.txt"]),
        ("x/y/[!c].*", ["x/y/d.csv"]),
    ],
)
def test_listing_by_glob(bucket: storage.Bucket, glob: str, expected: list[str]) -> None:
    """Single stars stay within a folder, double stars don't."""
    for name in ("a.txt", "x/b.txt", "x/y/c.txt", "x/y/d.csv"):
        bucket.blob(name).upload_from_string(b"")
    assert [blob.name for blob in bucket.list_blobs(match_glob=glob)] == expected


def test_preconditions_on_writing(bucket: storage.Bucket) -> None:
    """An upload for a generation that isn't current, or for no object where there is one, changes nothing."""
    blob = bucket.blob("guarded")
    blob.upload_from_string("first", if_generation_match=0)
    first = blob.generation
    with pytest.raises(exceptions.PreconditionFailed, match="pre-conditions"):
        blob.upload_from_string("second", if_generation_match=0)
    with pytest.raises(exceptions.PreconditionFailed):
        bucket.blob("guarded", chunk_size=MEBIBYTE).upload_from_string("second", if_generation_match=first + 1)
    assert blob.download_as_bytes() == b"first"
    blob.upload_from_string("second", if_generation_match=first)
    assert blob.generation > first
    assert blob.download_as_bytes() == b"second"


def test_preconditions_on_the_rest(bucket: storage.Bucket) -> None:
    """Deleting, patching, copying and reading keep to their preconditions."""
    blob = bucket.blob("guarded")
    blob.upload_from_string("first")
    with pytest.raises(exceptions.PreconditionFailed):
        blob.delete(if_generation_match=blob.generation + 1)
    with pytest.raises(exceptions.PreconditionFailed):
        blob.patch(if_metageneration_match=blob.metageneration + 1)
    with pytest.raises(exceptions.PreconditionFailed):
        bucket.copy_blob(blob, bucket, "copy", if_source_generation_match=blob.generation + 1)
    with pytest.raises(exceptions.PreconditionFailed):
        blob.download_as_bytes(if_generation_match=blob.generation + 1)
    with pytest.raises(exceptions.NotFound):
        bucket.blob("guarded", generation=1).download_as_bytes()
    assert [listed.name for listed in bucket.list_blobs()] == ["guarded"]


def test_metadata_is_patched_key_by_key(bucket: storage.Bucket) -> None:
    """A patch changes what it names; the bytes and the generation stay."""
    blob = bucket.blob("tagged")
    blob.metadata = {"keep": "1", "drop": "2"}
    blob.upload_from_string("x", content_type="text/plain")
    generation = blob.generation
    blob.metadata = {"drop": None, "new": "3"}
    blob.cache_control = "no-cache"
    blob.patch()
    found = bucket.get_blob("tagged")
    assert found.metadata == {"keep": "1", "new": "3"}
    assert (found.cache_control, found.content_type) == ("no-cache", "text/plain")
    assert (found.generation, found.metageneration) == (generation, 2)


def test_copies_carry_bytes_and_metadata(client: storage.Client, bucket: storage.Bucket) -> None:
    """A copy outlives its source, in the same bucket or another."""
    source = bucket.blob("a/source")
    source.metadata = {"k": "v"}
    source.upload_from_string("payload", content_type="text/csv")
    bucket.copy_blob(source, bucket, "b/copy")
    token, done, total = bucket.blob("c/rewritten").rewrite(source)
    assert (token, done, total) == (None, 7, 7)
    source.delete()
    for name in ("b/copy", "c/rewritten"):
        found = bucket.get_blob(name)
        assert (found.content_type, found.metadata, found.download_as_bytes()) == ("text/csv", {"k": "v"}, b"payload")


def test_composing_concatenates(bucket: storage.Bucket) -> None:
    """A composed object is its sources in order, counts its components and has no MD5."""
    parts = [bucket.blob(f"part-{number}") for number in range(3)]
    for number, part in enumerate(parts):
        part.upload_from_string(f"{number};")
    whole = bucket.blob("whole")
    whole.content_type = "text/plain"
    whole.compose(parts)
    whole.compose([whole, parts[0]])
    found = bucket.get_blob("whole")
    assert found.download_as_bytes(checksum="crc32c") == b"0;1;2;0;"
    assert (found.component_count, found.md5_hash) == (4, None)


def test_a_batch_does_each_call_on_its_own(client: storage.Client, bucket: storage.Bucket) -> None:
    """In a batch of deletions, one that fails doesn't stop the others."""
    for number in range(5):
        bucket.blob(f"n{number}").upload_from_string(b"")
    missing: list[object] = []
    bucket.delete_blobs([f"n{number}" for number in range(4)] + ["gone"], on_error=missing.append)
    assert missing == ["gone"]
    with client.batch():
        bucket.blob("n4").delete()
    assert list(bucket.list_blobs()) == []


def test_objects_survive_a_restart(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was stored is there after a restart on another port; what was overwritten is gone from the disk."""
    from emulators import running

    directory = tmp_path_factory.mktemp("restart")
    for expected in (None, b"second"):
        with running(directory) as emulator:
            monkeypatch.setenv("STORAGE_EMULATOR_HOST", emulator.url)
            client = storage.Client(project=emulator.project)
            if expected is None:
                kept = client.create_bucket("acme-kept").blob("kept")
                kept.upload_from_string(b"first")
                kept.upload_from_string(b"second")
            else:
                assert client.bucket("acme-kept").blob("kept").download_as_bytes() == expected
            assert len(list((directory / "objects").iterdir())) == 1
