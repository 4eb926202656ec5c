"""The tests' operator for Spark: a sound one, of which each test says what it is about."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow_accel_provider.operators.dataproc import DataprocGpuBatchOperator
from tests.integration.task_run import TaskRun

if TYPE_CHECKING:
    from tests.integration.local_google import LocalGoogle

BUCKET = "acme-ml-spark"
MAIN = f"gs://{BUCKET}/jobs/etl.py"
CREATE = "dataproc.projects.locations.batches.create"
CANCEL = "dataproc.projects.regions.operations.cancel"
# Without Spark of its own: what a batch computes is the emulator's tests' matter.
PROGRAMS = Path(__file__).parent / "dags" / "pipelines"
L4, L4_ELSEWHERE, A100 = "l4 in us-central1", "l4 in europe-west4", "a100-40 in us-central1"


def etl(**parameters: Any) -> DataprocGpuBatchOperator:
    """Return an operator that runs a short batch."""
    said: dict[str, Any] = {
        "task_id": "etl",
        "placement": L4,
        "batch": {"pyspark_batch": {"main_python_file_uri": MAIN}},
        "runtime_version": "2.3",
        "ttl": "3600s",
        "properties": {"spark.dynamicAllocation.enabled": "false"},
        "proof_grace": 4,
        "poll_interval": 0.5,
        **parameters,
    }
    return DataprocGpuBatchOperator(**said)


def etl_run(google: LocalGoogle, *, run: dict[str, Any] | None = None, **parameters: Any) -> TaskRun:
    """Return a task instance of such an operator, and see to its program; ``run`` says what is different about it."""
    google.bucket(BUCKET).blob("jobs/etl.py").upload_from_filename(PROGRAMS / "etl.py")
    return TaskRun(make=partial(etl, **parameters), **(run or {}))
