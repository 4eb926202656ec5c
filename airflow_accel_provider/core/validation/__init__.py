"""Can this work? All that is wrong with a request and its candidates, each with the nearest right thing.

An error is what the service would refuse, or what cannot mean anything; a warning is what a person should know. What a
template will fill in, or an upstream task, cannot be judged before the task starts and is left alone until then.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, overload

from airflow_accel_provider.core.accelerators import Cpu, Gpu
from airflow_accel_provider.core.beam_options import Sdk, in_python_names
from airflow_accel_provider.core.placement import Placement, PlacementError
from airflow_accel_provider.core.problems import Problem, error, warning
from airflow_accel_provider.core.request import OPTIONS, BeamRequest, Candidate
from airflow_accel_provider.core.validation._life import check_life
from airflow_accel_provider.core.validation._options import check_options, check_said_twice
from airflow_accel_provider.core.validation._places import check_offer, check_places, check_region
from airflow_accel_provider.core.validation._shapes import Operator, check_shape
from airflow_accel_provider.core.validation._templated import LATER, is_templated
from airflow_accel_provider.core.validation._tpus import check_slice_images, check_tpu_workers, check_tpu_zone
from airflow_accel_provider.core.validation._types import plain_overrides, plain_request
from airflow_accel_provider.core.validation._values import check_values
from airflow_accel_provider.core.validation._ways import check_parameters, check_pipeline, check_streaming
from airflow_accel_provider.core.ways import sdk_of

if TYPE_CHECKING:
    from airflow_accel_provider.core.catalog import Catalog

__all__ = [
    "LATER",
    "check_beam",
    "check_candidate",
    "check_life",
    "check_offer",
    "check_region",
    "check_shape",
    "is_templated",
    "read_candidates",
    "resolve",
]

_GPU_ONLY = ("driver_version", "use_mps")
# https://cloud.google.com/resource-manager/docs/creating-managing-projects; Beam's validator refuses numbers too.
_PROJECT = re.compile(r"^[a-z][-a-z0-9:.]+[a-z0-9]$")


def read_candidates(
    placement: Any, fallback: Any = (), *, region: str | None = None
) -> tuple[tuple[Candidate | None, ...], tuple[Problem, ...]]:
    """Read what an operator was given as ``placement`` and ``fallback``.

    A candidate that is wrong, or that a template will fill in, is ``None``, so that positions keep their meaning.
    """
    problems: list[Problem] = []
    if isinstance(fallback, Mapping) or (isinstance(fallback, str) and not is_templated(fallback)):
        text = "It is a list of placements; put the one placement into brackets."
        problems.append(error("not-a-list", text, "fallback"))
    further = fallback if isinstance(fallback, list | tuple) else ()
    candidates = [_read(value, region, place_name(n), problems) for n, value in enumerate((placement, *further))]
    return tuple(candidates), tuple(problems)


def check_beam(
    request: BeamRequest,
    candidates: Sequence[Candidate | None],
    *,
    catalog: Catalog,
    operator: Operator = "gpu",
    wait_until: str = "done",
    project: str | None = None,
    project_required: bool = False,
    region: str | None = None,
    allowed_regions: frozenset[str] = frozenset(),
) -> tuple[Problem, ...]:
    """Return all problems of a Beam pipeline and of every place it might run in, each once.

    ``candidates`` are in the user's order, the placement first, ``None`` where one cannot be read yet. The first one is
    of the ``operator``'s kind. ``project`` is what is known of it, and a missing one is wrong only when
    ``project_required``. ``wait_until`` is what the task waits for. No ``allowed_regions`` allow all.
    """
    sdk = sdk_of(request)
    plain, problems = plain_request(_in_python_names(request, sdk))
    problems += check_pipeline(plain)
    problems += _check_unused(plain, candidates)
    problems += _check_project(project, required=project_required)
    problems += check_options(request.default_pipeline_options, "default_pipeline_options", sdk)
    problems += check_options(request.pipeline_options, "pipeline_options", sdk)
    problems += _check_order(candidates, region, catalog)
    if operator == "tpu":
        problems += check_slice_images(_meant(plain, candidates, sdk), catalog)
    for n, candidate in enumerate(candidates):
        if candidate is not None:
            problems += _check_place(
                plain,
                candidate,
                catalog,
                where=place_name(n),
                operator=operator,
                wait_until=wait_until,
                project=project,
                allowed_regions=allowed_regions,
            )
    return tuple(dict.fromkeys(problems))


def check_candidate(
    request: BeamRequest,
    candidate: Candidate,
    catalog: Catalog,
    *,
    where: str = "placement",
    operator: Operator = "gpu",
    wait_until: str = "done",
    project: str | None = None,
    allowed_regions: frozenset[str] = frozenset(),
) -> tuple[Problem, ...]:
    """Return the problems of one place and of the request as it is meant there.

    The warning ``not-offered`` says that the catalogue does not have the accelerator there.
    """
    plain, problems = plain_request(_in_python_names(request, sdk_of(request)))
    problems += _check_place(
        plain,
        candidate,
        catalog,
        where=where,
        operator=operator,
        wait_until=wait_until,
        project=project,
        allowed_regions=allowed_regions,
    )
    return tuple(dict.fromkeys(problems))


def _check_place(
    plain: BeamRequest,
    candidate: Candidate,
    catalog: Catalog,
    *,
    where: str,
    operator: Operator,
    wait_until: str,
    project: str | None,
    allowed_regions: frozenset[str],
) -> list[Problem]:
    """Return the problems of one place, and of a request without values of the wrong kind as it is meant there."""
    problems: list[Problem] = []
    sdk = sdk_of(plain)
    for name in OPTIONS:
        problems += check_options(candidate.overrides.get(name), f"{where}.{name}", sdk)
    overrides, wrong = plain_overrides(_in_python_names(candidate, sdk), where)
    placement = candidate.placement
    problems += check_said_twice(plain, overrides, where)
    problems += check_parameters(plain, overrides, where)
    problems += _check_unused_there(overrides, placement, where)
    # All names are those of Beam's Python by now.
    meant = plain.for_candidate(replace(candidate, overrides=overrides), "python")
    problems += check_shape(placement, catalog, operator=operator, where=where, first=where == place_name(0))
    problems += check_region(placement, catalog, where=where, allowed_regions=allowed_regions)
    problems += check_offer(placement, catalog, where=where)
    # What a candidate says itself is reported as its own; what it inherits is reported once for all.
    prefixes = {name: f"{where}.{name}" for name in overrides}
    inner = [
        *check_values(meant, placement, catalog),
        *check_places(meant, placement, catalog, project=project),
        *check_streaming(meant, wait_until),
    ]
    if operator == "tpu":
        problems += check_tpu_zone(placement, catalog, where)
        inner += check_tpu_workers(meant, placement, catalog)
    return [*problems, *(_renamed(problem, prefixes) for problem in inner), *wrong]


def resolve(candidate: Candidate, catalog: Catalog) -> Candidate:
    """Return the candidate with the catalogue's machine type where it names none."""
    machine = candidate.placement.machine_type or catalog.default_machine(candidate.placement.accelerator)
    return replace(candidate, placement=candidate.placement.on(machine)) if machine else candidate


def place_name(position: int) -> str:
    """Return the name of the parameter that a candidate stands in, by its position in the user's order."""
    return "placement" if position == 0 else f"fallback[{position - 1}]"


def _read(value: Any, region: str | None, where: str, problems: list[Problem]) -> Candidate | None:
    text = value.get("placement") if isinstance(value, Mapping) else value
    if is_templated(text) and text is not None:
        return None
    if not isinstance(value, str | Mapping):
        problems.append(
            error("placement-invalid", f"{value!r} is not a placement such as 'nvidia-l4 in us-central1'.", where)
        )
        return None
    if is_templated(region) and "in" not in str(text).lower().split():
        # Its location comes with the region.
        return None
    try:
        return Candidate.parse(value, region=None if is_templated(region) else region)
    except (PlacementError, ValueError) as wrong:
        problems.append(error("placement-invalid", f"{str(wrong)[:1].upper()}{str(wrong)[1:]}.", where))
        return None


def _check_project(project: str | None, *, required: bool) -> list[Problem]:
    if project is None:
        text = "There is no project; give project_id=, or a project in the connection."
        return [error("project-missing", text, "project_id")] if required else []
    if is_templated(project) or _PROJECT.match(project):
        return []
    text = f"{project!r} is not a project id such as acme-ml-prod; a project's number or display name does not do."
    return [error("project-invalid", text, "project_id")]


@overload
def _in_python_names(said: BeamRequest, sdk: Sdk) -> BeamRequest: ...
@overload
def _in_python_names(said: Candidate, sdk: Sdk) -> Candidate: ...
def _in_python_names(said: BeamRequest | Candidate, sdk: Sdk) -> BeamRequest | Candidate:
    """Return the same with the names of Beam's Python, in which all rules are written."""
    if sdk == "python":
        return said
    if isinstance(said, Candidate):
        return replace(said, overrides={**said.overrides, **_renamed_options(said.overrides, sdk)})
    return replace(said, **_renamed_options({name: getattr(said, name) for name in OPTIONS}, sdk))


def _renamed_options(values: Mapping[str, Any], sdk: Sdk) -> dict[str, Any]:
    mappings = {name: values[name] for name in OPTIONS if isinstance(values.get(name), Mapping)}
    return {name: in_python_names(options, sdk) for name, options in mappings.items()}


def _check_unused(request: BeamRequest, candidates: Sequence[Candidate | None]) -> Iterable[Problem]:
    """Return the parameters about GPUs that no candidate has a use for."""
    accelerators = [candidate.placement.accelerator for candidate in candidates if candidate]
    if len(accelerators) < len(candidates) or any(isinstance(each, Gpu) for each in accelerators):
        return
    for name in _GPU_ONLY:
        if getattr(request, name):
            yield warning("gpu-only", f"{name} is for GPUs, and no candidate has one.", name)


def _check_unused_there(overrides: Mapping[str, Any], placement: Placement, where: str) -> Iterable[Problem]:
    """Return the parameters about GPUs that a candidate without any says."""
    for name in _GPU_ONLY:
        if overrides.get(name) and not isinstance(placement.accelerator, Gpu):
            yield warning("gpu-only", f"{name} is for GPUs, and {placement} has none.", f"{where}.{name}")


def _check_order(candidates: Sequence[Candidate | None], region: str | None, catalog: Catalog) -> Iterable[Problem]:
    """Return what is wrong between the candidates, or between the first one and ``region=``."""
    first = candidates[0].placement if candidates and candidates[0] else None
    if first and region and not is_templated(region) and region not in (first.region, first.zone):
        yield _contradiction(first, region)
    if first and isinstance(first.accelerator, Cpu):
        text = "CPUs come first, so no accelerator is ever tried; they are meant as the last entry of fallback."
        yield warning("cpu-first", text, "placement")
    seen: dict[int, Candidate] = {}
    for n, candidate in enumerate(candidates):
        if candidate is None:
            continue
        resolved = resolve(candidate, catalog)
        same = next((m for m, other in seen.items() if other == resolved), None)
        if same is not None:
            yield warning("duplicate", f"{candidate.placement} is the same as {place_name(same)}.", place_name(n))
        seen.setdefault(n, resolved)


def _meant(
    plain: BeamRequest, candidates: Sequence[Candidate | None], sdk: Sdk
) -> Iterable[tuple[str, BeamRequest, Placement]]:
    """Return every candidate that can be read: its name, and the request as it is meant there."""
    for n, candidate in enumerate(candidates):
        if candidate is not None:
            overrides, _ = plain_overrides(_in_python_names(candidate, sdk), place_name(n))
            meant = plain.for_candidate(replace(candidate, overrides=overrides), "python")
            yield place_name(n), meant, candidate.placement


def _contradiction(placement: Placement, region: str) -> Problem:
    code: Literal["zone-outside-region", "region-contradicted"]
    code = "zone-outside-region" if placement.zone else "region-contradicted"
    kind = "Zone" if placement.zone else "Region"
    text = f"{kind} {placement.location} is not in region={region!r}; give the location once, in the placement."
    return error(code, text, "placement")


def _renamed(problem: Problem, prefixes: Mapping[str, str]) -> Problem:
    root, dot, rest = problem.where.partition(".")
    return replace(problem, where=f"{prefixes[root]}{dot}{rest}") if root in prefixes else problem
