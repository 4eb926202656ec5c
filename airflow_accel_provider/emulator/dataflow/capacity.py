"""Decides where a pool's VMs come up, how many of them, or why none does."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from airflow_accel_provider.emulator.compute.quotas import Shortage, find_shortage
from airflow_accel_provider.emulator.compute.tables import ACCELERATORS, ZONES, find_machine
from airflow_accel_provider.emulator.dataflow import texts
from airflow_accel_provider.emulator.dataflow.tpus import SLICES, is_tpu

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow_accel_provider.emulator.compute.instances import Instance
    from airflow_accel_provider.emulator.compute.reservations import Reservation, Reservations
    from airflow_accel_provider.emulator.dataflow.demand import Demand, ReservationName
    from airflow_accel_provider.emulator.worlds import World

OPERATION = "operation-1796000894440-630cad2eb70b1-13691487-5f5d03c2"
TPU_MACHINES = frozenset(machine for slices in SLICES.values() for machine in slices.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """The VMs that came up (at least one), and why not all did, if not all did."""

    instances: tuple[Instance, ...]
    short: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Why no VM came up. ``retriable`` is false where asking again would be no use.

    ``is_whole`` is whether the reason is all that is said, and no part of a sentence about the pool.
    """

    reason: str
    kind: str
    retriable: bool = True
    is_whole: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Supply:
    """What there is to take: the world, the reservations in it, and the VMs that exist already."""

    world: World
    reservations: Reservations
    existing: Sequence[Instance]

    def with_more(self, granted: Sequence[Instance]) -> Supply:
        """Return what there is once more VMs exist."""
        return replace(self, existing=[*self.existing, *granted])

    def left(self, accelerator: str, zone: str) -> int:
        """Return how many accelerators a zone has left; those in reservations are not of its stock."""
        taken = sum(
            vm.count for vm in self.existing if (vm.zone, vm.accelerator, vm.reservation) == (zone, accelerator, None)
        )
        return self.world.free(accelerator, zone=zone) - taken

    def reserved(self, instance: Instance) -> Reservation | None:
        """Return a reservation that a VM may take without naming it."""
        return next(iter(self.reservations.usable_by(instance, existing=self.existing)), None)


def choose_zone(demand: Demand, vm: Instance, supply: Supply) -> str:
    """Return the pinned zone, or else the first of the region with room for a VM, else one that offers the accelerator.

    ``vm`` is what is to come up there.
    """
    if demand.zone:
        return demand.zone
    zones = ZONES[demand.region]
    if demand.accelerator is None:
        return zones[0]
    kind = demand.accelerator.type
    offering = [zone for zone in zones if zone in ACCELERATORS[kind].zones] or list(zones)
    reserved = (zone for zone in offering if demand.any_reservation and supply.reserved(replace(vm, zone=zone)))
    stocked = (zone for zone in offering if supply.left(kind, zone) >= demand.accelerator.count)
    return next(reserved, None) or next(stocked, offering[0])


def allocate(wanted: Sequence[Instance], demand: Demand, supply: Supply) -> Grant | Refusal:
    """Bring up as many of the wanted VMs (all alike, in one zone) as rules, quota and stock allow, in that order.

    A VM in a reservation needs neither quota nor stock.
    """
    if rule := _broken_rule(wanted[0], supply.world):
        return rule
    granted: list[Instance] = []
    refusal: Refusal | None = None
    for instance in wanted:
        answer = _place(instance, demand, supply.with_more(granted))
        if isinstance(answer, Refusal):
            refusal = answer
            break
        granted.append(replace(answer, shows_accelerator="gpu_missing" not in supply.world.flaws))
    if refusal and not granted:
        return refusal
    return Grant(instances=tuple(granted), short=refusal.reason if refusal else None)


def shortage(instance: Instance, supply: Supply) -> Refusal | None:
    """Return why there is no room for a VM outside of reservations, or None."""
    quotas: Shortage | None = find_shortage(instance, supply.existing, supply.world)
    if quotas:
        return Refusal(reason=texts.quota_exceeded(quotas), kind="quota")
    if instance.accelerator and supply.left(instance.accelerator, instance.zone) < instance.count:
        return Refusal(reason=texts.out_of_stock(project=instance.project, zone=instance.zone), kind="stockout")
    return None


def _place(instance: Instance, demand: Demand, supply: Supply) -> Instance | Refusal:
    if demand.reservation:
        return _in_reservation(instance, demand.reservation, supply)
    reservation = supply.reserved(instance) if demand.any_reservation else None
    if reservation:
        return replace(instance, reservation=reservation.path)
    return shortage(instance, supply) or instance


def _in_reservation(instance: Instance, wanted: ReservationName, supply: Supply) -> Instance | Refusal:
    project, zone = wanted.project or instance.project, wanted.zone or instance.zone
    found = supply.reservations.find(project, zone, wanted.name, existing=supply.existing)
    if found is None or zone != instance.zone:
        reason = texts.no_such_reservation(name=wanted.name)
        return Refusal(reason=reason, kind="reservation_unknown", retriable=False)
    if not found.fits(instance):
        reason = texts.reservation_of_another_shape()
        return Refusal(reason=reason, kind="reservation_shape", retriable=False)
    if not found.free:
        return Refusal(reason=texts.reservation_full(name=wanted.name), kind="reservation_full")
    return replace(instance, reservation=found.path)


def _broken_rule(instance: Instance, world: World) -> Refusal | None:
    machine = find_machine(instance.machine_type)
    if instance.machine_type in TPU_MACHINES or is_tpu(instance.accelerator or ""):
        return _broken_tpu_rule(instance, world)
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


def _broken_tpu_rule(instance: Instance, world: World) -> Refusal | None:
    if instance.accelerator is None:
        reason = texts.tpu_option_missing(project=instance.project, operation=OPERATION)
        return Refusal(reason=reason, kind="tpu_option_missing", retriable=False, is_whole=True)
    if "tpu_not_enrolled" in world.flaws:
        reason = texts.tpu_not_enrolled(project=instance.project, operation=OPERATION)
        return Refusal(reason=reason, kind="tpu_not_enrolled", retriable=False, is_whole=True)
    if instance.zone not in ACCELERATORS[instance.accelerator].zones:
        reason = texts.machine_not_offered(
            project=instance.project, zone=instance.zone, machine_type=instance.machine_type
        )
        return Refusal(reason=reason, kind="not_offered", retriable=False)
    return None
