"""Worlds: what Google has in stock, what it grants, and what is wrong with it, one data file for each.

A file says only what differs from ``base.json``. Stock counts accelerators (machines without one never run out); the
most specific word wins: zone, then region, then ``*``, first for the accelerator itself and then for all of them.
Accelerators have Dataflow's names, and TPUs are counted in chips. A quota is a limit, or a limit and what others in the
project already use; ``cloud_quotas`` are those that only the Cloud Quotas API shows, as ``METRIC`` or
``METRIC/FAMILY``. Reservations count VMs.
"""

from __future__ import annotations

import difflib
import json
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

WORLD_NAMES = (
    "plenty",
    "l4-stockout",
    "no-quota",
    "gpu-missing",
    "gpu-idle",
    "stockout-then-quota-then-stock",
    "nowhere",
    "tpu-stockout",
    "reserved-tpu",
    "reservation-taken",
    "image-missing",
    "tpu-not-enrolled",
    "launcher-stockout",
    "executor-churn",
    "us-central1-stockout",
)

FLAWS = frozenset({"executor_churn", "gpu_missing", "launcher_out_of_stock", "tpu_not_enrolled"})
"""``gpu_missing``: worker VMs come up without ``guestAccelerators``, and where a TPU was wanted, on a plain machine.
``launcher_out_of_stock``: no VM can be had for what launches a template. ``tpu_not_enrolled``: the project was never
enrolled for TPUs in Dataflow, so that their VMs are refused. ``executor_churn``: executors of Spark batches find no GPU
and are replaced for ever, while their batch runs.
"""

PLENTY = 1_000_000
ANYWHERE = "*"

_DIRECTORY = Path(__file__).parent


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota:
    """How much of a metric the project may use, and how much is in use by what the emulator does not run."""

    limit: float
    usage: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Reserved:
    """A reservation of the project: ``count`` VMs alike, ``in_use`` of them by what the emulator does not run.

    ``accelerator`` has Dataflow's name. A ``specific`` one is taken by who names it, any other by every VM like it.
    """

    name: str
    zone: str
    machine_type: str
    accelerator: str | None = None
    accelerators_each: int = 0
    count: int
    in_use: int = 0
    specific: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """One state of Google's affairs. Ask it; its tables are keyed by accelerator or ``*``, then by place or ``*``."""

    name: str
    about: str
    stock: Mapping[str, Mapping[str, int]]
    region_quotas: Mapping[str, Mapping[str, Quota]]
    cloud_quotas: Mapping[str, Mapping[str, Quota]]
    project_quotas: Mapping[str, Quota]
    reservations: tuple[Reserved, ...]
    missing_images: tuple[str, ...]
    flaws: frozenset[str]
    gpu_utilization: int

    def free(self, accelerator: str, *, zone: str) -> int:
        """Return how many accelerators of a type the zone has before anything runs in it."""
        region = zone.rpartition("-")[0]
        for kind in (accelerator, ANYWHERE):
            places = self.stock.get(kind, {})
            for place in (zone, region, ANYWHERE):
                if place in places:
                    return places[place]
        return PLENTY

    def region_quota(self, region: str) -> Mapping[str, Quota]:
        """Return every quota of a region by metric."""
        return {**self.region_quotas[ANYWHERE], **self.region_quotas.get(region, {})}

    def cloud_quota(self, region: str) -> Mapping[str, Quota]:
        """Return every quota of a region that only the Cloud Quotas API shows; what is not in it was never set."""
        return {**self.cloud_quotas[ANYWHERE], **self.cloud_quotas.get(region, {})}

    def has_image(self, image: str) -> bool:
        """Tell whether a container image can be pulled; ``missing_images`` are patterns of those that cannot."""
        return not any(fnmatchcase(image, pattern) for pattern in self.missing_images)


@cache
def load_world(name: str) -> World:
    """Read a world by name.

    Raises ValueError naming the worlds there are.
    """
    if name not in WORLD_NAMES:
        near = difflib.get_close_matches(name, WORLD_NAMES, n=1)
        hint = f" Did you mean {near[0]}?" if near else ""
        raise ValueError(f"There is no world named {name!r}.{hint} Worlds: {', '.join(WORLD_NAMES)}.")
    base, own = _read("base"), _read(name)
    return World(
        name=name,
        about=own["about"],
        stock={kind: _places(places) for kind, places in {**base["stock"], **own.get("stock", {})}.items()},
        region_quotas=_regions(base["region_quotas"], own.get("region_quotas", {})),
        cloud_quotas=_regions(base["cloud_quotas"], own.get("cloud_quotas", {})),
        project_quotas=_quotas({**base["project_quotas"], **own.get("project_quotas", {})}),
        reservations=tuple(Reserved(**row) for row in own.get("reservations", ())),
        missing_images=(*base["missing_images"], *own.get("missing_images", ())),
        flaws=_flaws(name, own.get("flaws", ())),
        gpu_utilization=own.get("gpu_utilization", base["gpu_utilization"]),
    )


def _read(name: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((_DIRECTORY / f"{name}.json").read_text(encoding="utf-8"))
    return content


def _places(value: Any) -> dict[str, int]:
    places = value if isinstance(value, dict) else {ANYWHERE: value}
    return {place: PLENTY if amount == "plenty" else int(amount) for place, amount in places.items()}


def _regions(everywhere: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, dict[str, Quota]]:
    tables = {**own, ANYWHERE: {**everywhere, **own.get(ANYWHERE, {})}}
    return {region: _quotas(values) for region, values in tables.items()}


def _quotas(values: Mapping[str, Any]) -> dict[str, Quota]:
    return {
        metric: Quota(**value) if isinstance(value, dict) else Quota(limit=float(value))
        for metric, value in values.items()
    }


def _flaws(name: str, flaws: Any) -> frozenset[str]:
    unknown = set(flaws) - FLAWS
    if unknown:
        raise ValueError(f"World {name} has unknown flaws: {', '.join(sorted(unknown))}.")
    return frozenset(flaws)


__all__ = ["FLAWS", "PLENTY", "WORLD_NAMES", "Quota", "Reserved", "World", "load_world"]
