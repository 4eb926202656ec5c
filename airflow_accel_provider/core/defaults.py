"""Which machine type is taken when none is named.

The smallest that carries the count with four vCPUs or more a GPU, on demand before any that needs a reservation, spot
or flex-start. Less starves a GPU: the barest N1 host has one vCPU and 3.75 GB. On N1 the standard shapes count.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from airflow_accel_provider.core.machines import MachineType
from airflow_accel_provider.core.offers import HostLimit

VCPUS_PER_GPU = 4


def default_machines(type_: str, machines: Mapping[str, MachineType], limits: Iterable[HostLimit]) -> dict[int, str]:
    """Return the default machine type of a GPU type by count."""
    by_count: dict[int, list[MachineType]] = {}
    for machine in machines.values():
        if machine.accelerator == type_:
            by_count.setdefault(machine.count, []).append(machine)
    hosts = [machine for machine in machines.values() if machine.name.startswith("n1-standard-")]
    for limit in limits:
        if limit.type == type_ and limit.zone is None:
            fitting = [
                host for host in hosts if host.vcpus <= limit.max_vcpus and host.memory_gb <= limit.max_memory_gb
            ]
            by_count.setdefault(limit.count, []).extend(fitting)
    return {count: _preferred(carriers, count).name for count, carriers in sorted(by_count.items()) if carriers}


def _preferred(carriers: Iterable[MachineType], count: int) -> MachineType:
    """Return the smallest with enough vCPUs, or the largest where none has enough."""
    ordered = sorted(carriers, key=_preference)
    return next((machine for machine in ordered if machine.vcpus >= VCPUS_PER_GPU * count), ordered[-1])


def _preference(machine: MachineType) -> tuple[bool, bool, int, float]:
    return not machine.on_demand, bool(machine.note), machine.vcpus, machine.memory_gb
