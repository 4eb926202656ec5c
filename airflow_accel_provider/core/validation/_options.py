"""Names in ``pipeline_options`` that the operator says itself, or that Beam's Python does not have."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any

from airflow_accel_provider.core.problems import Problem, error
from airflow_accel_provider.core.request import BEAM_NAMED, BeamRequest, read_text
from airflow_accel_provider.core.validation._templated import is_templated

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
    "template_location": "leave it out, with it Beam writes a template and starts no job",
}
"""Options that would contradict what the operator sends, and what to do instead."""

_BUCKETS = {"temp_location", "staging_location"}
_FILES = {"save_main_session", "setup_file", "requirements_file", "extra_package", "extra_packages", "sdk_location"}
_MODES = {"streaming", "flexrs_goal", "dataflow_service_options"}
_PARAMETERS = frozenset(spec.name for spec in fields(BeamRequest))
_KNOWN = _PARAMETERS | _RESERVED.keys() | _BUCKETS | _FILES | _MODES
# Parameters that Beam has no option for: under pipeline_options they would reach nobody.
_NOT_BEAM = _PARAMETERS - {*BEAM_NAMED, "labels", "experiments"}


def check_options(options: Any, where: str) -> Iterator[Problem]:
    """Yield the names that stand here wrongly, each with where they belong."""
    if not isinstance(options, Mapping):
        return
    for name in options:
        at = f"{where}.{name}"
        if not isinstance(name, str):
            yield error("option-name", f"{name!r} is not the name of an option; names are texts.", at)
            continue
        meant = _snake(name)
        if meant in _RESERVED:
            yield error("option-pinned", f"{name} does not go here; {_RESERVED[meant]}.", at)
        elif meant in _NOT_BEAM:
            yield error("option-pinned", f"{name} is no option of Beam's; give {meant}= to the operator.", at)
        elif name != meant and (meant in _KNOWN or name.startswith("-")):
            yield error("option-spelling", f"Beam's Python does not know {name}; write {meant}.", at)


def check_said_twice(request: BeamRequest, overrides: Mapping[str, Any], where: str) -> Iterator[Problem]:
    """Yield the parameters that ``pipeline_options`` says differently."""
    own = {"pipeline_options": request.pipeline_options}
    for at, options in ({**own, f"{where}.pipeline_options": overrides.get("pipeline_options", {})}).items():
        for name in BEAM_NAMED:
            parameter = overrides.get(name, getattr(request, name))
            said = options.get(name)
            if None in (parameter, said) or is_templated(parameter) or is_templated(said):
                continue
            if read_text(parameter) != read_text(said):
                text = f"{name} is {said!r} here and {parameter!r} as a parameter; say it once, as {name}=."
                yield error("said-twice", text, f"{at}.{name}")


def _snake(name: str) -> str:
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name.lstrip("-"))
    return words.replace("-", "_").lower()
