"""Names in ``pipeline_options`` that the operator says itself or that Beam does not have, and values it cannot read."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any

from airflow_accel_provider.core.beam_options import BeamOption, Sdk, letters, load_options, meant_by
from airflow_accel_provider.core.options import EXPERIMENTS, LABELS, SERVICE_OPTIONS
from airflow_accel_provider.core.problems import Problem, error, warning
from airflow_accel_provider.core.request import BEAM_NAMED, BeamRequest, read_text, without_refusal
from airflow_accel_provider.core.validation._extras import NAMES
from airflow_accel_provider.core.validation._templated import is_templated, texts_in

_IN_PLACEMENT = "say it in the placement, 'TYPE on MACHINE_TYPE in REGION or ZONE'"

_RESERVED: Mapping[str, str] = {
    "region": _IN_PLACEMENT,
    "worker_region": _IN_PLACEMENT,
    "zone": _IN_PLACEMENT,
    "worker_zone": _IN_PLACEMENT,
    "machine_type": _IN_PLACEMENT,
    "worker_machine_type": _IN_PLACEMENT,
    "worker_accelerator": _IN_PLACEMENT,
    "project": "give project_id=, or a project in the connection",
    "job_name": "give job_name=, which becomes the readable start of the name",
    "runner": "leave it out, the job always runs on Dataflow",
    "service_account": "give service_account_email=",
    "impersonate_service_account": "give impersonation_chain=",
    "dataflow_endpoint": "give endpoint_url in the connection's extra",
    "worker_harness_container_image": "give sdk_container_image=",
    "update": "leave it out, every job is a new one of its own name",
    "template_location": "leave it out, with it Beam writes a template and starts no job",
}
"""Options that would contradict what the operator sends, and what to do instead."""

_BY_LETTERS = {letters(name): advice for name, advice in _RESERVED.items()}
# Words that a pipeline may well have for an option of its own.
_COMMON = frozenset({"jar", "template", "parameters", "sdk", "reservation"})
# Parameters that Beam has no option for: under pipeline_options they would reach nobody.
_NOT_BEAM = {
    letters(spec.name): spec.name
    for spec in fields(BeamRequest)
    if spec.name not in {*BEAM_NAMED, *_COMMON, "labels", "experiments"}
}
_NAME = re.compile(r"^-{0,2}[^\W\d][\w.-]*$")
_SDK_NAMES = {"python": "Python", "java": "Java", "go": "Go"}
# Their values are judged where they are merged with the parameters.
_JUDGED = frozenset({*BEAM_NAMED, *LABELS, *EXPERIMENTS, *SERVICE_OPTIONS})


def check_options(options: Any, where: str, sdk: Sdk = "python") -> Iterator[Problem]:
    """Yield the names that stand here wrongly, each with where they belong, and values that Beam cannot read."""
    if not isinstance(options, Mapping):
        return
    for name, value in options.items():
        at = f"{where}.{name}"
        if isinstance(name, str) and _NAME.match(name):
            problem = None if _says_nothing(value) else _check_place(name, at)
            problem = problem or _check_name(name, at, sdk)
            yield from [problem] if problem else []
            if problem is None or not problem.is_error:
                yield from _check_value(name, value, at, sdk)
        else:
            yield error("option-name", f"{name!r} is not the name of an option, such as temp_location.", at)


def _says_nothing(value: Any) -> bool:
    return value is None or read_text(value) is False


def _check_place(name: str, at: str) -> Problem | None:
    spelled = letters(name)
    if spelled in _BY_LETTERS:
        return error("option-pinned", f"{name} does not go here; {_BY_LETTERS[spelled]}.", at)
    if spelled in _NOT_BEAM:
        return error("option-pinned", f"{name} is no option of Beam's; give {_NOT_BEAM[spelled]}= to the operator.", at)
    return None


def _check_name(name: str, at: str, sdk: Sdk) -> Problem | None:
    spelled = letters(name)
    known = load_options(sdk).by_letters.get(spelled)
    if name in load_options(sdk).options:
        return None
    if known or name.startswith("-"):
        meant = known.name if known else name.lstrip("-")
        refuses = known is not None and spelled != letters(known.name)
        text = f"Beam's {_SDK_NAMES[sdk]} does not know {name}; write {meant}{', which is its opposite' * refuses}."
        return error("option-spelling", text, at)
    if name in NAMES:
        text = f"{name} is no option of Beam's; say it in experiments= or service_options=."
        return warning("extra-as-option", text, at)
    close = meant_by(sdk, name)
    if close:
        text = f"{name} is no option of Beam's; if it is not the pipeline's own, {close} is meant."
        return warning("option-spelling", text, at)
    return None


def _check_value(name: str, value: Any, at: str, sdk: Sdk) -> Iterator[Problem]:
    option = load_options(sdk).options.get(name)
    if any("\0" in text for _, text in texts_in(value, at)):
        yield error("option-value", f"{name} has a NUL character, which no command line can carry.", at)
    elif (
        option and value is not None and not is_templated(value) and load_options(sdk).python_name(name) not in _JUDGED
    ):
        wanted = _wanted(option, value)
        if wanted:
            yield error("option-value", f"{value!r} does not do for {name}; give {wanted}.", at)
        elif option.is_on and read_text(value) is False:
            yield warning("option-not-sent", f"Beam's command line cannot switch {name} off; it stays on.", at)


def _wanted(option: BeamOption, value: Any) -> str | None:
    """Return what Beam reads for the option, if the value is not that."""
    read = read_text(value)
    if option.kind == "switch":
        return None if isinstance(read, bool) else "True or False"
    if option.kind == "integer":
        is_whole = isinstance(read, int) and not isinstance(read, bool)
        return None if is_whole or (isinstance(value, str) and _WHOLE.match(value)) else "a whole number"
    if option.kind == "number":
        return None if _is_number(value) else "a number"
    if option.choices:
        return None if value in option.choices else f"one of {', '.join(option.choices)}"
    # As a switch a text option would swallow the argument that comes after it.
    if option.kind == "text" and (value is True or isinstance(value, list | tuple | Mapping)):
        return "a text"
    return None


_WHOLE = re.compile(r"^[+-]?\d+$", re.ASCII)


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return not isinstance(value, bool)


def check_said_twice(request: BeamRequest, overrides: Mapping[str, Any], where: str) -> Iterator[Problem]:
    """Yield the parameters that ``pipeline_options`` says differently."""
    own = {"pipeline_options": request.pipeline_options}
    for at, said_there in ({**own, f"{where}.pipeline_options": overrides.get("pipeline_options", {})}).items():
        options = without_refusal(said_there)
        for name in BEAM_NAMED:
            parameter = overrides.get(name, getattr(request, name))
            said = options.get(name)
            if None in (parameter, said) or is_templated(parameter) or is_templated(said):
                continue
            if read_text(parameter) != read_text(said):
                text = f"{name} is {said!r} here and {parameter!r} as a parameter; say it once, as {name}=."
                yield error("said-twice", text, f"{at}.{name}")
