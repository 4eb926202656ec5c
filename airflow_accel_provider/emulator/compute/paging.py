"""How Compute Engine answers lists: filtered, in pages, of one place or of every zone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from airflow_accel_provider.emulator.compute.filters import parse_filter
from airflow_accel_provider.emulator.compute.tables import ZONES, region_of
from airflow_accel_provider.emulator.wire import GoogleError

if TYPE_CHECKING:
    from airflow_accel_provider.emulator.wire import Call

BEGINNING = "1969-12-31T16:00:00.000-08:00"
"""When Compute Engine says that its regions, zones and types were created."""

MAX_RESULTS = 500


def project_of(call: Call) -> str:
    """Return the project in the path, or raise GoogleError 404 for another than the emulator's."""
    project = call.path["project"]
    if project != call.google.project:
        raise not_found(f"projects/{project}")
    return project


def zone_of(call: Call, project: str) -> str:
    """Return the zone in the path, or raise GoogleError 404 for one that does not exist."""
    zone = call.path["zone"]
    if zone not in ZONES.get(region_of(zone), ()):
        raise not_found(f"projects/{project}/zones/{zone}")
    return zone


def root_of(call: Call) -> str:
    """Return the URL that resources' links begin with."""
    return f"{call.base_url}/compute/v1"


def not_found(resource: str) -> GoogleError:
    """Return the error for a resource that does not exist."""
    return GoogleError(404, f"The resource '{resource}' was not found")


def page(call: Call, kind: str, path: str, resources: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Answer a list: the page that the call asks for, of the resources that its filter passes."""
    passes = parse_filter(call.first("filter"))
    kept = [resource for resource in resources if passes(resource)]
    start, size = _number(call, "pageToken", 0), _number(call, "maxResults", MAX_RESULTS)
    if not 0 < size <= MAX_RESULTS:
        raise GoogleError(400, f"Invalid value for field 'maxResults': '{size}'. Must be between 1 and {MAX_RESULTS}.")
    body: dict[str, Any] = {
        "kind": kind,
        "id": f"projects/{call.path['project']}/{path}",
        "selfLink": f"{root_of(call)}/projects/{call.path['project']}/{path}",
    }
    items = kept[start : start + size]
    if items:
        body["items"] = items
    if start + size < len(kept):
        body["nextPageToken"] = str(start + size)
    return body


def aggregated_page(call: Call, kind: str, name: str, resources: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Answer a list over every zone: resources by scope, and a warning for each scope that has none on this page."""
    answer = page(call, kind, f"aggregated/{name}", resources)
    scopes: dict[str, dict[str, Any]] = {
        f"zones/{zone}": {"warning": _empty(f"zones/{zone}")} for zones in ZONES.values() for zone in zones
    }
    for resource in answer.pop("items", ()):
        scope = f"zones/{resource['zone'].rpartition('/')[2]}"
        scopes[scope] = {name: [*scopes[scope].get(name, ()), resource]}
    return {**answer, "items": scopes}


def find(resources: Iterable[Mapping[str, Any]], name: str, path: str) -> dict[str, Any]:
    """Return the resource of a name, or raise GoogleError 404."""
    for resource in resources:
        if resource["name"] == name:
            return dict(resource)
    raise not_found(f"{path}/{name}")


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
