"""The plan: every candidate in the user's order, kept or put aside with a reason, before anything is started."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from airflow_accel_provider.core.cloud_quotas import CloudQuota
from airflow_accel_provider.core.demands import demands
from airflow_accel_provider.core.failures import Failure, FailureKind, Resource, Scope
from airflow_accel_provider.core.locations import is_zone, region_of
from airflow_accel_provider.core.placement import Placement
from airflow_accel_provider.core.quota import GLOBAL, Readings, room_for
from airflow_accel_provider.core.record import PlannedPlace
from airflow_accel_provider.core.request import BeamRequest, Candidate
from airflow_accel_provider.core.reservations import ANY, Reservation
from airflow_accel_provider.core.reserving import Reserved, any_room, named_room, wanted_reservation

if TYPE_CHECKING:
    from airflow_accel_provider.core.catalog import Catalog


@dataclass(frozen=True, slots=True, kw_only=True)
class Questions:
    """What must be read before a plan can be made, each thing once.

    ``further`` are quotas that Cloud Quotas alone tells, with the region or zone they are wanted for, ``reservations``
    those that candidates name. ``any_reservation`` asks for all of the project.
    """

    regions: tuple[str, ...]
    further: tuple[tuple[CloudQuota, str], ...]
    reservations: tuple[Reservation, ...]
    any_reservation: bool


def questions(request: BeamRequest, candidates: Sequence[Candidate], *, catalog: Catalog) -> Questions:
    """Return what to read for these candidates, which have their machine types filled in."""
    meant = [(request.for_candidate(each), each.placement) for each in candidates]
    drawn = [demand for said, placement in meant for demand in demands(said, placement, catalog)]
    places = [demand.location for demand in drawn if demand.location != GLOBAL]
    wanted = [wanted_reservation(said, placement) for said, placement in meant]
    return Questions(
        regions=tuple(dict.fromkeys(region_of(each) if is_zone(each) else each for each in places)),
        further=tuple(dict.fromkeys((each.quota, each.location) for each in drawn if each.quota)),
        reservations=tuple(dict.fromkeys(each for each in wanted if isinstance(each, Reservation))),
        any_reservation=ANY in wanted,
    )


def plan(
    request: BeamRequest,
    candidates: Sequence[Candidate],
    *,
    catalog: Catalog,
    readings: Readings,
    reserved: Reserved | None = None,
) -> tuple[PlannedPlace, ...]:
    """Return one row a candidate. Candidates have their machine types filled in."""
    known = reserved or Reserved()
    return tuple(
        _planned(request.for_candidate(candidate), candidate.placement, catalog, readings, known)
        for candidate in candidates
    )


def _planned(
    request: BeamRequest, placement: Placement, catalog: Catalog, readings: Readings, reserved: Reserved
) -> PlannedPlace:
    floor, ceiling = request.num_workers or 1, request.max_num_workers
    wanted = wanted_reservation(request, placement)
    room = room_for(demands(request, placement, catalog), readings)
    if isinstance(wanted, Reservation):
        held = named_room(wanted, reserved, placement, catalog, floor=floor, ceiling=ceiling)
        return PlannedPlace(
            placement=placement,
            rejected=held.rejected or room.shortage,
            warnings=(*held.notes, *room.warnings),
            reservation=str(wanted),
        )
    missing = not_offered(placement, catalog)
    if missing:
        return PlannedPlace(placement=placement, rejected=missing)
    if wanted is None:
        return PlannedPlace(placement=placement, rejected=room.shortage, warnings=room.warnings)
    held = any_room(reserved, placement, catalog, floor=floor)
    spared = (f"without them: {room.shortage.explanation}",) if room.shortage and held.covers else ()
    return PlannedPlace(
        placement=placement,
        rejected=None if held.covers else room.shortage,
        warnings=(*held.notes, *spared, *room.warnings),
        reservation=ANY if held.covers else None,
    )


def not_offered(placement: Placement, catalog: Catalog) -> Failure | None:
    """Return why the place is put aside when the catalogue knows it and knows that it lacks the accelerator."""
    instead = catalog.offered_instead(placement)
    if not instead:
        return None
    return Failure(
        kind=FailureKind.NOT_OFFERED,
        scope=Scope.ZONE if placement.zone else Scope.REGION,
        resource=Resource.ACCELERATOR,
        zone=placement.zone,
        region=placement.region,
        explanation=f"not offered there ({' and '.join(instead)} {'have' if len(instead) > 1 else 'has'} it)",
    )
