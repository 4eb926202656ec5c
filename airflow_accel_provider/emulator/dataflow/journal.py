"""What a job says while it runs: its messages and autoscaling events."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from airflow_accel_provider.emulator.database import Database

IMPORTANCES = (
    "JOB_MESSAGE_DEBUG",
    "JOB_MESSAGE_DETAILED",
    "JOB_MESSAGE_BASIC",
    "JOB_MESSAGE_WARNING",
    "JOB_MESSAGE_ERROR",
)
"""From the least important to the most."""

IMPORTANCE_NUMBERS = {1: IMPORTANCES[0], 2: IMPORTANCES[1], 5: IMPORTANCES[2], 3: IMPORTANCES[3], 4: IMPORTANCES[4]}
"""As the protocol numbers them: not in their order."""


class Journal:
    """The messages and events of all jobs, each in the order in which they were written."""

    def __init__(self, database: Database) -> None:
        self._database = database
        database.execute(
            "CREATE TABLE IF NOT EXISTS dataflow_journal (seq INTEGER PRIMARY KEY AUTOINCREMENT,"
            " job_id TEXT NOT NULL, kind TEXT NOT NULL, time TEXT NOT NULL, body TEXT NOT NULL)"
        )
        database.execute("CREATE INDEX IF NOT EXISTS dataflow_journal_job ON dataflow_journal (job_id, kind)")

    def say(self, job_id: str, importance: str, text: str, *, time: str) -> None:
        """Write a message; ``importance`` is the last word of its name (``ERROR``)."""
        body = {"messageImportance": f"JOB_MESSAGE_{importance}", "messageText": text}
        self._write(job_id, "message", time, body)

    def scale(self, job_id: str, event: str, *, current: int, target: int, pool: str, text: str, time: str) -> None:
        """Write an autoscaling event."""
        body = {
            "eventType": event,
            "currentNumWorkers": str(current),
            "targetNumWorkers": str(target),
            "workerPool": pool,
            "description": {"messageText": text},
        }
        self._write(job_id, "event", time, body)

    def messages(self, job_id: str) -> list[dict[str, Any]]:
        """Return a job's messages, oldest first."""
        return [
            {"id": f"JOB_MESSAGE_{number}", "time": row["time"], **json.loads(row["body"])}
            for number, row in enumerate(self._read(job_id, "message"), start=1)
        ]

    def events(self, job_id: str) -> list[dict[str, Any]]:
        """Return a job's autoscaling events, oldest first."""
        return [{"time": row["time"], **json.loads(row["body"])} for row in self._read(job_id, "event")]

    def _write(self, job_id: str, kind: str, time: str, body: dict[str, Any]) -> None:
        self._database.execute(
            "INSERT INTO dataflow_journal (job_id, kind, time, body) VALUES (?, ?, ?, ?)",
            (job_id, kind, time, json.dumps(body)),
        )

    def _read(self, job_id: str, kind: str) -> list[Any]:
        return self._database.query(
            "SELECT time, body FROM dataflow_journal WHERE job_id = ? AND kind = ? ORDER BY seq", (job_id, kind)
        )
