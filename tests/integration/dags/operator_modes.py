"""One DAG for each story and mode of the operators, and a program that runs them one after the other.

Every DAG leaves what came of it, the operator's return value or its exception's text, in ``OUTCOMES/<dag id>.json``.
Run as a program, this file takes the emulator's address and the stories to run.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
from airflow.sdk import DAG, BaseHook, task

from airflow_accel_provider.hooks.dataflow import DataflowHook
from airflow_accel_provider.hooks.session import GoogleSession
from airflow_accel_provider.operators.beam import BeamGpuPipelineOperator, BeamTpuPipelineOperator
from demo.waiting import wait_for

OUTCOMES = Path(os.environ.get("OUTCOMES", "."))
MODES = {"deferrable": True, "synchronous": False}
BUCKET = "acme-ml-modes"
TEMPLATE = f"gs://{BUCKET}/templates/echo.json"
CONSOLE = "console"
"""The connection of somebody else, who cancels jobs in the console."""

L4, L4_ELSEWHERE = "nvidia-l4 on g2-standard-8 in us-central1", "nvidia-l4 on g2-standard-8 in europe-west4"
T4 = "nvidia-tesla-t4 on n1-standard-8 in us-central1"
V6E = "tpu-v6e-slice:2x2 on ct6e-standard-4t in us-east5-b"
V5E = "tpu-v5-lite-podslice:2x2 on ct5lp-hightpu-4t in us-west4-a"


@dataclass(frozen=True, kw_only=True)
class Kind:
    """An operator, the place it names, and the one it names next."""

    operator: type[BeamGpuPipelineOperator] | type[BeamTpuPipelineOperator]
    first: str
    second: str
    said: dict[str, Any] = field(default_factory=dict)


KINDS = {
    "gpu": Kind(operator=BeamGpuPipelineOperator, first=L4, second=T4),
    "tpu": Kind(operator=BeamTpuPipelineOperator, first=V6E, second=V5E, said={"number_of_worker_harness_threads": 50}),
}


@dataclass(frozen=True, kw_only=True)
class Story:
    """The world it happens in, and what is said to the operator.

    ``fallback`` are the places after the first, by default the kind's second one. In a story that ``is_cancelled``
    somebody else ends the job once it has workers.
    """

    world: str
    said: dict[str, Any] = field(default_factory=dict)
    fallback: list[str] | None = None
    is_cancelled: bool = False


SHARED = {
    "stockout": Story(world="nowhere", fallback=[]),
    "exhaustion": Story(world="nowhere"),
    "quota": Story(world="no-quota"),
    "missing": Story(world="gpu-missing", said={"on_unproven": "fail", "pipeline_options": {"seconds": 60}}),
    "image": Story(world="image-missing"),
    "raises": Story(world="plenty", said={"pipeline_options": {"fail": True}}),
    "cancelled": Story(world="plenty", is_cancelled=True),
}
"""What happens to both operators."""

_LONG = {"pipeline_options": {"seconds": 300}}
LAUNCHED = {
    "py_file": None,
    "flex_template": TEMPLATE,
    "parameters": {"output": f"gs://{BUCKET}/echoed"},
}
STORIES: dict[str, Story] = {
    **{f"{name}-{kind}": told for name, told in SHARED.items() for kind in KINDS},
    "falls_back-gpu": Story(world="stockout-then-quota-then-stock", fallback=[L4_ELSEWHERE, T4]),
    "falls_back-tpu": Story(world="tpu-stockout", fallback=[V5E, L4]),
    "template-tpu": Story(world="plenty", said=LAUNCHED),
    "launcher-gpu": Story(world="launcher-stockout", said=LAUNCHED),
    "left_running-gpu": Story(
        world="plenty", said={"wait_until": "proven", "pipeline_options": {"endless": True}}, fallback=[]
    ),
    "late-gpu": Story(world="plenty", said={"execution_timeout": timedelta(seconds=30), **_LONG}),
    "endless-gpu": Story(world="plenty", said={"pipeline_options": {"endless": True}}),
}
"""By name, which ends with the kind of operator."""


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
    told, kind = STORIES[name], KINDS[name.rpartition("-")[2]]
    dag_id = f"{name}-{mode}"
    # What is an option of a pipeline's file is a parameter of its template.
    output = {} if "flex_template" in told.said else {"output": f"gs://{BUCKET}/{dag_id}"}
    options = {"temp_location": f"gs://{BUCKET}/work", **output, **told.said.get("pipeline_options", {})}
    usual: dict[str, Any] = {
        "placement": kind.first,
        "fallback": [kind.second] if told.fallback is None else told.fallback,
        "py_file": str(Path(__file__).parent / "pipelines" / "echo.py"),
        "sdk_container_image": "us-docker.pkg.dev/acme-ml-prod/beam/accelerated:2.77.0",
        "num_workers": 1,
        "max_num_workers": 1,
        "poll_interval": 0.5,
        "deferrable": MODES[mode],
        "on_failure_callback": leave_failure,
    }
    with DAG(dag_id, schedule=None) as dag:
        said = {**usual, **kind.said, **told.said, "pipeline_options": options}
        leave_value(dag_id, kind.operator(task_id="score", **said).output)
    return dag


DAGS = {(name, mode): story(name, mode) for name in STORIES for mode in MODES}
globals().update({f"{name}_{mode}": dag for (name, mode), dag in DAGS.items()})


def happened(url: str, since: int) -> dict[str, Any]:
    """Return the emulator's ledger from a number on."""
    ledger: dict[str, Any] = httpx.get(f"{url}/_emulator/ledger", params={"since": since}).raise_for_status().json()
    return ledger


def events(url: str, kind: str, since: int) -> list[dict[str, Any]]:
    """Return the ledger's events of a kind from a number on."""
    return [event for event in happened(url, since)["events"] if event["kind"] == kind]


def cancel_elsewhere(url: str, since: int) -> None:
    """End the next job that gets a worker, as somebody in the console would."""
    worker = wait_for("a worker", lambda: events(url, "compute.instance.created", since), seconds=120)[0]
    console = GoogleSession.from_connection(BaseHook.get_connection(CONSOLE))
    DataflowHook(console).cancel(worker["job_id"], worker["location"])


def play(url: str, name: str, mode: str) -> None:
    """Run a story in a mode, and write down how many jobs it made and who asked for the end of any."""
    told, since = STORIES[name], happened(url, 0)["last"]
    httpx.put(f"{url}/_emulator/world", json={"name": told.world}).raise_for_status()
    somebody = threading.Thread(target=cancel_elsewhere, args=(url, since), daemon=True)
    if told.is_cancelled:
        somebody.start()
    dag = DAGS[name, mode]
    dag.test()
    asked = [
        call for call in happened(url, since)["calls"] if call["method"] == "dataflow.projects.locations.jobs.update"
    ]
    outcome = json.loads((OUTCOMES / f"{dag.dag_id}.json").read_text(encoding="utf-8"))
    made = len(events(url, "dataflow.job.created", since))
    leave(dag.dag_id, {**outcome, "made": made, "enders": sorted({call["principal"] for call in asked})})


def main(url: str, *names: str) -> None:
    """Run the stories of these names in both modes, each in its world."""
    for name in names:
        for mode in MODES:
            play(url, name, mode)


if __name__ == "__main__":
    main(*sys.argv[1:])
