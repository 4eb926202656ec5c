"""Why the service rejects a job after it has admitted it: the machine does not fit the accelerator."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_accel_provider.emulator.compute.tables import ACCELERATORS, BUILT_IN, Machine, find_machine
from airflow_accel_provider.emulator.dataflow.tpus import SLICES

if TYPE_CHECKING:
    from airflow_accel_provider.emulator.dataflow.demand import AcceleratorRequest, Demand


def find_rejection(demand: Demand) -> str | None:
    """Return why the service rejects a job, or None."""
    machine, wanted = find_machine(demand.machine_type), demand.accelerator
    because = "The workflow was automatically rejected by the service because"
    if machine is None:
        return f"{because} the machine type {demand.machine_type} does not exist."
    if wanted is None:
        return None
    fitting = _fitting_machine(wanted)
    if fitting is None:
        amount = f"with the topology {wanted.topology}" if wanted.topology else f"{wanted.count} times"
        return f"{because} the requested accelerator type {wanted.type} cannot be attached {amount}."
    if _carries(machine, wanted):
        return None
    if wanted.topology:
        # Google's own sentence, as its page on TPUs shows it.
        because = f"{because} it might trigger an identified bug:"
        return f"{because} requested accelerator type {wanted} requires setting the worker machine type to {fitting}."
    return f"{because} the requested accelerator type {wanted} requires setting the worker machine type to {fitting}."


def _carries(machine: Machine, wanted: AcceleratorRequest) -> bool:
    if wanted.topology:
        return SLICES[wanted.type].get(wanted.topology) == machine.name
    if machine.accelerator:
        return (machine.accelerator, machine.count) == (wanted.type, wanted.count)
    return machine.family == "n1" and wanted.count in ACCELERATORS[wanted.type].n1_hosts


def _fitting_machine(wanted: AcceleratorRequest) -> str | None:
    if wanted.topology:
        return SLICES[wanted.type].get(wanted.topology)
    for machine in BUILT_IN.values():
        if (machine.accelerator, machine.count) == (wanted.type, wanted.count):
            return machine.name
    return "n1-standard-4" if wanted.count in ACCELERATORS[wanted.type].n1_hosts else None
