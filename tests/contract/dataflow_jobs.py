"""Submits jobs to an emulator: as Beam's launcher does, or as a bare request with what Beam once sent."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import uuid
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from airflow_accel_provider.core.classification import Signals, classify
from airflow_accel_provider.core.jobs import Importance, JobState, Message

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from emulators import Emulator
    from google.auth.transport.requests import AuthorizedSession

    from airflow_accel_provider.core.failures import Failure

PIPELINES = Path(__file__).parent / "pipelines"
BUCKET = "dataflow-tests"
L4 = "worker_accelerator=type:nvidia-l4;count:1;install-nvidia-driver"
T4 = "worker_accelerator=type:nvidia-tesla-t4;count:1;install-nvidia-driver"
PATIENCE_SECONDS = 120

T = TypeVar("T")


def fresh_name(prefix: str = "job") -> str:
    """Return a job name that no other test uses."""
    return f"{prefix}-{uuid.uuid4().hex[:12]}"


def environment(
    *, machine: str | None = None, option: str | None = None, workers: int = 1, **fields: Any
) -> dict[str, Any]:
    """Return a job's environment as Beam writes it, of a pipeline that lies nowhere."""
    pool: dict[str, Any] = {"kind": "local", "numWorkers": workers}
    if machine:
        pool["machineType"] = machine
    body: dict[str, Any] = {
        "tempStoragePrefix": f"storage.googleapis.com/{BUCKET}/temp",
        "userAgent": {"name": "Apache Beam Python 3.11 SDK", "version": "2.77.0"},
        "version": {"job_type": "FNAPI_BATCH", "major": "8"},
        "workerPools": [pool],
        "sdkPipelineOptions": {"options": {"pipelineUrl": f"gs://{BUCKET}/nowhere/pipeline.pb"}},
    }
    if option:
        body["serviceOptions"] = [option]
    return body | fields


@dataclass(frozen=True, kw_only=True)
class Client:
    """Bare HTTP calls of one identity."""

    emulator: Emulator
    session: AuthorizedSession

    def url(self, location: str = "us-central1", job_id: str = "") -> str:
        """Return the address of a location's jobs, or of one of them."""
        base = f"{self.emulator.url}/v1b3/projects/{self.emulator.project}/locations/{location}/jobs"
        return f"{base}/{job_id}" if job_id else base

    def post(self, body: Mapping[str, Any], location: str = "us-central1") -> Any:
        """Ask for a job and return the HTTP response."""
        return self.session.post(self.url(location), json={"type": "JOB_TYPE_BATCH", **body}, timeout=30)

    def create(self, env: Mapping[str, Any], location: str = "us-central1", **fields: Any) -> dict[str, Any]:
        """Create a job and return it."""
        answer = self.post({"name": fresh_name(), "environment": env, **fields}, location)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def get(self, job: Mapping[str, Any], view: str = "JOB_VIEW_ALL") -> dict[str, Any]:
        """Return a job as it is now."""
        answer = self.session.get(self.url(job["location"], job["id"]), params={"view": view}, timeout=30)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def cancel(self, job: Mapping[str, Any]) -> Any:
        """Ask for a cancel and return the HTTP response."""
        body = {"requestedState": "JOB_STATE_CANCELLED"}
        return self.session.put(self.url(job["location"], job["id"]), json=body, timeout=30)

    def clear(self) -> None:
        """Cancel every job that is active, and wait until none is."""
        url = f"{self.emulator.url}/v1b3/projects/{self.emulator.project}/jobs:aggregated"

        def active() -> list[dict[str, Any]]:
            answer: dict[str, Any] = self.session.get(url, params={"filter": "ACTIVE"}, timeout=30).json()
            return answer.get("jobs", [])

        for job in active():
            self.cancel(job)
        until(active, lambda jobs: not jobs)

    def wait(self, job: Mapping[str, Any], *states: str) -> dict[str, Any]:
        """Wait until a job is in one of the states (DONE, FAILED, …) and return it."""
        wanted = {f"JOB_STATE_{state}" for state in states}
        return until(lambda: self.get(job), lambda found: found["currentState"] in wanted)

    def messages(self, job: Mapping[str, Any], **query: Any) -> dict[str, Any]:
        """Return a page of a job's messages and events."""
        url = f"{self.url(job['location'], job['id'])}/messages"
        return self.session.get(url, params=query, timeout=30).json()

    def texts(self, job: Mapping[str, Any], importance: str | None = None) -> list[str]:
        """Return what a job said, all or of one importance (ERROR)."""
        found = self.messages(job, pageSize=1000).get("jobMessages", [])
        return [m["messageText"] for m in found if importance is None or m["messageImportance"].endswith(importance)]

    def vms(self, job: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Return a job's VMs, wherever they are."""
        url = f"{self.emulator.url}/compute/v1/projects/{self.emulator.project}/aggregated/instances"
        query = {"filter": f"labels.goog-dataflow-job-id={job['id']}", "returnPartialSuccess": "true"}
        scopes = self.session.get(url, params=query, timeout=30).json()["items"].values()
        return [vm for scope in scopes for vm in scope.get("instances", [])]

    def quota(self, metric: str, region: str = "us-central1") -> dict[str, float]:
        """Return a regional quota."""
        url = f"{self.emulator.url}/compute/v1/projects/{self.emulator.project}/regions/{region}"
        quotas = self.session.get(url, timeout=30).json()["quotas"]
        return next(quota for quota in quotas if quota["metric"] == metric)


def until(read: Callable[[], T], is_right: Callable[[T], bool], *, patience: float = PATIENCE_SECONDS) -> T:
    """Read until what is read is right, and return it."""
    deadline = time.monotonic() + patience
    while not is_right(value := read()):
        assert time.monotonic() < deadline, f"Still {value!r}"
        time.sleep(0.02)
    return value


def judged(texts: Sequence[str]) -> Failure:
    """Return what the provider makes of the last words of a job that failed."""
    at = datetime.now(UTC)
    messages = [Message(text=text, importance=Importance.ERROR, at=at) for text in texts]
    failure = classify(Signals(messages=messages, state=JobState.FAILED))
    assert failure is not None
    return failure


def launch(
    emulator: Emulator, pipeline: str, *flags: str, region: str = "us-central1"
) -> subprocess.CompletedProcess[str]:
    """Run a pipeline's file as people do: Beam's DataflowRunner, unmodified, in a process of its own."""
    command = [
        sys.executable,
        str(PIPELINES / pipeline),
        "--runner=DataflowRunner",
        f"--project={emulator.project}",
        f"--region={region}",
        f"--temp_location=gs://{BUCKET}/temp",
        f"--dataflow_endpoint={emulator.url}",
        *flags,
    ]
    surroundings = {**os.environ, **emulator.environment()}
    return subprocess.run(
        command, env=surroundings, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False
    )
