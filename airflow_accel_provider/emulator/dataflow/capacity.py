"""Decides where a pool's VMs come up, how many of them, or why none does."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from airflow_accel_provider.emulator.compute.quotas import Shortage, find_shortage
from airflow_accel_provider.emulator.compute.tables import ACCELERATORS, ZONES, find_machine
from airflow_accel_provider.emulator.dataflow import texts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow_accel_provider.emulator.compute.instances import Instance
    from airflow_accel_provider.emulator.dataflow.demand import Demand
    from airflow_accel_provider.emulator.worlds import World


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """The VMs that came up (at least one), and why not all did, if not all did."""

    instances: tuple[Instance, ...]
    short: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Why no VM came up. ``retriable`` is false where asking again would be no use."""

    reason: str
    kind: str
    retriable: bool = True


def choose_zone(demand: Demand, existing: Sequence[Instance], world: World) -> str:
    """Return the pinned zone, or else the first of the region with stock, else one that offers the accelerator."""
    if demand.zone:
        return demand.zone
    zones = ZONES[demand.region]
    if demand.accelerator is None:
        return zones[0]
    kind = demand.accelerator.type
    offering = [zone for zone in zones if zone in ACCELERATORS[kind].zones] or list(zones)
    stocked = (zone for zone in offering if _left(kind, zone, existing, world) >= (demand.accelerator.count))
    return next(stocked, offering[0])


def allocate(wanted: Sequence[Instance], existing: Sequence[Instance], world: World) -> Grant | Refusal:
    """Bring up as many of the wanted VMs (all alike, in one zone) as rules, quota and stock allow, in that order."""
    first = wanted[0]
    if rule := _broken_rule(first):
        return rule
    granted: list[Instance] = []
    refusal: Refusal | None = None
    for instance in wanted:
        refusal = _shortage(instance, [*existing, *granted], world)
        if refusal:
            break
        shows = "gpu_missing" not in world.flaws
        granted.append(replace(instance, shows_accelerator=shows))
    if refusal and not granted:
        return refusal
    return Grant(instances=tuple(granted), short=refusal.reason if refusal else None)


def _broken_rule(instance: Instance) -> Refusal | None:
    machine = find_machine(instance.machine_type)
    if machine is None or (machine.accelerator and not instance.count):
        return Refusal(reason=texts.NO_LIVE_MIGRATION, kind="live_migration", retriable=False)
    if instance.accelerator is None:
        return None
    accelerator = ACCELERATORS[instance.accelerator]
    if instance.zone not in accelerator.zones:
        reason = texts.not_offered(project=instance.project, zone=instance.zone, accelerator=accelerator.name)
        return Refusal(reason=reason, kind="not_offered", retriable=False)
    cpus, memory_gb = accelerator.n1_hosts.get(instance.count, (machine.cpus, machine.memory_gb))
    if not machine.accelerator and (machine.cpus > cpus or machine.memory_gb > memory_gb):
        reason = texts.host_too_large(
            cpus=machine.cpus, memory_gb=machine.memory_gb, accelerator=accelerator.name, count=instance.count
        )
        return Refusal(reason=reason, kind="host_too_large", retriable=False)
    return None


def _shortage(instance: Instance, existing: Sequence[Instance], world: World) -> Refusal | None:
    shortage: Shortage | None = find_shortage(instance, existing, world)
    if shortage:
        return Refusal(reason=texts.quota_exceeded(shortage), kind="quota")
    if instance.accelerator and _left(instance.accelerator, instance.zone, existing, world) < instance.count:
        return Refusal(reason=texts.out_of_stock(project=instance.project, zone=instance.zone), kind="stockout")
    return None


def _left(accelerator: str, zone: str, existing: Sequence[Instance], world: World) -> int:
    taken = sum(vm.count for vm in existing if vm.zone == zone and vm.accelerator == accelerator)
    return world.free(accelerator, zone=zone) - taken
