"""One DAG for each story and mode of the sensors, and a program that runs them one after the other.

Every DAG leaves what came of its sensor (its state, and its value or its exception) in ``OUTCOMES/<dag id>.json``. Run
as a program, this file takes the emulator's address and the stories to run.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.sdk import DAG, BaseHook, task

from airflow_accel_provider.hooks.dataflow import DataflowHook
from airflow_accel_provider.hooks.session import GoogleSession
from airflow_accel_provider.sensors.proof import AcceleratorProofSensor
from airflow_accel_provider.sensors.quota import AcceleratorQuotaSensor
from airflow_accel_provider.sensors.reservation import AcceleratorReservationSensor
from airflow_accel_provider.sensors.utilization import AcceleratorUtilizationSensor

if TYPE_CHECKING:
    from airflow_accel_provider.sensors._base import AcceleratorSensor

OUTCOMES = Path(os.environ.get("OUTCOMES", "."))
MODES = {"deferrable": True, "synchronous": False}
REGION = "us-central1"
L4, T4 = f"nvidia-l4 on g2-standard-8 in {REGION}", f"nvidia-tesla-t4 on n1-standard-8 in {REGION}"
L4_ELSEWHERE = "nvidia-l4 on g2-standard-8 in europe-west4"
TPU = "tpu-v6e-slice:2x2 in us-east5-b"
TPU_NIGHT = "projects/acme-ml-prod/zones/us-east5-b/reservations/tpu-night"
L4_OPTION = "worker_accelerator=type:nvidia-l4;count:1;install-nvidia-driver"


@dataclass(frozen=True, kw_only=True)
class Story:
    """A sensor in a world.

    ``job`` are the worker accelerators of a job that is started before, ``""`` for one without and ``None`` for no job;
    ``later`` is the world that comes while the sensor waits; ``job_comes`` has the job start only then. A story that
    takes its job to the end has one for both modes, the second of which finds it over.
    """

    kind: type[AcceleratorSensor]
    world: str = "plenty"
    job: str | None = None
    job_comes: bool = False
    one_job: bool = False
    later: str | None = None
    said: dict[str, Any] = field(default_factory=dict)


QUOTA, PROOF = AcceleratorQuotaSensor, AcceleratorProofSensor
RESERVATION, USE = AcceleratorReservationSensor, AcceleratorUtilizationSensor

STORIES: dict[str, Story] = {
    "quota_elsewhere": Story(
        kind=QUOTA, world="stockout-then-quota-then-stock", said={"placements": [L4_ELSEWHERE, T4]}
    ),
    "quota_later": Story(kind=QUOTA, world="no-quota", later="plenty", said={"placements": [L4]}),
    "quota_of_tpus": Story(kind=QUOTA, said={"placements": [TPU]}),
    "quota_not_in_time": Story(kind=QUOTA, world="no-quota", said={"placements": [L4, T4], "timeout": 2}),
    "quota_not_in_time_skips": Story(
        kind=QUOTA, world="no-quota", said={"placements": [L4], "timeout": 2, "soft_fail": True}
    ),
    "proof_by_id": Story(kind=PROOF, job=L4_OPTION, said={"accelerator": "nvidia-l4"}),
    "proof_by_name": Story(kind=PROOF, job=L4_OPTION, job_comes=True, said={"wait_for_job": True, "timeout": 60}),
    "proof_of_nothing": Story(kind=PROOF, job="", one_job=True),
    "proof_of_no_job": Story(kind=PROOF, said={"job_id": "2026-03-02_01_02_03-4"}),
    "proof_of_no_name": Story(kind=PROOF, said={"job_name": "nightly"}),
    "reservation_free": Story(kind=RESERVATION, world="reserved-tpu", said={"reservation": TPU_NIGHT, "count": 2}),
    "reservation_full": Story(
        kind=RESERVATION, world="reserved-tpu", said={"reservation": TPU_NIGHT, "count": 3, "timeout": 2}
    ),
    "reservation_unknown": Story(
        kind=RESERVATION, world="reserved-tpu", said={"reservation": "tpu-day", "zone": "us-east5-b"}
    ),
    "used": Story(kind=USE, job=L4_OPTION, one_job=True, said={"threshold": 20, "delay": 30}),
    "idle": Story(kind=USE, world="gpu-idle", job=L4_OPTION, one_job=True, said={"threshold": 20, "delay": 10}),
    "used_by_nobody": Story(kind=USE, job="", one_job=True, said={"delay": 0}),
}


def leave(dag_id: str, outcome: dict[str, Any]) -> None:
    """Write down what came of a DAG."""
    (OUTCOMES / f"{dag_id}.json").write_text(json.dumps(outcome), encoding="utf-8")


def leave_end(context: Any) -> None:
    """Write down the exception, or that there was none."""
    error = context.get("exception")
    ti = context["ti"]
    told = {"error": type(error).__name__, "text": str(error)} if error else {}
    leave(ti.dag_id, {"state": ti.state.value, **told})


def leave_value(context: Any, result: Any) -> None:
    """Write down what the sensor returned."""
    leave(context["ti"].dag_id, {"state": "success", "value": result})


def google() -> GoogleSession:
    """Return a session of the default connection."""
    return GoogleSession.from_connection(BaseHook.get_connection("google_cloud_default"))


def start_job(name: str, option: str) -> str:
    """Ask for a job whose workers come up, and which then fails, since its pipeline lies nowhere; return its id."""
    pool = {"kind": "local", "numWorkers": 1, "machineType": "g2-standard-8" if option else "n1-standard-4"}
    environment = {
        "tempStoragePrefix": "storage.googleapis.com/acme-ml-modes/temp",
        "userAgent": {"name": "Apache Beam Python 3.11 SDK", "version": "2.77.0"},
        "version": {"job_type": "FNAPI_BATCH", "major": "8"},
        "workerPools": [pool],
        "sdkPipelineOptions": {"options": {"pipelineUrl": "gs://acme-ml-modes/nowhere/pipeline.pb"}},
        "serviceOptions": [option] if option else [],
    }
    session = google()
    path = f"projects/{session.project}/locations/{REGION}/jobs"
    body = {"name": name, "type": "JOB_TYPE_BATCH", "environment": environment}
    return str(session.request("dataflow", "POST", path, body=body)["id"])


@task
def job_of(name: str, option: str) -> str:
    """Return the job that a sensor is about, started as anything might unless it is there."""
    there = DataflowHook(google()).find(name, REGION)
    return there[0].id if there else start_job(name, option)


def job_name(name: str, mode: str) -> str:
    """Return the name of a story's job."""
    prefix = name.replace("_", "-")
    return prefix if STORIES[name].one_job else f"{prefix}-{mode}"


def story(name: str, mode: str) -> DAG:
    """Return the DAG of a story in a mode."""
    told = STORIES[name]
    said = {"region": REGION, **told.said} if told.kind in (PROOF, USE) else told.said
    with DAG(f"{name}-{mode}", schedule=None) as dag:
        if told.job_comes:
            said = {**said, "job_name": job_name(name, mode)}
        elif told.job is not None:
            said = {**said, "job_id": job_of(job_name(name, mode), told.job)}
        told.kind(
            task_id="wait",
            deferrable=MODES[mode],
            poke_interval=0.3,
            post_execute=leave_value,
            on_failure_callback=leave_end,
            on_skipped_callback=leave_end,
            **{"timeout": 60, **said},
        )
    return dag


DAGS = {(name, mode): story(name, mode) for name in STORIES for mode in MODES}
globals().update({f"{name}_{mode}": dag for (name, mode), dag in DAGS.items()})


def play(url: str, name: str, mode: str) -> None:
    """Run one story in one mode: its world, its sensor, and what happens meanwhile."""
    import httpx

    told = STORIES[name]
    httpx.put(f"{url}/_emulator/world", json={"name": told.world}).raise_for_status()
    meanwhile: list[threading.Timer] = []
    if told.job_comes:
        meanwhile.append(threading.Timer(2, start_job, (job_name(name, mode), told.job)))
    if told.later:
        change = {"json": {"name": told.later}}
        meanwhile.append(threading.Timer(2, httpx.put, (f"{url}/_emulator/world",), change))
    for timer in meanwhile:
        timer.start()
    DAGS[name, mode].test()
    for timer in meanwhile:
        timer.join()


def main(url: str, *names: str) -> None:
    """Run the stories of these names in both modes."""
    for name in names:
        for mode in MODES:
            play(url, name, mode)


if __name__ == "__main__":
    main(*sys.argv[1:])
