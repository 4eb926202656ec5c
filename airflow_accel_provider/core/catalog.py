"""What Google offers where: tables with a source and a date, read once from ``data/``.

The tables are a dated, offline picture. Being published in a zone is not being in stock there, and what is missing may
be new: callers warn about places that are not in a table and refuse only shapes that cannot exist. A user's overlay
adds rows or overrides them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from airflow_accel_provider.core.accelerators import Accelerator, Cpu, Gpu, Tpu
from airflow_accel_provider.core.defaults import default_machines
from airflow_accel_provider.core.forms import FORMS
from airflow_accel_provider.core.locations import region_of
from airflow_accel_provider.core.loose_ends import loose_ends
from airflow_accel_provider.core.machines import MachineType, parse_custom
from airflow_accel_provider.core.offers import (
    AcceleratorType,
    HostLimit,
    KnownName,
    QuotaName,
    TpuSlice,
    TpuType,
)
from airflow_accel_provider.core.placement import Placement
from airflow_accel_provider.core.prices import Price, PriceRange, Rate, estimate
from airflow_accel_provider.core.tables import (
    CatalogError,
    Rows,
    Table,
    fold,
    missing_cells,
    read_overlay,
    refused,
)

__all__ = [
    "AcceleratorType",
    "Catalog",
    "CatalogError",
    "HostLimit",
    "KnownName",
    "QuotaName",
    "Table",
    "TpuSlice",
    "TpuType",
    "load_catalog",
]

_DATA = Path(__file__).with_name("data")


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalog:
    """All tables as one value; ``tables`` holds them as they were read, an overlay's after those they override.

    Those of managed Spark are there only; :func:`~airflow_accel_provider.core.spark.spark_catalog` reads them.
    ``cpu_families`` maps machine families without an accelerator of their own to their processors, ``x86`` or ``arm``.
    ``zones`` are those in which Compute Engine publishes a type, ``documented_zones`` those that Google's pages name;
    ``machine_zones`` are of machine types that fewer zones have than have their accelerator.
    """

    tables: tuple[Table, ...]
    accelerators: Mapping[str, AcceleratorType]
    tpu_types: Mapping[str, TpuType]
    tpu_slices: Mapping[tuple[str, str], TpuSlice]
    machines: Mapping[str, MachineType]
    cpu_families: Mapping[str, str]
    host_limits: tuple[HostLimit, ...]
    zones: Mapping[str, tuple[str, ...]]
    documented_zones: Mapping[str, tuple[str, ...]]
    machine_zones: Mapping[str, tuple[str, ...]]
    regions: Mapping[str, tuple[str, ...]]
    names: Mapping[str, KnownName]
    quotas: Mapping[tuple[str, str], QuotaName]
    prices: Mapping[tuple[str, int, str, str], Price]
    rates: Mapping[tuple[str, str], Rate]

    def merged(self, overlay: Mapping[str, Any]) -> Catalog:
        """Return the catalogue with the rows of an overlay laid over its own.

        An overlay maps names of tables to ``source``, ``date`` and ``rows``, as the packaged files have them. Raises
        :class:`CatalogError` naming every table, column and value that is wrong.
        """
        return _build((*self.tables, *read_overlay(overlay)))

    def accelerator(self, type_: str) -> AcceleratorType | None:
        """Return the GPU type, or ``None`` when Dataflow is not known to take it."""
        return self.accelerators.get(type_)

    def tpu(self, type_: str, topology: str) -> TpuSlice | None:
        """Return the TPU slice, or ``None`` when Dataflow does not take this type in this topology."""
        return self.tpu_slices.get((type_, topology))

    def tpus_of(self, type_: str) -> tuple[TpuSlice, ...]:
        """Return the slices of a TPU type, the smallest first; none when the type is not known."""
        return tuple(sorted((each for each in self.tpu_slices.values() if each.type == type_), key=lambda s: s.chips))

    def machine_for(self, tpu: Tpu) -> str | None:
        """Return the only machine type that has the slice, or ``None`` when there is no such slice."""
        known = self.tpu(tpu.type, tpu.topology)
        return known.machine_type if known else None

    def machine(self, name: str) -> MachineType | None:
        """Return the machine type, custom N1 shapes included, or ``None`` when it is not known."""
        return self.machines.get(name) or parse_custom(name)

    def machines_of(self, type_: str, count: int | None = None) -> tuple[MachineType, ...]:
        """Return the machine types that carry the accelerator by themselves, of a count where one is given."""
        carriers = (machine for machine in self.machines.values() if machine.accelerator == type_)
        return tuple(machine for machine in carriers if count in (None, machine.count))

    def carried_by(self, machine: MachineType) -> Accelerator | None:
        """Return what every machine of this type carries, or ``None`` for one without an accelerator of its own."""
        if machine.accelerator is None:
            return None
        slices = (each for each in self.tpu_slices.values() if each.machine_type == machine.name)
        tpu = next(slices, None)
        return Tpu(tpu.type, tpu.topology) if tpu else Gpu(machine.accelerator, machine.count)

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

    def on_demand_counts(self, type_: str) -> tuple[int, ...]:
        """Return the counts that can be had without a reservation, spot or flex-start."""
        attached = {limit.count for limit in self.host_limits if limit.type == type_}
        return tuple(sorted(attached | {each.count for each in self.machines_of(type_) if each.on_demand}))

    def zones_of(self, type_: str, machine_type: str | None = None) -> tuple[str, ...]:
        """Return the zones in which the accelerator, on the machine type where one is given, is published."""
        published = self.zones.get(type_, ())
        machine = self.machines.get(machine_type or "")
        if machine is None or machine.accelerator != type_:
            return published
        return self.machine_zones.get(machine.name, published)

    def documented_zones_of(self, type_: str) -> tuple[str, ...]:
        """Return the zones that Google's pages name for a TPU type, AI zones among them; GPUs have no such list."""
        return self.documented_zones.get(type_, ())

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
        type_ = placement.accelerator.type
        zones = sorted({*self.zones_of(type_, placement.machine_type), *self.documented_zones_of(type_)})
        here = tuple(zone for zone in zones if region_of(zone) == placement.region)
        if placement.zone in here or (here and not placement.zone):
            return ()
        regions = tuple(dict.fromkeys(map(region_of, zones)))
        continent = placement.region.partition("-")[0]
        near = tuple(region for region in regions if region.partition("-")[0] == continent)
        return here or (near or regions)[:3]

    def zones_in(self, region: str) -> tuple[str, ...]:
        """Return the zones of a region; none when the region is not known."""
        lists = (*self.zones.values(), *self.documented_zones.values())
        published = (zone for zones in lists for zone in zones if region_of(zone) == region)
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
        """Return the machine type that is taken when none is named, by the rule of :mod:`.defaults`.

        A TPU slice has only one. CPUs have no default here, the service's holds.
        """
        if isinstance(accelerator, Tpu):
            return self.machine_for(accelerator)
        if isinstance(accelerator, Cpu):
            return None
        known = self.accelerator(accelerator.type)
        return known.default_machines.get(accelerator.count) if known else None

    def quota_of(self, type_: str, *, preemptible: bool = False) -> QuotaName | None:
        """Return the quota that the accelerator draws, or ``None`` when it is not known."""
        return self.quotas.get((type_, "preemptible" if preemptible else "standard"))

    def quota_metric(self, type_: str, *, preemptible: bool = False) -> str | None:
        """Return Compute Engine's regional quota metric, or ``None`` where it lists none."""
        known = self.quota_of(type_, preemptible=preemptible)
        return known.metric if known else None

    def compute_name(self, type_: str) -> str:
        """Return what Compute Engine calls the accelerator: another name for TPUs, the same for GPUs."""
        known = self.tpu_types.get(type_)
        return known.compute_name if known else type_

    def price_range(self, accelerator: Accelerator, machine_type: str | None, region: str) -> PriceRange | None:
        """Return the lowest and highest price of one worker there in USD an hour, with doubts; ``None`` if unknown.

        Only a hint for putting places in order: lists by others, of unknown days; never a bill, never a limit. Where
        no list has the machine in the region, rates of another region are added up, and the doubts say so.
        """
        machine = self.machine(machine_type or self.default_machine(accelerator) or "")
        type_ = None if isinstance(accelerator, Cpu) else accelerator.type
        if isinstance(accelerator, Tpu):
            known = self.tpu(accelerator.type, accelerator.topology)
            count = known.chips if known else 0
        else:
            count = accelerator.count if isinstance(accelerator, Gpu) else 0
        listed = self.prices.get((type_ or "", count, machine.name, region)) if machine else None
        if listed and listed.listed:
            return listed.listed
        return estimate(self.rates, accelerator=type_, count=count, machine=machine)


def load_catalog(overlay_path: str | Path | None = None) -> Catalog:
    """Return the packaged catalogue, read on the first call, with the overlay in a JSON file laid over it.

    Raises :class:`CatalogError` naming the file when it cannot be read, and everything that is wrong in it.
    """
    if not overlay_path:
        return _packaged()
    path = Path(overlay_path)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CatalogError(f"The catalogue's overlay {path} cannot be read: {error}") from None
    return _overlaid(str(path), text)


@lru_cache(maxsize=1)
def _packaged() -> Catalog:
    tables = (json.loads((_DATA / f"{name}.json").read_text(encoding="utf-8")) for name in FORMS)
    return _build(tuple(Table(name=name, **table) for name, table in zip(FORMS, tables, strict=True)))


@lru_cache(maxsize=4)
def _overlaid(path: str, text: str) -> Catalog:
    # Keyed by the text, so that a file which changed is read anew and one which did not costs a look.
    try:
        return _packaged().merged(json.loads(text))
    except json.JSONDecodeError as error:
        raise CatalogError(f"The catalogue's overlay {path} is not JSON: {error}") from None
    except CatalogError as error:
        raise CatalogError(f"{path}: {error}") from None


def _build(tables: tuple[Table, ...]) -> Catalog:
    rows = fold(tables)
    faults = list(missing_cells(rows)) or list(loose_ends(rows))
    if faults:
        raise refused(faults)
    machines = {row["name"]: MachineType(**row) for row in rows["machines"].values()}
    limits = tuple(HostLimit(**row) for row in rows["n1_hosts"].values())
    return Catalog(
        tables=tables,
        accelerators={
            row["type"]: AcceleratorType(**row, default_machines=default_machines(row["type"], machines, limits))
            for row in rows["accelerators"].values()
        },
        tpu_types={row["type"]: TpuType(**row) for row in rows["tpu_types"].values()},
        tpu_slices=_slices(rows, machines),
        machines=machines,
        cpu_families=_by_name(rows["families"]),
        host_limits=limits,
        zones=_lists(rows["zones"]),
        documented_zones=_lists(rows["documented_zones"]),
        machine_zones=_lists(rows["machine_zones"]),
        regions={
            region: tuple(f"{region}-{each}" for each in ends) for region, ends in _by_name(rows["regions"]).items()
        },
        names={row["name"]: KnownName(**row) for row in rows["names"].values()},
        quotas={(row["type"], row["provisioning"]): QuotaName(**row) for row in rows["quotas"].values()},
        prices={_price_key(row): Price(**{**row, "doubts": tuple(row["doubts"])}) for row in rows["prices"].values()},
        rates={
            (row["service"], row["item"]): Rate(**{**row, "doubts": tuple(row["doubts"])})
            for row in rows["rates"].values()
        },
    )


def _slices(rows: Rows, machines: Mapping[str, MachineType]) -> dict[tuple[str, str], TpuSlice]:
    slices = {}
    for row in rows["tpu_slices"].values():
        machine = machines[row["machine_type"]]
        environment = {**_by_name(rows["tpu_environment"]), **row["environment"]}
        whole = {**row, "environment": environment, "vcpus": machine.vcpus, "memory_gb": machine.memory_gb}
        slices[row["type"], row["topology"]] = TpuSlice(**whole)
    return slices


def _price_key(row: Mapping[str, Any]) -> tuple[str, int, str, str]:
    return row["accelerator"], row["count"], row["machine_type"], row["region"]


def _by_name(rows: Mapping[tuple[Any, ...], Any]) -> dict[str, Any]:
    return {name: value for (name,), value in rows.items()}


def _lists(rows: Mapping[tuple[Any, ...], Any]) -> dict[str, tuple[str, ...]]:
    return {name: tuple(value) for name, value in _by_name(rows).items()}


def _area(region: str) -> tuple[str, int]:
    name = region.rstrip("0123456789")
    return name, int(region[len(name) :] or 0)
