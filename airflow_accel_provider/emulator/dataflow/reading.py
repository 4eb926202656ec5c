"""Reads a request body as Google's discovery document describes it, so that it can be stored and shown again.

Enumerations come as names or numbers and leave as names, 64-bit numbers leave as strings, unknown fields and wrong
types are refused. All that is wrong is said at once, in the words of Google's JSON front end.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from airflow_accel_provider.emulator.wire import GoogleError

_DOCUMENT = "discovery_cache/documents/dataflow.v1b3.json"


def read_message(value: Any, schema: str, *, at: str) -> dict[str, Any]:
    """Return ``value`` as a clean message of a schema (``Job``); ``at`` is what errors call it.

    Raises GoogleError 400.
    """
    problems: list[str] = []
    message = _message(value, _schemas()[schema], at, problems)
    if problems:
        raise GoogleError(400, "Invalid JSON payload received. " + " ".join(problems))
    return dict(message)


@cache
def _schemas() -> Mapping[str, Any]:
    document = json.loads(files("googleapiclient").joinpath(_DOCUMENT).read_text(encoding="utf-8"))
    schemas: Mapping[str, Any] = document["schemas"]
    return schemas


def _message(value: Any, schema: Mapping[str, Any], at: str, problems: list[str]) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        problems.append(f"Invalid value at '{at}': it must be an object.")
        return {}
    fields = schema.get("properties")
    if fields is None:
        return {
            key: _value(item, schema["additionalProperties"], f"{at}.{key}", problems) for key, item in value.items()
        }
    clean = {}
    for name, item in value.items():
        if name not in fields:
            problems.append(f"Unknown name \"{name}\" at '{at}': Cannot find field.")
        elif item is not None:
            clean[name] = _value(item, fields[name], f"{at}.{name}", problems)
    return clean


def _value(value: Any, schema: Mapping[str, Any], at: str, problems: list[str]) -> Any:
    if "$ref" in schema:
        return _message(value, _schemas()[schema["$ref"]], at, problems)
    kind = "enum" if "enum" in schema else schema["type"]
    if kind == "object":
        return _message(value, schema, at, problems)
    if kind == "array" and isinstance(value, list):
        return [_value(item, schema["items"], f"{at}[{index}]", problems) for index, item in enumerate(value)]
    return _scalar(value, kind, schema, at, problems)


def _scalar(value: Any, kind: str, schema: Mapping[str, Any], at: str, problems: list[str]) -> Any:
    if kind == "enum":
        return _name(value, schema["enum"], at, problems)
    if kind == "integer":
        return _number(value, at, problems, as_type=int)
    if schema.get("format") in {"int64", "uint64"}:
        return _number(value, at, problems, as_type=str)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    fits = {"any": True, "boolean": isinstance(value, bool), "string": isinstance(value, str), "number": is_number}
    if not fits.get(kind, False):
        problems.append(f"Invalid value at '{at}' (TYPE_{kind.upper()}), {json.dumps(value)}.")
    return value


def _name(value: Any, names: list[str], at: str, problems: list[str]) -> Any:
    # The numbers of every enumeration in a request follow the order in which the document lists the names.
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < len(names):
        return names[value]
    if value not in names:
        problems.append(f"Invalid value at '{at}', {json.dumps(value)}. Expected one of: {', '.join(names)}.")
    return value


def _number(value: Any, at: str, problems: list[str], *, as_type: type[int] | type[str]) -> Any:
    is_whole = isinstance(value, int | str) and not isinstance(value, bool) and re.fullmatch(r"-?\d+", str(value))
    if not is_whole:
        problems.append(f"Invalid value at '{at}' (TYPE_INT), {json.dumps(value)}.")
        return value
    return as_type(value)
