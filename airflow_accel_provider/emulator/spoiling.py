"""Answers that are carried out well and told badly: without some fields, with others' values, at another time."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from airflow_accel_provider.emulator.ledger import rfc3339

OPTIONAL = "optional"
"""Stands for the names of all fields but those by which things are found."""

_IDENTITY = frozenset({"id", "name", "location", "nextPageToken"})
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")


def spoiled(
    answer: Mapping[str, Any],
    *,
    missing: list[str] | str | None = None,
    instead: Mapping[str, Any] | None = None,
    skew: float = 0.0,
) -> dict[str, Any]:
    """Return an answer without fields, with other values in fields that it has, and with its times moved.

    ``missing`` and ``instead`` name fields at any depth; ``missing`` may be :data:`OPTIONAL`. ``skew`` is in seconds.
    """
    told = _without(answer, missing) if missing else dict(answer)
    moved: dict[str, Any] = _mapped(_replaced(told, instead or {}), timedelta(seconds=skew))
    return moved


def _without(value: Any, missing: list[str] | str) -> Any:
    if isinstance(value, list):
        return [_without(each, missing) for each in value]
    if not isinstance(value, Mapping):
        return value
    return {name: _without(each, missing) for name, each in value.items() if not _is_missing(name, each, missing)}


def _is_missing(name: str, value: Any, missing: list[str] | str) -> bool:
    if missing == OPTIONAL:
        return name not in _IDENTITY and not _holds_objects(value)
    return name in missing


def _holds_objects(value: Any) -> bool:
    """Tell whether there are things in it that have a name or an id of their own."""
    if isinstance(value, list):
        return any(_holds_objects(each) for each in value)
    if isinstance(value, Mapping):
        return bool({"id", "name"} & value.keys()) or any(_holds_objects(each) for each in value.values())
    return False


def _replaced(value: Any, instead: Mapping[str, Any]) -> Any:
    if isinstance(value, list):
        return [_replaced(each, instead) for each in value]
    if not isinstance(value, Mapping):
        return value
    return {name: instead[name] if name in instead else _replaced(each, instead) for name, each in value.items()}


def _mapped(value: Any, by: timedelta) -> Any:
    if not by:
        return value
    if isinstance(value, list):
        return [_mapped(each, by) for each in value]
    if isinstance(value, Mapping):
        return {name: _mapped(each, by) for name, each in value.items()}
    if isinstance(value, str) and _TIME.fullmatch(value):
        return rfc3339(datetime.fromisoformat(value) + by)
    return value
