"""Buckets as directories while a batch runs: filled before it, and what it changed brought back after it.

Spark reads and writes ``gs://`` there, through a view that Hadoop has without Google's connector. A batch sees the
buckets that it names, in its request or in its files, as they were when it started.
"""

from __future__ import annotations

import zipfile
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from airflow_accel_provider.emulator.dataproc.fetching import UNREADABLE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

OWN_PREFIX = "google-cloud-dataproc-metainfo/"
LEFT_BEHIND = "_temporary"
LARGEST_READ = 64 * 2**20
"""Larger files within an archive are data, in which no bucket's name is looked for."""

Stamp = tuple[int, int, int]


class Mirror:
    """The directories that stand for buckets; ``client`` is Cloud Storage's."""

    def __init__(self, client: Any, directory: Path, buckets: Iterable[str]) -> None:
        self._client = client
        self.paths: Mapping[str, Path] = {bucket: directory / bucket for bucket in buckets}
        self._generations: dict[tuple[str, str], int] = {}
        self._stamps: dict[tuple[str, str], Stamp] = {}

    def fill(self) -> None:
        """Bring all objects here. Names that can be no file beside the others, or lie elsewhere, are left out."""
        for bucket, directory in self.paths.items():
            directory.mkdir(parents=True, exist_ok=True)
            for blob in self._client.list_blobs(bucket):
                if not blob.name.startswith(OWN_PREFIX) and _is_plain(blob.name):
                    self._bring(bucket, directory / blob.name, blob)

    def send_back(self) -> tuple[int, int]:
        """Bring what was written and deleted back into the buckets; returns how many objects were."""
        files = {(bucket, name): path for bucket, name, path in self._files()}
        changed = [key for key, path in files.items() if self._stamps.get(key) != _stamp(path)]
        for bucket, name in changed:
            self._client.bucket(bucket).blob(name).upload_from_filename(str(files[bucket, name]))
        gone = [key for key in self._generations if key not in files]
        for bucket, name in gone:
            self._delete(bucket, name)
        return len(changed), len(gone)

    def _bring(self, bucket: str, path: Path, blob: Any) -> None:
        if blob.name.endswith("/"):
            path.mkdir(parents=True, exist_ok=True)
            return
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            blob.download_to_filename(str(path))
        except (FileExistsError, NotADirectoryError, IsADirectoryError):
            # "a" and "a/b" are two objects, and cannot be two files.
            return
        self._generations[bucket, blob.name] = blob.generation
        self._stamps[bucket, blob.name] = _stamp(path)

    def _delete(self, bucket: str, name: str) -> None:
        from google.api_core.exceptions import NotFound, PreconditionFailed

        generation = self._generations[bucket, name]
        try:
            self._client.bucket(bucket).blob(name).delete(if_generation_match=generation)
        except (NotFound, PreconditionFailed):
            # Somebody else deleted or replaced it meanwhile: theirs is the newer word.
            return

    def _files(self) -> Iterator[tuple[str, str, Path]]:
        for bucket, directory in self.paths.items():
            for path in sorted(directory.rglob("*")):
                name = path.relative_to(directory)
                if path.is_file() and LEFT_BEHIND not in name.parts and not is_checksum(path):
                    yield bucket, name.as_posix(), path


def is_checksum(path: Path) -> bool:
    """Tell whether a file is one that Hadoop puts beside each of its own on a local disk."""
    return path.name.startswith(".") and path.suffix == ".crc"


def named_buckets(existing: Iterable[str], request: str, files: Iterable[Path]) -> list[str]:
    """Return the buckets whose names stand in a request or in one of its files."""
    said = [request.encode(), *(content for file in files for content in _contents(file))]
    return [bucket for bucket in existing if any(bucket.encode() in content for content in said)]


def _contents(file: Path) -> Iterator[bytes]:
    if not zipfile.is_zipfile(file):
        yield file.read_bytes()
        return
    # What cannot be read names nothing; what uses it will say so.
    with suppress(*UNREADABLE), zipfile.ZipFile(file) as archive:
        yield from (archive.read(member) for member in archive.infolist() if member.file_size <= LARGEST_READ)


def _is_plain(name: str) -> bool:
    parts = PurePosixPath(name).parts
    return not name.startswith("/") and ".." not in parts and "//" not in name and "\0" not in name


def _stamp(path: Path) -> Stamp:
    status = path.stat()
    return status.st_mtime_ns, status.st_size, status.st_ino
