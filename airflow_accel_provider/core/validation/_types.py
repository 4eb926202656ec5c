"""Values of the wrong kind, set aside so that all the other rules can still be applied."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from airflow_accel_provider.core.options import EXPERIMENTS, LABELS, SERVICE_OPTIONS
from airflow_accel_provider.core.problems import Problem, error, nearest
from airflow_accel_provider.core.request import (
    BEAM_NAMED,
    NUMBERS,
    OVERRIDABLE,
    SWITCHES,
    BeamRequest,
    Candidate,
    read_text,
)
from airflow_accel_provider.core.validation._templated import LATER, is_templated

_OPTIONS = frozenset({"pipeline_options", "default_pipeline_options"})
_MAPPINGS = _OPTIONS | {"labels", "parameters"}
_LISTS = frozenset({"service_options", "experiments", "py_options", "py_requirements"})
_EXAMPLES = {"py_options": "-O", "py_requirements": "apache-beam[gcp]==2.77.0"}
_DEFAULTS = {spec.name: getattr(BeamRequest(), spec.name) for spec in fields(BeamRequest)}
_TEXTS = _DEFAULTS.keys() - {*_MAPPINGS, *_LISTS, *NUMBERS, *SWITCHES}
_MERGED = {
    **dict.fromkeys(LABELS, "labels"),
    **dict.fromkeys(EXPERIMENTS, "experiments"),
    **dict.fromkeys(SERVICE_OPTIONS, "service_options"),
}
_LEAST = {"disk_size_gb": 0, "number_of_worker_harness_threads": 0}
_PLACE_WORDS = frozenset({"region", "zone", "machine_type", "accelerator", "worker_zone", "worker_machine_type"})


def plain_request(request: BeamRequest) -> tuple[BeamRequest, list[Problem]]:
    """Return the request with stand-ins where a value is of the wrong kind or not known yet, and what was wrong."""
    problems: list[Problem] = []
    plain = {name: _plain(name, getattr(request, name), name, problems) for name in _DEFAULTS}
    return BeamRequest(**plain), problems


def plain_overrides(candidate: Candidate, where: str) -> tuple[dict[str, Any], list[Problem]]:
    """Return those of a candidate's overrides that can be judged, and what is wrong with the others."""
    problems = [_unknown(name, where) for name in candidate.overrides if name not in OVERRIDABLE]
    known = {name: value for name, value in candidate.overrides.items() if name in OVERRIDABLE}
    return {name: _plain(name, value, f"{where}.{name}", problems) for name, value in known.items()}, problems


def _plain(name: str, value: Any, where: str, problems: list[Problem]) -> Any:
    """Return the value, or what stands in for it; say what is wrong with it."""
    if value is None:
        return _DEFAULTS[name]
    found = _faults(name, value, where)
    problems += found
    if name in _OPTIONS and isinstance(value, Mapping):
        return {key: _plain_option(key, item, where, problems) for key, item in value.items()}
    if not found and not is_templated(value):
        return value
    if name in _OPTIONS:
        # They may well hold a temp_location, so that its absence is no news.
        return {"temp_location": LATER}
    return LATER if name in _TEXTS else _DEFAULTS[name]


def _plain_option(name: Any, value: Any, where: str, problems: list[Problem]) -> Any:
    """Return an option's value; where it has a parameter, or is merged with one, it must be of the same kind."""
    parameter = _MERGED.get(name, name if name in BEAM_NAMED else None)
    if parameter is None:
        return value
    if parameter in (*_LISTS, "labels") and isinstance(value, str | list | tuple):
        return value
    return _plain(parameter, value, f"{where}.{name}", problems)


def _unknown(name: str, where: str) -> Problem:
    at = f"{where}.{name}"
    if name in _PLACE_WORDS:
        text = f"A candidate says its {name} in the placement: 'TYPE on MACHINE_TYPE in REGION or ZONE'."
        return error("override-unknown", text, at)
    if name in {spec.name for spec in fields(BeamRequest)}:
        return error("override-unknown", f"{name} is the same for all candidates; give it to the operator.", at)
    near = nearest(name, OVERRIDABLE)
    hint = f"Did you mean {near}?" if near else f"It can differ in {', '.join(sorted(OVERRIDABLE))}."
    return error("override-unknown", f"A candidate has no {name!r}. {hint}", at)


def _faults(name: str, value: Any, where: str) -> list[Problem]:
    if value is None or is_templated(value):
        return []
    if name in NUMBERS:
        return _number_faults(name, value, where)
    wanted = _wanted(name, value)
    return [error("wrong-type", f"{value!r} does not do for {name}; give {wanted}.", where)] if wanted else []


def _number_faults(name: str, value: Any, where: str) -> list[Problem]:
    least = _LEAST.get(name, 1)
    read = read_text(value)
    if isinstance(read, int) and not isinstance(read, bool) and read >= least:
        return []
    return [error("not-a-number", f"{value!r} does not do for {name}; give a whole number of {least} or more.", where)]


def _wanted(name: str, value: Any) -> str | None:
    """Return what the parameter takes, if the value is not that."""
    if name in _MAPPINGS:
        return None if isinstance(value, Mapping) else "a mapping of names to values"
    if name in _LISTS:
        of_text = isinstance(value, list | tuple) and all(
            (isinstance(item, str) and item.strip()) or is_templated(item) for item in value
        )
        return None if of_text else f'a list of texts, such as ["{_EXAMPLES.get(name, "name=value")}"]'
    if name in SWITCHES:
        return None if isinstance(read_text(value), bool) else "True or False"
    if name == "driver_version" and isinstance(value, int) and not isinstance(value, bool):
        return None
    return None if isinstance(value, str) else "a text"
