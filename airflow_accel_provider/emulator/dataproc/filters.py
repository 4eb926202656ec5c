"""The filter language of ``batches.list``: comparisons joined by AND and OR, where OR binds the closer.

Fields: batch_id, batch_uuid, state, create_time, labels.KEY, runtime_info.cohort_info.cohort. Source: Dataproc API v1,
discovery document, and https://google.aip.dev/160.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING

from airflow_accel_provider.emulator.wire import GoogleError

if TYPE_CHECKING:
    from airflow_accel_provider.emulator.dataproc.batches import Batch

Predicate = Callable[["Batch"], bool]

_TERM = re.compile(
    r"""\s*(?P<field>[A-Za-z_][\w.-]*)\s*(?P<operator>!=|<=|>=|=|<|>|:)\s*(?P<value>"[^"]*"|'[^']*'|[^\s()"']+)\s*"""
)
_FIELDS: Mapping[str, Callable[[Batch], str]] = {
    "batch_id": lambda batch: batch.id,
    "batch_uuid": lambda batch: batch.uuid,
    "state": lambda batch: batch.state,
    "create_time": lambda batch: batch.created,
    "runtime_info.cohort_info.cohort": lambda batch: str(batch.request.get("runtimeConfig", {}).get("cohort", "")),
}
_ORDER: Mapping[str, Callable[[datetime, datetime], bool]] = {
    "<": lambda left, right: left < right,
    "<=": lambda left, right: left <= right,
    ">": lambda left, right: left > right,
    ">=": lambda left, right: left >= right,
    "=": lambda left, right: left == right,
    "!=": lambda left, right: left != right,
}


def parse_filter(text: str | None) -> Predicate:
    """Return what tells whether a batch passes a filter; an empty filter passes everything.

    Raises GoogleError 400 for what it cannot read.
    """
    whole = (text or "").strip()
    if not whole:
        return lambda _: True
    every = [
        [_term(piece, whole) for piece in re.split(r"\s+OR\s+", part)]
        for part in re.split(r"\s+AND\s+", whole, flags=re.IGNORECASE)
    ]
    return lambda batch: all(any(term(batch) for term in some) for some in every)


def _term(piece: str, whole: str) -> Predicate:
    match = _TERM.fullmatch(piece)
    if match is None:
        raise GoogleError(400, f"Invalid filter '{whole}': '{piece}' is not a comparison.")
    field, operator, value = match["field"], match["operator"], match["value"].strip("\"'")
    if field.startswith("labels."):
        return _label_term(field.removeprefix("labels."), operator, value, whole)
    read = _FIELDS.get(field)
    if read is None:
        known = ", ".join((*_FIELDS, "labels.KEY"))
        raise GoogleError(400, f"Invalid filter '{whole}': unsupported field '{field}'; there are {known}.")
    if field == "create_time":
        return _time_term(operator, value, whole)
    if operator not in {"=", ":", "!="}:
        raise GoogleError(400, f"Invalid filter '{whole}': '{operator}' cannot be used with '{field}'.")
    return lambda batch: (read(batch) == value) == (operator != "!=")


def _label_term(key: str, operator: str, value: str, whole: str) -> Predicate:
    if operator not in {"=", ":", "!="}:
        raise GoogleError(400, f"Invalid filter '{whole}': '{operator}' cannot be used with a label.")
    if value == "*":
        return lambda batch: key in batch.request.get("labels", {})
    return lambda batch: (batch.request.get("labels", {}).get(key) == value) == (operator != "!=")


def _time_term(operator: str, value: str, whole: str) -> Predicate:
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None or operator not in _ORDER:
        raise GoogleError(400, f"Invalid filter '{whole}': create_time is compared with an RFC 3339 time.")
    return lambda batch: _ORDER[operator](datetime.fromisoformat(batch.created), moment)
