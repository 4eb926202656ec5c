"""The bytes of objects, in files that never change once they are in place."""

from __future__ import annotations

import base64
import hashlib
import os
import shutil
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO

import google_crc32c

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

PIECE = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """A stored content: its file's name, its size in bytes and its digests in Google's base64 form."""

    file: str
    size: int
    crc32c: str
    md5: str


class Contents:
    """A directory of contents and of uploads that are still growing. File names say nothing about objects."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        directory.mkdir(parents=True, exist_ok=True)

    def path(self, file: str) -> Path:
        """Return where a content lies."""
        return self._directory / file

    def save(self, data: bytes) -> Content:
        """Store bytes."""
        path = self._new()
        path.write_bytes(data)
        return _measured(path)

    def join(self, sources: Iterable[BinaryIO]) -> Content:
        """Store the concatenation of what open files hold, and close them."""
        path = self._new()
        with path.open("wb") as target:
            for source in sources:
                with source:
                    shutil.copyfileobj(source, target, PIECE)
        return _measured(path)

    def adopt(self, grown: Path) -> Content:
        """Store a file by taking it over."""
        path = self._new()
        grown.replace(path)
        return _measured(path)

    def share(self, file: str) -> str:
        """Return a second name for a content, to be removed on its own."""
        path = self._new()
        os.link(self.path(file), path)
        return path.name

    def remove(self, file: str) -> None:
        """Remove a content; who is reading it can finish."""
        self.path(file).unlink(missing_ok=True)

    def sweep(self, keep: set[str]) -> None:
        """Remove what a crash left behind: contents that no object names."""
        for path in self._directory.glob("content-*"):
            if path.name not in keep:
                path.unlink()

    def _new(self) -> Path:
        return self._directory / f"content-{uuid.uuid4().hex}"


def _measured(path: Path) -> Content:
    md5, crc32c, size = hashlib.md5(usedforsecurity=False), 0, 0
    with path.open("rb") as file:
        while piece := file.read(PIECE):
            md5.update(piece)
            crc32c = google_crc32c.extend(crc32c, piece)
            size += len(piece)
    return Content(
        file=path.name,
        size=size,
        crc32c=base64.b64encode(crc32c.to_bytes(4)).decode(),
        md5=base64.b64encode(md5.digest()).decode(),
    )
