"""A streaming pipeline that starts at once and computes nothing: for tests of what happens around a job."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tests.integration.pipelines import BUCKET, run_of

if TYPE_CHECKING:
    from tests.integration.local_google import LocalGoogle
    from tests.integration.task_run import TaskRun

TEMPLATE = f"gs://{BUCKET}/templates/endless"
LAUNCH = "dataflow.projects.locations.templates.launch"
REGION = "us-central1"
JOB: dict[str, Any] = {
    "type": "JOB_TYPE_STREAMING",
    "environment": {
        "tempStoragePrefix": f"storage.googleapis.com/{BUCKET}/temp",
        "userAgent": {"name": "Apache Beam Python 3.11 SDK", "version": "2.77.0"},
        "version": {"job_type": "FNAPI_STREAMING", "major": "8"},
        "workerPools": [{"kind": "local", "numWorkers": 1}],
        "sdkPipelineOptions": {"options": {"streaming": True, "pipelineUrl": f"gs://{BUCKET}/nowhere/pipeline.pb"}},
    },
}


def endless_run(google: LocalGoogle, **parameters: Any) -> TaskRun:
    """Return a task instance that launches the pipeline and waits for its proof."""
    google.bucket(BUCKET).blob("templates/endless").upload_from_string(json.dumps(JOB))
    said: dict[str, Any] = {"py_file": None, "template": TEMPLATE, "sdk": "python", "wait_until": "proven"}
    return run_of(google, **{**said, "pipeline_options": {"output": None}, "poll_interval": 0.2, **parameters})
