"""The tasks of the stories: one of each operator, each with a second place to go to."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from airflow_accel_provider.operators.beam import BeamGpuPipelineOperator, BeamTpuPipelineOperator
from airflow_accel_provider.operators.dataproc import DataprocGpuBatchOperator

_BEAM: dict[str, Any] = {
    "task_id": "score",
    "flex_template": "gs://acme-ml/templates/score.json",
    "pipeline_options": {"temp_location": "gs://acme-ml/tmp"},
    "sdk_container_image": "us-docker.pkg.dev/acme-ml/beam/score:2.77.0",
    "number_of_worker_harness_threads": 12,
    # What renders differently at each try changes nothing.
    "labels": {"try": "v{{ ti.try_number }}"},
}
OPERATORS: Mapping[str, Callable[..., Any]] = {
    "gpu": lambda **said: BeamGpuPipelineOperator(
        **_BEAM,
        placement="nvidia-l4 on g2-standard-8 in us-central1",
        fallback=["nvidia-l4 on g2-standard-8 in europe-west4"],
        **said,
    ),
    "tpu": lambda **said: BeamTpuPipelineOperator(
        **_BEAM,
        placement="tpu-v6e-slice:2x2 in us-east5-b",
        fallback=["tpu-v6e-slice:2x2 in europe-west4-a"],
        **said,
    ),
    "spark": lambda **said: DataprocGpuBatchOperator(
        task_id="score",
        placement="l4 in us-central1",
        fallback=["l4 in europe-west4"],
        batch={"pyspark_batch": {"main_python_file_uri": "gs://acme-ml/jobs/etl.py"}},
        runtime_version="2.3",
        ttl="36000s",
        properties={"spark.dynamicAllocation.enabled": "false"},
        labels={"try": "v{{ ti.try_number }}"},
        **said,
    ),
}
