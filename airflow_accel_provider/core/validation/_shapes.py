"""Whether an accelerator may sit on a machine type."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from airflow_accel_provider.core.accelerators import Cpu, Gpu, Tpu
from airflow_accel_provider.core.machines import (
    MachineType,
    custom_faults,
    family_of,
    parse_custom,
)
from airflow_accel_provider.core.problems import Problem, error, nearest, warning
from airflow_accel_provider.core.validation._tpus import check_tpu

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from airflow_accel_provider.core.catalog import AcceleratorType, Catalog, HostLimit
    from airflow_accel_provider.core.placement import Placement

Operator = Literal["gpu", "tpu"]

_ARM_CARRIERS = frozenset({"a4x"})
"""Families with GPUs of their own on Arm processors, on which Dataflow takes none.

Source: https://cloud.google.com/compute/docs/accelerator-optimized-machines and …/dataflow/docs/gpu/gpu-support, read
2026-11.
"""


def check_shape(
    placement: Placement, catalog: Catalog, *, operator: Operator, where: str, first: bool
) -> Iterator[Problem]:
    """Yield what is wrong with the accelerator, the machine type and the two together.

    The ``first`` place is of the operator's own kind; a TPU's fallback may be GPUs.
    """
    accelerator = placement.accelerator
    machine_type = placement.machine_type
    if isinstance(accelerator, Cpu):
        yield from _check_cpu(machine_type, catalog, where)
        return
    is_tpu = _means_tpu(accelerator, catalog)
    if is_tpu and operator == "gpu":
        text = (
            f"{accelerator.type} is a TPU; use BeamTpuPipelineOperator for it, with GPUs as its fallback if you like."
        )
        yield error("wrong-operator", text, where)
    elif not is_tpu and operator == "tpu" and first:
        text = f"{accelerator.type} is not a TPU; use BeamGpuPipelineOperator for it, or name a TPU first."
        yield error("wrong-operator", text, where)
    elif is_tpu:
        yield from check_tpu(placement, catalog, where)
    else:
        yield from _check_gpu_place(accelerator, placement, catalog, where)


def _means_tpu(accelerator: Gpu | Tpu, catalog: Catalog) -> bool:
    known_name = catalog.names.get(accelerator.type)
    meant = known_name.meant if known_name else accelerator.type
    return meant.startswith("tpu-")


def _check_gpu_place(accelerator: Gpu | Tpu, placement: Placement, catalog: Catalog, where: str) -> Iterator[Problem]:
    known = catalog.accelerator(accelerator.type)
    if isinstance(accelerator, Tpu):
        text = f"{accelerator.type} is a GPU type; it takes a count, such as {accelerator.type}:2, and no topology."
        yield error("topology-of-gpu", text, where)
    elif known:
        yield from _check_gpu(accelerator, known, placement, catalog, where)
    elif catalog.machines_of(accelerator.type):
        yield from _check_unlisted(accelerator, placement, catalog, where)
    else:
        yield _unknown_accelerator(accelerator.type, catalog, where)
        if placement.machine_type:
            yield from _check_name(placement.machine_type, catalog, where)


def _check_unlisted(gpu: Gpu, placement: Placement, catalog: Catalog, where: str) -> Iterator[Problem]:
    """Yield what is wrong with a GPU that Compute Engine has and Dataflow's list does not name."""
    carriers = catalog.machines_of(gpu.type)
    if all(machine.family in _ARM_CARRIERS for machine in carriers):
        yield _unknown_accelerator(gpu.type, catalog, where)
        return
    near = catalog.names.get(gpu.type)
    instead = f"; the nearest that is on it is {near.meant}" if near else ""
    yield warning("not-listed", f"{gpu.type} is not on Dataflow's list of GPU types, by our tables{instead}.", where)
    right = [machine.name for machine in carriers if machine.count == gpu.count]
    if not right:
        text = f"A worker has {_either(catalog.counts_of(gpu.type))} of {gpu.type}, not {gpu.count}."
        yield error("count-invalid", text, where)
    elif placement.machine_type is None:
        yield error("machine-missing", f"{gpu} has no default machine type here; name {_either(right)}.", where)
    elif placement.machine_type not in right:
        yield error("machine-family", f"{gpu} comes with {_either(right)}, not {placement.machine_type}.", where)
    else:
        yield from _check_carrier(gpu, catalog.machines[placement.machine_type], catalog, where)


def _unknown_accelerator(type_: str, catalog: Catalog, where: str) -> Problem:
    known_name = catalog.names.get(type_)
    if known_name:
        return error("unknown-accelerator", f"{type_} {known_name.why} {known_name.meant}.", where)
    near = nearest(type_, catalog.accelerators)
    hint = f"Did you mean {near}?" if near else f"It takes {_either(catalog.accelerators)}."
    return error("unknown-accelerator", f"{type_} is not an accelerator type that Dataflow takes. {hint}", where)


def _check_cpu(machine_type: str | None, catalog: Catalog, where: str) -> Iterator[Problem]:
    if machine_type is None:
        return
    machine = catalog.machine(machine_type)
    if machine and machine.accelerator:
        carried = catalog.carried_by(machine)
        text = f"{machine_type} always carries {carried}; say that instead of cpu, or take n1-standard-8."
        yield error("machine-carries-accelerator", text, where)
    yield from _check_name(machine_type, catalog, where)


def _check_gpu(
    gpu: Gpu, known: AcceleratorType, placement: Placement, catalog: Catalog, where: str
) -> Iterator[Problem]:
    counts = catalog.counts_of(gpu.type)
    if gpu.count not in counts:
        near = min(counts, key=lambda count: (abs(count - gpu.count), -count))
        text = f"A worker has {_either(counts)} of {gpu.type}, not {gpu.count}; the nearest is {Gpu(gpu.type, near)}."
        yield error("count-invalid", text, where)
    if placement.machine_type is None:
        return
    attached = catalog.attaches_to_n1(gpu.type)
    families = {"n1"} if attached else {machine.family for machine in catalog.machines_of(gpu.type)}
    machine = catalog.machine(placement.machine_type)
    if family_of(placement.machine_type) not in families:
        needs = f"{gpu.type} needs {_either(family.upper() for family in sorted(families))}"
        default = known.default_machines.get(gpu.count) or next(iter(known.default_machines.values()))
        why = _why_not(placement.machine_type, catalog)
        yield error("machine-family", f"{needs}, such as {default}; {placement.machine_type} {why}.", where)
    elif machine is None:
        yield from _check_name(placement.machine_type, catalog, where)
    elif attached:
        yield from _check_host(gpu, machine, placement, catalog, where)
    elif gpu.count in counts:
        yield from _check_carrier(gpu, machine, catalog, where)


def _why_not(machine_type: str, catalog: Catalog) -> str:
    machine = catalog.machine(machine_type)
    if machine and machine.accelerator:
        return f"carries {machine.accelerator}"
    if catalog.cpu_families.get(family_of(machine_type)) == "arm":
        return "has Arm processors, on which Dataflow takes no GPU"
    return "cannot carry it"


def _check_carrier(gpu: Gpu, machine: MachineType, catalog: Catalog, where: str) -> Iterator[Problem]:
    right = [each.name for each in catalog.machines_of(gpu.type, gpu.count)]
    if machine.accelerator != gpu.type:
        text = f"{machine.name} carries {machine.accelerator}; {gpu} comes with {_either(right)}."
        yield error("machine-accelerator", text, where)
    elif machine.count != gpu.count:
        wanted = f"{gpu.count} come with {_either(right)}"
        text = f"{machine.name} has {machine.count} of {gpu.type}, not {gpu.count}; {wanted}."
        yield error("machine-count", text, where)
    elif not machine.on_demand:
        text = f"{machine.name} cannot be had on demand; it needs a reservation or a spot or flex-start option."
        yield warning("not-on-demand", text, where)


def _check_host(
    gpu: Gpu, machine: MachineType, placement: Placement, catalog: Catalog, where: str
) -> Iterator[Problem]:
    yield from _check_name(machine.name, catalog, where)
    limit = catalog.host_limit(gpu.type, gpu.count, placement.zone)
    if limit and not _fits(machine, limit):
        text = (
            f"{machine.name} ({machine.vcpus} vCPUs, {machine.memory_gb:g} GB) is too large for {gpu}, which goes up "
            f"to {limit.max_vcpus} vCPUs and {limit.max_memory_gb} GB{_larger(gpu, machine, placement, catalog)}."
        )
        yield error("host-too-large", text, where)


def _larger(gpu: Gpu, machine: MachineType, placement: Placement, catalog: Catalog) -> str:
    limits = (catalog.host_limit(gpu.type, count, placement.zone) for count in catalog.counts_of(gpu.type))
    fitting = next((limit for limit in limits if limit and _fits(machine, limit)), None)
    return f"; this host takes {Gpu(gpu.type, fitting.count)}" if fitting else ""


def _fits(machine: MachineType, limit: HostLimit) -> bool:
    return machine.vcpus <= limit.max_vcpus and machine.memory_gb <= limit.max_memory_gb


def _check_name(machine_type: str, catalog: Catalog, where: str) -> Iterator[Problem]:
    custom = parse_custom(machine_type)
    if custom:
        for fault in custom_faults(custom):
            yield error("custom-machine", f"{machine_type} has {fault}.", where)
    elif catalog.machine(machine_type) is None:
        yield from _unknown_machine(machine_type, catalog, where)


def _unknown_machine(machine_type: str, catalog: Catalog, where: str) -> Iterator[Problem]:
    # The families in the table are there in full, of the other CPU families none is, and any other family may be new.
    family = family_of(machine_type)
    near = nearest(machine_type, catalog.machines)
    hint = f" Did you mean {near}?" if near else ""
    if family in {machine.family for machine in catalog.machines.values()}:
        yield error("unknown-machine", f"There is no machine type {machine_type}.{hint}", where)
    elif family not in catalog.cpu_families:
        yield warning("unknown-machine", f"The catalogue has no machine type {machine_type}.{hint}", where)


def _either(words: Iterable[object]) -> str:
    texts = [str(word) for word in words]
    return texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} or {texts[-1]}"
