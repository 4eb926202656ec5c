"""Brings what a batch names to where it runs: its program into a directory of its own, files beside it."""

from __future__ import annotations

import lzma
import shutil
import tarfile
import zipfile
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from airflow_accel_provider.emulator.dataproc.submission import Files

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

MOST_BYTES = 8 * 2**30
"""The most that an archive may hold once it is unpacked; an environment of Python is rarely half of it."""
MOST_MEMBERS = 500_000
"""The most files and directories of an archive."""
UNREADABLE = (
    *(shutil.ReadError, tarfile.TarError, zipfile.BadZipFile),
    # Cut off, damaged, or zipped with a password or in a way that is not known.
    *(EOFError, zlib.error, lzma.LZMAError, RuntimeError),
)
"""What reading an archive may raise that is none, or not a whole one."""

_MAINS = ("mainPythonFileUri", "mainJarFileUri", "queryFileUri")


class FileNotThereError(Exception):
    """A file that a batch names cannot be read."""


def fetch(request: Mapping[str, Any], client: Any, directory: Path) -> Files:
    """Fetch all that a batch names into a directory, which Spark then works in. Raises FileNotThereError."""
    batch = next(request[kind] for kind in ("pysparkBatch", "sparkBatch", "sparkSqlBatch") if kind in request)
    main = next((batch[name] for name in _MAINS if batch.get(name)), None)

    def each(uris: Iterable[str]) -> list[Path]:
        return [_fetch(uri, client, directory) for uri in uris]

    for uri in batch.get("archiveUris", ()):
        _unpack(uri, client, directory)
    return Files(
        main=_fetch(main, client, directory) if main else None,
        python=each(batch.get("pythonFileUris", ())),
        jars=each(batch.get("jarFileUris", ())),
        files=each(batch.get("fileUris", ())),
    )


def _unpack(uri: str, client: Any, directory: Path) -> None:
    """Unpack an archive into a directory that has its name, or the one behind its ``#``."""
    plain, _, alias = uri.partition("#")
    packed = directory / "archives"
    packed.mkdir(exist_ok=True)
    path = _fetch(plain, client, packed)
    target = directory / _name(alias or path.name)
    try:
        is_tar = tarfile.is_tarfile(path)
        _check_size(_sizes_of_tar(path) if is_tar else _sizes_of_zip(path))
        if is_tar:
            shutil.unpack_archive(path, target, "tar", filter="data")
        else:
            # A jar is a zip.
            shutil.unpack_archive(path, target, "zip")
    except (*UNREADABLE, _TooLargeError) as error:
        raise FileNotThereError(f"java.io.IOException: Cannot unpack {uri}: {error}") from error


class _TooLargeError(Exception):
    """An archive holds more than is unpacked here."""


def _sizes_of_tar(path: Path) -> Iterator[int]:
    with tarfile.open(path) as archive:
        yield from (member.size for member in archive)


def _sizes_of_zip(path: Path) -> Iterator[int]:
    with zipfile.ZipFile(path) as archive:
        yield from (member.file_size for member in archive.infolist())


def _check_size(sizes: Iterable[int]) -> None:
    """Raise _TooLargeError once members, which hold what they say at most, are too large together, or too many."""
    total = 0
    for number, size in enumerate(sizes, 1):
        total += size
        if total > MOST_BYTES or number > MOST_MEMBERS:
            raise _TooLargeError(f"it holds more than {MOST_MEMBERS:,} files or {MOST_BYTES:,} bytes")


def _name(path: str) -> str:
    """Return the last part of a path, where that names a file or a directory inside another."""
    name = Path(path).name
    if name in {"", ".."} or "\0" in name:
        raise FileNotThereError(f"java.io.FileNotFoundException: {path!r} names no file")
    return name


def _fetch(uri: str, client: Any, directory: Path) -> Path:
    from google.api_core.exceptions import GoogleAPICallError

    parts = urlsplit(uri)
    if parts.scheme in {"", "file", "local"}:
        path = Path(unquote(parts.path))
        if not path.is_file():
            raise FileNotThereError(f"java.io.FileNotFoundException: File not found: {uri}")
        return path
    if parts.scheme != "gs":
        raise FileNotThereError(f"java.io.IOException: The emulator reads gs:// and file://, not {uri}")
    # A name is a file's name; nothing is written outside the directory.
    path = directory / _name(parts.path)
    try:
        client.bucket(parts.netloc).blob(parts.path.lstrip("/")).download_to_filename(str(path))
    except GoogleAPICallError:
        path.unlink(missing_ok=True)
        raise FileNotThereError(f"java.io.FileNotFoundException: File not found: {uri}") from None
    return path
