"""The DAG of one subject: the same work, told as each operator wants it told.

Each operator is imported where it is used, so that a task's process loads no more than its own.
"""

from __future__ import annotations

import os
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

from airflow.sdk import DAG

from bench.stock.subjects import SUBJECTS, Subject

PROJECT, BUCKET = "acme-ml-prod", "acme-ml-losses"
PROGRAM = str(Path(__file__).parent / "programs" / "held.py")
TPU_IMAGE = "us-docker.pkg.dev/acme-ml-prod/beam/tpu-v5e-1:2.77.0"
IMAGE = "us-docker.pkg.dev/acme-ml-prod/beam/gpu:2.77.0"
TEMPLATE = f"gs://{BUCKET}/held.json"
L4 = "type:nvidia-l4;count:1;install-nvidia-driver"
# How a user of the stock operators gets another place: by the number of the try.
PLACE = "{{ params.places[(ti.try_number - 1) % (params.places | length)] }}"
MARKER = "{{ params.marker }}"
BATCH = {"pyspark_batch": {"main_python_file_uri": f"gs://{BUCKET}/held_batch.py", "args": [MARKER]}}
POLL = 2


def stock_flex(usual: dict[str, Any], subject: Subject) -> None:
    """Launch a Flex Template."""
    from airflow.providers.google.cloud.operators.dataflow import DataflowStartFlexTemplateOperator

    environment = {
        "tempLocation": f"gs://{BUCKET}/work",
        "machineType": "g2-standard-8",
        "sdkContainerImage": IMAGE,
        "numWorkers": 1,
        "maxWorkers": 1,
        "additionalExperiments": [f"worker_accelerator={L4}"],
    }
    launch = {"jobName": subject.key, "containerSpecGcsPath": TEMPLATE, "environment": environment}
    body = {"launchParameter": {**launch, "parameters": {"marker": MARKER, "sdk_container_image": IMAGE}}}
    said = {"project_id": PROJECT, "location": PLACE, "deferrable": subject.deferrable, "poll_sleep": POLL}
    DataflowStartFlexTemplateOperator(**usual, **said, body=body)


def stock_beam(usual: dict[str, Any], subject: Subject) -> None:
    """Run a pipeline file."""
    from airflow.providers.apache.beam.operators.beam import BeamRunPythonPipelineOperator
    from airflow.providers.google.cloud.operators.dataflow import DataflowConfiguration

    options = {
        "temp_location": f"gs://{BUCKET}/work",
        "machine_type": "g2-standard-8",
        "sdk_container_image": IMAGE,
        "num_workers": 1,
        "max_num_workers": 1,
        "dataflow_service_options": f"worker_accelerator={L4}",
        "dataflow_endpoint": os.environ["LOSSES_HTTP"],
        "marker": MARKER,
    }
    config = DataflowConfiguration(job_name=subject.key, project_id=PROJECT, location=PLACE, poll_sleep=POLL)
    BeamRunPythonPipelineOperator(
        **usual,
        py_file=PROGRAM,
        py_interpreter=sys.executable,
        runner="DataflowRunner",
        pipeline_options=options,
        dataflow_config=config,
        deferrable=subject.deferrable,
    )


def stock_batch(usual: dict[str, Any], subject: Subject) -> None:
    """Create a batch; with a fixed id it is the run's."""
    from airflow.providers.google.cloud.operators.dataproc import DataprocCreateBatchOperator

    properties = {
        "spark.dataproc.driver.compute.tier": "premium",
        "spark.dataproc.executor.compute.tier": "premium",
        "spark.dataproc.driver.disk.tier": "premium",
        "spark.dataproc.executor.disk.tier": "premium",
        "spark.dataproc.executor.resource.accelerator.type": "l4",
        "spark.dynamicAllocation.enabled": "false",
        "spark.executor.instances": "2",
    }
    fixed = {"batch_id": "fixed-{{ params.token }}"} if subject.kind == "fixed" else {}
    DataprocCreateBatchOperator(
        **usual,
        **fixed,
        project_id=PROJECT,
        region=PLACE,
        batch={**BATCH, "runtime_config": {"version": "2.3", "properties": properties}},
        deferrable=subject.deferrable,
        polling_interval_seconds=POLL,
    )


def ours_pipeline(usual: dict[str, Any], subject: Subject) -> None:
    """Run a pipeline file or a Flex Template."""
    from airflow_accel_provider.operators.beam import BeamGpuPipelineOperator

    is_flex = subject.kind == "flex"
    options = {"temp_location": f"gs://{BUCKET}/work"}
    work = (
        {"flex_template": TEMPLATE, "parameters": {"marker": MARKER}, "pipeline_options": options}
        if is_flex
        else {"py_file": PROGRAM, "pipeline_options": {**options, "marker": MARKER}}
    )
    BeamGpuPipelineOperator(
        **usual,
        **work,
        project_id=PROJECT,
        placement="nvidia-l4 on g2-standard-8 in us-central1",
        fallback=["nvidia-l4 on g2-standard-8 in europe-west4"],
        sdk_container_image=IMAGE,
        num_workers=1,
        max_num_workers=1,
        deferrable=subject.deferrable,
        poll_interval=POLL,
    )


def ours_tpu(usual: dict[str, Any], subject: Subject) -> None:
    """Run a Flex Template on a TPU."""
    from airflow_accel_provider.operators.beam import BeamTpuPipelineOperator

    BeamTpuPipelineOperator(
        **usual,
        flex_template=TEMPLATE,
        parameters={"marker": MARKER},
        pipeline_options={"temp_location": f"gs://{BUCKET}/work"},
        project_id=PROJECT,
        placement="tpu-v5-lite-podslice:1x1 on ct5lp-hightpu-1t in us-central1",
        fallback=["tpu-v5-lite-podslice:1x1 on ct5lp-hightpu-1t in us-west4"],
        sdk_container_image=TPU_IMAGE,
        num_workers=1,
        max_num_workers=1,
        number_of_worker_harness_threads=20,
        deferrable=subject.deferrable,
        poll_interval=POLL,
    )


def ours_batch(usual: dict[str, Any], subject: Subject) -> None:
    """Run a batch."""
    from airflow_accel_provider.operators.dataproc import DataprocGpuBatchOperator

    DataprocGpuBatchOperator(
        **usual,
        project_id=PROJECT,
        placement="l4 in us-central1",
        fallback=["l4 in europe-west4"],
        runtime_version="2.3",
        executors=2,
        ttl="3600s",
        batch=BATCH,
        properties={"spark.dynamicAllocation.enabled": "false"},
        deferrable=subject.deferrable,
        poll_interval=POLL,
    )


MAKERS = {
    (False, "flex"): stock_flex,
    (False, "beam"): stock_beam,
    (False, "batch"): stock_batch,
    (False, "fixed"): stock_batch,
    (True, "flex"): ours_pipeline,
    (True, "beam"): ours_pipeline,
    (True, "batch"): ours_batch,
    (True, "tpu"): ours_tpu,
}


def dag_of(key: str) -> DAG:
    """Return a subject's DAG."""
    subject = next(each for each in SUBJECTS if each.key == key)
    params = {"marker": "", "token": "", "places": ["us-central1"]}
    with DAG(key, schedule=None, params=params) as dag:
        usual = {"task_id": key, "retries": 3, "retry_delay": timedelta(seconds=2)}
        MAKERS[subject.ours, subject.kind](usual, subject)
    return dag
