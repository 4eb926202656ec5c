"""What stands in the catalogue's tables, a class a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Provisioning = Literal["standard", "preemptible"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceleratorType:
    """A GPU type that Dataflow takes.

    ``default_machines`` maps a count to the machine type that is taken when none is named. Beam versions are releases
    such as ``2.46``, the driver's a branch such as 525.
    """

    type: str
    memory_gb: int
    default_machines: Mapping[int, str]
    minimum_beam: str | None = None
    advised_beam: str | None = None
    minimum_driver: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TpuType:
    """A TPU type that Dataflow takes; ``compute_name`` is what Compute Engine shows on a VM, such as ``ct6e``."""

    type: str
    compute_name: str
    generation: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TpuSlice:
    """A type and topology with the only machine type that has it; ``environment`` is what its container sets."""

    type: str
    topology: str
    machine_type: str
    chips: int
    vcpus: int
    memory_gb: float
    environment: Mapping[str, str]


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
class QuotaName:
    """Which quota an accelerator draws in its region, in GPUs or TPU chips (``unit``).

    ``metric`` is what Compute Engine's ``regions.get`` calls it, ``None`` where that lists none. ``quota_id`` and
    ``dimensions`` (beside the region) are what Cloud Quotas calls it, ``None`` where no project was seen to have it.
    """

    type: str
    provisioning: Provisioning
    unit: str
    dimensions: Mapping[str, str]
    metric: str | None = None
    quota_id: str | None = None
