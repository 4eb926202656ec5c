"""Brings the body of a request into one form, so that it can be stored and shown again as Google would show it.

Bodies arrive with the shape of their schema already checked. What is left open by that: enumerations come as names or
numbers, numbers as numbers or strings, and fields as null.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from airflow_accel_provider.emulator.documents import documents
from airflow_accel_provider.emulator.wire import GoogleError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def read_message(value: Mapping[str, Any], schema: str) -> dict[str, Any]:
    """Return a message of a schema (``Job``) in its one form: names, 64-bit numbers as strings, nothing null.

    Raises GoogleError 400 for names and numbers that an enumeration does not have, all at once.
    """
    problems: list[str] = []
    message = _object(value, _schemas()[schema], "", problems)
    if problems:
        raise GoogleError(400, "Invalid JSON payload received. " + "\n".join(problems))
    return message


@cache
def _schemas() -> Mapping[str, Any]:
    return next(document["schemas"] for document in documents() if document["name"] == "dataflow")


def _object(value: Mapping[str, Any], schema: Mapping[str, Any], at: str, problems: list[str]) -> dict[str, Any]:
    fields, others = schema.get("properties", {}), schema.get("additionalProperties", {"type": "any"})
    return {
        name: _value(item, fields.get(name, others), f"{at}.{name}".lstrip("."), problems)
        for name, item in value.items()
        if item is not None
    }


def _value(value: Any, schema: Mapping[str, Any], at: str, problems: list[str]) -> Any:
    schema = _schemas()[schema["$ref"]] if "$ref" in schema else schema
    if schema["type"] == "object":
        return _object(value, schema, at, problems)
    if schema["type"] == "array":
        return [_value(item, schema["items"], f"{at}[{index}]", problems) for index, item in enumerate(value)]
    if "enum" in schema:
        return _name(value, schema["enum"], at, problems)
    return _SCALARS.get(schema["type"], lambda same: same)(value)


_SCALARS: Mapping[str, Callable[[Any], Any]] = {
    "string": str,
    "integer": lambda value: int(float(value)),
    "number": float,
}


def _name(value: Any, names: list[str], at: str, problems: list[str]) -> Any:
    # The numbers of every enumeration in a request follow the order in which the document lists the names.
    if isinstance(value, int) and 0 <= value < len(names):
        return names[value]
    if value not in names:
        problems.append(f"Invalid value at '{at}', {value!r}. Expected one of: {', '.join(names)}.")
    return value
