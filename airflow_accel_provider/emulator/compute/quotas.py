"""How much of each quota is used: by the world, and by the VMs that exist."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from airflow_accel_provider.emulator.compute.tables import ACCELERATORS, region_of
from airflow_accel_provider.emulator.worlds import Quota, World

if TYPE_CHECKING:
    from collections.abc import Iterable

    from airflow_accel_provider.emulator.compute.instances import Instance

GLOBAL_GPUS = "GPUS_ALL_REGIONS"
GLOBAL_CPUS = "CPUS_ALL_REGIONS"
NEVER_SET: Mapping[str, Quota] = {
    each.cloud_quota: Quota(limit=0) for each in ACCELERATORS.values() if each.cloud_quota
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Shortage:
    """A quota that leaves no room. ``region`` is None for a project-wide one."""

    metric: str
    limit: float
    region: str | None


def draws(instance: Instance) -> dict[str, float]:
    """Return what one VM takes of each regional quota; a reserved machine's share was taken when it was reserved."""
    if instance.own_draws is not None:
        return dict(instance.own_draws)
    machine = instance.machine
    taken: dict[str, float] = {"INSTANCES": 1, "DISKS_TOTAL_GB": instance.disk_gb}
    if instance.public_ip:
        taken["IN_USE_ADDRESSES"] = 1
    if instance.reservation:
        return taken
    if machine.cpu_metric:
        taken[machine.cpu_metric] = machine.cpus
    metric = ACCELERATORS[instance.accelerator].metric if instance.accelerator else None
    if metric:
        taken[metric] = instance.count
    return taken


def global_draws(instance: Instance) -> dict[str, float]:
    """Return what one VM takes of each project-wide quota; TPUs are no GPUs."""
    if instance.reservation:
        return {}
    is_gpu = instance.accelerator is not None and not ACCELERATORS[instance.accelerator].is_tpu
    return {GLOBAL_CPUS: instance.machine.cpus, GLOBAL_GPUS: instance.count if is_gpu else 0}


def cloud_draws(instance: Instance) -> dict[str, float]:
    """Return what one VM takes of each regional quota that only the Cloud Quotas API shows."""
    key = ACCELERATORS[instance.accelerator].cloud_quota if instance.accelerator else None
    return {key: instance.count} if key and not instance.reservation else {}


def region_usage(region: str, instances: Iterable[Instance], world: World) -> dict[str, Quota]:
    """Return a region's quotas as they stand."""
    taken: Counter[str] = Counter()
    for instance in instances:
        if region_of(instance.zone) == region:
            taken.update(draws(instance))
    return _standing(world.region_quota(region), taken)


def cloud_usage(region: str, instances: Iterable[Instance], world: World) -> dict[str, Quota]:
    """Return a region's quotas that only the Cloud Quotas API shows, as they stand; one never set grants nothing."""
    taken: Counter[str] = Counter()
    for instance in instances:
        if region_of(instance.zone) == region:
            taken.update(cloud_draws(instance))
    granted = {key: replace(quota, limit=max(0, quota.limit)) for key, quota in world.cloud_quota(region).items()}
    return _standing({**NEVER_SET, **granted}, taken)


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
        (region, cloud_usage(region, existing, world), cloud_draws(wanted)),
    )
    for where, quotas, needs in levels:
        for metric, need in needs.items():
            quota = quotas.get(metric)
            if need and quota is not None and quota.usage + need > quota.limit:
                return Shortage(metric=metric.partition("/")[0], limit=quota.limit, region=where)
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
