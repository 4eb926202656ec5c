"""The store: which buckets and objects there are, changed only when the conditions on them hold."""

from __future__ import annotations

import json
import sqlite3
import time
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, BinaryIO

from airflow_accel_provider.emulator.storage.conditions import Conditions
from airflow_accel_provider.emulator.storage.contents import Content, Contents
from airflow_accel_provider.emulator.storage.resources import Bucket, StoredObject
from airflow_accel_provider.emulator.storage.uploads import Uploads
from airflow_accel_provider.emulator.wire import GoogleError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from airflow_accel_provider.emulator.database import Database

_TABLES = """
CREATE TABLE IF NOT EXISTS buckets (
  name TEXT PRIMARY KEY, created INTEGER NOT NULL, created_text TEXT NOT NULL, project_number INTEGER NOT NULL,
  settings TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS objects (
  bucket TEXT NOT NULL, name TEXT NOT NULL, generation INTEGER NOT NULL, metageneration INTEGER NOT NULL,
  size INTEGER NOT NULL, crc32c TEXT NOT NULL, md5 TEXT, components INTEGER, content TEXT NOT NULL,
  created TEXT NOT NULL, updated TEXT NOT NULL, fields TEXT NOT NULL, PRIMARY KEY (bucket, name));
"""
ANY = Conditions()


class Buckets:
    """All buckets with their live objects. There are no old versions, and nothing is deleted softly."""

    def __init__(self, database: Database, directory: Path) -> None:
        self._database = database
        for table in _TABLES.split(";"):
            database.execute(table)
        self.contents = Contents(directory)
        self.contents.sweep({row["content"] for row in database.query("SELECT content FROM objects")})
        self.uploads = Uploads(database, directory)

    def create(self, name: str, *, project_number: int, settings: Mapping[str, Any]) -> Bucket:
        """Create a bucket; 409 when there is one of that name."""
        created = time.time_ns() // 1000
        row = (name, created, _now(), project_number, json.dumps(dict(settings)))
        try:
            self._database.execute("INSERT INTO buckets VALUES (?, ?, ?, ?, ?)", row)
        except sqlite3.IntegrityError:
            raise GoogleError(
                409, "Your previous request to create the named bucket succeeded and you already own it."
            ) from None
        return self.bucket(name)

    def bucket(self, name: str) -> Bucket:
        """Return a bucket; 404 when there is none."""
        row = self._database.one("SELECT * FROM buckets WHERE name = ?", (name,))
        if row is None:
            raise GoogleError(404, "The specified bucket does not exist.")
        return _bucket(row)

    def buckets(self, prefix: str = "") -> list[Bucket]:
        """Return the buckets whose names begin with ``prefix``, by name."""
        return [
            bucket
            for bucket in map(_bucket, self._database.query("SELECT * FROM buckets ORDER BY name"))
            if bucket.name.startswith(prefix)
        ]

    def drop(self, name: str) -> None:
        """Delete an empty bucket; 409 when it holds objects."""
        with self._database.transaction():
            self.bucket(name)
            if self._database.one("SELECT 1 FROM objects WHERE bucket = ?", (name,)):
                raise GoogleError(409, "The bucket you tried to delete is not empty.")
            self._database.execute("DELETE FROM buckets WHERE name = ?", (name,))

    def find(self, bucket: str, name: str) -> StoredObject | None:
        """Return an object or None; 404 when there is no such bucket."""
        self.bucket(bucket)
        row = self._database.one("SELECT * FROM objects WHERE bucket = ? AND name = ?", (bucket, name))
        return _object(row) if row else None

    def get(self, bucket: str, name: str, *, generation: int | None = None) -> StoredObject:
        """Return an object; 404 when there is none, or none of that generation."""
        found = self.find(bucket, name)
        if found is None or generation not in (None, found.generation):
            raise GoogleError(404, f"No such object: {bucket}/{name}")
        return found

    def objects(self, bucket: str, prefix: str = "") -> list[StoredObject]:
        """Return the objects whose names begin with ``prefix``, in the order of their names' UTF-8 bytes."""
        self.bucket(bucket)
        # Names are ordered by bytes, so that all that begin with the prefix lie between it and its greatest sequel.
        rows = self._database.query(
            "SELECT * FROM objects WHERE bucket = ? AND name >= ? AND name < ? ORDER BY name",
            (bucket, prefix, prefix + "\U0010ffff"),
        )
        return [_object(row) for row in rows]

    def open(self, found: StoredObject) -> BinaryIO:
        """Open an object's bytes; they stay readable when the object is replaced meanwhile."""
        with self._database.transaction():
            current = self.get(found.bucket, found.name, generation=found.generation)
            return self.contents.path(current.content).open("rb")

    def share(self, found: StoredObject) -> Content:
        """Return an object's bytes as a content of its own."""
        with self._database.transaction():
            current = self.get(found.bucket, found.name, generation=found.generation)
            file = self.contents.share(current.content)
        return Content(file=file, size=found.size, crc32c=found.crc32c, md5=found.md5 or "")

    def read(self, bucket: str, name: str) -> bytes:
        """Return all bytes of an object; 404 when there is none."""
        with self.open(self.get(bucket, name)) as file:
            return file.read()

    def put(
        self,
        bucket: str,
        name: str,
        content: Content,
        *,
        fields: Mapping[str, Any],
        conditions: Conditions = ANY,
        components: int | None = None,
    ) -> StoredObject:
        """Make ``content`` the object of that name if the conditions hold, else discard it and raise 412."""
        try:
            with self._database.transaction():
                replaced = self.find(bucket, name)
                conditions.check(replaced)
                now = _now()
                stored = StoredObject(
                    bucket=bucket,
                    name=name,
                    generation=self._next_generation(),
                    metageneration=1,
                    size=content.size,
                    crc32c=content.crc32c,
                    md5=None if components else content.md5,
                    components=components,
                    content=content.file,
                    created=now,
                    updated=now,
                    fields=fields,
                )
                self._write(stored)
        except GoogleError:
            self.contents.remove(content.file)
            raise
        if replaced:
            self.contents.remove(replaced.content)
        return stored

    def edit(
        self,
        bucket: str,
        name: str,
        change: Callable[[Mapping[str, Any]], Mapping[str, Any]],
        *,
        generation: int | None,
        conditions: Conditions,
    ) -> StoredObject:
        """Change an object's settable fields; its bytes and generation stay, its metageneration rises."""
        with self._database.transaction():
            found = self.get(bucket, name, generation=generation)
            conditions.check(found)
            fields = change(found.fields)
            edited = replace(found, fields=fields, metageneration=found.metageneration + 1, updated=_now())
            self._write(edited)
        return edited

    def delete(self, bucket: str, name: str, *, generation: int | None = None, conditions: Conditions = ANY) -> None:
        """Delete an object if the conditions hold."""
        with self._database.transaction():
            found = self.get(bucket, name, generation=generation)
            conditions.check(found)
            self._database.execute("DELETE FROM objects WHERE bucket = ? AND name = ?", (bucket, name))
        self.contents.remove(found.content)

    def _next_generation(self) -> int:
        row = self._database.one("SELECT MAX(generation) AS newest FROM objects")
        newest = (row["newest"] if row else None) or 0
        return max(newest + 1, time.time_ns() // 1000)

    def _write(self, stored: StoredObject) -> None:
        self._database.execute(
            "INSERT OR REPLACE INTO objects VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                stored.bucket,
                stored.name,
                stored.generation,
                stored.metageneration,
                stored.size,
                stored.crc32c,
                stored.md5,
                stored.components,
                stored.content,
                stored.created,
                stored.updated,
                json.dumps(dict(stored.fields)),
            ),
        )


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _bucket(row: sqlite3.Row) -> Bucket:
    return Bucket(**{**dict(row), "settings": json.loads(row["settings"])})


def _object(row: sqlite3.Row) -> StoredObject:
    return StoredObject(**{**dict(row), "fields": json.loads(row["fields"])})
