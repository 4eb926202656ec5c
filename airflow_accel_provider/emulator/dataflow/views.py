"""Jobs as the API shows them: in summary, described, or whole."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow_accel_provider.emulator.dataflow.jobs import Job

SUMMARY, WHOLE, DESCRIPTION = "JOB_VIEW_SUMMARY", "JOB_VIEW_ALL", "JOB_VIEW_DESCRIPTION"
VIEWS = ("JOB_VIEW_UNKNOWN", SUMMARY, WHOLE, DESCRIPTION)
"""In the order of their numbers."""


def job_json(job: Job, view: str) -> dict[str, Any]:
    """Return a job in a view; anything but DESCRIPTION and ALL is a summary, without labels and environment."""
    body: dict[str, Any] = {
        "id": job.id,
        "projectId": job.project,
        "name": job.name,
        "location": job.location,
        "createTime": job.created,
        "currentState": job.state,
        "currentStateTime": job.state_time,
        "jobMetadata": {"sdkVersion": _sdk_version(job)},
    }
    if "type" in job.request:
        body["type"] = job.request["type"]
    if job.started:
        body["startTime"] = job.started
    if job.requested_state:
        body["requestedState"] = job.requested_state
    if view in {DESCRIPTION, WHOLE}:
        body |= _description(job)
    return body


def _description(job: Job) -> dict[str, Any]:
    body: dict[str, Any] = {"environment": _environment(job), "labels": dict(job.request.get("labels", {}))}
    if job.client_request_id:
        body["clientRequestId"] = job.client_request_id
    if job.started:
        body["stageStates"] = [
            {"executionStageName": "F1", "executionStageState": job.state, "currentStateTime": job.state_time}
        ]
    if job.has_workers and job.zone:
        body["serviceResources"] = {"zones": [job.zone]}
    return body


def _environment(job: Job) -> dict[str, Any]:
    environment = dict(job.request["environment"])
    if not job.started:
        # Documented: a pending job's description is not complete.
        environment.pop("workerPools", None)
    return environment


def _sdk_version(job: Job) -> Mapping[str, str]:
    agent = job.request["environment"].get("userAgent", {})
    return {
        "version": str(agent.get("version", "")),
        "versionDisplayName": str(agent.get("name", "")),
        "sdkSupportStatus": "SUPPORTED",
    }
