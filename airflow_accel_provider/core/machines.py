"""Machine types: what a worker's host has, and which names can be read without a table."""

from __future__ import annotations

import re
from dataclasses import dataclass

_CUSTOM = re.compile(r"^(?P<family>n1-)?custom-(?P<vcpus>\d+)-(?P<mb>\d+)(?P<extended>-ext)?$")

# Source: https://cloud.google.com/compute/docs/instances/creating-instance-with-custom-machine-type, read 2026-11.
_MB_STEP = 256
_GB_PER_VCPU = (0.9, 6.5)
_MOST_VCPUS = 96
_MOST_GB = 624


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineType:
    """The host of a worker. ``accelerator`` and ``count`` are what every such machine carries, if anything.

    Not ``on_demand`` are those that can be had with a reservation, as spot or by flex-start only, not ``on_dataflow``
    those whose accelerator is not on Dataflow's list. ``note`` says what else a person should know.
    """

    name: str
    vcpus: int
    memory_gb: float
    accelerator: str | None = None
    count: int = 0
    on_demand: bool = True
    on_dataflow: bool = True
    note: str = ""

    @property
    def family(self) -> str:
        """The part of the name that says what can be attached: ``g2``, ``n1``, …."""
        return family_of(self.name)


def family_of(name: str) -> str:
    """Return the family of a machine type; ``custom-4-8192`` is N1's older spelling."""
    first = name.partition("-")[0]
    return "n1" if first == "custom" else first


def parse_custom(name: str) -> MachineType | None:
    """Return the N1 machine that ``n1-custom-VCPUS-MB[-ext]`` describes, or ``None`` for other names."""
    form = _CUSTOM.match(name)
    if not form:
        return None
    return MachineType(name=name, vcpus=int(form["vcpus"]), memory_gb=int(form["mb"]) / 1024)


def custom_faults(machine: MachineType) -> tuple[str, ...]:
    """Return what Compute Engine would refuse in a custom N1 machine, each with what it takes instead."""
    faults = []
    if machine.vcpus != 1 and (machine.vcpus % 2 or not 2 <= machine.vcpus <= _MOST_VCPUS):
        faults.append(f"{machine.vcpus} vCPUs; it must be 1 or an even number up to {_MOST_VCPUS}")
    if machine.memory_gb * 1024 % _MB_STEP:
        faults.append(f"{machine.memory_gb * 1024:.15g} MB; it must be a multiple of {_MB_STEP}")
    least, most = (each * machine.vcpus for each in _GB_PER_VCPU)
    if machine.memory_gb < least:
        faults.append(f"{machine.memory_gb:.4g} GB; {machine.vcpus} vCPUs have {least:g} GB or more")
    if machine.name.endswith("-ext"):
        if machine.memory_gb > _MOST_GB:
            faults.append(f"{machine.memory_gb:.4g} GB; extended memory ends at {_MOST_GB} GB")
    elif machine.memory_gb > most:
        faults.append(f"{machine.memory_gb:.4g} GB; over {most:g} GB the name needs '-ext' at its end")
    return tuple(faults)
