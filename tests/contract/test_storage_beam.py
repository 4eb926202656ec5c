"""Cloud Storage as Beam's file system sees it."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

import pytest
from apache_beam.io.filesystem import CompressionTypes
from apache_beam.io.filesystems import FileSystems
from google.api_core.exceptions import NotFound
from google.cloud import storage

if TYPE_CHECKING:
    from collections.abc import Iterator

    from emulators import Emulator


@pytest.fixture
def root(google_environment: None) -> Iterator[str]:
    """Return the address of an empty bucket."""
    bucket = storage.Client().create_bucket(f"acme-{uuid.uuid4().hex[:12]}")
    yield f"gs://{bucket.name}"
    bucket.delete(force=True)


def write(path: str, data: bytes) -> None:
    with FileSystems.create(path, compression_type=CompressionTypes.UNCOMPRESSED) as file:
        file.write(data)


def read(path: str) -> bytes:
    with FileSystems.open(path, compression_type=CompressionTypes.UNCOMPRESSED) as file:
        return bytes(file.read())


def test_what_beam_writes_it_reads(root: str) -> None:
    """A file of many megabytes that Beam writes in pieces is the same when Beam reads it."""
    data = bytes(range(256)) * 4096 * 20
    write(f"{root}/large", data)
    assert read(f"{root}/large") == data
    with FileSystems.open(f"{root}/large", compression_type=CompressionTypes.UNCOMPRESSED) as file:
        file.seek(5_000_003)
        assert file.read(7) == data[5_000_003:5_000_010]


def test_globs_find_shards(root: str) -> None:
    """Beam's patterns find the shards of an output and their sizes."""
    for number in range(3):
        write(f"{root}/out/part-0000{number}-of-00003", b"x" * number)
    write(f"{root}/other", b"")
    [match] = FileSystems.match([f"{root}/out/part-*-of-00003"])
    assert {(found.path.rsplit("/", 1)[1], found.size_in_bytes) for found in match.metadata_list} == {
        (f"part-0000{number}-of-00003", number) for number in range(3)
    }


def test_renaming_copying_and_deleting(root: str) -> None:
    """Beam moves temporary files to their final names, copies, and deletes whole prefixes."""
    sources = [f"{root}/draft/{number}" for number in range(5)]
    for number, source in enumerate(sources):
        write(source, str(number).encode())
    targets = [f"{root}/final/{number}" for number in range(5)]
    FileSystems.rename(sources, targets)
    assert [read(target) for target in targets] == [b"0", b"1", b"2", b"3", b"4"]
    assert not FileSystems.exists(sources[0])
    FileSystems.copy(targets[:1], [f"{root}/copy"])
    assert FileSystems.checksum(f"{root}/copy") == FileSystems.checksum(targets[0])
    FileSystems.delete([f"{root}/final/"])
    assert FileSystems.match([f"{root}/final/*"])[0].metadata_list == []


def test_beam_says_what_is_missing(root: str) -> None:
    """Reading a file that isn't there is an error that names it."""
    with pytest.raises(NotFound, match=f"No such object: {root.removeprefix('gs://')}/gone"):
        read(f"{root}/gone")


def test_beam_comes_with_its_identity(root: str, emulator: Emulator) -> None:
    """Beam's calls carry the account of the credentials in the environment."""
    since = emulator.mark()
    write(f"{root}/mine", b"x")
    callers = {call["principal"] for call in emulator.calls("storage.objects.insert", since=since)}
    assert callers == {emulator.email("airflow")}
