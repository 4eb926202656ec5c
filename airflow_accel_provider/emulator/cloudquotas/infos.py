"""What the Cloud Quotas API says of each quota of Compute Engine: its limits, place by place, and never its usage.

Reference: https://cloud.google.com/docs/quotas/reference/rest/v1/projects.locations.services.quotaInfos and
https://cloud.google.com/docs/quotas/implement-common-use-cases (read 2026-11-29).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from airflow_accel_provider.emulator.compute.tables import ZONES

if TYPE_CHECKING:
    from airflow_accel_provider.emulator.worlds import Quota, World

SERVICE = "compute.googleapis.com"

FAMILY_DIMENSIONS: Mapping[str, str] = {
    "GPUS_PER_GPU_FAMILY": "gpu_family",
    "TPUS_PER_TPU_FAMILY": "tpu_family",
}
"""Metrics that are counted for each family of accelerators apart, with the dimension that names the family."""

UNSET = -1
"""What a limit says that was never set. Asked for such an accelerator, Compute Engine answers as if it were 0."""


def quota_infos(world: World, *, parent: str) -> Iterator[dict[str, Any]]:
    """Yield every quota by its id; ``parent`` is ``projects/NUMBER/locations/global/services/SERVICE``."""
    regional = {region: world.region_quota(region) for region in ZONES}
    families = {region: world.cloud_quota(region) for region in ZONES}
    metrics: dict[str, list[dict[str, Any]]] = {}
    for metric in _names(regional.values()):
        metrics[f"{metric}-per-project-region"] = _by_region(metric, regional, {})
    for name in _names(families.values()):
        metric, _, family = name.partition("/")
        dimensions = {FAMILY_DIMENSIONS[metric]: family} if family else {}
        metrics.setdefault(f"{metric}-per-project-region", []).extend(_by_region(name, families, dimensions))
    for metric in FAMILY_DIMENSIONS:
        metrics.setdefault(f"{metric}-per-project-region", []).append(_info({}, UNSET, ZONES))
    for metric, quota in world.project_quotas.items():
        metrics[f"{metric}-per-project"] = [_info({}, quota.limit, ("global",))]
    for key, infos in sorted(metrics.items()):
        yield _quota(key.replace("_", "-"), key.partition("-")[0], infos, parent)


def _names(places: Iterable[Mapping[str, Quota]]) -> list[str]:
    return sorted({name for quotas in places for name in quotas})


def _by_region(
    name: str, places: Mapping[str, Mapping[str, Quota]], dimensions: Mapping[str, str]
) -> list[dict[str, Any]]:
    """Return what is said of a quota, the regions that differ first; most regions have the same limit."""
    limits = {region: quotas[name].limit if name in quotas else UNSET for region, quotas in places.items()}
    usual = max(limits.values(), key=list(limits.values()).count)
    special = [region for region, limit in limits.items() if limit != usual]
    infos = [_info({"region": region, **dimensions}, limits[region], (region,)) for region in special]
    return [*infos, _info(dimensions, usual, [region for region in limits if region not in special])]


def _info(dimensions: Mapping[str, str], limit: float, locations: Iterable[str]) -> dict[str, Any]:
    body = {"details": {"value": str(int(limit))}, "applicableLocations": list(locations)}
    return {"dimensions": dict(dimensions), **body} if dimensions else body


def _quota(quota_id: str, metric: str, infos: list[dict[str, Any]], parent: str) -> dict[str, Any]:
    is_regional = quota_id.endswith("-region")
    family = [FAMILY_DIMENSIONS[metric]] if metric in FAMILY_DIMENSIONS else []
    words = metric.replace("_", " ")
    return {
        "name": f"{parent}/quotaInfos/{quota_id}",
        "quotaId": quota_id,
        "metric": f"{SERVICE}/{metric.lower()}",
        "service": SERVICE,
        "isPrecise": True,
        "containerType": "PROJECT",
        "dimensions": [*family, "region"] if is_regional else [],
        "metricDisplayName": words,
        "quotaDisplayName": f"{words} per project per region" if is_regional else f"{words} per project",
        "metricUnit": "1",
        "quotaIncreaseEligibility": {"isEligible": True},
        # The more dimensions a row names, the earlier it comes.
        "dimensionsInfos": sorted(infos, key=lambda info: -len(info.get("dimensions", ()))),
        "serviceRequestQuotaUri": "https://console.cloud.google.com/iam-admin/quotas",
    }
