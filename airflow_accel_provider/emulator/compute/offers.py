"""Compute Engine v1: which accelerator and machine types each zone has."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from airflow_accel_provider.emulator.compute.instances import number_of
from airflow_accel_provider.emulator.compute.paging import (
    BEGINNING,
    aggregated_page,
    find,
    page,
    project_of,
    root_of,
    zone_of,
)
from airflow_accel_provider.emulator.compute.tables import (
    MACHINE_TYPES,
    PUBLISHED,
    ZONES,
    Machine,
    Publication,
    listed_name,
    machine_zones,
)
from airflow_accel_provider.emulator.wire import Call, Method

if TYPE_CHECKING:
    from collections.abc import Callable

    Reader = Callable[[Call, str, str | None], Iterator[dict[str, Any]]]


def list_accelerator_types(call: Call) -> dict[str, Any]:
    """Answer ``acceleratorTypes.list``: those of one zone."""
    return _list(call, "compute#acceleratorTypeList", "acceleratorTypes", _accelerator_types)


def list_all_accelerator_types(call: Call) -> dict[str, Any]:
    """Answer ``acceleratorTypes.aggregatedList``: those of every zone."""
    found = _accelerator_types(call, project_of(call), None)
    return aggregated_page(call, "compute#acceleratorTypeAggregatedList", "acceleratorTypes", found)


def get_accelerator_type(call: Call) -> dict[str, Any]:
    """Answer ``acceleratorTypes.get``."""
    return _get(call, "acceleratorTypes", "acceleratorType", _accelerator_types)


def list_machine_types(call: Call) -> dict[str, Any]:
    """Answer ``machineTypes.list``: those of one zone."""
    return _list(call, "compute#machineTypeList", "machineTypes", _machine_types)


def list_all_machine_types(call: Call) -> dict[str, Any]:
    """Answer ``machineTypes.aggregatedList``: those of every zone."""
    found = _machine_types(call, project_of(call), None)
    return aggregated_page(call, "compute#machineTypeAggregatedList", "machineTypes", found)


def get_machine_type(call: Call) -> dict[str, Any]:
    """Answer ``machineTypes.get``."""
    return _get(call, "machineTypes", "machineType", _machine_types)


def _list(call: Call, kind: str, name: str, read: Reader) -> dict[str, Any]:
    project = project_of(call)
    zone = zone_of(call, project)
    return page(call, kind, f"zones/{zone}/{name}", read(call, project, zone))


def _get(call: Call, name: str, parameter: str, read: Reader) -> dict[str, Any]:
    project = project_of(call)
    zone = zone_of(call, project)
    return find(read(call, project, zone), call.path[parameter], f"projects/{project}/zones/{zone}/{name}")


def _accelerator_types(call: Call, project: str, zone: str | None) -> Iterator[dict[str, Any]]:
    root = f"{root_of(call)}/projects/{project}"
    for each in _zones(zone):
        for publication in PUBLISHED.values():
            if each in publication.zones:
                yield _accelerator_json(publication, each, root)


def _machine_types(call: Call, project: str, zone: str | None) -> Iterator[dict[str, Any]]:
    root = f"{root_of(call)}/projects/{project}"
    for each in _zones(zone):
        for machine in MACHINE_TYPES:
            if each in machine_zones(machine):
                yield _machine_json(machine, each, root)


def _zones(zone: str | None) -> list[str]:
    return [zone] if zone else sorted(each for zones in ZONES.values() for each in zones)


def _accelerator_json(publication: Publication, zone: str, root: str) -> dict[str, Any]:
    return {
        "kind": "compute#acceleratorType",
        "id": number_of(publication.name),
        "name": publication.name,
        "description": publication.name,
        "creationTimestamp": BEGINNING,
        "maximumCardsPerInstance": publication.most,
        "zone": f"{root}/zones/{zone}",
        "selfLink": f"{root}/zones/{zone}/acceleratorTypes/{publication.name}",
    }


def _machine_json(machine: Machine, zone: str, root: str) -> dict[str, Any]:
    body: dict[str, Any] = {
        "kind": "compute#machineType",
        "id": number_of(machine.name),
        "name": machine.name,
        "description": f"{machine.cpus} vCPUs, {machine.memory_gb:g} GB RAM",
        "creationTimestamp": BEGINNING,
        "guestCpus": machine.cpus,
        "memoryMb": round(machine.memory_gb * 1024),
        "isSharedCpu": False,
        "architecture": "X86_64",
        # Here Compute Engine has the zone's name, where an accelerator type has its URL.
        "zone": zone,
        "selfLink": f"{root}/zones/{zone}/machineTypes/{machine.name}",
    }
    if machine.accelerator:
        accelerator = listed_name(machine.accelerator)
        body["accelerators"] = [{"guestAcceleratorType": accelerator, "guestAcceleratorCount": machine.count}]
    return body


_PROJECT = "/compute/v1/projects/{project}"
_ZONE = f"{_PROJECT}/zones/{{zone}}"

METHODS = (
    Method(
        id="compute.acceleratorTypes.list",
        verb="GET",
        path=f"{_ZONE}/acceleratorTypes",
        handler=list_accelerator_types,
    ),
    Method(
        id="compute.acceleratorTypes.get",
        verb="GET",
        path=f"{_ZONE}/acceleratorTypes/{{acceleratorType}}",
        handler=get_accelerator_type,
    ),
    Method(
        id="compute.acceleratorTypes.aggregatedList",
        verb="GET",
        path=f"{_PROJECT}/aggregated/acceleratorTypes",
        handler=list_all_accelerator_types,
    ),
    Method(id="compute.machineTypes.list", verb="GET", path=f"{_ZONE}/machineTypes", handler=list_machine_types),
    Method(
        id="compute.machineTypes.get",
        verb="GET",
        path=f"{_ZONE}/machineTypes/{{machineType}}",
        handler=get_machine_type,
    ),
    Method(
        id="compute.machineTypes.aggregatedList",
        verb="GET",
        path=f"{_PROJECT}/aggregated/machineTypes",
        handler=list_all_machine_types,
    ),
)
