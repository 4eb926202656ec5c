"""One DAG for each story and mode of the operator, and a program that runs them one after the other.

Every DAG leaves what came of it, the operator's return value or its exception's text, in ``OUTCOMES/<dag id>.json``.
Run as a program, this file takes the emulator's address and the stories to run.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from airflow.sdk import DAG, task

from airflow_accel_provider.operators.beam import BeamGpuPipelineOperator

OUTCOMES = Path(os.environ.get("OUTCOMES", "."))
MODES = {"deferrable": True, "synchronous": False}
L4, L4_ELSEWHERE = "nvidia-l4 on g2-standard-8 in us-central1", "nvidia-l4 on g2-standard-8 in europe-west4"
T4 = "nvidia-tesla-t4 on n1-standard-8 in us-central1"

STORIES: dict[str, tuple[str, dict[str, Any]]] = {
    "falls_back": ("stockout-then-quota-then-stock", {"fallback": [L4_ELSEWHERE, T4]}),
    "stockout": ("l4-stockout", {}),
    "no_quota": ("no-quota", {"fallback": [T4]}),
    "nowhere": ("nowhere", {"fallback": [T4]}),
    "unproven": ("gpu-missing", {"fallback": [T4], "on_unproven": "fail"}),
    "raises": ("plenty", {"fallback": [T4], "pipeline_options": {"fail": True}}),
    "left_running": ("plenty", {"wait_until": "proven", "pipeline_options": {"endless": True}}),
    "endless": ("plenty", {"fallback": [T4], "pipeline_options": {"endless": True}}),
}
"""By name: the world it happens in, and what is said to the operator."""


def leave(dag_id: str, outcome: dict[str, Any]) -> None:
    """Write down what came of a DAG."""
    (OUTCOMES / f"{dag_id}.json").write_text(json.dumps(outcome), encoding="utf-8")


def leave_failure(context: Any) -> None:
    """Write down the exception, as people see it."""
    error = context["exception"]
    leave(context["ti"].dag_id, {"error": type(error).__name__, "text": str(error)})


@task
def leave_value(dag_id: str, value: dict[str, Any]) -> None:
    """Write down what the operator returned."""
    leave(dag_id, {"value": value})


def story(name: str, mode: str) -> DAG:
    """Return the DAG of a story in a mode."""
    _, said = STORIES[name]
    options = {"temp_location": "gs://acme-ml-modes/work", "output": f"gs://acme-ml-modes/{name}-{mode}"}
    dag_id = f"{name}-{mode}"
    with DAG(dag_id, schedule=None) as dag:
        score = BeamGpuPipelineOperator(
            task_id="score",
            placement=L4,
            py_file=str(Path(__file__).parent / "pipelines" / "echo.py"),
            sdk_container_image="us-docker.pkg.dev/acme-ml-prod/beam/gpu:2.77.0",
            num_workers=1,
            max_num_workers=1,
            poll_interval=0.5,
            deferrable=MODES[mode],
            on_failure_callback=leave_failure,
            **{**said, "pipeline_options": options | said.get("pipeline_options", {})},
        )
        leave_value(dag_id, score.output)
    return dag


DAGS = {(name, mode): story(name, mode) for name in STORIES for mode in MODES}
globals().update({f"{name}_{mode}": dag for (name, mode), dag in DAGS.items()})


def main(url: str, *names: str) -> None:
    """Run the stories of these names in both modes, each in its world."""
    import httpx

    for name in names:
        httpx.put(f"{url}/_emulator/world", json={"name": STORIES[name][0]}).raise_for_status()
        for mode in MODES:
            DAGS[name, mode].test()


if __name__ == "__main__":
    main(*sys.argv[1:])
