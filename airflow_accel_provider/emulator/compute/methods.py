"""Compute Engine v1: regions, zones and the project with their quotas, and lists of instances."""

from __future__ import annotations

from typing import Any

from airflow_accel_provider.emulator.compute import instances as vms
from airflow_accel_provider.emulator.compute import quotas
from airflow_accel_provider.emulator.compute.instances import Instance, number_of
from airflow_accel_provider.emulator.compute.paging import (
    BEGINNING,
    aggregated_page,
    not_found,
    page,
    project_of,
    root_of,
    zone_of,
)
from airflow_accel_provider.emulator.compute.tables import ZONES, region_of
from airflow_accel_provider.emulator.wire import Call, Method


def get_project(call: Call) -> dict[str, Any]:
    """Answer ``projects.get``: the project and its project-wide quotas."""
    project = project_of(call)
    return {
        "kind": "compute#project",
        "id": number_of(project),
        "name": project,
        "creationTimestamp": BEGINNING,
        "defaultNetworkTier": "PREMIUM",
        "quotas": quotas.to_json(quotas.project_usage(call.google.machines(), call.google.world)),
        "selfLink": f"{root_of(call)}/projects/{project}",
    }


def get_region(call: Call) -> dict[str, Any]:
    """Answer ``regions.get``: a region with its zones and quotas."""
    project, region = project_of(call), call.path["region"]
    if region not in ZONES:
        raise not_found(f"projects/{project}/regions/{region}")
    return _region(call, project, region)


def list_regions(call: Call) -> dict[str, Any]:
    """Answer ``regions.list``."""
    project = project_of(call)
    return page(call, "compute#regionList", "regions", [_region(call, project, region) for region in sorted(ZONES)])


def get_zone(call: Call) -> dict[str, Any]:
    """Answer ``zones.get``."""
    project = project_of(call)
    zone = zone_of(call, project)
    return _zone(call, project, zone)


def list_zones(call: Call) -> dict[str, Any]:
    """Answer ``zones.list``."""
    project = project_of(call)
    zones = sorted(zone for names in ZONES.values() for zone in names)
    return page(call, "compute#zoneList", "zones", [_zone(call, project, zone) for zone in zones])


def get_instance(call: Call) -> dict[str, Any]:
    """Answer ``instances.get``."""
    project = project_of(call)
    zone, name = zone_of(call, project), call.path["instance"]
    for instance in _instances(call, project, zone=zone):
        if instance.name == name:
            return vms.to_json(instance, root_of(call))
    raise not_found(f"projects/{project}/zones/{zone}/instances/{name}")


def list_instances(call: Call) -> dict[str, Any]:
    """Answer ``instances.list``: the VMs of one zone, filtered."""
    project = project_of(call)
    zone = zone_of(call, project)
    found = [vms.to_json(instance, root_of(call)) for instance in _instances(call, project, zone=zone)]
    return page(call, "compute#instanceList", f"zones/{zone}/instances", found)


def list_all_instances(call: Call) -> dict[str, Any]:
    """Answer ``instances.aggregatedList``: the VMs of every zone, filtered; zones without any say so."""
    project = project_of(call)
    found = [vms.to_json(instance, root_of(call)) for instance in _instances(call, project)]
    return aggregated_page(call, "compute#instanceAggregatedList", "instances", found)


def _instances(call: Call, project: str, *, zone: str | None = None) -> tuple[Instance, ...]:
    return call.google.dataflow.instances.list(project, zone=zone)


def _region(call: Call, project: str, region: str) -> dict[str, Any]:
    root = f"{root_of(call)}/projects/{project}"
    return {
        "kind": "compute#region",
        "id": number_of(region),
        "name": region,
        "description": region,
        "creationTimestamp": BEGINNING,
        "status": "UP",
        "zones": [f"{root}/zones/{zone}" for zone in ZONES[region]],
        "quotas": quotas.to_json(quotas.region_usage(region, call.google.machines(), call.google.world)),
        "selfLink": f"{root}/regions/{region}",
    }


def _zone(call: Call, project: str, zone: str) -> dict[str, Any]:
    root = f"{root_of(call)}/projects/{project}"
    return {
        "kind": "compute#zone",
        "id": number_of(zone),
        "name": zone,
        "description": zone,
        "creationTimestamp": BEGINNING,
        "status": "UP",
        "region": f"{root}/regions/{region_of(zone)}",
        "selfLink": f"{root}/zones/{zone}",
    }


_PROJECT = "/compute/v1/projects/{project}"

METHODS = (
    Method(id="compute.projects.get", verb="GET", path=_PROJECT, handler=get_project),
    Method(id="compute.regions.list", verb="GET", path=f"{_PROJECT}/regions", handler=list_regions),
    Method(id="compute.regions.get", verb="GET", path=f"{_PROJECT}/regions/{{region}}", handler=get_region),
    Method(id="compute.zones.list", verb="GET", path=f"{_PROJECT}/zones", handler=list_zones),
    Method(id="compute.zones.get", verb="GET", path=f"{_PROJECT}/zones/{{zone}}", handler=get_zone),
    Method(
        id="compute.instances.list",
        verb="GET",
        path=f"{_PROJECT}/zones/{{zone}}/instances",
        handler=list_instances,
    ),
    Method(
        id="compute.instances.get",
        verb="GET",
        path=f"{_PROJECT}/zones/{{zone}}/instances/{{instance}}",
        handler=get_instance,
    ),
    Method(
        id="compute.instances.aggregatedList",
        verb="GET",
        path=f"{_PROJECT}/aggregated/instances",
        handler=list_all_instances,
    ),
)
