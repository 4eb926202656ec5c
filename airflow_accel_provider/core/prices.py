"""What a worker may cost an hour: good for putting places in order, never a bill or a limit.

Prices are lists that others copied, with doubts written beside them: ``od_price_suspect_dws_sku`` is a price that looks
like that of a calendar reservation, ``host_price_derived`` adds a host's price up, ``from_memory`` was never checked.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from airflow_accel_provider.core.machines import MachineType


class PriceRange(NamedTuple):
    """USD an hour for one worker, accelerators and host together, and what speaks against the figures."""

    low: float
    high: float
    doubts: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """Compute Engine's prices of a machine with accelerators, over the zones of a region; ``None`` where unknown."""

    accelerator: str
    count: int
    machine_type: str
    region: str
    doubts: tuple[str, ...]
    low: float | None = None
    high: float | None = None
    spot_low: float | None = None
    spot_high: float | None = None

    @property
    def listed(self) -> PriceRange | None:
        """The list prices, or ``None`` where there is none."""
        if self.low is None or self.high is None:
            return None
        return PriceRange(self.low, self.high, self.doubts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """The price of one unit of one item: a GPU, a chip, a vCPU, a GB."""

    service: str
    item: str
    unit: str
    usd: float
    region: str
    doubts: tuple[str, ...]


Rates = Mapping[tuple[str, str], Rate]
"""Rates by service and item."""


def estimate(rates: Rates, *, accelerator: str | None, count: int, machine: MachineType | None) -> PriceRange | None:
    """Add rates up where no list price is known, or return ``None`` where a rate is missing.

    A TPU is billed by its chips alone; GPUs and CPUs have their host's vCPUs and memory beside them.
    """
    chip = rates.get(("compute", accelerator or ""))
    if chip and chip.unit == "chip-hour":
        return _sum([(chip, count)])
    if machine is None:
        return None
    parts = [(rates.get(("dataflow", "batch-vcpu")), float(machine.vcpus))]
    parts.append((rates.get(("dataflow", "batch-memory")), machine.memory_gb))
    if accelerator:
        parts.append((rates.get(("dataflow", accelerator)), float(count)))
    known = [(rate, units) for rate, units in parts if rate]
    return _sum(known) if len(known) == len(parts) else None


def _sum(parts: Iterable[tuple[Rate, float]]) -> PriceRange:
    usd, doubts = 0.0, {"estimated"}
    for rate, units in parts:
        usd += rate.usd * units
        doubts |= {*rate.doubts, f"rates_of_{rate.region}"}
    usd = round(usd, 5)
    return PriceRange(usd, usd, tuple(sorted(doubts)))
