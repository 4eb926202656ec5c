"""What a Beam job draws from the project's quotas, in one place."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from airflow_accel_provider.core.accelerators import Cpu, Gpu, Tpu
from airflow_accel_provider.core.cloud_quotas import CloudQuota, cloud_quota
from airflow_accel_provider.core.failures import Resource
from airflow_accel_provider.core.quota import GLOBAL, Demand
from airflow_accel_provider.core.reservations import Reservation
from airflow_accel_provider.core.reserving import wanted_reservation

if TYPE_CHECKING:
    from airflow_accel_provider.core.catalog import Catalog
    from airflow_accel_provider.core.placement import Placement
    from airflow_accel_provider.core.request import BeamRequest

# The machine families whose CPU quota Compute Engine's pages settle; which one G2 and A3 draw is not, so theirs only
# warns. Source: https://cloud.google.com/compute/resource-usage#cpu_quota, read 2026-11.
_CPU_METRIC = {"n1": "CPUS", "n2": "N2_CPUS", "e2": "CPUS", "a2": "A2_CPUS"}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Draw:
    """What one worker draws from one quota."""

    metric: str
    location: str
    each: int
    resource: Resource
    certain: bool = True
    quota: CloudQuota | None = None


def demands(request: BeamRequest, placement: Placement, catalog: Catalog) -> tuple[Demand, ...]:
    """Return what the job draws from each quota: its accelerators first, since they are what runs out.

    Without ``max_num_workers`` a job may grow to a thousand workers, so a ceiling would say nothing and is left open.
    """
    floor = request.num_workers or 1
    ceiling = request.max_num_workers
    return tuple(
        Demand(
            metric=draw.metric,
            location=draw.location,
            floor=floor * draw.each,
            ceiling=ceiling * draw.each if ceiling else None,
            resource=draw.resource,
            certain=draw.certain,
            quota=draw.quota,
        )
        for draw in _draws(request, placement, catalog)
    )


def _draws(request: BeamRequest, placement: Placement, catalog: Catalog) -> Iterator[_Draw]:
    # Machines of a named reservation were counted when it was made; their addresses were not.
    if not isinstance(wanted_reservation(request, placement), Reservation):
        yield from _accelerators(placement, catalog)
        yield from _processors(placement, catalog)
    if request.use_public_ips is not False:
        yield _Draw(metric="IN_USE_ADDRESSES", location=placement.region, each=1, resource=Resource.ADDRESS)


def _accelerators(placement: Placement, catalog: Catalog) -> Iterator[_Draw]:
    wanted, device = placement.accelerator, Resource.ACCELERATOR
    each = _devices(placement, catalog)
    if isinstance(wanted, Cpu) or not each:
        return
    metric, quota = catalog.quota_metric(wanted.type), cloud_quota(wanted.type, catalog)
    if metric:
        yield _Draw(metric=metric, location=placement.region, each=each, resource=device)
    elif quota:
        yield _Draw(metric=quota.metric, location=placement.region, each=each, resource=device, quota=quota)
    if isinstance(wanted, Gpu):
        yield _Draw(metric="GPUS_ALL_REGIONS", location=GLOBAL, each=each, resource=device)
    elif quota and placement.zone:
        # TPU chips are limited by zone as well.
        zonal = quota.of_zone()
        yield _Draw(metric=zonal.metric, location=placement.zone, each=each, resource=device, quota=zonal)


def _devices(placement: Placement, catalog: Catalog) -> int:
    """Return how many GPUs or TPU chips one worker has; none where the slice is not known."""
    wanted = placement.accelerator
    if isinstance(wanted, Tpu):
        known = catalog.tpu(wanted.type, wanted.topology)
        return known.chips if known else 0
    return wanted.count if isinstance(wanted, Gpu) else 0


def _processors(placement: Placement, catalog: Catalog) -> Iterator[_Draw]:
    machine = catalog.machine(placement.machine_type) if placement.machine_type else None
    # No page says that the hosts of TPUs draw a CPU quota.
    if machine is None or isinstance(placement.accelerator, Tpu):
        return
    certain = machine.family in _CPU_METRIC
    metric = _CPU_METRIC.get(machine.family, "CPUS")
    yield _Draw(metric=metric, location=placement.region, each=machine.vcpus, resource=Resource.CPU, certain=certain)
