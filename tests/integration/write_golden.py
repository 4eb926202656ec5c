"""Writes the golden rows of a release: what its tasks leave in Airflow's database, told by real runs on a local Google.

Run once for a release, ``python -m tests.integration.write_golden tests/core/golden/v1``, and kept from then on.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from airflow_accel_provider.core.notes import NOTE_KEY
from airflow_accel_provider.operators.beam import BeamTpuPipelineOperator
from airflow_accel_provider.sensors.proof import AcceleratorProofSensor
from airflow_accel_provider.sensors.quota import AcceleratorQuotaSensor
from airflow_accel_provider.sensors.reservation import AcceleratorReservationSensor
from airflow_accel_provider.sensors.utilization import AcceleratorUtilizationSensor
from airflow_accel_provider.triggers.sensor import AcceleratorSensorTrigger
from demo.processes import Processes
from tests.integration import batches, pipelines
from tests.integration.local_google import LocalGoogle
from tests.integration.task_run import TaskRun, first_event
from tests.integration.test_operator_streaming import endless
from tests.integration.test_operator_templates import template_run

L4, T4 = "nvidia-l4 on g2-standard-8 in us-central1", "nvidia-tesla-t4 on n1-standard-8 in us-central1"
V6E = "tpu-v6e-slice:2x2 in us-east5-b"


def operator_rows(google: LocalGoogle) -> Iterator[tuple[str, TaskRun, str]]:
    """Yield each operator's name, task instance and world."""
    slow = {"seconds": 20}
    yield "beam_gpu", pipelines.run_of(google, fallback=[T4], pipeline_options=slow), "stockout-then-quota-then-stock"
    tpu = {"kind": BeamTpuPipelineOperator, "number_of_worker_harness_threads": 50, "placement": V6E}
    yield "beam_tpu", pipelines.run_of(google, **tpu, pipeline_options=slow), "plenty"
    yield "flex", template_run(google), "plenty"
    yield "streaming", endless(google, drain_pipeline=True), "plenty"
    yield "spark", batches.etl_run(google, fallback=[batches.A100]), "l4-stockout"


def sensor_rows(job: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield each sensor's name and a task's own operator; ``job`` is one that runs."""
    usual = {"deferrable": True, "poke_interval": 0.5, "timeout": 60, "task_id": "wait"}
    of_job = {"job_id": job["job_id"], "region": job["region"]}
    yield "sensor_quota", lambda: AcceleratorQuotaSensor(placements=[L4], **usual)
    yield (
        "sensor_reservation",
        lambda: AcceleratorReservationSensor(reservation="tpu-night", zone="us-east5-b", count=1, **usual),
    )
    yield "sensor_proof", lambda: AcceleratorProofSensor(**of_job, **usual)
    yield "sensor_utilization", lambda: AcceleratorUtilizationSensor(threshold=1, window=30, delay=5, **of_job, **usual)


def row(run: TaskRun) -> dict[str, Any]:
    """Return all that a run left behind: the last trigger and event, note and record at the end, and XCom."""
    value = run.run()
    stored = {"record": run.record} if "accel_job" in run.stored else {}
    stored |= {"note": run.xcom[NOTE_KEY]} if NOTE_KEY in run.xcom else {}
    return {"trigger": run.triggers[-1], "event": run.events[-1], **stored, "xcom": value}


def sensor_row(sensor: Any) -> dict[str, Any]:
    """Return what a deferred sensor leaves behind; it is told off at once, though what it waits for may be so."""
    began = datetime.now(UTC)
    _, arguments = sensor._trigger(sensor.question(began), began + timedelta(seconds=120)).serialize()
    stored = json.loads(json.dumps(arguments))
    event = asyncio.run(first_event(AcceleratorSensorTrigger(**stored)))
    return {"trigger": stored, "event": event, "xcom": sensor.resume({}, event)}


@contextmanager
def google_here(directory: Path) -> Iterator[LocalGoogle]:
    """Run a Google to which the default connection leads."""
    processes = Processes(directory)
    try:
        google = LocalGoogle.start(processes, directory / "emulator")
        os.environ.update(google.environment)
        yield google
    finally:
        processes.stop()


def main(folder: str, *only: str) -> None:
    """Write every row, or those of operators that are named; sensors come with ``streaming``, whose job they ask."""
    with tempfile.TemporaryDirectory() as scratch, google_here(Path(scratch)) as google:
        for name, run, world in operator_rows(google):
            if only and name not in only:
                continue
            google.emulator.set_world(world)
            keep(Path(folder) / f"{name}.json", row(run))
            if name == "streaming":
                for sensor, make in sensor_rows(run.run()):
                    google.emulator.set_world("reserved-tpu" if sensor == "sensor_reservation" else "plenty")
                    keep(Path(folder) / f"{sensor}.json", sensor_row(make()))


def keep(path: Path, rows: dict[str, Any]) -> None:
    """Write down what one run left behind."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(rows, indent=1, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
