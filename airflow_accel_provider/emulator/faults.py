"""Faults: wishes that the next calls of one API method go wrong, counted, and readable afterwards."""

from __future__ import annotations

import difflib
import json
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from airflow_accel_provider.emulator.wire import GoogleError

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from airflow_accel_provider.emulator.database import Database


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """What goes wrong.

    ``status`` answers with that HTTP status and the call is not carried out; ``retry_after`` (seconds), ``message`` and
    ``html`` (a body in place of Google's JSON) belong to it. ``reset`` cuts the connection ``before`` or ``after`` the
    call is carried out. ``delay`` waits that many real seconds first. ``truncate`` carries the call out and sends half
    of the answer.
    """

    status: int | None = None
    retry_after: int | None = None
    message: str | None = None
    html: str | None = None
    reset: str | None = None
    delay: float | None = None
    truncate: bool = False

    def problems(self) -> list[str]:
        """Return what is wrong with this action, in words."""
        found = []
        if self.status is None and self.reset is None and self.delay is None and not self.truncate:
            found.append("action needs one of status, reset, delay, truncate")
        if self.status is not None and not (_is_number(self.status) and 400 <= self.status <= 599):
            found.append(f"action.status {self.status!r} is not an HTTP error status (400 to 599)")
        if self.status is None and (self.retry_after or self.message or self.html):
            found.append("action.retry_after, message and html belong to a status")
        for name, value in (("message", self.message), ("html", self.html)):
            if not isinstance(value, str | None):
                found.append(f"action.{name} {value!r} is not a text")
        if not isinstance(self.retry_after, int | None):
            found.append(f"action.retry_after {self.retry_after!r} is not a number of seconds")
        if self.reset not in (None, "before", "after"):
            found.append(f"action.reset {self.reset!r} is neither 'before' nor 'after'")
        if self.delay is not None and not (_is_number(self.delay) and self.delay >= 0):
            found.append(f"action.delay {self.delay!r} is not a number of seconds")
        return found


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


class Faults:
    """The faults that were asked for, kept in the database so that they survive a restart."""

    def __init__(self, database: Database) -> None:
        self._database = database
        database.execute(
            "CREATE TABLE IF NOT EXISTS faults (id INTEGER PRIMARY KEY AUTOINCREMENT, method TEXT NOT NULL,"
            " times INTEGER NOT NULL, used INTEGER NOT NULL DEFAULT 0, action TEXT NOT NULL)"
        )

    def add(self, wish: Mapping[str, Any], *, methods: Collection[str]) -> dict[str, Any]:
        """Arm one fault and return it; a malformed wish is one error that names everything wrong with it."""
        method, times, action = wish.get("method"), wish.get("times", 1), wish.get("action")
        problems = [f"unknown field {name!r}" for name in sorted(set(wish) - {"method", "times", "action"})]
        if not isinstance(method, str) or method not in methods:
            near = difflib.get_close_matches(str(method), methods, n=1, cutoff=0.4)
            problems.append(f"method {method!r} is not an API method here" + (f", {near[0]!r} is" if near else ""))
        if not isinstance(times, int) or isinstance(times, bool) or times < 1:
            problems.append(f"times {times!r} is not a positive whole number")
        problems += _action_problems(action)
        if problems:
            raise GoogleError(400, "Bad fault: " + "; ".join(problems) + ".")
        cursor = self._database.execute(
            "INSERT INTO faults (method, times, action) VALUES (?, ?, ?)", (method, times, json.dumps(action))
        )
        return next(fault for fault in self.all() if fault["id"] == cursor.lastrowid)

    def take(self, method: str) -> Action | None:
        """Use up one count of the oldest armed fault of a method, and return what goes wrong."""
        with self._database.transaction():
            row = self._database.one(
                "SELECT id, action FROM faults WHERE method = ? AND used < times ORDER BY id LIMIT 1", (method,)
            )
            if row is None:
                return None
            self._database.execute("UPDATE faults SET used = used + 1 WHERE id = ?", (row["id"],))
            return Action(**json.loads(row["action"]))

    def all(self) -> list[dict[str, Any]]:
        """Return every fault with how often it was used."""
        rows = self._database.query("SELECT * FROM faults ORDER BY id")
        return [{**dict(row), "action": json.loads(row["action"])} for row in rows]

    def clear(self) -> None:
        """Disarm and forget all faults."""
        self._database.execute("DELETE FROM faults")


def _action_problems(action: object) -> list[str]:
    if not isinstance(action, dict):
        return ["action is not an object"]
    names = [item.name for item in fields(Action)]
    unknown = sorted(set(action) - set(names))
    problems = [f"unknown action {name!r} (there are: {', '.join(names)})" for name in unknown]
    return problems + Action(**{name: value for name, value in action.items() if name in names}).problems()
