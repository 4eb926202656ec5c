"""Is there room? Quota arithmetic over figures that somebody else read.

A job needs its *floor* (the workers it starts with) and may grow to its *ceiling* (the most autoscaling may ask for).
Autoscaling makes do with less, so only the floor refuses a place; the ceiling warns; what could not be read decides
nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from airflow_accel_provider.core.failures import Failure, FailureKind, Resource, Scope

GLOBAL = "global"
"""The key under which readings hold the project-wide quotas."""


@dataclass(frozen=True, slots=True)
class Quota:
    """One quota as the service states it, in the metric's own unit."""

    limit: float
    usage: float

    @property
    def left(self) -> float:
        """What may still be asked for; never below zero, though usage can exceed a lowered limit."""
        return max(self.limit - self.usage, 0)


Readings = Mapping[str, Mapping[str, Quota] | None]
"""Quotas by region (and :data:`GLOBAL`), then by metric; ``None`` where they could not be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """What one candidate draws from one quota.

    ``ceiling`` is ``None`` when the job has no upper bound. ``location`` is a region or :data:`GLOBAL`. A demand
    that is not ``certain`` (pages disagree on whether this machine family draws it) only warns.
    """

    metric: str
    location: str
    floor: int
    ceiling: int | None
    resource: Resource
    certain: bool = True

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
        left = f"{demand}; {_figure(quota.left)} of {_figure(quota.limit)} left"
        if quota.left < demand.floor and demand.certain:
            shortage = shortage or _shortage(demand, left)
        elif quota.left < demand.floor:
            warnings.append(f"may not fit: {left}")
        elif demand.ceiling is not None and quota.left < demand.ceiling:
            warnings.append(f"cannot grow to {demand.ceiling}: {left}")
    return Room(shortage=shortage, warnings=tuple(warnings))


def _shortage(demand: Demand, text: str) -> Failure:
    is_global = demand.location == GLOBAL
    return Failure(
        kind=FailureKind.QUOTA,
        scope=Scope.PROJECT if is_global else Scope.REGION,
        region=None if is_global else demand.location,
        metric=demand.metric,
        resource=demand.resource,
        explanation=text,
    )


def _figure(value: float) -> str:
    return f"{value:g}"
