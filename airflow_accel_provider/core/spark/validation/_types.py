"""Values of the wrong kind, set aside so that all the other rules can still be applied."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from airflow_accel_provider.core.problems import Problem, error, nearest
from airflow_accel_provider.core.request import read_text
from airflow_accel_provider.core.spark.properties import property_text
from airflow_accel_provider.core.spark.request import INSTANCES, MOVED, SPARK_OVERRIDABLE, SparkRequest, inside
from airflow_accel_provider.core.spark.sizes import seconds
from airflow_accel_provider.core.validation._templated import LATER, is_templated

if TYPE_CHECKING:
    from airflow_accel_provider.core.request import Candidate
    from airflow_accel_provider.core.spark.catalog import SparkCatalog

_KINDS: Mapping[str, str] = {
    "batch": "Batch",
    "runtime_version": "text",
    "executors": "number",
    "properties": "map",
    "container_image": "text",
    "ttl": "duration",
    "provisioning": "text",
    "allocation_timeout": "duration",
    "labels": "map",
    "batch_id": "text",
}
_WANTED = {
    "text": "a text",
    "list": "a list of texts",
    "map": "a mapping of names to texts",
    "duration": "seconds, a timedelta or a text such as '3600s'",
    "number": "a whole number",
}
_PLACE_WORDS = frozenset({"region", "zone", "machine_type", "accelerator"})
# google-cloud-dataproc's Batch; the last cannot be set on a batch, by the discovery document's ExecutionConfig.idleTtl.
_FILLED_IN = {"name", "uuid", "create_time", "creator", "operation"}
_FILLED_IN |= {"runtime_info", "state", "state_message", "state_time", "state_history"}


def plain_request(request: SparkRequest, tables: SparkCatalog) -> tuple[SparkRequest, list[Problem]]:
    """Return the request without values of the wrong kind or not known yet, and what was wrong."""
    problems: list[Problem] = []
    values = {spec.name: getattr(request, spec.name) for spec in fields(request)}
    plain = {name: _plain(name, value, name, tables, problems) for name, value in values.items()}
    return replace(request, **plain), problems


def plain_overrides(candidate: Candidate, where: str, tables: SparkCatalog) -> tuple[dict[str, Any], list[Problem]]:
    """Return those of a candidate's overrides that can be judged, and what is wrong with the others."""
    problems = [_unknown_override(name, where) for name in candidate.overrides if name not in SPARK_OVERRIDABLE]
    known = {name: value for name, value in candidate.overrides.items() if name in SPARK_OVERRIDABLE}
    plain = {name: _plain(name, value, f"{where}.{name}", tables, problems) for name, value in known.items()}
    return plain, problems


def check_said_twice(plain: SparkRequest) -> Iterator[Problem]:
    """Yield the parameters that the batch or the properties say differently."""
    said: list[tuple[str, Any, str, Any]] = [
        (name, getattr(plain, name), ".".join(("batch", *path)), inside(plain.batch, path))
        for name, path in MOVED.items()
    ]
    inner = inside(plain.batch, ("runtime_config", "properties")) or {}
    said.append(("executors", plain.executors, f"properties.{INSTANCES}", {**inner, **plain.properties}.get(INSTANCES)))
    # Mappings are merged, so only a name that both say differently is a contradiction.
    root = "batch.runtime_config.properties"
    said += [(f"properties[{name!r}]", plain.properties.get(name), f"{root}.{name}", inner[name]) for name in inner]
    for name, parameter, at, other in said:
        if None in (parameter, other) or is_templated(parameter) or is_templated(other):
            continue
        if _comparable(name, parameter) != _comparable(name, other):
            text = f"{other!r} here contradicts {name}, which is {parameter!r}; say it once, as {name}."
            yield error("said-twice", text, at)


def _comparable(name: str, value: Any) -> Any:
    return seconds(value) if name == "ttl" else property_text(value)


def _plain(name: str, value: Any, where: str, tables: SparkCatalog, problems: list[Problem]) -> Any:
    """Return the value, or what stands in for it; say what is wrong with it."""
    kind = _KINDS[name]
    default: Any = {} if kind == "map" else None
    if value is None:
        return default
    if name == "batch":
        batch = LATER if is_templated(value) else _plain_message("Batch", value, where, tables, problems)
        return {"pyspark_batch": LATER} if batch == LATER else batch
    plain = _plain_field(kind, value, where, tables, problems)
    return default if plain is None else plain


def _plain_message(
    name: str, value: Any, where: str, tables: SparkCatalog, problems: list[Problem]
) -> dict[str, Any] | str:
    if not isinstance(value, Mapping):
        problems.append(error("wrong-type", f"{value!r} does not do; give a mapping, as the API's {name}.", where))
        return LATER
    kinds = tables.messages[name]
    plain: dict[str, Any] = {}
    for key, item in value.items():
        at = f"{where}.{key}"
        if key not in kinds:
            problems.append(_unknown_field(name, key, at, tables))
        elif item is not None:
            plain[key] = _plain_field(kinds[key], item, at, tables, problems)
    return {key: item for key, item in plain.items() if item is not None}


def _plain_field(kind: str, value: Any, where: str, tables: SparkCatalog, problems: list[Problem]) -> Any:
    """Return a field's value; a stand-in or ``None`` where it is known only later or is of the wrong kind."""
    if is_templated(value) and not isinstance(value, timedelta):
        return None if kind in ("list", "map") else LATER
    if kind in tables.messages:
        return _plain_message(kind, value, where, tables, problems)
    if kind == "map" and isinstance(value, Mapping):
        return _plain_map(value, where, problems)
    fits = {
        "text": isinstance(value, str),
        "list": isinstance(value, list | tuple) and all(isinstance(each, str) or is_templated(each) for each in value),
        "map": False,
        "duration": seconds(value) is not None,
        "number": isinstance(read_text(value), int) and not isinstance(read_text(value), bool),
    }
    if fits[kind]:
        return value
    # A duration in other units is judged as the one that it means.
    meant = _in_seconds(value) if kind == "duration" else None
    wanted = f"'{meant}'" if meant else _wanted(kind, value)
    problems.append(error("wrong-type", f"{value!r} does not do; give {wanted}.", where))
    return None if kind in ("list", "map") else meant or LATER


def _plain_map(value: Mapping[Any, Any], where: str, problems: list[Problem]) -> dict[str, Any]:
    plain: dict[str, Any] = {}
    for name, item in value.items():
        at = f"{where}.{name}"
        if not isinstance(name, str):
            problems.append(error("wrong-type", f"{name!r} is not a name; names are texts.", at))
        elif is_templated(item):
            plain[name] = LATER
        elif isinstance(item, str | bool | int | float):
            plain[name] = item
        else:
            problems.append(error("wrong-type", f"{item!r} does not do; give a text, a number or a truth value.", at))
    return plain


def _in_seconds(value: Any) -> str | None:
    """Return what a text such as ``4h`` or ``600`` means in the service's form, if it means anything."""
    clock = {"s": 1, "m": 60, "h": 3600, "d": 86400}
    number, unit = (value[:-1].strip(), value[-1:]) if isinstance(value, str) else ("", "")
    if number.isascii() and number.isdigit() and unit in clock:
        return f"{int(number) * clock[unit]}s"
    return f"{value}s" if isinstance(value, str) and value.isascii() and value.isdigit() else None


def _wanted(kind: str, value: Any) -> str:
    if kind == "text" and isinstance(value, float):
        return f"the text '{value}'"
    return _WANTED[kind]


def _unknown_field(message: str, name: Any, where: str, tables: SparkCatalog) -> Problem:
    if message == "Batch" and name in _FILLED_IN:
        return error("batch-field", f"The service fills in {name}; leave it out.", where)
    if message == "ExecutionConfig" and name == "idle_ttl":
        return error("batch-field", "idle_ttl is for sessions and cannot be set on a batch; give ttl.", where)
    homes = [home for home, kinds in tables.messages.items() if name in kinds]
    near = nearest(str(name), tables.messages[message])
    if homes:
        hint = f"It belongs into {' or '.join(homes)}."
    else:
        hint = f"Did you mean {near}?" if near else f"It has {', '.join(tables.messages[message])}."
    return error("batch-field", f"{message} has no {name!r}. {hint}", where)


def _unknown_override(name: str, where: str) -> Problem:
    at = f"{where}.{name}"
    if name in _PLACE_WORDS:
        text = f"A candidate says its {name} in the placement: 'TYPE[:GPUs per executor] in REGION'."
        return error("override-unknown", text, at)
    if name == "batch_id":
        return error("override-unknown", "batch_id is the same for all candidates; give it to the operator.", at)
    near = nearest(name, SPARK_OVERRIDABLE)
    hint = f"Did you mean {near}?" if near else f"It can differ in {', '.join(sorted(SPARK_OVERRIDABLE))}."
    return error("override-unknown", f"A candidate has no {name!r}. {hint}", at)
