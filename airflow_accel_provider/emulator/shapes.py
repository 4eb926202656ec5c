"""Request bodies against Google's schemas: a misspelt field or a value of a wrong kind is the caller's mistake."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from airflow_accel_provider.emulator.documents import documents, methods
from airflow_accel_provider.emulator.wire import GoogleError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

# The older APIs overlook names that they don't know.
FORGIVING = ("storage.",)


def _is_number(value: object) -> bool:
    if isinstance(value, str):
        try:
            float(value)
        except ValueError:
            return False
        return True
    return isinstance(value, int | float) and not isinstance(value, bool)


# Numbers may come as strings, and enums and 64-bit numbers, which are strings here, as numbers.
_KINDS: Mapping[str, tuple[str, Callable[[object], bool]]] = {
    "string": ("TYPE_STRING", lambda value: isinstance(value, str | int) and not isinstance(value, bool)),
    "boolean": ("TYPE_BOOL", lambda value: isinstance(value, bool)),
    "integer": ("TYPE_INT32", _is_number),
    "number": ("TYPE_DOUBLE", _is_number),
    "object": ("an object", lambda value: isinstance(value, dict)),
    "array": ("a list", lambda value: isinstance(value, list)),
    "any": ("anything", lambda _: True),
}


def takes_json(method_id: str) -> bool:
    """Tell whether Google describes what the body of this method is."""
    return method_id in _requests()


def check_shape(method_id: str, body: Mapping[str, Any]) -> None:
    """Raise 400, with everything that is wrong, for a body that isn't of the form its method takes."""
    schema, schemas = _requests()[method_id]
    problems = list(_problems(body, schema, schemas, ""))
    if method_id.startswith(FORGIVING):
        problems = [problem for problem in problems if not problem.startswith("Unknown name")]
    if problems:
        raise GoogleError(400, "Invalid JSON payload received. " + "\n".join(problems))


def form_problems(schema: str, value: object) -> list[str]:
    """Return where a message of Dataflow's is not of its form; names that it doesn't have are overlooked."""
    schemas = next(document["schemas"] for document in documents() if document["name"] == "dataflow")
    return [each for each in _problems(value, schemas[schema], schemas, "") if not each.startswith("Unknown name")]


@cache
def _requests() -> Mapping[str, tuple[Mapping[str, Any], Mapping[str, Any]]]:
    return {
        method["id"]: (method["request"], document["schemas"])
        for document in documents()
        for method in methods(document)
        if "request" in method
    }


def _problems(value: object, schema: Mapping[str, Any], schemas: Mapping[str, Any], where: str) -> Iterator[str]:
    schema = schemas[schema["$ref"]] if "$ref" in schema else schema
    word, fits = _KINDS[schema["type"]]
    if value is None:
        return
    if not fits(value):
        yield f"Invalid value at '{where}' ({word}), {value!r:.200}"
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from _problems(item, schema.get("items", {"type": "any"}), schemas, f"{where}[{number}]")
    elif isinstance(value, dict) and ("properties" in schema or "additionalProperties" in schema):
        for name, item in value.items():
            field = schema.get("properties", {}).get(name) or schema.get("additionalProperties")
            if field is None:
                yield f"Unknown name \"{name}\" at '{where}': Cannot find field."
            else:
                yield from _problems(item, field, schemas, f"{where}.{name}".lstrip("."))
