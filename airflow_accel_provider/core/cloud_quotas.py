"""Quotas that Compute Engine's own lists lack: Cloud Quotas tells their limits, running machines hint at their use."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from airflow_accel_provider.core.jobs import Worker
from airflow_accel_provider.core.locations import is_zone, region_of

if TYPE_CHECKING:
    from airflow_accel_provider.core.catalog import Catalog

_OF_REGION = "-per-project-region"
_OF_ZONE = "-per-project-zone"


@dataclass(frozen=True, slots=True, kw_only=True)
class CloudQuota:
    """One quota of the service ``compute.googleapis.com`` by its id and its dimensions besides the place.

    ``accelerator`` is Compute's own name for what draws it (``nvidia-h100-80gb``, ``ct6e``), ``families`` are those of
    the machines that carry it.
    """

    quota_id: str
    dimensions: tuple[tuple[str, str], ...]
    accelerator: str
    families: tuple[str, ...]

    @property
    def metric(self) -> str:
        """The name in the form that Compute Engine's own metrics have, with its dimensions."""
        name = self.quota_id.partition("-per-project")[0].replace("-", "_")
        return f"{name} ({', '.join(f'{key} {value}' for key, value in self.dimensions)})" if self.dimensions else name

    @property
    def is_zonal(self) -> bool:
        """Whether it is set for single zones, which few projects have."""
        return self.quota_id.endswith(_OF_ZONE)

    def of_zone(self) -> CloudQuota:
        """Return the same quota as it is set for single zones."""
        return replace(self, quota_id=self.quota_id.replace(_OF_REGION, _OF_ZONE))

    def advice(self, location: str) -> str:
        """Return how a person asks for more of it."""
        place = ("zone" if is_zone(location) else "region", location)
        said = ", ".join(f"{key}={value}" for key, value in (place, *self.dimensions))
        return f"ask for more of {self.quota_id} of the Compute Engine API (dimensions {said})"


def cloud_quota(type_: str, catalog: Catalog) -> CloudQuota | None:
    """Return the quota that an accelerator draws on demand by Cloud Quotas' name, or ``None`` when it is not known."""
    known = catalog.quota_of(type_)
    if known is None or known.quota_id is None:
        return None
    return CloudQuota(
        quota_id=known.quota_id,
        dimensions=tuple(sorted(known.dimensions.items())),
        accelerator=catalog.compute_name(type_),
        families=tuple(sorted({machine.family for machine in catalog.machines_of(type_)})),
    )


def drawn_by(machines: Iterable[Worker], quota: CloudQuota, location: str) -> int:
    """Return how many of a quota's accelerators the machines in a region or zone carry."""
    return sum(
        count
        for machine in machines
        if location in (machine.zone, region_of(machine.zone))
        for type_, count in machine.accelerators
        if type_ == quota.accelerator
    )


def machine_families(quotas: Iterable[CloudQuota]) -> tuple[str, ...]:
    """Return the families of the machines that draw any of the quotas."""
    return tuple(sorted({family for quota in quotas for family in quota.families}))
