"""Is there room? Quota arithmetic over figures that somebody else read.

A job needs its *floor* (the workers it starts with) and may grow to its *ceiling* (the most autoscaling may ask for).
Autoscaling makes do with less, so only the floor refuses a place; the ceiling warns; what could not be read decides
nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from airflow_accel_provider.core.cloud_quotas import CloudQuota, drawn_by
from airflow_accel_provider.core.failures import Failure, FailureKind, Resource, Scope
from airflow_accel_provider.core.jobs import Worker
from airflow_accel_provider.core.locations import is_zone, region_of

GLOBAL = "global"
"""The key under which readings hold the project-wide quotas."""


@dataclass(frozen=True, slots=True)
class Quota:
    """One quota, in the metric's own unit.

    ``usage`` is ``None`` where nobody tells it; then the limit alone can refuse. One that ``is_estimate`` was counted
    from running VMs, since the service states limits only.
    """

    limit: float
    usage: float | None
    is_estimate: bool = False

    @property
    def left(self) -> float:
        """What may still be asked for; never below zero, though usage can exceed a lowered limit."""
        return max(self.limit - (self.usage or 0), 0)

    def __str__(self) -> str:
        if self.usage is None:
            return f"the limit is {self.limit:.15g}, usage unknown"
        how = " (usage estimated from running VMs)" if self.is_estimate else ""
        return f"{self.left:.15g} of {self.limit:.15g} left{how}"


Readings = Mapping[str, Mapping[str, Quota] | None]
"""Quotas by region or zone (and :data:`GLOBAL`), then by metric; ``None`` where they could not be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """What one candidate draws from one quota.

    ``ceiling`` is ``None`` when the job has no upper bound. ``location`` is a region, a zone or :data:`GLOBAL`. A
    demand that is not ``certain`` (pages disagree on whether this machine family draws it) only warns. ``quota`` is
    given where Cloud Quotas alone tells the limit.
    """

    metric: str
    location: str
    floor: int
    ceiling: int | None
    resource: Resource
    certain: bool = True
    quota: CloudQuota | None = None

    def __str__(self) -> str:
        most = f" (up to {self.ceiling})" if self.ceiling is not None and self.ceiling > self.floor else ""
        return f"needs at least {self.floor}{most} of {self.metric}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """The answer for one candidate: why it has no room, and what else a person should know."""

    shortage: Failure | None = None
    warnings: tuple[str, ...] = ()


def room_for(demands: Iterable[Demand], readings: Readings) -> Room:
    """Hold demands against readings. The first floor that does not fit is the shortage."""
    shortage: Failure | None = None
    warnings: list[str] = []
    for demand in demands:
        quota = (readings.get(demand.location) or {}).get(demand.metric)
        if quota is None:
            continue
        left = f"{demand}; {quota}"
        if quota.left < demand.floor and demand.certain:
            shortage = shortage or _shortage(demand, left)
        elif quota.left < demand.floor:
            warnings.append(f"may not fit: {left}")
        elif demand.ceiling is not None and quota.left < demand.ceiling:
            warnings.append(f"cannot grow to {demand.ceiling}: {left}")
    return Room(shortage=shortage, warnings=tuple(warnings))


def with_estimates(
    readings: Readings, limits: Mapping[tuple[CloudQuota, str], float], machines: Sequence[Worker] | None
) -> Readings:
    """Return readings with quotas of which only the limit is told, their usage counted from running machines.

    ``limits`` are by quota and by the region or zone they hold for; ``machines`` is ``None`` when they were not read.
    """
    told = {place: dict(quotas) if quotas is not None else None for place, quotas in readings.items()}
    for (quota, location), limit in limits.items():
        usage = None if machines is None else drawn_by(machines, quota, location)
        told[location] = {**(told.get(location) or {}), quota.metric: Quota(limit, usage, is_estimate=True)}
    return told


def _shortage(demand: Demand, text: str) -> Failure:
    location = demand.location
    return Failure(
        kind=FailureKind.QUOTA,
        scope=_scope(location),
        region=None if location == GLOBAL else region_of(location) if is_zone(location) else location,
        zone=location if is_zone(location) else None,
        metric=demand.metric,
        resource=demand.resource,
        explanation=text,
        advice=demand.quota.advice(location) if demand.quota else "",
    )


def _scope(location: str) -> Scope:
    if location == GLOBAL:
        return Scope.PROJECT
    return Scope.ZONE if is_zone(location) else Scope.REGION
