"""The plan: every candidate in the user's order, kept or put aside with a reason, before anything is started."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from airflow_accel_provider.core.accelerators import Gpu
from airflow_accel_provider.core.failures import Failure, FailureKind, Resource, Scope
from airflow_accel_provider.core.placement import Placement
from airflow_accel_provider.core.quota import GLOBAL, Demand, Readings, room_for
from airflow_accel_provider.core.record import PlannedPlace
from airflow_accel_provider.core.request import BeamRequest, Candidate

if TYPE_CHECKING:
    from airflow_accel_provider.core.catalog import Catalog

# The machine families whose CPU quota Compute Engine's pages settle; which one G2 and A3 draw is not, so theirs only
# warns. Source: https://cloud.google.com/compute/resource-usage#cpu_quota, read 2026-11.
_CPU_METRIC = {"n1": "CPUS", "n2": "N2_CPUS", "e2": "CPUS", "a2": "A2_CPUS"}


def plan(
    request: BeamRequest, candidates: Sequence[Candidate], *, catalog: Catalog, readings: Readings
) -> tuple[PlannedPlace, ...]:
    """Return one row a candidate. Candidates have their machine types filled in."""
    return tuple(
        _planned(request.for_candidate(candidate), candidate.placement, catalog, readings) for candidate in candidates
    )


def regions_to_read(candidates: Sequence[Candidate]) -> tuple[str, ...]:
    """Return the regions whose quotas matter, each once, in order."""
    return tuple(dict.fromkeys(candidate.placement.region for candidate in candidates))


def _planned(request: BeamRequest, placement: Placement, catalog: Catalog, readings: Readings) -> PlannedPlace:
    missing = not_offered(placement, catalog)
    if missing:
        return PlannedPlace(placement=placement, rejected=missing)
    room = room_for(demands(request, placement, catalog), readings)
    return PlannedPlace(placement=placement, rejected=room.shortage, warnings=room.warnings)


def not_offered(placement: Placement, catalog: Catalog) -> Failure | None:
    """Return why the place is put aside when the catalogue knows it and knows that it lacks the accelerator."""
    instead = catalog.offered_instead(placement)
    if not instead:
        return None
    return Failure(
        kind=FailureKind.NOT_OFFERED,
        scope=Scope.ZONE if placement.zone else Scope.REGION,
        resource=Resource.ACCELERATOR,
        zone=placement.zone,
        region=placement.region,
        explanation=f"not offered there ({' and '.join(instead)} {'have' if len(instead) > 1 else 'has'} it)",
    )


def demands(request: BeamRequest, placement: Placement, catalog: Catalog) -> tuple[Demand, ...]:
    """Return what the job draws from each quota: its accelerators first, since they are what runs out.

    Without ``max_num_workers`` a job may grow to a thousand workers, so a ceiling would say nothing and is left open.
    """
    floor = request.num_workers or 1
    ceiling = request.max_num_workers
    machine = catalog.machine(placement.machine_type) if placement.machine_type else None
    rows: list[Demand] = []

    def draw(
        metric: str, each: int, resource: Resource, location: str = placement.region, *, certain: bool = True
    ) -> None:
        most = ceiling * each if ceiling else None
        rows.append(
            Demand(
                metric=metric, location=location, floor=floor * each, ceiling=most, resource=resource, certain=certain
            )
        )

    if isinstance(placement.accelerator, Gpu):
        metric = catalog.quota_metric(placement.accelerator.type)
        if metric:
            draw(metric, placement.accelerator.count, Resource.ACCELERATOR)
        draw("GPUS_ALL_REGIONS", placement.accelerator.count, Resource.ACCELERATOR, GLOBAL)
    if machine:
        family = machine.family
        draw(_CPU_METRIC.get(family, "CPUS"), machine.vcpus, Resource.CPU, certain=family in _CPU_METRIC)
    if request.use_public_ips is not False:
        draw("IN_USE_ADDRESSES", 1, Resource.ADDRESS)
    return tuple(rows)
