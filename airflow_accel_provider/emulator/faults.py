"""Faults: wishes that the next calls of one API method go wrong, counted, and readable afterwards."""

from __future__ import annotations

import difflib
import json
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from airflow_accel_provider.emulator.spoiling import OPTIONAL
from airflow_accel_provider.emulator.wire import GoogleError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from airflow_accel_provider.emulator.database import Database


LONGEST_DELAY = 3600
LONGEST_SKEW = 7 * 24 * 3600


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """What goes wrong.

    ``status`` answers with that HTTP status and the call is not carried out; ``retry_after`` (seconds), ``message`` and
    ``html`` (a body in place of Google's JSON) belong to it. ``reset`` cuts the connection ``before`` or ``after`` the
    call is carried out. ``delay`` waits that many real seconds first. ``truncate`` carries the call out and sends half
    of the answer. The last three carry it out and spoil what is told: ``missing`` names fields that are left out, at
    any depth (``optional``: all but ids, names and what leads to them), ``instead`` gives fields that are there another
    value, ``skew`` moves all times by so many seconds.
    """

    status: int | None = None
    retry_after: int | None = None
    message: str | None = None
    html: str | None = None
    reset: str | None = None
    delay: float | None = None
    truncate: bool = False
    missing: list[str] | str | None = None
    instead: dict[str, Any] | None = None
    skew: float = 0.0

    @property
    def told(self) -> dict[str, Any]:
        """Return the action as it was asked for."""
        return {item.name: value for item in fields(self) if (value := getattr(self, item.name)) not in (None, False)}


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


_DEEDS = ("status", "reset", "delay", "truncate", "missing", "instead", "skew")


def _action_problems(action: object) -> list[str]:
    if not isinstance(action, dict):
        return ["action is not an object"]
    names = tuple(item.name for item in fields(Action))
    problems = [f"unknown action {name!r} (there are: {', '.join(names)})" for name in action if name not in names]
    for name, (words, fits) in _KINDS.items():
        if action.get(name) is not None and not fits(action[name]):
            problems.append(f"action.{name} {action[name]!r} is not {words}")
    if not any(action.get(name) is not None for name in _DEEDS):
        problems.append(f"action needs one of {', '.join(_DEEDS)}")
    if action.get("status") is None and any(
        action.get(name) is not None for name in ("retry_after", "message", "html")
    ):
        problems.append("action.retry_after, message and html belong to a status")
    return problems


def _is_seconds(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= LONGEST_DELAY


def _is_fields(value: object) -> bool:
    return value == OPTIONAL or (isinstance(value, list) and bool(value) and all(map(_is_text, value)))


def _is_shift(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= LONGEST_SKEW


def _is_text(value: object) -> bool:
    return isinstance(value, str)


_KINDS: Mapping[str, tuple[str, Callable[[object], bool]]] = {
    "status": ("an HTTP error status (400 to 599)", lambda value: type(value) is int and 400 <= value <= 599),
    "retry_after": (f"a number of seconds up to {LONGEST_DELAY}", _is_seconds),
    "message": ("a text", _is_text),
    "html": ("a text", _is_text),
    "reset": ("'before' or 'after'", lambda value: value in ("before", "after")),
    "delay": (f"a number of seconds up to {LONGEST_DELAY}", _is_seconds),
    "truncate": ("true or false", lambda value: isinstance(value, bool)),
    "missing": (f"a list of fields' names or {OPTIONAL!r}", _is_fields),
    "instead": ("an object of fields and their values", lambda value: isinstance(value, dict) and bool(value)),
    "skew": (f"a number of seconds up to {LONGEST_SKEW}, ahead or (negative) behind", _is_shift),
}
