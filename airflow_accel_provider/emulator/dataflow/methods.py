"""Dataflow v1b3: jobs, their messages and their metrics."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from airflow_accel_provider.emulator.dataflow.admission import require_region
from airflow_accel_provider.emulator.dataflow.journal import IMPORTANCE_NUMBERS, IMPORTANCES
from airflow_accel_provider.emulator.dataflow.reading import read_message
from airflow_accel_provider.emulator.dataflow.views import VIEWS, WHOLE, job_json
from airflow_accel_provider.emulator.ledger import rfc3339
from airflow_accel_provider.emulator.wire import Call, GoogleError, Method

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow_accel_provider.emulator.dataflow.jobs import Job

DEFAULT_LOCATION = "us-central1"
"""Where calls without a location go."""

FILTERS = ("UNKNOWN", "ALL", "TERMINATED", "ACTIVE")
"""In the order of their numbers."""

DEFAULT_PAGE, LARGEST_PAGE = 100, 1000


def create_job(call: Call) -> dict[str, Any]:
    """Answer ``jobs.create``. An active job of the same name is answered in place of a new one."""
    request = read_message(call.json(), "Job")
    job = call.google.dataflow.create(
        request, project=project_of(call), location=location_of(call), principal=call.principal or ""
    )
    return job_json(job, WHOLE)


def get_job(call: Call) -> dict[str, Any]:
    """Answer ``jobs.get``."""
    return job_json(_job(call), _enum(call, "view", VIEWS))


def list_jobs(call: Call) -> dict[str, Any]:
    """Answer ``jobs.list``: summaries, newest first."""
    location = location_of(call)
    require_region(location)
    return _job_list(call, call.google.dataflow.jobs.list(project_of(call), location=location, name=call.first("name")))


def list_all_jobs(call: Call) -> dict[str, Any]:
    """Answer ``projects.jobs.aggregated``: the summaries of all regions."""
    return _job_list(call, call.google.dataflow.jobs.list(project_of(call), name=call.first("name")))


def update_job(call: Call) -> dict[str, Any]:
    """Answer ``jobs.update``: a cancel, or new labels with an ``updateMask``."""
    request = read_message(call.json(), "Job")
    job, mask = _job(call), call.first("updateMask")
    requested = request.get("requestedState")
    if mask and requested:
        raise GoogleError(400, "The requested state and an update mask cannot be given together.")
    if mask:
        if mask != "labels":
            raise GoogleError(400, f"The update mask {mask!r} cannot be applied to a batch job; 'labels' can.")
        return job_json(call.google.dataflow.relabel(job, request.get("labels", {})), WHOLE)
    return job_json(call.google.dataflow.request_state(job, requested, principal=call.principal or ""), WHOLE)


def list_messages(call: Call) -> dict[str, Any]:
    """Answer ``jobs.messages.list``: messages and autoscaling events, oldest first."""
    job = _job(call)
    least = _importance(call.first("minimumImportance"))
    journal = call.google.dataflow.journal
    messages = [
        message
        for message in _within(call, journal.messages(job.id))
        if IMPORTANCES.index(message["messageImportance"]) >= least
    ]
    page, token = _page(call, messages)
    body: dict[str, Any] = {"jobMessages": page} if page else {}
    events = _within(call, journal.events(job.id))
    if events and not call.first("pageToken"):
        body["autoscalingEvents"] = events
    return {**body, **token}


def get_metrics(call: Call) -> dict[str, Any]:
    """Answer ``jobs.getMetrics``: what the run counted, once it has ended."""
    job = _job(call)
    metrics = (job.outcome or {}).get("metrics", [])
    return {
        "metricTime": job.state_time,
        "metrics": [{**metric, "updateTime": job.state_time} for metric in metrics],
    }


def project_of(call: Call) -> str:
    """Return the project of a call; 403 for any but the only one."""
    project = call.path["projectId"]
    if project != call.google.project:
        message = f"(project {project}): Dataflow API has not been used in project {project} before or it is disabled."
        raise GoogleError(403, message)
    return project


def location_of(call: Call) -> str:
    """Return the region of a call."""
    return call.path.get("location", DEFAULT_LOCATION)


def _job(call: Call) -> Job:
    project, location, job_id = project_of(call), location_of(call), call.path["jobId"]
    job = call.google.dataflow.jobs.get(job_id)
    if job is None or (job.project, job.location) != (project, location):
        raise GoogleError(404, f"Information about job {job_id} could not be found in our system in {location}.")
    return job


def _job_list(call: Call, jobs: Sequence[Job]) -> dict[str, Any]:
    wanted = _enum(call, "filter", FILTERS)
    kept = [job for job in jobs if wanted not in {"ACTIVE", "TERMINATED"} or job.is_over == (wanted == "TERMINATED")]
    page, token = _page(call, [job_json(job, _enum(call, "view", VIEWS[:2])) for job in kept])
    return {**({"jobs": page} if page else {}), **token}


def _page(call: Call, items: Sequence[dict[str, Any]]) -> tuple[list[dict[str, Any]], dict[str, str]]:
    start, size = _number(call, "pageToken", 0), _number(call, "pageSize", DEFAULT_PAGE)
    size = min(size or DEFAULT_PAGE, LARGEST_PAGE)
    token = {"nextPageToken": str(start + size)} if start + size < len(items) else {}
    return list(items[start : start + size]), token


def _number(call: Call, name: str, default: int) -> int:
    text = call.first(name)
    if not text:
        return default
    if not text.isdecimal():
        raise GoogleError(400, f"Invalid value at '{name}': {text!r}.")
    return int(text)


def _enum(call: Call, name: str, names: Sequence[str]) -> str:
    text = call.first(name) or "0"
    if text.isdecimal() and int(text) < len(names):
        return names[int(text)]
    if text not in names:
        raise GoogleError(400, f"Invalid value at '{name}': {text!r}. Expected one of: {', '.join(names)}.")
    return text


def _importance(text: str | None) -> int:
    if not text or text in {"0", "JOB_MESSAGE_IMPORTANCE_UNKNOWN"}:
        return 0
    name = IMPORTANCE_NUMBERS.get(int(text), text) if text.isdecimal() else text
    if name not in IMPORTANCES:
        raise GoogleError(
            400, f"Invalid value at 'minimumImportance': {text!r}. Expected one of: {', '.join(IMPORTANCES)}."
        )
    return IMPORTANCES.index(name)


def _within(call: Call, entries: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    start, end = _time(call, "startTime"), _time(call, "endTime")
    return [entry for entry in entries if (not start or entry["time"] >= start) and (not end or entry["time"] < end)]


def _time(call: Call, name: str) -> str | None:
    text = call.first(name)
    if not text:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise GoogleError(400, f"Invalid value at '{name}': {text!r} is no RFC 3339 time.") from None
    return rfc3339(moment if moment.tzinfo else moment.replace(tzinfo=UTC))


_PLACES = (
    ("dataflow.projects.locations.jobs", "/v1b3/projects/{projectId}/locations/{location}/jobs"),
    ("dataflow.projects.jobs", "/v1b3/projects/{projectId}/jobs"),
)
_VERBS = (
    ("create", "POST", "", create_job),
    ("list", "GET", "", list_jobs),
    ("get", "GET", "/{jobId}", get_job),
    ("update", "PUT", "/{jobId}", update_job),
    ("messages.list", "GET", "/{jobId}/messages", list_messages),
    ("getMetrics", "GET", "/{jobId}/metrics", get_metrics),
)

METHODS = (
    Method(
        id="dataflow.projects.jobs.aggregated",
        verb="GET",
        path="/v1b3/projects/{projectId}/jobs:aggregated",
        handler=list_all_jobs,
    ),
    *(
        Method(id=f"{resource}.{name}", verb=verb, path=f"{path}{suffix}", handler=handler)
        for resource, path in _PLACES
        for name, verb, suffix, handler in _VERBS
    ),
)
