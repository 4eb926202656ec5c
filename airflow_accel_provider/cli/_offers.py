"""What the catalogue says of accelerators, as JSON and for a person."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import Any

from airflow_accel_provider.cli._tables import aligned
from airflow_accel_provider.core.accelerators import Accelerator, Gpu, Tpu
from airflow_accel_provider.core.catalog import Catalog
from airflow_accel_provider.core.locations import region_of
from airflow_accel_provider.core.prices import PriceRange
from airflow_accel_provider.core.problems import nearest

_ABOUT = {
    "gpu": ("accelerators", "machines", "n1_hosts", "quotas", "zones", "machine_zones", "prices", "rates"),
    "tpu": ("tpu_types", "tpu_slices", "tpu_environment", "machines", "quotas", "zones", "documented_zones", "prices"),
}
"""Which tables an explanation draws on."""

_FACTS = {
    "gpu": ("memory_gb", "minimum_beam", "advised_beam", "minimum_driver"),
    "tpu": ("generation", "compute_name"),
}
"""Which facts of the accelerator's own row it begins with."""


def accelerator_names(catalog: Catalog) -> tuple[str, ...]:
    """Return every accelerator type that Dataflow takes, GPUs first."""
    return (*catalog.accelerators, *catalog.tpu_types)


def find_accelerator(name: str, catalog: Catalog, spark: Iterable[str]) -> str:
    """Return the accelerator type that a name means: itself, one of ``spark``'s too, or what a machine type carries.

    Raises :class:`ValueError` naming the nearest for any other.
    """
    names = (*accelerator_names(catalog), *spark)
    if name in names:
        return name
    machine = catalog.machines.get(name)
    if machine and machine.accelerator in accelerator_names(catalog):
        return str(machine.accelerator)
    known = catalog.names.get(machine.accelerator if machine and machine.accelerator else name)
    if known:
        raise ValueError(f"{known.name} {known.why} {known.meant}.")
    near = nearest(name, (*names, *catalog.machines))
    hint = f"Did you mean {near}?" if near else f"There are {', '.join(names)}."
    raise ValueError(f"The catalogue has no accelerator {name}. {hint}")


def overview(catalog: Catalog, *, accelerator: str | None = None, region: str | None = None) -> list[dict[str, Any]]:
    """Return one row an accelerator that is offered (in the region, where one is given)."""
    rows = (_summary(type_, catalog, region) for type_ in accelerator_names(catalog) if accelerator in (None, type_))
    return [row for row in rows if row["zones"]]


def overview_text(rows: list[dict[str, Any]], region: str | None) -> str:
    """Return the rows as a table; zones are counted, or named where only one region's are asked for."""
    head = ("ACCELERATOR", "SIZES", "DEFAULT MACHINE", "QUOTA", "ZONES" if region else "ZONES (REGIONS)")
    lines = [head]
    for row in rows:
        zones = row["zones"]
        ends = ", ".join(zones) if region else f"{len(zones)} ({len({region_of(zone) for zone in zones})})"
        lines.append((row["accelerator"], " ".join(row["sizes"]), row["default_machine"] or "-", row["quota"], ends))
    return aligned(lines)


def explain(type_: str, catalog: Catalog, *, region: str | None = None) -> dict[str, Any]:
    """Return everything the catalogue says of one accelerator type, prices of one region alone where it is given."""
    kind = "tpu" if type_ in catalog.tpu_types else "gpu"
    known: Any = catalog.tpu_types[type_] if kind == "tpu" else catalog.accelerators[type_]
    zones = [zone for zone in catalog.zones_of(type_) if region in (None, region_of(zone))]
    return {
        "accelerator": type_,
        "kind": kind,
        **{column: getattr(known, column) for column in _FACTS[kind]},
        "sizes": [_size(each, catalog) for each in _sizes(type_, catalog)],
        "machines": _machines(type_, catalog),
        "n1_hosts": _hosts(type_, catalog),
        "quotas": _quotas(type_, catalog),
        "zones": zones,
        "documented_zones": list(catalog.documented_zones_of(type_)),
        "prices_usd_per_hour": list(_prices(type_, catalog, sorted({region_of(zone) for zone in zones}))),
        "sources": sources(catalog, _ABOUT[kind]),
    }


def explain_text(said: Mapping[str, Any]) -> str:
    """Return an explanation for a person to read."""
    return "\n".join(_paragraphs(said))


def sources(catalog: Catalog, names: Iterable[str]) -> list[dict[str, str]]:
    """Return where the rows of tables are from and when they were read, an overlay's after the packaged."""
    wanted = frozenset(names)
    return [
        {"table": each.name, "date": each.date, "source": each.source} for each in catalog.tables if each.name in wanted
    ]


def zone_row(region: str, zones: Iterator[str]) -> tuple[str, str]:
    """Return a region and the ends of its zones' names."""
    return region, " ".join(zone.rpartition("-")[2] for zone in zones)


def _summary(type_: str, catalog: Catalog, region: str | None) -> dict[str, Any]:
    sizes = _sizes(type_, catalog)
    quota = catalog.quota_of(type_)
    offered = {*catalog.zones_of(type_), *catalog.documented_zones_of(type_)}
    return {
        "accelerator": type_,
        "sizes": [str(each).partition(":")[2] or "1" for each in sizes],
        "default_machine": catalog.default_machine(sizes[0]) if sizes else None,
        "quota": (quota.metric or quota.quota_id or "-") if quota else "-",
        "zones": sorted(zone for zone in offered if region in (None, region_of(zone))),
    }


def _sizes(type_: str, catalog: Catalog) -> list[Accelerator]:
    if type_ in catalog.tpu_types:
        return [Tpu(type_, each.topology) for each in catalog.tpus_of(type_)]
    return [Gpu(type_, count) for count in catalog.counts_of(type_)]


def _size(accelerator: Accelerator, catalog: Catalog) -> dict[str, Any]:
    said: dict[str, Any] = {"placement": str(accelerator), "default_machine": catalog.default_machine(accelerator)}
    if isinstance(accelerator, Tpu):
        known = catalog.tpu(accelerator.type, accelerator.topology)
        said |= {"chips": known.chips, "environment": dict(known.environment)} if known else {}
    elif isinstance(accelerator, Gpu):
        said["on_demand"] = accelerator.count in catalog.on_demand_counts(accelerator.type)
    return said


def _machines(type_: str, catalog: Catalog) -> list[dict[str, Any]]:
    return [
        {
            "name": machine.name,
            "vcpus": machine.vcpus,
            "memory_gb": machine.memory_gb,
            "count": machine.count,
            "on_demand": machine.on_demand,
            "note": machine.note,
        }
        for machine in catalog.machines_of(type_)
    ]


def _hosts(type_: str, catalog: Catalog) -> list[dict[str, Any]]:
    return [
        {"count": each.count, "max_vcpus": each.max_vcpus, "max_memory_gb": each.max_memory_gb, "zone": each.zone}
        for each in catalog.host_limits
        if each.type == type_
    ]


def _quotas(type_: str, catalog: Catalog) -> list[dict[str, Any]]:
    found = (catalog.quota_of(type_, preemptible=preemptible) for preemptible in (False, True))
    return [
        {
            "provisioning": quota.provisioning,
            "unit": quota.unit,
            "metric": quota.metric,
            "quota_id": quota.quota_id,
            "dimensions": dict(quota.dimensions),
        }
        for quota in found
        if quota
    ]


def _prices(type_: str, catalog: Catalog, regions: list[str]) -> Iterator[dict[str, Any]]:
    for region in regions:
        for size in _sizes(type_, catalog):
            machine = catalog.default_machine(size)
            price = catalog.price_range(size, machine, region)
            if price:
                place = {"placement": str(size), "machine_type": machine, "region": region}
                yield {**place, "low": price.low, "high": price.high, "doubts": list(price.doubts)}


def _paragraphs(said: Mapping[str, Any]) -> Iterator[str]:
    yield _headline(said)
    yield "\nSizes"
    yield aligned([_size_row(size) for size in said["sizes"]], indent="  ")
    if said["machines"]:
        yield "\nMachine types that carry it"
        yield aligned([_machine_row(each) for each in said["machines"]], indent="  ")
    if said["n1_hosts"]:
        yield "\nLargest N1 host it is attached to"
        yield aligned([_host_row(each) for each in said["n1_hosts"]], indent="  ")
    yield "\nQuotas"
    yield aligned([_quota_row(each) for each in said["quotas"]] or [("none known",)], indent="  ")
    yield f"\nPublished in {len(said['zones'])} zones; that is not being in stock"
    yield aligned([zone_row(region, zones) for region, zones in groupby(said["zones"], region_of)], indent="  ")
    if said["documented_zones"]:
        yield "\nZones that Google's pages name"
        yield f"  {', '.join(said['documented_zones'])}"
    if said["prices_usd_per_hour"]:
        yield "\nPrice of one worker in USD an hour; a hint for an order of places, never a bill"
        yield aligned([_price_row(each) for each in said["prices_usd_per_hour"]], indent="  ")
    yield "\nSources"
    yield aligned([(each["table"], each["date"], each["source"]) for each in said["sources"]], indent="  ")


def _headline(said: Mapping[str, Any]) -> str:
    if said["kind"] == "tpu":
        return f"{said['accelerator']}: TPU {said['generation']}, {said['compute_name']} to Compute Engine"
    needs = [f"{said['memory_gb']:g} GB"]
    if said["minimum_beam"]:
        needs.append(f"Beam {said['minimum_beam']} or newer ({said['advised_beam'] or said['minimum_beam']} advised)")
    if said["minimum_driver"]:
        needs.append(f"driver {said['minimum_driver']} or newer")
    return f"{said['accelerator']}: GPU, {', '.join(needs)}"


def _size_row(size: Mapping[str, Any]) -> tuple[str, ...]:
    if "chips" in size:
        name = size["environment"].get("TPU_ACCELERATOR_TYPE", "")
        return (
            size["placement"],
            f"on {size['default_machine']}",
            f"{size['chips']} chip{'' if size['chips'] == 1 else 's'}",
            f"TPU_ACCELERATOR_TYPE={name}",
        )
    on_demand = "" if size["on_demand"] else "with a reservation, as spot or by flex-start only"
    return size["placement"], f"on {size['default_machine']} unless another is named", on_demand, ""


def _machine_row(machine: Mapping[str, Any]) -> tuple[str, ...]:
    shape = f"{machine['vcpus']} vCPUs", f"{machine['memory_gb']:g} GB"
    notes = ["" if machine["on_demand"] else "not on demand", machine["note"]]
    return machine["name"], f"× {machine['count']}", *shape, "; ".join(filter(None, notes))


def _host_row(host: Mapping[str, Any]) -> tuple[str, ...]:
    shape = f"{host['max_vcpus']} vCPUs", f"{host['max_memory_gb']} GB"
    return f"× {host['count']}", *shape, f"in {host['zone']}" if host["zone"] else ""


def _quota_row(quota: Mapping[str, Any]) -> tuple[str, ...]:
    dimensions = ", ".join(f"{name}:{value}" for name, value in quota["dimensions"].items())
    cloud = f"{quota['quota_id']} {dimensions}".strip() if quota["quota_id"] else ""
    return quota["provisioning"], f"in {quota['unit']}s", quota["metric"] or "(none of Compute Engine's)", cloud


def _price_row(row: Mapping[str, Any]) -> tuple[str, ...]:
    price = PriceRange(row["low"], row["high"], tuple(row["doubts"]))
    shown = f"{price.low:.2f}" if price.low == price.high else f"{price.low:.2f} to {price.high:.2f}"
    return row["region"], row["placement"], f"on {row['machine_type']}", shown, " ".join(price.doubts)
