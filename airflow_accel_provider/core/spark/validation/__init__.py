"""Can this batch work? All that is wrong with it and with its places, each with the nearest right thing.

An error is what the service would refuse, a warning what a person should know. One thing cannot be seen from here:
where the organization policy ``constraints/compute.requireShieldedVm`` is enforced, no batch with GPUs runs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from airflow_accel_provider.core.accelerators import Cpu
from airflow_accel_provider.core.problems import Problem, error, warning
from airflow_accel_provider.core.spark.properties import runtime_of
from airflow_accel_provider.core.spark.validation._batch import check_batch
from airflow_accel_provider.core.spark.validation._call import check_call
from airflow_accel_provider.core.spark.validation._life import check_life
from airflow_accel_provider.core.spark.validation._places import check_placement, check_places
from airflow_accel_provider.core.spark.validation._properties import check_conflicts, check_properties
from airflow_accel_provider.core.spark.validation._resources import check_resources
from airflow_accel_provider.core.spark.validation._runtimes import check_runtime
from airflow_accel_provider.core.spark.validation._types import check_said_twice, plain_overrides, plain_request
from airflow_accel_provider.core.validation import is_templated

if TYPE_CHECKING:
    from datetime import date

    from airflow_accel_provider.core.catalog import Catalog
    from airflow_accel_provider.core.placement import Placement
    from airflow_accel_provider.core.request import Candidate
    from airflow_accel_provider.core.spark.catalog import SparkCatalog
    from airflow_accel_provider.core.spark.request import SparkRequest

__all__ = ["check_call", "check_candidate", "check_spark"]

# https://cloud.google.com/resource-manager/docs/creating-managing-projects
_PROJECT = re.compile(r"[a-z][-a-z0-9:.]+[a-z0-9]")


def check_spark(
    request: SparkRequest,
    candidates: Sequence[Candidate | None],
    *,
    catalog: Catalog,
    tables: SparkCatalog,
    today: date,
    project: str | None = None,
    project_required: bool = False,
    region: str | None = None,
    allowed_regions: frozenset[str] = frozenset(),
) -> tuple[Problem, ...]:
    """Return all problems of a batch and of every place it might run in, each once.

    ``candidates`` are in the user's order, the placement first, ``None`` where one cannot be read yet. ``today``
    decides which runtimes have ended. ``project`` is what is known of it, and a missing one is wrong only when
    ``project_required``. No ``allowed_regions`` allow all.
    """
    plain, problems = plain_request(request, tables)
    problems += check_said_twice(plain)
    problems += _check_project(project, required=project_required)
    problems += _check_order(candidates, region)
    if not any(candidates):
        problems += _check_anywhere(plain.settled(), tables, today)
    for n, candidate in enumerate(candidates):
        if candidate is not None:
            problems += check_candidate(
                request,
                candidate,
                catalog=catalog,
                tables=tables,
                today=today,
                where=_place_name(n),
                allowed_regions=allowed_regions,
            )
    return tuple(dict.fromkeys(problems))


def check_candidate(
    request: SparkRequest,
    candidate: Candidate,
    *,
    catalog: Catalog,
    tables: SparkCatalog,
    today: date,
    where: str = "placement",
    allowed_regions: frozenset[str] = frozenset(),
) -> tuple[Problem, ...]:
    """Return the problems of one place and of the batch as it is meant there."""
    plain, problems = plain_request(request, tables)
    overrides, wrong = plain_overrides(candidate, where, tables)
    placement = candidate.placement
    meant = plain.for_candidate(replace(candidate, overrides=overrides))
    problems += check_placement(placement, catalog, tables, where=where, allowed_regions=allowed_regions)
    # What a candidate says itself is reported as its own; what it inherits is reported once for all.
    inner = [*_check_anywhere(meant, tables, today), *_check_here(meant, placement, tables)]
    problems += [_renamed(problem, overrides, where) for problem in inner]
    return tuple(dict.fromkeys([*problems, *wrong]))


def _check_anywhere(meant: SparkRequest, tables: SparkCatalog, today: date) -> Iterator[Problem]:
    runtime = runtime_of(meant, tables)
    yield from check_runtime(meant.runtime_version, tables, today)
    yield from check_batch(meant.batch, runtime)
    yield from check_life(meant, runtime)
    yield from check_properties(meant, tables, runtime)


def _check_here(meant: SparkRequest, placement: Placement, tables: SparkCatalog) -> Iterator[Problem]:
    yield from check_places(meant, placement)
    yield from check_conflicts(meant, placement, tables)
    yield from check_resources(meant, placement, tables)


def _check_project(project: str | None, *, required: bool) -> Iterator[Problem]:
    if project is None:
        if required:
            text = "There is no project; give project_id=, or a project in the connection."
            yield error("project-missing", text, "project_id")
    elif not is_templated(project) and not _PROJECT.fullmatch(project):
        text = f"{project!r} is not a project id such as acme-ml-prod; a project's number or display name does not do."
        yield error("project-invalid", text, "project_id")


def _check_order(candidates: Sequence[Candidate | None], region: str | None) -> Iterator[Problem]:
    """Yield what is wrong between the candidates, or between the first one and ``region=``."""
    first = candidates[0].placement if candidates and candidates[0] else None
    if first and region and not is_templated(region) and region != first.region:
        text = f"Region {first.region} is not region={region!r}; give the location once, in the placement."
        yield error("region-contradicted", text, "placement")
    if first and isinstance(first.accelerator, Cpu):
        text = "CPUs come first, so no accelerator is ever tried; they are meant as the last entry of fallback."
        yield warning("cpu-first", text, "placement")
    for n, candidate in enumerate(candidates):
        if candidate is not None and candidate in candidates[:n]:
            same = _place_name(candidates.index(candidate))
            yield warning("duplicate", f"{candidate.placement} is the same as {same}.", _place_name(n))


def _place_name(position: int) -> str:
    return "placement" if position == 0 else f"fallback[{position - 1}]"


def _renamed(problem: Problem, overrides: Mapping[str, Any], where: str) -> Problem:
    """Return the problem under the candidate's name where it is about what the candidate says."""
    return replace(problem, where=f"{where}.{problem.where}") if _is_said(overrides, problem.where) else problem


def _is_said(said: Any, path: str) -> bool:
    """Tell whether a path leads to something; names may have dots in them."""
    if not isinstance(said, Mapping):
        return False
    if path in said:
        return True
    return any(path.startswith(f"{name}.") and _is_said(inner, path[len(name) + 1 :]) for name, inner in said.items())
