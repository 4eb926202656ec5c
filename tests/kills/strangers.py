"""Jobs of other people, put where a story's task might take them for its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.integration.endless import JOB
from tests.integration.local_google import PROJECT

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.integration.local_google import LocalGoogle


def plant(google: LocalGoogle, name: str, region: str, labels: Mapping[str, str]) -> Mapping[str, Any]:
    """Make somebody's streaming job, which goes on for ever and computes nothing."""
    body = {**JOB, "name": name, "labels": dict(labels), "location": region}
    path = f"projects/{PROJECT}/locations/{region}/jobs"
    # The faults of a story may meet this call; a repeated one is answered with the same job.
    job: Mapping[str, Any] = google.session().request("dataflow", "POST", path, body=body, idempotent=True)
    return job


def labels_of(dag_id: str, task_id: str, run_id: str) -> Mapping[str, str]:
    """Return the labels that a second Airflow gives the job of a task instance of the same ids."""
    return {"accel-owner": "somebodyelse", "accel-dag": dag_id, "accel-task": task_id, "accel-run": run_id}
