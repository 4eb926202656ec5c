"""Compute Engine v1: reservations, read, made and let go."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from airflow_accel_provider.emulator.compute.instances import number_of
from airflow_accel_provider.emulator.compute.operations import done
from airflow_accel_provider.emulator.compute.paging import (
    BEGINNING,
    aggregated_page,
    not_found,
    page,
    project_of,
    root_of,
    zone_of,
)
from airflow_accel_provider.emulator.compute.reservations import Reservation, path_of
from airflow_accel_provider.emulator.compute.tables import (
    ACCELERATORS,
    Machine,
    find_machine,
    listed_name,
    machine_zones,
)
from airflow_accel_provider.emulator.ledger import rfc3339
from airflow_accel_provider.emulator.wire import Call, GoogleError, Method
from airflow_accel_provider.emulator.worlds import Reserved

_NAME = re.compile(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?")
# What is kept of a new reservation; the service's own fields come back from callers who copy one.
_KEPT = frozenset({"kind", "name", "zone", "specificReservation", "specificReservationRequired"})
_KEPT_PROPERTIES = frozenset({"machineType", "guestAccelerators"})


def get_reservation(call: Call) -> dict[str, Any]:
    """Answer ``reservations.get``."""
    return _json(_find(call), root_of(call))


def list_reservations(call: Call) -> dict[str, Any]:
    """Answer ``reservations.list``: those of one zone, filtered."""
    zone = zone_of(call, project_of(call))
    found = [_json(each, root_of(call)) for each in call.google.reservations.list(zone=zone)]
    return page(call, "compute#reservationList", f"zones/{zone}/reservations", found)


def list_all_reservations(call: Call) -> dict[str, Any]:
    """Answer ``reservations.aggregatedList``: those of every zone, filtered; zones without any say so."""
    project_of(call)
    found = [_json(each, root_of(call)) for each in call.google.reservations.list()]
    return aggregated_page(call, "compute#reservationAggregatedList", "reservations", found)


def insert_reservation(call: Call) -> dict[str, Any]:
    """Answer ``reservations.insert``: keep machines for the project, out of no stock and no quota."""
    project = project_of(call)
    zone = zone_of(call, project)
    reserved = _read(call.json(), zone)
    if call.google.reservations.find(project, zone, reserved.name):
        raise GoogleError(409, f"The resource '{path_of(project, reserved)}' already exists", reason="alreadyExists")
    call.google.reservations.make(reserved, created=rfc3339(call.google.now()))
    return done(call, "insert", zone=zone, target=f"reservations/{reserved.name}")


def delete_reservation(call: Call) -> dict[str, Any]:
    """Answer ``reservations.delete``: let go one that was made by a call and that no VM uses."""
    found = _find(call)
    if found.created is None:
        raise GoogleError(400, f"The reservation '{found.path}' is part of the world {call.google.world.name}.")
    if found.in_use:
        raise GoogleError(
            400,
            f"The reservation resource '{found.path}' is already being used by {found.in_use} instances",
            reason="resourceInUseByAnotherResource",
        )
    call.google.reservations.remove(found)
    return done(call, "delete", zone=found.reserved.zone, target=f"reservations/{found.reserved.name}")


def _find(call: Call) -> Reservation:
    project = project_of(call)
    zone, name = zone_of(call, project), call.path["reservation"]
    found = call.google.reservations.find(project, zone, name)
    if found is None:
        raise not_found(f"projects/{project}/zones/{zone}/reservations/{name}")
    return found


def _read(body: Mapping[str, Any], zone: str) -> Reserved:
    """Return what a request wants to have reserved, or raise GoogleError with everything that is wrong with it."""
    wanted = body.get("specificReservation", {})
    properties = wanted.get("instanceProperties", {})
    unknown = sorted((set(body) - _KEPT) | (set(properties) - _KEPT_PROPERTIES))
    if unknown:
        raise GoogleError(501, f"The emulator keeps nothing of a reservation's {', '.join(unknown)}.")
    machine = find_machine(properties.get("machineType", ""))
    attached = properties.get("guestAccelerators", ())
    problems = [*_problems(body, wanted, zone), *_machine_problems(properties, machine, attached, zone)]
    if problems:
        raise GoogleError(400, " ".join(problems))
    accelerator, each = _accelerator(machine, attached)
    return Reserved(
        name=body["name"],
        zone=zone,
        machine_type=properties["machineType"],
        accelerator=accelerator,
        accelerators_each=each,
        count=int(wanted["count"]),
        specific=bool(body.get("specificReservationRequired")),
    )


def _problems(body: Mapping[str, Any], wanted: Mapping[str, Any], zone: str) -> Iterator[str]:
    if not _NAME.fullmatch(body.get("name", "")):
        yield _invalid("name", body.get("name", ""), f"Must be a match of regex '{_NAME.pattern}'")
    if not str(wanted.get("count", "")).isdecimal() or int(wanted["count"]) < 1:
        yield _invalid("specificReservation.count", wanted.get("count", ""), "Must be a positive number")
    if body.get("zone", zone).rpartition("/")[2] != zone:
        yield _invalid("zone", body["zone"], f"Must be the zone of the request, {zone}")


def _machine_problems(
    properties: Mapping[str, Any], machine: Machine | None, attached: Any, zone: str
) -> Iterator[str]:
    where = "specificReservation.instanceProperties"
    if machine is None or zone not in machine_zones(machine):
        name = properties.get("machineType", "")
        yield _invalid(f"{where}.machineType", name, f"There is no such machine type in zone {zone}")
        return
    accelerator, each = _accelerator(machine, attached)
    if machine.accelerator:
        fits = (accelerator, each) == (machine.accelerator, machine.count)
    else:
        fits = not attached or (machine.family == "n1" and _attaches(accelerator, each, zone))
    if not fits or len(attached) > 1:
        yield _invalid(f"{where}.guestAccelerators", attached, f"{machine.name} cannot have them in zone {zone}")


def _accelerator(machine: Machine | None, attached: Any) -> tuple[str | None, int]:
    if attached:
        listed = attached[0].get("acceleratorType", "").rpartition("/")[2]
        name = next((each.name for each in ACCELERATORS.values() if each.listed_as == listed), listed)
        return name, int(attached[0].get("acceleratorCount", 0))
    return (machine.accelerator, machine.count) if machine else (None, 0)


def _attaches(accelerator: str | None, count: int, zone: str) -> bool:
    known = ACCELERATORS.get(accelerator or "")
    return known is not None and count in known.n1_hosts and zone in known.zones


def _invalid(field: str, value: object, why: str) -> str:
    return f"Invalid value for field 'resource.{field}': '{value}'. {why}."


def _json(reservation: Reservation, root: str) -> dict[str, Any]:
    reserved = reservation.reserved
    zone = f"{root}/projects/{reservation.project}/zones/{reserved.zone}"
    properties: dict[str, Any] = {"machineType": reserved.machine_type}
    if reserved.accelerator:
        accelerator = {
            "acceleratorType": listed_name(reserved.accelerator),
            "acceleratorCount": reserved.accelerators_each,
        }
        properties["guestAccelerators"] = [accelerator]
    return {
        "kind": "compute#reservation",
        "id": number_of(reservation.path),
        "name": reserved.name,
        "creationTimestamp": reservation.created or BEGINNING,
        "zone": zone,
        "selfLink": f"{zone}/reservations/{reserved.name}",
        "status": "READY",
        "specificReservationRequired": reserved.specific,
        "specificReservation": {
            "count": str(reserved.count),
            "inUseCount": str(reservation.in_use),
            "assuredCount": str(reserved.count),
            "instanceProperties": properties,
        },
        "shareSettings": {"shareType": "LOCAL"},
    }


_PROJECT = "/compute/v1/projects/{project}"
_ALL = f"{_PROJECT}/zones/{{zone}}/reservations"
_ONE = f"{_ALL}/{{reservation}}"

METHODS = (
    Method(id="compute.reservations.list", verb="GET", path=_ALL, handler=list_reservations),
    Method(id="compute.reservations.insert", verb="POST", path=_ALL, handler=insert_reservation),
    Method(id="compute.reservations.get", verb="GET", path=_ONE, handler=get_reservation),
    Method(id="compute.reservations.delete", verb="DELETE", path=_ONE, handler=delete_reservation),
    Method(
        id="compute.reservations.aggregatedList",
        verb="GET",
        path=f"{_PROJECT}/aggregated/reservations",
        handler=list_all_reservations,
    ),
)
