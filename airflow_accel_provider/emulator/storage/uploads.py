"""Resumable uploads: objects that arrive in pieces, over several requests and, if need be, several starts."""

from __future__ import annotations

import json
import re
import threading
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airflow_accel_provider.emulator.storage.conditions import Conditions
from airflow_accel_provider.emulator.wire import GoogleError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from airflow_accel_provider.emulator.database import Database

CHUNK_MULTIPLE = 256 * 1024
"""Every chunk but the last is a multiple of this many bytes.

Source: https://cloud.google.com/storage/docs/performing-resumable-uploads (2026-11).
"""

CONTENT_RANGE = re.compile(r"^bytes (?:\*|(?P<first>\d+)-(?P<last>\d+))/(?P<total>\*|\d+)$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """What one request brings: bytes from ``first`` on, and the ``total`` when it is known. Empty data asks."""

    first: int | None
    total: int | None
    data: bytes

    @classmethod
    def of(cls, content_range: str | None, data: bytes) -> Chunk:
        """Read a request's Content-Range; without one, the request brings everything."""
        if content_range is None:
            return cls(first=0, total=len(data), data=data)
        match = CONTENT_RANGE.match(content_range)
        if match is None:
            raise GoogleError(400, f"Failed to parse Content-Range header: {content_range!r}.")
        total = None if match["total"] == "*" else int(match["total"])
        if match["first"] is None:
            return cls(first=None, total=total, data=b"")
        first, last = int(match["first"]), int(match["last"])
        if last - first + 1 != len(data):
            raise GoogleError(400, f"Content-Range {content_range!r} does not fit a body of {len(data)} bytes.")
        return cls(first=first, total=total, data=data)


@dataclass(frozen=True, slots=True, kw_only=True)
class Upload:
    """One upload: where it goes, and what was said when it began. ``done`` is the generation that it became."""

    id: str
    bucket: str
    name: str
    metadata: Mapping[str, Any]
    conditions: Conditions
    done: int | None


class Uploads:
    """The uploads that were begun. One request at a time works on them."""

    def __init__(self, database: Database, directory: Path) -> None:
        self._database = database
        self._directory = directory
        self.lock = threading.RLock()
        database.execute(
            "CREATE TABLE IF NOT EXISTS uploads (id TEXT PRIMARY KEY, bucket TEXT NOT NULL, name TEXT NOT NULL,"
            " metadata TEXT NOT NULL, conditions TEXT NOT NULL, done INTEGER)"
        )

    def begin(self, bucket: str, name: str, *, metadata: Mapping[str, Any], conditions: Conditions) -> str:
        """Begin an upload and return its id, which is also the right to go on with it."""
        upload_id = uuid.uuid4().hex
        self._database.execute(
            "INSERT INTO uploads VALUES (?, ?, ?, ?, ?, NULL)",
            (upload_id, bucket, name, json.dumps(dict(metadata)), json.dumps(conditions.to_json())),
        )
        self.path(upload_id).touch()
        return upload_id

    def get(self, upload_id: str) -> Upload:
        """Return an upload; 404 when it was never begun, or was cancelled."""
        row = self._database.one("SELECT * FROM uploads WHERE id = ?", (upload_id,))
        # A crash while an upload is completed can leave it without its bytes; its client begins anew.
        if row is None or (row["done"] is None and not self.path(upload_id).exists()):
            raise GoogleError(404, "Upload session not found.")
        return Upload(
            id=row["id"],
            bucket=row["bucket"],
            name=row["name"],
            metadata=json.loads(row["metadata"]),
            conditions=Conditions.from_json(json.loads(row["conditions"])),
            done=row["done"],
        )

    def path(self, upload_id: str) -> Path:
        """Return the file that grows with an upload."""
        return self._directory / f"upload-{upload_id}"

    def append(self, upload: Upload, chunk: Chunk) -> int:
        """Add a chunk and return how many bytes are there now; bytes that came before are not taken twice."""
        path = self.path(upload.id)
        received = path.stat().st_size
        if chunk.first is None:
            return received
        if chunk.first > received:
            raise GoogleError(400, f"Invalid request. There were {chunk.first - received} byte(s) missing.")
        is_last = chunk.total is not None and chunk.first + len(chunk.data) >= chunk.total
        if not is_last and len(chunk.data) % CHUNK_MULTIPLE:
            raise GoogleError(400, f"Invalid request. Chunks must be a multiple of {CHUNK_MULTIPLE} bytes.")
        with path.open("ab") as file:
            file.write(chunk.data[received - chunk.first :])
            return file.tell()

    def finish(self, upload: Upload, generation: int) -> None:
        """Remember what an upload became, for a client that didn't get the answer."""
        self._database.execute("UPDATE uploads SET done = ? WHERE id = ?", (generation, upload.id))

    def cancel(self, upload: Upload) -> None:
        """Forget an upload."""
        self.path(upload.id).unlink(missing_ok=True)
        self._database.execute("DELETE FROM uploads WHERE id = ?", (upload.id,))
