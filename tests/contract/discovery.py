"""Google's discovery documents as a judge of answers that is not ours, and its typed client where there is none."""

from __future__ import annotations

import json
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

import jsonschema
from google.cloud import cloudquotas_v1
from google.protobuf import json_format

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

DOCUMENTS = ("dataflow.v1b3", "compute.v1", "storage.v1", "iamcredentials.v1", "dataproc.v1", "monitoring.v3")

FORMATS: Mapping[str, Mapping[str, Any]] = {
    "int64": {"pattern": r"^-?\d{1,19}$"},
    "uint64": {"pattern": r"^\d{1,20}$"},
    "date-time": {"pattern": r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$"},
    "google-datetime": {"pattern": r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$"},
    "google-duration": {"pattern": r"^-?\d+(\.\d+)?s$"},
    "byte": {"pattern": r"^[A-Za-z0-9+/_-]*={0,2}$"},
    "int32": {"minimum": -(2**31), "maximum": 2**31 - 1},
    "uint32": {"minimum": 0, "maximum": 2**32 - 1},
}


TYPED: Mapping[str, Any] = {
    "cloudquotas.projects.locations.services.quotaInfos.get": cloudquotas_v1.QuotaInfo,
    "cloudquotas.projects.locations.services.quotaInfos.list": cloudquotas_v1.ListQuotaInfosResponse,
}
"""What a method returns, for APIs that only a typed client describes."""


def problems(method_id: str, answer: Any) -> list[str]:
    """Return how an answer departs from what Google's discovery document, or its typed client, says is returned."""
    if method_id in TYPED:
        return _typed_problems(method_id, answer)
    validator = _validator(method_id)
    if validator is None:
        return [f"{method_id} is in no discovery document"]
    return [f"{method_id} at {error.json_path}: {error.message[:300]}" for error in validator.iter_errors(answer)]


def error_problems(method_id: str, status: int, answer: Any) -> list[str]:
    """Return how an error departs from the form that Google's clients parse."""
    error = answer.get("error") if isinstance(answer, dict) else None
    if not isinstance(error, dict):
        return [f"{method_id} answered {status} without an error object"]
    if error.get("code") != status or not isinstance(error.get("message"), str):
        return [f"{method_id} answered {status} with an error that says {error.get('code')}: {error.get('message')!r}"]
    return []


def convert(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the JSON schema of a discovery schema; properties that it doesn't declare are errors."""
    if "$ref" in schema:
        return {"$ref": f"#/$defs/{schema['$ref']}"}
    if schema.get("type") == "any":
        return {}
    converted: dict[str, Any] = {key: schema[key] for key in ("type", "enum") if key in schema}
    converted |= FORMATS.get(schema.get("format", ""), {})
    if "items" in schema:
        converted["items"] = convert(schema["items"])
    if "properties" in schema:
        converted["properties"] = {name: convert(value) for name, value in schema["properties"].items()}
        converted["additionalProperties"] = False
    if "additionalProperties" in schema:
        converted["additionalProperties"] = convert(schema["additionalProperties"])
    return converted


def _typed_problems(method_id: str, answer: Any) -> list[str]:
    try:
        json_format.ParseDict(answer, TYPED[method_id].pb()())
    except json_format.ParseError as error:
        return [f"{method_id}: {error}"]
    return []


@cache
def _validator(method_id: str) -> jsonschema.Draft202012Validator | None:
    for document in _documents():
        if method_id in document["by_id"]:
            response = document["by_id"][method_id].get("response")
            schema = convert(response) if response else {"maxProperties": 0}
            return jsonschema.Draft202012Validator({**schema, "$defs": document["defs"]})
    return None


@cache
def _documents() -> tuple[dict[str, Any], ...]:
    folder = resources.files("googleapiclient") / "discovery_cache" / "documents"
    return tuple(_read(json.loads((folder / f"{name}.json").read_text())) for name in DOCUMENTS)


def _read(document: Mapping[str, Any]) -> dict[str, Any]:
    defs = {name: convert(schema) for name, schema in document["schemas"].items()}
    return {"by_id": {method["id"]: method for method in _methods(document)}, "defs": defs}


def _methods(node: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield from node.get("methods", {}).values()
    for child in node.get("resources", {}).values():
        yield from _methods(child)
