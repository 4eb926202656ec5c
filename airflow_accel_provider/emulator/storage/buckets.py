"""The methods on buckets."""

from __future__ import annotations

from typing import Any

from airflow_accel_provider.emulator.storage.conditions import whole_number
from airflow_accel_provider.emulator.storage.names import check_bucket_name
from airflow_accel_provider.emulator.storage.resources import BUCKET_SETTINGS
from airflow_accel_provider.emulator.wire import Call, GoogleError, Reply

LARGEST_PAGE = 1000

# What a client without a project of its own puts in the parameter's place.
NO_PROJECT = (None, "", "<none>")


def insert(call: Call) -> dict[str, Any]:
    """Create a bucket in the only project there is."""
    _check_project(call)
    body = call.json()
    name = check_bucket_name(body.get("name"))
    if body.get("versioning", {}).get("enabled"):
        raise GoogleError(501, "The emulator's buckets keep no noncurrent versions.")
    settings = {field: body[field] for field in BUCKET_SETTINGS if body.get(field) is not None}
    google = call.google
    return google.buckets.create(name, project_number=google.project_number, settings=settings).to_json(call.base_url)


def get(call: Call) -> dict[str, Any]:
    """Return a bucket."""
    return call.google.buckets.bucket(call.path["bucket"]).to_json(call.base_url)


def list_(call: Call) -> dict[str, Any]:
    """List the project's buckets; a page token is the last name of the page before."""
    _check_project(call)
    after, size = call.first("pageToken") or "", page_size(call, LARGEST_PAGE)
    rest = [bucket for bucket in call.google.buckets.buckets(call.first("prefix") or "") if bucket.name > after]
    page = rest[:size]
    answer: dict[str, Any] = {"kind": "storage#buckets", "items": [bucket.to_json(call.base_url) for bucket in page]}
    if len(rest) > size:
        answer["nextPageToken"] = page[-1].name
    return answer


def delete(call: Call) -> Reply:
    """Delete an empty bucket."""
    call.google.buckets.drop(call.path["bucket"])
    return Reply(status=204)


def page_size(call: Call, largest: int) -> int:
    """Return ``maxResults``, cut to the largest page there is."""
    wished = whole_number(call, "maxResults")
    if wished is not None and wished < 0:
        raise GoogleError(400, f"Invalid value for maxResults: {wished}.", reason="invalid")
    return min(wished or largest, largest)


def _check_project(call: Call) -> None:
    project = call.first("project")
    if project not in (*NO_PROJECT, call.google.project, str(call.google.project_number)):
        raise GoogleError(403, f"{call.principal or 'Anonymous caller'} does not have access to project {project}.")
