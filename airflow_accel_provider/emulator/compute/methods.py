"""Compute Engine v1: regions, zones and the project with their quotas, and lists of instances."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_accel_provider.emulator.compute import instances as vms
from airflow_accel_provider.emulator.compute import quotas
from airflow_accel_provider.emulator.compute.filters import parse_filter
from airflow_accel_provider.emulator.compute.instances import Instance, number_of
from airflow_accel_provider.emulator.compute.tables import ZONES, region_of
from airflow_accel_provider.emulator.wire import Call, GoogleError, Method

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

BEGINNING = "1969-12-31T16:00:00.000-08:00"
"""When Compute Engine says that its regions and zones were created."""

MAX_RESULTS = 500


def get_project(call: Call) -> dict[str, Any]:
    """Answer ``projects.get``: the project and its project-wide quotas."""
    project = _project(call)
    return {
        "kind": "compute#project",
        "id": number_of(project),
        "name": project,
        "creationTimestamp": BEGINNING,
        "defaultNetworkTier": "PREMIUM",
        "quotas": quotas.to_json(quotas.project_usage(_instances(call, project), call.google.world)),
        "selfLink": f"{_root(call)}/projects/{project}",
    }


def get_region(call: Call) -> dict[str, Any]:
    """Answer ``regions.get``: a region with its zones and quotas."""
    project, region = _project(call), call.path["region"]
    if region not in ZONES:
        raise _not_found(f"projects/{project}/regions/{region}")
    return _region(call, project, region)


def list_regions(call: Call) -> dict[str, Any]:
    """Answer ``regions.list``."""
    project = _project(call)
    return _page(call, "compute#regionList", "regions", [_region(call, project, region) for region in sorted(ZONES)])


def get_zone(call: Call) -> dict[str, Any]:
    """Answer ``zones.get``."""
    project, zone = _project(call), call.path["zone"]
    _require_zone(project, zone)
    return _zone(call, project, zone)


def list_zones(call: Call) -> dict[str, Any]:
    """Answer ``zones.list``."""
    project = _project(call)
    zones = sorted(zone for names in ZONES.values() for zone in names)
    return _page(call, "compute#zoneList", "zones", [_zone(call, project, zone) for zone in zones])


def get_instance(call: Call) -> dict[str, Any]:
    """Answer ``instances.get``."""
    project, zone, name = _project(call), call.path["zone"], call.path["instance"]
    _require_zone(project, zone)
    for instance in _instances(call, project, zone=zone):
        if instance.name == name:
            return vms.to_json(instance, _root(call))
    raise _not_found(f"projects/{project}/zones/{zone}/instances/{name}")


def list_instances(call: Call) -> dict[str, Any]:
    """Answer ``instances.list``: the VMs of one zone, filtered."""
    project, zone = _project(call), call.path["zone"]
    _require_zone(project, zone)
    found = [vms.to_json(instance, _root(call)) for instance in _instances(call, project, zone=zone)]
    return _page(call, "compute#instanceList", f"zones/{zone}/instances", found)


def list_all_instances(call: Call) -> dict[str, Any]:
    """Answer ``instances.aggregatedList``: the VMs of every zone, filtered; zones without any say so."""
    project = _project(call)
    found = [vms.to_json(instance, _root(call)) for instance in _instances(call, project)]
    page = _page(call, "compute#instanceAggregatedList", "aggregated/instances", found)
    scopes: dict[str, dict[str, Any]] = {
        f"zones/{zone}": {"warning": _empty(f"zones/{zone}")} for zones in ZONES.values() for zone in zones
    }
    for instance in page.pop("items", ()):
        scope = f"zones/{instance['zone'].rpartition('/')[2]}"
        scopes[scope] = {"instances": [*scopes[scope].get("instances", ()), instance]}
    return {**page, "items": scopes}


def _project(call: Call) -> str:
    project = call.path["project"]
    if project != call.google.project:
        raise _not_found(f"projects/{project}")
    return project


def _instances(call: Call, project: str, *, zone: str | None = None) -> tuple[Instance, ...]:
    return call.google.dataflow.instances.list(project, zone=zone)


def _root(call: Call) -> str:
    return f"{call.base_url}/compute/v1"


def _require_zone(project: str, zone: str) -> None:
    if zone not in ZONES.get(region_of(zone), ()):
        raise _not_found(f"projects/{project}/zones/{zone}")


def _not_found(resource: str) -> GoogleError:
    return GoogleError(404, f"The resource '{resource}' was not found")


def _region(call: Call, project: str, region: str) -> dict[str, Any]:
    root = f"{_root(call)}/projects/{project}"
    return {
        "kind": "compute#region",
        "id": number_of(region),
        "name": region,
        "description": region,
        "creationTimestamp": BEGINNING,
        "status": "UP",
        "zones": [f"{root}/zones/{zone}" for zone in ZONES[region]],
        "quotas": quotas.to_json(quotas.region_usage(region, _instances(call, project), call.google.world)),
        "selfLink": f"{root}/regions/{region}",
    }


def _zone(call: Call, project: str, zone: str) -> dict[str, Any]:
    root = f"{_root(call)}/projects/{project}"
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


def _page(call: Call, kind: str, path: str, resources: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    passes = parse_filter(call.first("filter"))
    kept: Sequence[Mapping[str, Any]] = [resource for resource in resources if passes(resource)]
    start, size = _number(call, "pageToken", 0), _number(call, "maxResults", MAX_RESULTS)
    if not 0 < size <= MAX_RESULTS:
        raise GoogleError(400, f"Invalid value for field 'maxResults': '{size}'. Must be between 1 and {MAX_RESULTS}.")
    body: dict[str, Any] = {
        "kind": kind,
        "id": f"projects/{call.path['project']}/{path}",
        "selfLink": f"{_root(call)}/projects/{call.path['project']}/{path}",
    }
    items = list(kept[start : start + size])
    if items:
        body["items"] = items
    if start + size < len(kept):
        body["nextPageToken"] = str(start + size)
    return body


def _number(call: Call, name: str, default: int) -> int:
    text = call.first(name)
    if not text:
        return default
    if not text.isdecimal():
        raise GoogleError(400, f"Invalid value for field '{name}': '{text}'.")
    return int(text)


def _empty(scope: str) -> dict[str, Any]:
    return {
        "code": "NO_RESULTS_ON_PAGE",
        "message": f"There are no results for scope '{scope}' on this page.",
        "data": [{"key": "scope", "value": scope}],
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
