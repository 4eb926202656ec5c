"""The ledger: every API call that was made and everything that happened because of it, in one order."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow_accel_provider.emulator.database import Database

# Query parameters that authorise: a ledger that people paste into tickets must not hold them.
SECRET_PARAMETERS = frozenset({"access_token", "oauth_token", "key", "upload_id", "assertion"})


def rfc3339(moment: datetime) -> str:
    """Return a time as Google's APIs write it, in UTC with microseconds."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


class Ledger:
    """Calls and events with one rising sequence number.

    Bodies are never recorded, and of tokens only the principal they stand for.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        database.execute(
            "CREATE TABLE IF NOT EXISTS ledger (seq INTEGER PRIMARY KEY AUTOINCREMENT, time TEXT NOT NULL,"
            " entry TEXT NOT NULL, name TEXT NOT NULL, fields TEXT NOT NULL)"
        )

    def call(
        self,
        method: str,
        *,
        path: Mapping[str, str],
        query: Mapping[str, tuple[str, ...]],
        principal: str | None,
        status: int,
    ) -> None:
        """Record one answered call; ``status`` is the HTTP status, 0 for a connection that was cut."""
        shown = {name: list(values) for name, values in query.items() if name not in SECRET_PARAMETERS}
        fields = {"path": dict(path), "query": shown, "principal": principal, "status": status}
        self._append("call", method, fields)

    def event(self, kind: str, **fields: Any) -> None:
        """Record something that happened, such as a job's change of state; fields must be plain JSON."""
        self._append("event", kind, fields)

    def calls(self, *, method: str | None = None, since: int = 0) -> list[dict[str, Any]]:
        """Return the calls after sequence number ``since``, oldest first."""
        return self._read("call", "method", name=method, since=since)

    def events(self, *, kind: str | None = None, since: int = 0) -> list[dict[str, Any]]:
        """Return the events after sequence number ``since``, oldest first."""
        return self._read("event", "kind", name=kind, since=since)

    def last(self) -> int:
        """Return the newest sequence number; what comes later has a greater one."""
        row = self._database.one("SELECT MAX(seq) AS seq FROM ledger")
        return int(row["seq"] or 0) if row else 0

    def _append(self, entry: str, name: str, fields: Mapping[str, Any]) -> None:
        self._database.execute(
            "INSERT INTO ledger (time, entry, name, fields) VALUES (?, ?, ?, ?)",
            (rfc3339(datetime.now(UTC)), entry, name, json.dumps(fields)),
        )

    def _read(self, entry: str, name_key: str, *, name: str | None, since: int) -> list[dict[str, Any]]:
        rows = self._database.query(
            "SELECT * FROM ledger WHERE entry = ? AND seq > ? AND (? IS NULL OR name = ?) ORDER BY seq",
            (entry, since, name, name),
        )
        return [
            {"seq": row["seq"], "time": row["time"], name_key: row["name"], **json.loads(row["fields"])} for row in rows
        ]
