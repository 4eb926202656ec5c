"""Cloud Quotas v1: the quotas of Compute Engine, listed and one by one."""

from __future__ import annotations

from typing import Any

from airflow_accel_provider.emulator.cloudquotas.infos import SERVICE, quota_infos
from airflow_accel_provider.emulator.wire import Call, GoogleError, Method

MOST_ON_A_PAGE = 500


def list_quota_infos(call: Call) -> dict[str, Any]:
    """Answer ``quotaInfos.list``: one page of all quotas, ordered by id."""
    infos = _infos(call)
    start, size = _number(call, "pageToken"), _number(call, "pageSize") or MOST_ON_A_PAGE
    size = min(size, MOST_ON_A_PAGE)
    answer: dict[str, Any] = {"quotaInfos": infos[start : start + size]}
    if start + size < len(infos):
        answer["nextPageToken"] = str(start + size)
    return answer


def get_quota_info(call: Call) -> dict[str, Any]:
    """Answer ``quotaInfos.get``."""
    for info in _infos(call):
        if info["quotaId"] == call.path["quotaInfo"]:
            return info
    raise GoogleError(404, f"Quota info {call.path['quotaInfo']} was not found for service {SERVICE}.")


def _infos(call: Call) -> list[dict[str, Any]]:
    google, path = call.google, call.path
    if path["project"] not in {google.project, str(google.project_number)}:
        raise GoogleError(403, f"Permission denied on resource project {path['project']}.")
    if path["location"] != "global":
        raise GoogleError(400, f"Location must be global, not {path['location']}.")
    if path["service"] != SERVICE:
        raise GoogleError(404, f"Service {path['service']} was not found; the emulator has quotas of {SERVICE}.")
    parent = f"projects/{google.project_number}/locations/global/services/{SERVICE}"
    return list(quota_infos(google.world, parent=parent))


def _number(call: Call, name: str) -> int:
    text = call.first(name) or "0"
    if not text.isdecimal():
        raise GoogleError(400, f"Invalid value for {name}: '{text}'.")
    return int(text)


_ALL = "/v1/projects/{project}/locations/{location}/services/{service}/quotaInfos"

METHODS = (
    Method(
        id="cloudquotas.projects.locations.services.quotaInfos.list",
        verb="GET",
        path=_ALL,
        handler=list_quota_infos,
    ),
    Method(
        id="cloudquotas.projects.locations.services.quotaInfos.get",
        verb="GET",
        path=f"{_ALL}/{{quotaInfo}}",
        handler=get_quota_info,
    ),
)
