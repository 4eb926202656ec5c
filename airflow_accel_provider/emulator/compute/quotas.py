"""How much of each quota is used: by the world, and by the VMs that exist."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airflow_accel_provider.emulator.compute.tables import ACCELERATORS, region_of
from airflow_accel_provider.emulator.worlds import Quota, World

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from airflow_accel_provider.emulator.compute.instances import Instance

GLOBAL_GPUS = "GPUS_ALL_REGIONS"
GLOBAL_CPUS = "CPUS_ALL_REGIONS"


@dataclass(frozen=True, slots=True, kw_only=True)
class Shortage:
    """A quota that leaves no room. ``region`` is None for a project-wide one."""

    metric: str
    limit: float
    region: str | None


def draws(instance: Instance) -> dict[str, float]:
    """Return what one VM takes of each regional quota."""
    machine = instance.machine
    taken: dict[str, float] = {"INSTANCES": 1, "DISKS_TOTAL_GB": instance.disk_gb}
    if machine.cpu_metric:
        taken[machine.cpu_metric] = machine.cpus
    if instance.public_ip:
        taken["IN_USE_ADDRESSES"] = 1
    metric = ACCELERATORS[instance.accelerator].metric if instance.accelerator else None
    if metric:
        taken[metric] = instance.count
    return taken


def global_draws(instance: Instance) -> dict[str, float]:
    """Return what one VM takes of each project-wide quota."""
    return {GLOBAL_CPUS: instance.machine.cpus, GLOBAL_GPUS: instance.count}


def region_usage(region: str, instances: Iterable[Instance], world: World) -> dict[str, Quota]:
    """Return a region's quotas as they stand."""
    taken: Counter[str] = Counter()
    for instance in instances:
        if region_of(instance.zone) == region:
            taken.update(draws(instance))
    return _standing(world.region_quota(region), taken)


def project_usage(instances: Iterable[Instance], world: World) -> dict[str, Quota]:
    """Return the project-wide quotas as they stand."""
    taken: Counter[str] = Counter()
    for instance in instances:
        taken.update(global_draws(instance))
    return _standing(world.project_quotas, taken)


def find_shortage(wanted: Instance, instances: Iterable[Instance], world: World) -> Shortage | None:
    """Return the first quota that one more VM would exceed, project-wide ones first, or None."""
    existing = tuple(instances)
    region = region_of(wanted.zone)
    levels = (
        (None, project_usage(existing, world), global_draws(wanted)),
        (region, region_usage(region, existing, world), draws(wanted)),
    )
    for where, quotas, needs in levels:
        for metric, need in needs.items():
            quota = quotas.get(metric)
            if need and quota is not None and quota.usage + need > quota.limit:
                return Shortage(metric=metric, limit=quota.limit, region=where)
    return None


def to_json(quotas: Mapping[str, Quota]) -> list[dict[str, Any]]:
    """Return quotas as Compute Engine lists them."""
    return [
        {"metric": metric, "limit": float(quota.limit), "usage": float(quota.usage)}
        for metric, quota in sorted(quotas.items())
    ]


def _standing(quotas: Mapping[str, Quota], taken: Mapping[str, float]) -> dict[str, Quota]:
    return {
        metric: Quota(limit=quota.limit, usage=quota.usage + taken.get(metric, 0)) for metric, quota in quotas.items()
    }
