"""An operator's keyword arguments, held against all rules without Airflow: what is wrong, and what would be sent.

A request is a mapping of the operator's name and of the keyword arguments that it would be made with, as plain data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from datetime import date
from typing import TYPE_CHECKING, Any, Literal, cast

from airflow_accel_provider.core.catalog import Catalog
from airflow_accel_provider.core.elsewhere import misplaced
from airflow_accel_provider.core.options import rendered
from airflow_accel_provider.core.parameters import AIRFLOW_PARAMETERS, PARAMETERS, SPARK_PARAMETERS
from airflow_accel_provider.core.policy import Policy
from airflow_accel_provider.core.problems import Problem, error, nearest
from airflow_accel_provider.core.request import OVERRIDABLE, BeamRequest, Candidate
from airflow_accel_provider.core.validation import check_beam, check_life, is_templated, read_candidates, resolve

if TYPE_CHECKING:
    from airflow_accel_provider.core.spark import SparkRequest

# For these None means "not said"; for the others that is for validation to judge.
_UNSAID_AS_NONE = ("deferrable", "poll_interval")


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """All that is wrong with a request, and what its first place would be sent when nothing is.

    ``rendered`` leaves out what only a run knows: job name and ``accel-…`` labels, and a project nobody named.
    """

    problems: tuple[Problem, ...] = ()
    rendered: tuple[str, ...] = ()

    @property
    def is_ok(self) -> bool:
        """Tell whether the job may start: warnings do not stop it."""
        return not any(problem.is_error for problem in self.problems)

    def to_json(self) -> dict[str, Any]:
        """Return the answer of ``accel check``."""
        problems = [problem_json(problem) for problem in self.problems]
        return {"ok": self.is_ok, "problems": problems, "rendered": list(self.rendered)}


def problem_json(problem: Problem) -> dict[str, str]:
    """Return a problem as plain JSON; ``where`` is left out when the problem is about the whole."""
    value = {"severity": problem.severity, "code": problem.code, "message": problem.message}
    return {**value, "where": problem.where} if problem.where else value


def check_request(
    value: Any, *, catalog: Catalog, today: date, allowed_regions: frozenset[str] = frozenset()
) -> Checked:
    """Return what is wrong with a request, and what it becomes. Nothing is raised, whatever the value.

    ``today`` decides which runtimes have ended. No ``allowed_regions`` allow all.
    """
    if not isinstance(value, Mapping):
        text = 'A request is an object such as {"operator": "BeamGpuPipelineOperator", "placement": "…"}.'
        return Checked(problems=(error("request-invalid", text),))
    operator = value.get("operator")
    if not isinstance(operator, str) or operator not in PARAMETERS:
        return Checked(problems=(_unknown_operator(operator),))
    keywords = {name: said for name, said in value.items() if name != "operator"}
    return check_keywords(operator, keywords, catalog=catalog, today=today, allowed_regions=allowed_regions)


def check_keywords(
    operator: str,
    keywords: Mapping[str, Any],
    *,
    catalog: Catalog,
    today: date,
    allowed_regions: frozenset[str] = frozenset(),
) -> Checked:
    """Return what is wrong with the keyword arguments of one of the operators in :data:`PARAMETERS`."""
    odd = (*_unknown_names(operator, keywords), *_missing_names(operator, keywords))
    said = {
        name: value
        for name, value in keywords.items()
        if name in PARAMETERS[operator] and not (value is None and name in _UNSAID_AS_NONE)
    }
    checked = _CHECKS[operator](said, catalog, today, allowed_regions)
    problems = tuple(dict.fromkeys((*odd, *check_life(said), *checked.problems)))
    rendered = () if any(problem.is_error for problem in problems) else checked.rendered
    return Checked(problems=problems, rendered=rendered)


def beam_request(keywords: Mapping[str, Any]) -> BeamRequest:
    """Return the request among an operator's keyword arguments; ``None`` is what was not said."""
    names = [spec.name for spec in fields(BeamRequest)]
    return BeamRequest(**{name: keywords[name] for name in names if keywords.get(name) is not None})


def spark_request(keywords: Mapping[str, Any]) -> SparkRequest:
    """Return the same of the operator for Spark batches."""
    from airflow_accel_provider.core.spark import SparkRequest

    return SparkRequest(**{name: keywords[name] for name in SPARK_PARAMETERS if keywords.get(name) is not None})


def _check_gpu(keywords: Mapping[str, Any], catalog: Catalog, _: date, allowed_regions: frozenset[str]) -> Checked:
    return _check_beam(keywords, "gpu", catalog, allowed_regions)


def _check_tpu(keywords: Mapping[str, Any], catalog: Catalog, _: date, allowed_regions: frozenset[str]) -> Checked:
    return _check_beam(keywords, "tpu", catalog, allowed_regions)


def _check_spark(
    keywords: Mapping[str, Any], catalog: Catalog, today: date, allowed_regions: frozenset[str]
) -> Checked:
    # Who checks pipelines only need not wait for what is said of Spark.
    from airflow_accel_provider.core.spark import (
        check_call,
        check_spark,
        check_waiting,
        spark_catalog,
        spark_properties,
        within_budget,
    )

    region = _text_or_later(keywords.get("region"))
    candidates, unread = _candidates(keywords, region)
    request, tables = spark_request(keywords), spark_catalog(catalog)
    problems = check_spark(
        request,
        candidates,
        catalog=catalog,
        tables=tables,
        today=today,
        project=_text_or_later(keywords.get("project_id")),
        region=region,
        allowed_regions=allowed_regions,
    )
    found = (*unread, *problems, *check_call(keywords))
    first = candidates[0] if candidates else None
    if any(problem.is_error for problem in found):
        return Checked(problems=found)
    patience = keywords.get("start_timeout", Policy().start_timeout)
    found = (*found, *check_waiting(request, candidates, tables, patience))
    if first is None:
        return Checked(problems=found)
    meant = within_budget(request.for_candidate(first), first.placement, tables, patience)
    properties = spark_properties(meant, first.placement, tables)
    return Checked(problems=found, rendered=tuple(f"{name}={value}" for name, value in properties.items()))


_CHECKS: Mapping[str, Callable[[Mapping[str, Any], Catalog, date, frozenset[str]], Checked]] = {
    "BeamGpuPipelineOperator": _check_gpu,
    "BeamTpuPipelineOperator": _check_tpu,
    "DataprocGpuBatchOperator": _check_spark,
}


def _check_beam(
    keywords: Mapping[str, Any], operator: Literal["gpu", "tpu"], catalog: Catalog, allowed_regions: frozenset[str]
) -> Checked:
    # A region or project of another type is told of with the other types.
    region = _text_or_later(keywords.get("region"))
    project = _text_or_later(keywords.get("project_id"))
    candidates, unread = _candidates(keywords, region)
    request = beam_request(keywords)
    problems = check_beam(
        request,
        candidates,
        catalog=catalog,
        operator=operator,
        wait_until=keywords.get("wait_until", "done"),
        project=project,
        region=region,
        allowed_regions=allowed_regions,
    )
    found = (*unread, *problems)
    first = candidates[0] if candidates else None
    if first is None or any(problem.is_error for problem in found):
        return Checked(problems=found)
    candidate = resolve(first, catalog)
    lines = rendered(request.for_candidate(candidate), candidate.placement, project=project or "")
    return Checked(problems=found, rendered=lines)


def _candidates(
    keywords: Mapping[str, Any], region: str | None
) -> tuple[tuple[Candidate | None, ...], tuple[Problem, ...]]:
    if "placement" not in keywords:
        # That it is missing is told already; what is wrong with the others still matters.
        further, problems = read_candidates("{{ missing }}", keywords.get("fallback", ()), region=region)
        return further, problems
    return read_candidates(keywords["placement"], keywords.get("fallback", ()), region=region)


def _text_or_later(value: Any) -> str | None:
    return cast("str", value) if isinstance(value, str) or is_templated(value) else None


def _unknown_operator(operator: Any) -> Problem:
    if operator is None:
        return error("operator-missing", f'Say which "operator": {_one_of(PARAMETERS)}.', "operator")
    near = nearest(str(operator), PARAMETERS)
    hint = f"Did you mean {near}?" if near else f"There are {_one_of(PARAMETERS)}."
    return error("operator-unknown", f"There is no operator {operator!r}. {hint}", "operator")


def _unknown_names(operator: str, keywords: Mapping[str, Any]) -> Iterator[Problem]:
    known = PARAMETERS[operator]
    told = misplaced(operator, keywords) if "batch" in known else ()
    yield from told
    for name in keywords:
        if name in known or name in AIRFLOW_PARAMETERS or any(problem.where == name for problem in told):
            continue
        near = nearest(name, known | AIRFLOW_PARAMETERS)
        options = "pipeline_options" if "pipeline_options" in known else "properties"
        hint = f"Did you mean {near}?" if near else f"Options of the job's own go into {options}."
        if name in OVERRIDABLE and "pipeline_options" in known:
            hint = "It is for GPUs; say it in the mapping of a fallback that has some."
        yield error("parameter-unknown", f"{operator} has no parameter {name!r}. {hint}", name)


def _missing_names(operator: str, keywords: Mapping[str, Any]) -> Iterator[Problem]:
    if "placement" not in keywords:
        example = "l4 in us-central1" if operator == "DataprocGpuBatchOperator" else "nvidia-l4 in us-central1"
        text = f"A placement is required, such as {example!r}."
        yield error("parameter-missing", text, "placement")


def _one_of(names: Iterable[str]) -> str:
    return " or ".join(names)
