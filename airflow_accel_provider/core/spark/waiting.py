"""How long a batch may wait in a queue for its machines, given how long the task waits for them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from airflow_accel_provider.core.problems import Problem, warning
from airflow_accel_provider.core.spark.demands import is_queued
from airflow_accel_provider.core.spark.sizes import seconds

if TYPE_CHECKING:
    from airflow_accel_provider.core.placement import Placement
    from airflow_accel_provider.core.request import Candidate
    from airflow_accel_provider.core.spark.catalog import SparkCatalog
    from airflow_accel_provider.core.spark.request import SparkRequest

# https://cloud.google.com/dataproc-serverless/docs/guides/dws-serverless, read 2026-11.
_LONGEST = 7200
_SHARE = 0.9
_YEAR = 366 * 24 * 3600.0


def within_budget(
    request: SparkRequest, placement: Placement, tables: SparkCatalog, start_timeout: Any
) -> SparkRequest:
    """Return a request as it is meant in one place with a time for the queue that ends before ``start_timeout`` does.

    So it is the service that gives up, says why, and holds nothing any more. What the user said stays.
    """
    budget = _budget(start_timeout)
    if request.allocation_timeout is not None or budget is None or not is_queued(request, placement, tables):
        return request
    return replace(request, allocation_timeout=f"{min(max(int(budget * _SHARE), 1), _LONGEST)}s")


def check_waiting(
    request: SparkRequest, candidates: Iterable[Candidate | None], tables: SparkCatalog, start_timeout: Any
) -> tuple[Problem, ...]:
    """Return the warnings of all places of a checked request; a ``start_timeout`` that is none says nothing."""
    budget = _budget(start_timeout)
    meant = [(request.for_candidate(each), each.placement) for each in candidates if each]
    if budget is None:
        return ()
    said = [problem for each, placement in meant for problem in _check(each, placement, tables, budget)]
    return tuple(dict.fromkeys(said))


def _budget(start_timeout: Any) -> float | None:
    budget = seconds(start_timeout)
    return budget if budget is not None and 0 < budget < _YEAR else None


def _check(request: SparkRequest, placement: Placement, tables: SparkCatalog, budget: float) -> Iterator[Problem]:
    """Yield a warning where the task gives up before the queue does."""
    said = seconds(request.allocation_timeout)
    if said is not None and said >= budget and is_queued(request, placement, tables):
        text = (
            f"The task gives a batch up after start_timeout, {budget:g} s, before its queue of {said:g} s is over; "
            "give a longer start_timeout."
        )
        yield warning("allocation-timeout-late", text, "allocation_timeout")
