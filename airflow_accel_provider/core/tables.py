"""How rows of a later table add to those before it or override them, and what is wrong with an overlay's."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from airflow_accel_provider.core.forms import DATE, FORMS, TEXT, Form, Kind
from airflow_accel_provider.core.problems import nearest

Key = tuple[Any, ...]
Rows = Mapping[str, Mapping[Key, Any]]
"""Rows by table, then by key; where a table maps names to values, a row is the value."""


class CatalogError(ValueError):
    """Tables that cannot be read; the message names everything that is wrong."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Table:
    """Where rows are from, and the day (ISO 8601) on which they were read. Each is equal to itself alone."""

    name: str
    source: str
    date: str
    rows: Any


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
    if not TEXT.fits(table["source"]):
        yield f"{name}: source is a text that says where the rows are from"
    if not DATE.fits(table["date"]):
        yield f"{name}: date is {DATE.said}, not {table['date']!r}"
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
