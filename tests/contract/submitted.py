"""Jobs that tests of hooks make by a plain request, and waiting for what becomes of them."""

from __future__ import annotations

import time
from itertools import count
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from airflow_accel_provider.hooks.session import GoogleSession

REGION = "us-central1"
_numbers = count()


def fresh_name() -> str:
    """Return a name that no other job has."""
    return f"hook-{next(_numbers)}"


def submit(session: GoogleSession, name: str | None = None, **changes: Any) -> str:
    """Create a job with one L4 whose pipeline is of no interest, and return its id."""
    body = {
        "name": name or fresh_name(),
        "type": "JOB_TYPE_BATCH",
        "labels": {"accel-owner": "ab12"},
        "environment": {
            "tempStoragePrefix": "storage.googleapis.com/bucket/t",
            "serviceOptions": ["worker_accelerator=type:nvidia-l4;count:1;install-nvidia-driver"],
            "workerPools": [{"machineType": "g2-standard-8", "numWorkers": 1}],
            "sdkPipelineOptions": {"options": {"pipelineUrl": "gs://bucket/pipeline.pb"}},
        },
        **changes,
    }
    path = f"projects/{session.project}/locations/{REGION}/jobs"
    return str(session.request("dataflow", "POST", path, body=body)["id"])


def until(condition: Callable[[], Any], patience: float = 90.0) -> Any:
    """Wait for a value that is not empty, and return it."""
    deadline = time.monotonic() + patience
    while not (found := condition()):
        assert time.monotonic() < deadline, "it never came true"
        time.sleep(0.1)
    return found
