"""The tasks that stories are about: one of each kind of operator, in the smallest form that does work."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pendulum
from airflow.sdk import DAG

from airflow_accel_provider.operators.beam import BeamGpuPipelineOperator, BeamTpuPipelineOperator
from airflow_accel_provider.operators.dataproc import DataprocGpuBatchOperator
from tests.kills.recording import BUCKET, TINY

if TYPE_CHECKING:
    from pathlib import Path

TASK = "score"
TEMPLATE = f"gs://{BUCKET}/templates/tiny"
PROGRAM = f"gs://{BUCKET}/programs/tiny.py"
_GPU = "us-docker.pkg.dev/acme-ml-prod/beam/gpu:2.77.0"
_TPU = "us-docker.pkg.dev/acme-ml-prod/beam/tpu:2.77.0"


def dag_of(name: str, kind: str, launcher: Path | None, **said: Any) -> DAG:
    """Return a DAG with one task; ``launcher`` is the program that stands for the user's pipeline, Beam's if none."""
    operator, places, own = _KINDS[kind]
    usual: dict[str, Any] = {"task_id": TASK, "poll_interval": 0.3, **_what(kind, launcher)}
    with DAG(name, schedule=None, start_date=pendulum.datetime(2026, 1, 1)) as dag:
        operator(placement=places[0], fallback=[places[1]], **usual, **own, **said)
    return dag


def _what(kind: str, launcher: Path | None) -> dict[str, Any]:
    if kind == "spark":
        return {"batch": {"pyspark_batch": {"main_python_file_uri": PROGRAM}}}
    options = {"pipeline_options": {"temp_location": f"gs://{BUCKET}/work"}}
    if kind == "template":
        return {"template": TEMPLATE, "sdk": "python", **options}
    return {"py_file": str(launcher or TINY), **options}


_SPARK: dict[str, Any] = {
    "runtime_version": "2.3",
    "ttl": "3600s",
    "properties": {"spark.dynamicAllocation.enabled": "false"},
    "proof_grace": 4,
}
_GPUS = ("nvidia-l4 on g2-standard-8 in us-central1", "nvidia-l4 on g2-standard-8 in europe-west4")
_KINDS: dict[str, tuple[Any, tuple[str, str], dict[str, Any]]] = {
    "gpu": (BeamGpuPipelineOperator, _GPUS, {"sdk_container_image": _GPU}),
    "template": (BeamGpuPipelineOperator, _GPUS, {"sdk_container_image": _GPU}),
    "tpu": (
        BeamTpuPipelineOperator,
        (
            "tpu-v5-lite-podslice:1x1 on ct5lp-hightpu-1t in us-central1-a",
            "tpu-v6e-slice:1x1 on ct6e-standard-1t in us-east5-b",
        ),
        {"sdk_container_image": _TPU},
    ),
    "spark": (DataprocGpuBatchOperator, ("l4 in us-central1", "l4 in europe-west4"), _SPARK),
}
