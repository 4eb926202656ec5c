"""Which reservation a job draws on, and whether it has room.

Machines of a reservation were counted against quotas when it was made, so a job on a named one asks for none. *Any*
reservation is taken where one fits, and machines on demand where none does.
Source: https://cloud.google.com/dataflow/docs/guides/reservations, read 2026-11.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from airflow_accel_provider.core.accelerators import Cpu, Gpu, Tpu
from airflow_accel_provider.core.failures import Failure, FailureKind, Resource, Scope
from airflow_accel_provider.core.locations import region_of
from airflow_accel_provider.core.options import merged_experiments, merged_service_options
from airflow_accel_provider.core.problems import Problem, error, nearest
from airflow_accel_provider.core.reservations import (
    ANY,
    AUTOMATIC,
    Reservation,
    ReservationError,
    ReservationState,
    reservations_in,
)

if TYPE_CHECKING:
    from airflow_accel_provider.core.catalog import Catalog
    from airflow_accel_provider.core.placement import Placement
    from airflow_accel_provider.core.request import BeamRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class Reserved:
    """What was read of reservations.

    ``named`` holds those that were asked for (``None``: there is no such), ``listed`` all of the project. What could
    not be read is missing, or ``None``.
    """

    named: Mapping[Reservation, ReservationState | None] = field(default_factory=dict)
    listed: tuple[ReservationState, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReservedRoom:
    """What reservations mean for a place: why it is put aside, whether they hold all it starts with, what to say."""

    rejected: Failure | None = None
    covers: bool = False
    notes: tuple[str, ...] = ()


def wanted_reservation(request: BeamRequest, placement: Placement) -> Reservation | str | None:
    """Return the reservation that a request names, in ``reservation`` or in an option passed on as it is.

    The text ``any`` means any that fits, ``None`` none. What cannot be read is for validation to refuse.
    """
    options = (*merged_service_options(request), *merged_experiments(request))
    if request.reservation and request.reservation != ANY:
        try:
            return Reservation.parse(request.reservation, placement=placement)
        except ReservationError:
            return None
    named = [found for item in options for found in reservations_in(item)]
    if named:
        return named[0]
    return ANY if request.reservation or AUTOMATIC in options else None


def named_room(
    wanted: Reservation, reserved: Reserved, placement: Placement, catalog: Catalog, *, floor: int, ceiling: int | None
) -> ReservedRoom:
    """Return whether the named reservation holds the machines that a job starts with."""
    if wanted not in reserved.named:
        return ReservedRoom(covers=True, notes=(f"what is free in {wanted} could not be read",))
    state = reserved.named[wanted]
    if state is None:
        return ReservedRoom(rejected=_wrong(f"there is no reservation {wanted}"))
    mismatch = mismatch_of(state, placement, catalog)
    if mismatch:
        return ReservedRoom(rejected=_wrong(f"{wanted} {mismatch}"))
    free = machines_free(state, placement, catalog)
    status = "" if state.status == "ready" else f" (it is {state.status or 'not ready'})"
    told = f"{free} of {_machines(state, state.count, placement, catalog)} free in {wanted}{status}"
    if free < floor:
        return ReservedRoom(rejected=_full(f"needs at least {_counted(floor)}; {told}", placement, wanted))
    grows = ceiling is not None and free < ceiling
    return ReservedRoom(covers=True, notes=(f"cannot grow to {ceiling}: {told}" if grows else told,))


def any_room(reserved: Reserved, placement: Placement, catalog: Catalog, *, floor: int) -> ReservedRoom:
    """Return whether the reservations that any machine may use hold those that a job starts with.

    A job's workers are in one zone, which may hold several reservations of their shape.
    """
    if reserved.listed is None:
        return ReservedRoom(notes=("what is free in reservations could not be read",))
    free: dict[str, int] = {}
    for state in reserved.listed:
        zone = state.reservation.zone
        here = placement.zone in (None, zone) and region_of(zone) == placement.region
        if here and not state.is_specific and _is_told(state) and not mismatch_of(state, placement, catalog):
            free[zone] = free.get(zone, 0) + machines_free(state, placement, catalog)
    zone = max(free, key=lambda each: free[each], default=placement.location)
    most = free.get(zone, 0)
    if most < floor:
        return ReservedRoom(notes=(f"{_counted(most)} free in reservations of {zone}, the rest comes on demand",))
    return ReservedRoom(covers=True, notes=(f"{_counted(most)} free in reservations of {zone}",))


def named_problem(
    wanted: Reservation,
    state: ReservationState | None,
    placement: Placement,
    catalog: Catalog,
    *,
    others: Iterable[Reservation],
    where: str,
) -> Problem | None:
    """Return what is wrong with a reservation by its name: that it is not there, or holds other machines.

    ``others`` are those of the same project, from which a missing one's nearest is told.
    """
    if state is None:
        return error("reservation-missing", f"There is no reservation {wanted}.{_hint(wanted, [*others])}", where)
    mismatch = mismatch_of(state, placement, catalog)
    return error("reservation-shape", f"The reservation {wanted} {mismatch}.", where) if mismatch else None


def meant_by(wanted: Reservation, others: Sequence[Reservation]) -> tuple[Reservation, ...]:
    """Return what a name that is not there may stand for: its like in other zones, else the one with the nearest."""
    namesakes = sorted((each for each in others if each.name == wanted.name), key=lambda each: each.zone)
    if namesakes:
        return tuple(namesakes)
    here = [each.name for each in others if each.zone == wanted.zone]
    near = nearest(wanted.name, here) or nearest(wanted.name, [each.name for each in others])
    return tuple(each for each in others if each.name == near)[:1]


def _hint(wanted: Reservation, others: Sequence[Reservation]) -> str:
    meant = meant_by(wanted, others)
    if not meant:
        return ""
    if meant[0].name == wanted.name:
        return f" It is in {', '.join(each.zone for each in meant)}; the placement must be, too."
    return f" Did you mean {meant[0].name} in {meant[0].zone}?"


def mismatch_of(state: ReservationState, placement: Placement, catalog: Catalog) -> str | None:
    """Return what a reservation holds where that is not what the place asks for: the end of a sentence about it."""
    if not _is_told(state):
        return None
    wanted = placement.accelerator
    name = None if isinstance(wanted, Cpu) else catalog.compute_name(wanted.type)
    # What a machine type carries by itself, a reservation need not repeat.
    count = wanted.count if isinstance(wanted, Gpu) else _chips(wanted, catalog) if isinstance(wanted, Tpu) else 0
    carried = state.accelerator is None or (state.accelerator == name and state.accelerators_each == count)
    attached = isinstance(wanted, Gpu) and catalog.attaches_to_n1(wanted.type)
    if not state.machine_type:
        fits = state.accelerator == name
    else:
        fits = state.machine_type == placement.machine_type and carried and not (attached and not state.accelerator)
    if fits:
        return None
    device = f" with {state.accelerators_each} x {state.accelerator}" if state.accelerator else ""
    asked = f"{placement.machine_type or placement.accelerator}{f' with {count} x {name}' if name else ''}"
    return f"holds {state.machine_type or 'machines'}{device}, not {asked}"


def machines_free(state: ReservationState, placement: Placement, catalog: Catalog) -> int:
    """Return how many of the place's machines are free, of a reservation of single chips too."""
    return _machines(state, state.free, placement, catalog)


def _machines(state: ReservationState, count: int, placement: Placement, catalog: Catalog) -> int:
    if state.machine_type or not isinstance(placement.accelerator, Tpu):
        return count
    return count // (_chips(placement.accelerator, catalog) or 1)


def _chips(tpu: Tpu, catalog: Catalog) -> int:
    known = catalog.tpu(tpu.type, tpu.topology)
    return known.chips if known else 0


def _is_told(state: ReservationState) -> bool:
    return bool(state.machine_type or state.accelerator)


def _counted(machines: int) -> str:
    return f"{machines} machine{'' if machines == 1 else 's'}"


def _wrong(explanation: str) -> Failure:
    return Failure(kind=FailureKind.CONFIGURATION, scope=Scope.NONE, explanation=explanation)


def _full(explanation: str, placement: Placement, wanted: Reservation) -> Failure:
    return Failure(
        kind=FailureKind.STOCKOUT,
        # Machines on demand are another pool, even in the same zone.
        scope=Scope.NONE,
        resource=Resource.ACCELERATOR,
        zone=wanted.zone,
        region=placement.region,
        explanation=explanation,
    )
