"""What Google offers where: tables with a source and a date, read once from ``data/``.

The tables are a dated, offline picture. Being published in a zone is not being in stock there, and what is missing may
be new: callers warn about places that are not in a table and refuse only shapes that cannot exist.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow_accel_provider.core.accelerators import Accelerator, Cpu, Gpu
from airflow_accel_provider.core.locations import region_of
from airflow_accel_provider.core.machines import MachineType, parse_custom
from airflow_accel_provider.core.placement import Placement

if TYPE_CHECKING:
    from collections.abc import Mapping

_DATA = Path(__file__).with_name("data")


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Where a table is from, and the day (ISO 8601) on which it was read."""

    name: str
    source: str
    date: str
    rows: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceleratorType:
    """An accelerator type that Dataflow takes.

    ``quota_metric`` is Compute Engine's regional on-demand metric, ``None`` where it lists none. ``default_machines``
    maps a count to a machine type. Beam versions are releases such as ``2.46``, the driver's a branch such as 525.
    """

    type: str
    memory_gb: int
    quota_metric: str | None
    default_machines: Mapping[int, str]
    minimum_beam: str | None = None
    advised_beam: str | None = None
    minimum_driver: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HostLimit:
    """The largest N1 host that a count of GPUs can be attached to (in one zone, where that differs)."""

    type: str
    count: int
    max_vcpus: int
    max_memory_gb: int
    zone: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownName:
    """A name that people use and Dataflow does not take; ``why`` is a clause that ends before ``meant``."""

    name: str
    meant: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalog:
    """All tables as one value.

    ``cpu_families`` maps machine families without an accelerator of their own to their processors, ``x86`` or ``arm``.
    """

    tables: tuple[Table, ...]
    accelerators: Mapping[str, AcceleratorType]
    machines: Mapping[str, MachineType]
    cpu_families: Mapping[str, str]
    host_limits: tuple[HostLimit, ...]
    zones: Mapping[str, tuple[str, ...]]
    regions: Mapping[str, tuple[str, ...]]
    names: Mapping[str, KnownName]

    def accelerator(self, type_: str) -> AcceleratorType | None:
        """Return the accelerator type, or ``None`` when Dataflow is not known to take it."""
        return self.accelerators.get(type_)

    def machine(self, name: str) -> MachineType | None:
        """Return the machine type, custom N1 shapes included, or ``None`` when it is not known."""
        return self.machines.get(name) or parse_custom(name)

    def machines_of(self, type_: str, count: int | None = None) -> tuple[MachineType, ...]:
        """Return the machine types that carry the accelerator by themselves, of a count where one is given."""
        carriers = (machine for machine in self.machines.values() if machine.accelerator == type_)
        return tuple(machine for machine in carriers if count in (None, machine.count))

    def attaches_to_n1(self, type_: str) -> bool:
        """Tell whether the accelerator is attached to an N1 host, rather than part of a machine type."""
        return any(limit.type == type_ for limit in self.host_limits)

    def host_limit(self, type_: str, count: int, zone: str | None = None) -> HostLimit | None:
        """Return the largest N1 host for the count, in the zone where one is given."""
        limits = {limit.zone: limit for limit in self.host_limits if (limit.type, limit.count) == (type_, count)}
        return limits.get(zone) or limits.get(None)

    def counts_of(self, type_: str) -> tuple[int, ...]:
        """Return how many of the accelerator one worker can have, in ascending order."""
        attached = {limit.count for limit in self.host_limits if limit.type == type_}
        return tuple(sorted(attached | {machine.count for machine in self.machines_of(type_)}))

    def zones_of(self, type_: str) -> tuple[str, ...]:
        """Return the zones in which the accelerator is published; none when the type is not known."""
        return self.zones.get(type_, ())

    def regions_of(self, type_: str) -> tuple[str, ...]:
        """Return the regions in which the accelerator is published."""
        return tuple(sorted({region_of(zone) for zone in self.zones_of(type_)}))

    def offered_instead(self, placement: Placement) -> tuple[str, ...]:
        """Return the nearest places that offer the accelerator when the tables know that this place does not.

        Zones of the same region come first, else up to three regions, of the same continent if there are any. None when
        it is offered, and when the tables cannot tell.
        """
        if isinstance(placement.accelerator, Cpu) or placement.region not in self.regions:
            return ()
        zones = self.zones_of(placement.accelerator.type)
        here = tuple(zone for zone in zones if region_of(zone) == placement.region)
        if placement.zone in here or (here and not placement.zone):
            return ()
        regions = self.regions_of(placement.accelerator.type)
        continent = placement.region.partition("-")[0]
        near = tuple(region for region in regions if region.partition("-")[0] == continent)
        return here or (near or regions)[:3]

    def zones_in(self, region: str) -> tuple[str, ...]:
        """Return the zones of a region; none when the region is not known."""
        published = (zone for zones in self.zones.values() for zone in zones if region_of(zone) == region)
        return tuple(sorted({*self.regions.get(region, ()), *published}))

    def may_be_new(self, region: str) -> bool:
        """Tell whether an unknown region could be a new one: a known area, and a number a little above those known.

        Google counts its regions up within an area, with small gaps, so ``europe-west13`` is likelier new than wrong,
        ``us-centrl1`` and ``us-central9`` are not.
        """
        area, number = _area(region)
        known = [each for name, each in map(_area, self.regions) if name == area]
        return bool(known) and number <= max(known) + 3

    def default_machine(self, accelerator: Accelerator) -> str | None:
        """Return the smallest sensible machine type that carries the accelerators, not the barest.

        A G2 host for one L4 starts at 16 GB, less than the L4's own 24 GB: a model loaded by way of host memory, beside
        Beam's own processes, needs the next size. CPUs have no default here, the service's holds.
        """
        if not isinstance(accelerator, Gpu):
            return None
        known = self.accelerator(accelerator.type)
        return known.default_machines.get(accelerator.count) if known else None

    def quota_metric(self, type_: str) -> str | None:
        """Return Compute Engine's regional on-demand quota metric, or ``None`` where it lists none."""
        known = self.accelerator(type_)
        return known.quota_metric if known else None


@lru_cache(maxsize=1)
def load_catalog() -> Catalog:
    """Return the packaged catalogue; its files are read on the first call."""
    accelerators = _table("accelerators")
    machines, limits, names = _table("machines"), _table("n1_hosts"), _table("names")
    zones, regions, families = _table("zones"), _table("regions"), _table("families")
    return Catalog(
        tables=(accelerators, machines, families, limits, names, zones, regions),
        accelerators={row["type"]: _accelerator_type(row) for row in accelerators.rows},
        machines={row["name"]: MachineType(**row) for row in machines.rows},
        cpu_families=families.rows,
        host_limits=tuple(HostLimit(**row) for row in limits.rows),
        zones={type_: tuple(names) for type_, names in zones.rows.items()},
        regions={region: tuple(f"{region}-{each}" for each in ends) for region, ends in regions.rows.items()},
        names={row["name"]: KnownName(**row) for row in names.rows},
    )


def _area(region: str) -> tuple[str, int]:
    name = region.rstrip("0123456789")
    return name, int(region[len(name) :] or 0)


def _table(name: str) -> Table:
    return Table(name=name, **json.loads((_DATA / f"{name}.json").read_text(encoding="utf-8")))


def _accelerator_type(row: Mapping[str, Any]) -> AcceleratorType:
    defaults = {int(count): machine for count, machine in row["default_machines"].items()}
    return AcceleratorType(**{**row, "default_machines": defaults})
