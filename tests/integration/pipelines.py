"""The tests' operator: a sound one, of which each test says what it is about."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow_accel_provider.operators.beam import BeamGpuPipelineOperator, BeamTpuPipelineOperator
from tests.integration.task_run import TaskRun

if TYPE_CHECKING:
    from tests.integration.local_google import LocalGoogle

PIPELINES = Path(__file__).parent / "dags" / "pipelines"
ECHO = str(PIPELINES / "echo.py")
BUCKET = "acme-ml-tests"
IMAGE = "us-docker.pkg.dev/acme-ml-prod/beam/gpu:2.77.0"


Operator = BeamGpuPipelineOperator | BeamTpuPipelineOperator


def score(*, kind: type[Operator] = BeamGpuPipelineOperator, **parameters: Any) -> Operator:
    """Return an operator that writes what it was given; ``pipeline_options`` are added to the usual ones."""
    usual = {"temp_location": f"gs://{BUCKET}/work", "output": f"gs://{BUCKET}/out.json"}
    options = usual | parameters.pop("pipeline_options", {})
    said: dict[str, Any] = {
        "task_id": "score",
        "placement": "nvidia-l4 on g2-standard-8 in us-central1",
        "py_file": ECHO,
        "sdk_container_image": IMAGE,
        "num_workers": 1,
        "max_num_workers": 2,
        "poll_interval": 0.5,
        **parameters,
    }
    return kind(**said, pipeline_options={k: v for k, v in options.items() if v is not None})


def run_of(google: LocalGoogle, *, run: dict[str, Any] | None = None, **parameters: Any) -> TaskRun:
    """Return a task instance of such an operator, and see to its bucket; ``run`` says what is different about it."""
    google.bucket(BUCKET)
    return TaskRun(make=partial(score, **parameters), **(run or {}))
