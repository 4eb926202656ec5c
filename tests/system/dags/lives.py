"""DAGs whose jobs cost nothing, for tests of what becomes of a job when something happens to its task.

``endless`` is a streaming pipeline that is waited for until its accelerator is seen; ``stuck`` is a batch pipeline that
waits for its image in a world where there is none; ``etl`` is a Spark batch that ends when a file is gone.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.sdk import DAG

from airflow_accel_provider.operators.beam import BeamGpuPipelineOperator
from airflow_accel_provider.operators.dataproc import DataprocGpuBatchOperator
from airflow_accel_provider.sensors.proof import AcceleratorProofSensor

BUCKET = "gs://acme-ml-lives"
L4, T4 = "nvidia-l4 on g2-standard-8 in us-central1", "nvidia-tesla-t4 on n1-standard-8 in us-central1"
AGAIN: dict[str, Any] = {"retries": 2, "retry_delay": timedelta(seconds=1)}
PIPELINE: dict[str, Any] = {
    "project_id": "acme-ml-prod",
    "placement": L4,
    "sdk": "python",
    "sdk_container_image": "us-docker.pkg.dev/acme-ml-prod/beam/gpu:2.77.0",
    "num_workers": 1,
    "max_num_workers": 1,
    "pipeline_options": {"temp_location": f"{BUCKET}/temp"},
}
ENDLESS: dict[str, Any] = {**PIPELINE, "template": f"{BUCKET}/endless", "wait_until": "proven"}
STUCK: dict[str, Any] = {**PIPELINE, "template": f"{BUCKET}/stuck"}
SPARK: dict[str, Any] = {
    "project_id": "acme-ml-prod",
    "placement": "l4 in us-central1",
    "batch": {"pyspark_batch": {"main_python_file_uri": f"{BUCKET}/etl.py", "args": ["{{ params.gate }}"]}},
    "runtime_version": "2.3",
    "ttl": "86400s",
    "properties": {"spark.dynamicAllocation.enabled": "false"},
}

for mode, deferrable in {"deferred": True, "waiting": False}.items():
    with DAG(f"endless_{mode}", schedule=None, default_args={**AGAIN, "deferrable": deferrable}):
        BeamGpuPipelineOperator(task_id="job", **ENDLESS)
    with DAG(f"stuck_{mode}", schedule=None, default_args={**AGAIN, "deferrable": deferrable}):
        BeamGpuPipelineOperator(task_id="job", **STUCK) >> EmptyOperator(task_id="after")
    with DAG(f"spark_{mode}", schedule=None, params={"gate": "none"}, default_args={**AGAIN, "deferrable": deferrable}):
        DataprocGpuBatchOperator(task_id="job", **SPARK)

with DAG("siblings", schedule=None, default_args={"deferrable": True}):
    BeamGpuPipelineOperator(task_id="job", **STUCK)
    EmptyOperator(task_id="other")

with DAG("searching", schedule=None, default_args={**AGAIN, "deferrable": True}):
    BeamGpuPipelineOperator(task_id="job", **ENDLESS, fallback=[T4])

with DAG(
    "limited", schedule=None, default_args={"deferrable": True, "retries": 1, "retry_delay": timedelta(seconds=1)}
):
    BeamGpuPipelineOperator(task_id="job", **STUCK, execution_timeout=timedelta(seconds=8))

with DAG("mapped", schedule=None, default_args={**AGAIN, "deferrable": False}):
    teams = [{"team": team} for team in ("audio", "text", "vision")]
    BeamGpuPipelineOperator.partial(task_id="job", **ENDLESS).expand(labels=teams)

with DAG("sensing", schedule=None, params={"job_id": ""}):
    ABOUT: dict[str, Any] = {
        "project_id": "acme-ml-prod",
        "region": "us-central1",
        "job_id": "{{ params.job_id }}",
        # The job has another, so this one is never seen, and nobody can say that it never will be.
        "accelerator": "nvidia-tesla-t4",
        "poke_interval": 1,
        "timeout": 5,
    }
    AcceleratorProofSensor(task_id="deferred", deferrable=True, **ABOUT)
    AcceleratorProofSensor(task_id="rescheduled", deferrable=False, mode="reschedule", **ABOUT)
    AcceleratorProofSensor(task_id="poking", deferrable=False, **ABOUT)
    AcceleratorProofSensor(task_id="skipping", deferrable=True, soft_fail=True, **ABOUT)
