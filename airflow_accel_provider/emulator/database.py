"""The one SQLite file that everything the emulator remembers lives in."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

Parameters = Sequence[Any] | Mapping[str, Any]


class Database:
    """SQLite that any thread may use: one connection behind one lock.

    Every statement outside ``transaction()`` commits by itself. Rows can be read by column name.
    """

    def __init__(self, path: Path) -> None:
        self._lock = threading.RLock()
        self.connection = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
        self.connection.row_factory = sqlite3.Row
        self.connection.execute("PRAGMA journal_mode=WAL")
        # A power cut may cost the last moments; a crash of the process costs nothing.
        self.connection.execute("PRAGMA synchronous=NORMAL")

    def execute(self, sql: str, parameters: Parameters = ()) -> sqlite3.Cursor:
        """Run one statement; the cursor tells ``rowcount`` and ``lastrowid``."""
        with self._lock:
            return self.connection.execute(sql, parameters)

    def query(self, sql: str, parameters: Parameters = ()) -> list[sqlite3.Row]:
        """Return all rows of one statement."""
        with self._lock:
            return self.connection.execute(sql, parameters).fetchall()

    def one(self, sql: str, parameters: Parameters = ()) -> sqlite3.Row | None:
        """Return the first row of one statement, or None."""
        rows = self.query(sql, parameters)
        return rows[0] if rows else None

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Make several statements one; no other thread reads or writes in between. Nests."""
        with self._lock:
            if self.connection.in_transaction:
                yield
                return
            self.connection.execute("BEGIN IMMEDIATE")
            try:
                yield
            except BaseException:
                self.connection.execute("ROLLBACK")
                raise
            self.connection.execute("COMMIT")

    def close(self) -> None:
        """Close the file; later statements fail."""
        with self._lock:
            self.connection.close()
