"""Dataproc v1: batches and the operations that make them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_accel_provider.emulator.dataproc import texts
from airflow_accel_provider.emulator.dataproc.admission import require_region
from airflow_accel_provider.emulator.dataproc.filters import parse_filter
from airflow_accel_provider.emulator.dataproc.views import batch_json, operation_json
from airflow_accel_provider.emulator.wire import Call, GoogleError, Method

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow_accel_provider.emulator.dataproc.batches import Batch

DEFAULT_PAGE, LARGEST_PAGE = 20, 1000

OUTPUT_ONLY = frozenset(
    {
        *("name", "uuid", "createTime", "runtimeInfo", "state", "stateMessage", "stateTime", "creator", "operation"),
        "stateHistory",
    }
)
"""Fields of a batch that come back from callers who copy one, and are not theirs to set."""


def create_batch(call: Call) -> dict[str, Any]:
    """Answer ``batches.create``: an operation. The same request id answers the first one's."""
    require_project(call)
    request = {name: value for name, value in call.json().items() if name not in OUTPUT_ONLY and value is not None}
    batch = call.google.dataproc.create(
        request,
        location=call.path["location"],
        batch_id=call.first("batchId") or "",
        request_id=call.first("requestId") or "",
        principal=call.principal or "",
    )
    return operation_json(batch, call.google)


def get_batch(call: Call) -> dict[str, Any]:
    """Answer ``batches.get``."""
    return batch_json(_batch(call), call.google)


def list_batches(call: Call) -> dict[str, Any]:
    """Answer ``batches.list``: newest first, which is the only order there is."""
    location = _location(call)
    order = (call.first("orderBy") or "").split()
    if order not in ([], ["create_time", "desc"]):
        raise GoogleError(400, f"Unsupported order_by '{' '.join(order)}'; only 'create_time desc' is supported.")
    passes = parse_filter(call.first("filter"))
    found = [batch for batch in call.google.dataproc.batches.list(call.google.project, location) if passes(batch)]
    kept, token = _page(call, found)
    batches = [batch_json(batch, call.google) for batch in kept]
    return {**({"batches": batches} if batches else {}), **token}


def delete_batch(call: Call) -> dict[str, Any]:
    """Answer ``batches.delete``: nothing, once the batch is gone."""
    call.google.dataproc.delete(_batch(call), principal=call.principal or "")
    return {}


def get_operation(call: Call) -> dict[str, Any]:
    """Answer ``operations.get``."""
    return operation_json(_batch_of_operation(call), call.google)


def list_operations(call: Call) -> dict[str, Any]:
    """Answer ``operations.list``: those of a region, newest first."""
    location = _location(call)
    if call.first("filter"):
        raise GoogleError(501, "The emulator does not filter Dataproc's operations.")
    found = call.google.dataproc.batches.list(call.google.project, location, deleted_too=True)
    kept, token = _page(call, found)
    operations = [operation_json(batch, call.google) for batch in kept]
    return {**({"operations": operations} if operations else {}), **token}


def cancel_operation(call: Call) -> dict[str, Any]:
    """Answer ``operations.cancel``: nothing; the batch tells by its state how far its end is."""
    call.google.dataproc.cancel(_batch_of_operation(call), principal=call.principal or "")
    return {}


def require_project(call: Call) -> None:
    """Raise GoogleError 403 for any project but the only one."""
    project = call.path["project"]
    if project != call.google.project:
        message = f"Cloud Dataproc API has not been used in project {project} before or it is disabled."
        raise GoogleError(403, message)


def _location(call: Call) -> str:
    require_project(call)
    location = call.path["location"]
    require_region(location)
    return location


def _batch(call: Call) -> Batch:
    location, batch_id = _location(call), call.path["batch"]
    batch = call.google.dataproc.batches.get(call.google.project, location, batch_id)
    if batch is None:
        name = f"projects/{call.google.project}/locations/{location}/batches/{batch_id}"
        raise GoogleError(404, texts.not_found("Batch", name))
    return batch


def _batch_of_operation(call: Call) -> Batch:
    location, operation = _location(call), call.path["operation"]
    batch = call.google.dataproc.batches.of_operation(call.google.project, location, operation)
    if batch is None:
        name = f"projects/{call.google.project}/regions/{location}/operations/{operation}"
        raise GoogleError(404, texts.not_found("Operation", name))
    return batch


def _page(call: Call, batches: Sequence[Batch]) -> tuple[Sequence[Batch], dict[str, str]]:
    start, size = _number(call, "pageToken", 0), _number(call, "pageSize", DEFAULT_PAGE)
    size = min(size or DEFAULT_PAGE, LARGEST_PAGE)
    token = {"nextPageToken": str(start + size)} if start + size < len(batches) else {}
    return batches[start : start + size], token


def _number(call: Call, name: str, default: int) -> int:
    text = call.first(name)
    if not text:
        return default
    if not text.isdecimal():
        raise GoogleError(400, f"Invalid value at '{name}': {text!r}.")
    return int(text)


_BATCHES = "/v1/projects/{project}/locations/{location}/batches"
_BATCH = f"{_BATCHES}/{{batch}}"
_PLACES = ("regions", "locations")
_OPERATION_VERBS = (
    ("list", "GET", "", list_operations),
    ("get", "GET", "/{operation}", get_operation),
    ("cancel", "POST", "/{operation}:cancel", cancel_operation),
)

METHODS = (
    Method(id="dataproc.projects.locations.batches.create", verb="POST", path=_BATCHES, handler=create_batch),
    Method(id="dataproc.projects.locations.batches.list", verb="GET", path=_BATCHES, handler=list_batches),
    Method(id="dataproc.projects.locations.batches.get", verb="GET", path=_BATCH, handler=get_batch),
    Method(id="dataproc.projects.locations.batches.delete", verb="DELETE", path=_BATCH, handler=delete_batch),
    *(
        Method(
            id=f"dataproc.projects.{place}.operations.{name}",
            verb=verb,
            path=f"/v1/projects/{{project}}/{place}/{{location}}/operations{suffix}",
            handler=handler,
        )
        for place in _PLACES
        for name, verb, suffix, handler in _OPERATION_VERBS
    ),
)
