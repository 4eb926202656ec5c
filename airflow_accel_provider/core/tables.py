"""The form of the catalogue's tables, and how rows of a later table add to those before it or override them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any

from airflow_accel_provider.core.locations import is_zone
from airflow_accel_provider.core.problems import nearest

Key = tuple[Any, ...]
Rows = Mapping[str, Mapping[Key, Any]]
"""Rows by table, then by key; where a table maps names to values, a row is the value."""


class CatalogError(ValueError):
    """Tables that cannot be read; the message names everything that is wrong."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Where rows are from, and the day (ISO 8601) on which they were read."""

    name: str
    source: str
    date: str
    rows: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """What a cell may hold."""

    said: str
    fits: Callable[[Any], bool]


_TEXT = Kind(said="a text", fits=lambda value: isinstance(value, str) and bool(value))
_NUMBER = Kind(said="a number", fits=lambda value: _is_number(value) and value >= 0)
_WHOLE = Kind(said="a whole number", fits=lambda value: _is_number(value) and value >= 0 and int(value) == value)
_FLAG = Kind(said="true or false", fits=lambda value: isinstance(value, bool))
_TEXTS = Kind(said="a list of texts", fits=lambda value: isinstance(value, list) and all(map(_TEXT.fits, value)))
_ZONES = Kind(
    said="a list of zones such as us-central1-a",
    fits=lambda value: _TEXTS.fits(value) and all(map(is_zone, value)),
)
_PROVISIONING = Kind(said="standard or preemptible", fits=lambda value: value in ("standard", "preemptible"))
_NAMED = Kind(
    said="an object of texts", fits=lambda value: isinstance(value, Mapping) and all(map(_TEXT.fits, value.values()))
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """What a table looks like.

    It is a list of rows with ``required`` and ``optional`` columns (an optional cell may be null), a row known by the
    columns in ``key``; or, where ``value`` is given, an object that maps names to values.
    """

    key: tuple[str, ...] = ()
    required: Mapping[str, Kind] = field(default_factory=dict)
    optional: Mapping[str, Kind] = field(default_factory=dict)
    value: Kind | None = None


FORMS: Mapping[str, Form] = {
    "accelerators": Form(
        key=("type",),
        required={"type": _TEXT, "memory_gb": _NUMBER},
        optional={"minimum_beam": _TEXT, "advised_beam": _TEXT, "minimum_driver": _WHOLE},
    ),
    "tpu_types": Form(key=("type",), required={"type": _TEXT, "compute_name": _TEXT, "generation": _TEXT}),
    "tpu_slices": Form(
        key=("type", "topology"),
        required={"type": _TEXT, "topology": _TEXT, "machine_type": _TEXT, "chips": _WHOLE, "environment": _NAMED},
    ),
    "tpu_environment": Form(value=_TEXT),
    "machines": Form(
        key=("name",),
        required={"name": _TEXT, "vcpus": _WHOLE, "memory_gb": _NUMBER},
        optional={"accelerator": _TEXT, "count": _WHOLE, "on_demand": _FLAG, "on_dataflow": _FLAG, "note": _TEXT},
    ),
    "families": Form(value=_TEXT),
    "n1_hosts": Form(
        key=("type", "count", "zone"),
        required={"type": _TEXT, "count": _WHOLE, "max_vcpus": _WHOLE, "max_memory_gb": _NUMBER},
        optional={"zone": _TEXT},
    ),
    "names": Form(key=("name",), required={"name": _TEXT, "meant": _TEXT, "why": _TEXT}),
    "quotas": Form(
        key=("type", "provisioning"),
        required={"type": _TEXT, "provisioning": _PROVISIONING, "unit": _TEXT, "dimensions": _NAMED},
        optional={"metric": _TEXT, "quota_id": _TEXT},
    ),
    "zones": Form(value=_ZONES),
    "documented_zones": Form(value=_ZONES),
    "machine_zones": Form(value=_ZONES),
    "regions": Form(value=_TEXTS),
    "prices": Form(
        key=("accelerator", "count", "machine_type", "region"),
        required={"accelerator": _TEXT, "count": _WHOLE, "machine_type": _TEXT, "region": _TEXT, "doubts": _TEXTS},
        optional={"low": _NUMBER, "high": _NUMBER, "spot_low": _NUMBER, "spot_high": _NUMBER},
    ),
    "rates": Form(
        key=("service", "item"),
        required={"service": _TEXT, "item": _TEXT, "unit": _TEXT, "usd": _NUMBER, "region": _TEXT, "doubts": _TEXTS},
    ),
}
"""Every table there is."""


def fold(tables: Iterable[Table]) -> Rows:
    """Return all rows. A later table's row of the same key overrides the columns that it names."""
    rows: dict[str, dict[Key, Any]] = {name: {} for name in FORMS}
    for table in tables:
        into = rows[table.name]
        for key, row in rows_of(table):
            before = into.get(key, {})
            into[key] = {**before, **row} if FORMS[table.name].value is None else row
    return rows


def rows_of(table: Table) -> Iterator[tuple[Key, Any]]:
    """Yield the rows of one table with their keys."""
    form = FORMS[table.name]
    if form.value:
        for name, value in table.rows.items():
            yield (name,), value
    else:
        for row in table.rows:
            yield tuple(row.get(column) for column in form.key), row


def read_overlay(value: Any) -> tuple[Table, ...]:
    """Return the tables of an overlay: an object of table names, each with ``source``, ``date`` and ``rows``.

    Raises :class:`CatalogError` naming every unknown table and column and every value of a wrong kind.
    """
    if not isinstance(value, Mapping):
        raise CatalogError("An overlay is an object that maps table names to {source, date, rows}.")
    faults = [fault for name, table in value.items() for fault in _table_faults(str(name), table)]
    if faults:
        raise refused(faults)
    return tuple(Table(name=name, **table) for name, table in value.items())


def missing_cells(rows: Rows) -> Iterator[str]:
    """Yield what rows lack when all tables are laid over each other."""
    for name, form in FORMS.items():
        for key, row in rows[name].items():
            lacking = [column for column in form.required if form.value is None and column not in row]
            if lacking:
                yield f"{name}: the new row {_shown(key)} lacks {', '.join(lacking)}"


def refused(faults: Sequence[str]) -> CatalogError:
    """Return one error that says all faults."""
    return CatalogError("The catalogue's overlay cannot be used:\n" + "\n".join(f"- {fault}" for fault in faults))


def _table_faults(name: str, table: Any) -> Iterator[str]:
    form = FORMS.get(name)
    if form is None:
        yield f"there is no table {name}{_hint(name, FORMS)}"
        return
    if not isinstance(table, Mapping) or not {"source", "date", "rows"} <= set(table):
        yield f"{name}: a table has source, date and rows"
        return
    for extra in set(table) - {"source", "date", "rows"}:
        yield f"{name}: a table has source, date and rows, no {extra}"
    if not _TEXT.fits(table["source"]):
        yield f"{name}: source is a text that says where the rows are from"
    if not _is_date(table["date"]):
        yield f"{name}: date is a day such as 2026-11-29, not {table['date']!r}"
    if form.value:
        yield from _value_faults(name, form.value, table["rows"])
    else:
        yield from _row_faults(name, form, table["rows"])


def _value_faults(name: str, kind: Kind, rows: Any) -> Iterator[str]:
    if not isinstance(rows, Mapping):
        yield f"{name}: rows is an object that maps names to values"
        return
    for key, value in rows.items():
        if not kind.fits(value):
            yield f"{name}: {key} is {kind.said}, not {value!r}"


def _row_faults(name: str, form: Form, rows: Any) -> Iterator[str]:
    if not isinstance(rows, list) or not all(isinstance(row, Mapping) for row in rows):
        yield f"{name}: rows is a list of objects"
        return
    columns = {**form.required, **form.optional}
    for number, row in enumerate(rows, start=1):
        for column in form.key:
            if column in form.required and column not in row:
                yield f"{name}: row {number} lacks {column}"
        for column, value in row.items():
            if column not in columns:
                yield f"{name}: row {number} has no column {column}{_hint(column, columns)}"
            elif not columns[column].fits(value) and not (value is None and column in form.optional):
                yield f"{name}: row {number}: {column} is {columns[column].said}, not {value!r}"


def _hint(word: str, known: Iterable[str]) -> str:
    names = list(known)
    near = nearest(word, names)
    return f"; did you mean {near}?" if near else f"; there are {', '.join(names)}"


def _shown(key: Key) -> str:
    return " ".join(str(part) for part in key if part is not None)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_date(value: Any) -> bool:
    try:
        return isinstance(value, str) and bool(date.fromisoformat(value))
    except ValueError:
        return False
