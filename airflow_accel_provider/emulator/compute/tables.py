"""What Compute Engine offers where, from ``tables.json``: zones, machine types, accelerators and their limits."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

_TABLES: Mapping[str, Any] = json.loads((Path(__file__).parent / "tables.json").read_text(encoding="utf-8"))

_SHAPE = re.compile(r"(?P<family>[a-z]\d[a-z]?)-(?P<shape>standard|highmem|highcpu)-(?P<cpus>\d+)")
_CUSTOM = re.compile(r"(?:(?P<family>n1|n2|n2d|e2)-)?custom-(?P<cpus>\d+)-(?P<megabytes>\d+)(?:-ext)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """A machine type; ``accelerator`` and ``count`` are what is built into it, if anything is."""

    name: str
    family: str
    cpus: int
    memory_gb: float
    accelerator: str | None = None
    count: int = 0

    @property
    def cpu_metric(self) -> str | None:
        """Return the regional quota its vCPUs draw; None where ``regions.get`` shows none."""
        metric: str | None = _TABLES["families"][self.family]["cpu_metric"]
        return metric


@dataclass(frozen=True, slots=True, kw_only=True)
class Accelerator:
    """A GPU or TPU type under Dataflow's name; Compute Engine's own is ``listed_as``, and differs for TPUs alone.

    ``n1_hosts`` maps a count to the most vCPUs and GB of an N1 host; empty: only built-in hosts. ``metric`` is its
    regional on-demand quota, None where ``regions.get`` shows none; ``cloud_quota`` is then ``METRIC`` or
    ``METRIC/FAMILY`` in the Cloud Quotas API.
    """

    name: str
    listed_as: str
    metric: str | None
    cloud_quota: str | None
    zones: frozenset[str]
    n1_hosts: Mapping[int, tuple[float, float]]

    @property
    def is_tpu(self) -> bool:
        """Tell whether it is a TPU, whose machines nothing else has."""
        return self.name.startswith("tpu-")


def _zones(places: Mapping[str, list[str]]) -> tuple[str, ...]:
    return tuple(f"{region}-{letter}" for region, letters in places.items() for letter in letters)


ZONES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {region: tuple(f"{region}-{letter}" for letter in letters) for region, letters in _TABLES["regions"].items()}
)
"""Every region with its zones."""

ACCELERATORS: Mapping[str, Accelerator] = MappingProxyType(
    {
        name: Accelerator(
            name=name,
            listed_as=row.get("listed_as", name),
            metric=row["metric"],
            cloud_quota=row.get("cloud_quota"),
            zones=frozenset(_zones(row["zones"])),
            n1_hosts={int(count): (cpus, memory) for count, (cpus, memory) in row.get("n1_hosts", {}).items()},
        )
        for name, row in _TABLES["accelerators"].items()
    }
)
"""Every accelerator type a worker can be given."""


def _machines(rows: Mapping[str, Any]) -> dict[str, Machine]:
    return {
        name: Machine(
            name=name,
            family=name.partition("-")[0],
            cpus=cpus,
            memory_gb=memory,
            accelerator=accelerator,
            count=count,
        )
        for name, (cpus, memory, accelerator, count) in rows.items()
    }


BUILT_IN: Mapping[str, Machine] = MappingProxyType(_machines(_TABLES["machines"]))
"""The machine types with accelerators built in."""


_LISTED: Mapping[str, Any] = _TABLES["published_only"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Publication:
    """An accelerator type as Compute Engine lists it; ``most`` is how many of it one machine can have."""

    name: str
    zones: frozenset[str]
    most: int


def find_machine(name: str) -> Machine | None:
    """Return a machine type by name, or None when there is no such type."""
    if name in BUILT_IN:
        return BUILT_IN[name]
    if match := _SHAPE.fullmatch(name):
        row = _TABLES["families"].get(match["family"], {})
        cpus, per_cpu = int(match["cpus"]), row.get("gb_per_cpu", {}).get(match["shape"])
        # The smallest size has standard memory only.
        exists = cpus in row.get("cpus", ()) and (cpus > 1 or match["shape"] == "standard")
        if per_cpu is None or not exists:
            return None
        return Machine(name=name, family=match["family"], cpus=cpus, memory_gb=cpus * per_cpu)
    if match := _CUSTOM.fullmatch(name):
        family = match["family"] or "n1"
        return Machine(name=name, family=family, cpus=int(match["cpus"]), memory_gb=int(match["megabytes"]) / 1024)
    return None


def listed_name(accelerator: str) -> str:
    """Return Compute Engine's own name of an accelerator type; only TPUs have another one in Dataflow."""
    return ACCELERATORS[accelerator].listed_as if accelerator in ACCELERATORS else accelerator


def machine_zones(machine: Machine) -> frozenset[str]:
    """Return the zones that list a machine type: all of them, where it carries no accelerator."""
    if machine.name in _MACHINE_ZONES:
        return _MACHINE_ZONES[machine.name]
    return PUBLISHED[listed_name(machine.accelerator)].zones if machine.accelerator else _ALL_ZONES


def region_of(zone: str) -> str:
    """Return the region that a zone's name begins with."""
    return zone.rpartition("-")[0]


def _sizes() -> Iterator[Machine]:
    for family, row in _TABLES["families"].items():
        for shape in row.get("gb_per_cpu", ()):
            for cpus in row["cpus"]:
                machine = find_machine(f"{family}-{shape}-{cpus}")
                if machine:
                    yield machine


def _most(name: str) -> int:
    attached: Iterable[int] = ACCELERATORS[name].n1_hosts if name in ACCELERATORS else ()
    return max((*attached, *(machine.count for machine in MACHINE_TYPES if machine.accelerator == name)))


MACHINE_TYPES: tuple[Machine, ...] = (*BUILT_IN.values(), *_machines(_LISTED["machines"]).values(), *_sizes())
"""Every machine type that is listed, those for GPUs that no worker gets here too."""

PUBLISHED: Mapping[str, Publication] = MappingProxyType(
    {
        listed_name(name): Publication(name=listed_name(name), zones=frozenset(_zones(row["zones"])), most=_most(name))
        for name, row in {**_TABLES["accelerators"], **_LISTED["accelerators"]}.items()
    }
)
"""Every accelerator type that is listed, under Compute Engine's own name."""

_ALL_ZONES = frozenset(zone for zones in ZONES.values() for zone in zones)
_MACHINE_ZONES: Mapping[str, frozenset[str]] = {
    name: frozenset(_zones(places)) for name, places in _TABLES["machine_zones"].items()
}
