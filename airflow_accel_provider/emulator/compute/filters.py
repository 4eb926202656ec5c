"""The part of Compute Engine's list filter language that finds VMs by label, status, name and zone.

Terms joined by AND (or put side by side in brackets): ``field = value``, ``field != value``, ``field:value`` (contains,
or ``*`` for "is set"), and the older ``field eq regex`` and ``field ne regex``, which match the whole value.
Reference: https://cloud.google.com/compute/docs/reference/rest/v1/instances/list (read 2026-11-29).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from airflow_accel_provider.emulator.wire import GoogleError

Predicate = Callable[[Mapping[str, Any]], bool]

_TERM = re.compile(
    r"""\s*\(?\s*
    (?P<field>[A-Za-z][\w.-]*)
    (?:\s*(?P<operator>!=|=|:)\s*|\s+(?P<word>eq|ne)\s+)
    (?P<value>"[^"]*"|'[^']*'|[^\s()]+)
    (?:\s*\))?""",
    re.VERBOSE,
)
_JOINT = re.compile(r"\s+AND\s+|\s*(?=\()")


def parse_filter(text: str | None) -> Predicate:
    """Return what tells whether a resource (as JSON) passes a filter; an empty filter passes everything.

    Raises GoogleError 400 for what it cannot read.
    """
    terms: list[Predicate] = []
    rest = (text or "").strip()
    while rest:
        match = _TERM.match(rest)
        if not match:
            raise GoogleError(400, f"Invalid value for field 'filter': '{text}'. Invalid list filter expression.")
        terms.append(_term(match["field"], match["operator"] or match["word"], match["value"].strip("\"'")))
        rest = rest[match.end() :]
        joint = _JOINT.match(rest)
        if rest and not joint:
            raise GoogleError(400, f"Invalid value for field 'filter': '{text}'. Invalid list filter expression.")
        rest = rest[joint.end() :] if joint else ""
    return lambda resource: all(term(resource) for term in terms)


def _term(field: str, operator: str, value: str) -> Predicate:
    tests: Mapping[str, Callable[[str | None], bool]] = {
        "=": lambda found: found == value,
        "!=": lambda found: found != value,
        ":": lambda found: found is not None and (value == "*" or value.lower() in found.lower()),
        "eq": lambda found: found is not None and bool(re.fullmatch(value, found)),
        "ne": lambda found: found is None or not re.fullmatch(value, found),
    }
    if operator in {"eq", "ne"}:
        try:
            re.compile(value)
        except re.error:
            raise GoogleError(400, f"Invalid value for field 'filter': '{value}' is no regular expression.") from None
    return lambda resource: tests[operator](_find(resource, field))


def _find(resource: Mapping[str, Any], field: str) -> str | None:
    head, _, tail = field.partition(".")
    value = resource.get(head)
    if tail and isinstance(value, Mapping):
        return _find(value, tail)
    return None if value is None or tail else str(value)
