"""Deferrable and synchronous batches tell the same story in every world."""

from __future__ import annotations

import re
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from airflow_accel_provider.hooks.spark import SparkHook
from demo.waiting import wait_for
from tests.integration.batches import A100, CREATE, L4, L4_ELSEWHERE, etl_run
from tests.integration.local_google import PROJECT
from tests.integration.test_operator_modes import lasting

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.integration.local_google import LocalGoogle
    from tests.integration.task_run import TaskRun

REGION = "us-central1"
MODES = (True, False)
_BATCH = re.compile(r"nightly-etl-[0-9a-f]{12}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_GET = "dataproc.projects.locations.batches.get"
_FIGURES = ("gpu_seconds", "price_low", "price_high")


def told(run: TaskRun) -> dict[str, Any]:
    """Return what a task gave: its value, or its exception's type and text, without what differs between two runs."""
    try:
        value = run.run()
    except Exception as error:  # noqa: BLE001 - whatever it is, both modes must raise it
        return {"error": type(error).__name__, "text": _plain(str(error))}
    value["usage"] = {name: value["usage"][name] is not None for name in _FIGURES}
    proof = {name: said for name, said in value["proof"].items() if name != "source"}
    return {"value": lasting({**value, "proof": {"status": proof["status"], "accelerator": proof["accelerator"]}})}


def _plain(text: str) -> str:
    return str(lasting(_BATCH.sub("BATCH", text)))


def both(google: LocalGoogle, world: str, meddle: Callable[[str], None] | None = None, **said: Any) -> dict[str, Any]:
    """Return what both modes tell, at the same time and in the same world; they must agree."""
    google.emulator.set_world(world)
    runs = [etl_run(google, deferrable=mode, **said) for mode in MODES]
    with ThreadPoolExecutor(4) as pool:
        outcomes = [pool.submit(told, run) for run in runs]
        meddling = [pool.submit(_after_first_look, google, run, meddle) for run in runs] if meddle else []
        for each in meddling:
            each.result()
        deferrable, synchronous = (each.result() for each in outcomes)
    assert deferrable == synchronous
    return deferrable


def _after_first_look(google: LocalGoogle, run: TaskRun, meddle: Callable[[str], None]) -> None:
    """Do something to a task's batch once the task has looked at it."""
    batch_id = wait_for("the batch", lambda: run.xcom.get("dataproc_batch_id"), seconds=60)

    def looked() -> bool:
        created = max(each["seq"] for each in google.calls(CREATE, since=0) if each["query"]["batchId"] == [batch_id])
        return any(each["path"]["batch"] == batch_id for each in google.calls(_GET, since=created))

    wait_for("a look at the batch", looked, seconds=60)
    meddle(batch_id)


def test_falls_back_to_another_accelerator(google: LocalGoogle) -> None:
    """A stockout moves on by region, then by accelerator; the value has the winner, its proof, and what it used."""
    value = both(google, "l4-stockout", fallback=[L4_ELSEWHERE, A100])["value"]
    tried = [(each["n"], each["placement"], (each["failure"] or {}).get("kind")) for each in value["attempts"]]
    assert tried == [(1, L4, "stockout"), (2, L4_ELSEWHERE, "stockout"), (3, A100, None)]
    assert (value["state"], value["placement"]) == ("done", A100)
    assert value["proof"] == {"status": "seen", "accelerator": "a100-40"}
    assert value["usage"] == dict.fromkeys(_FIGURES, True)


def test_stockout(google: LocalGoogle) -> None:
    """Below 3.0 a batch without stock fails at once, and with nowhere to go so does the task."""
    outcome = both(google, "nowhere", fallback=[A100])
    assert outcome["error"] == "AcceleratorStockoutError"
    for words in ("No place could run etl. Tried 2, skipped 0.", f"1. {L4}: stockout", f"2. {A100}: stockout"):
        assert words in outcome["text"]


def test_allocation_timeout(google: LocalGoogle) -> None:
    """On 3.0 a batch queues for its GPUs, fails when its time in the queue is over, and the next region is tried."""
    outcome = both(google, "nowhere", runtime_version="3.0", allocation_timeout=60, fallback=[L4_ELSEWHERE])
    assert outcome["error"] == "AcceleratorStockoutError"
    assert "Tried 2, skipped 0." in outcome["text"]
    assert outcome["text"].count("no accelerator within the allocation timeout") == 2


def test_default_mode_fails_fast(google: LocalGoogle) -> None:
    """On 3.0 a batch that does not queue fails at once without stock."""
    outcome = both(google, "nowhere", runtime_version="3.0", provisioning="default")
    assert outcome["error"] == "AcceleratorStockoutError"
    assert "zone pool exhausted" in outcome["text"]


@pytest.mark.parametrize(("version", "metric"), [("2.3", "NVIDIA_L4_GPUS"), ("3.0", "PREEMPTIBLE_NVIDIA_L4_GPUS")])
def test_quota_short(google: LocalGoogle, version: str, metric: str) -> None:
    """Without quota of the mode's metric nothing is started."""
    since = google.mark()
    outcome = both(google, "no-quota", runtime_version=version, fallback=[A100])
    assert outcome["error"] == "AcceleratorQuotaError"
    assert "Tried 0, skipped 2." in outcome["text"]
    assert f"needs at least 2 of {metric}" in outcome["text"]
    assert not google.calls(CREATE, since=since)


def test_gpu_never_attached(google: LocalGoogle) -> None:
    """A program that runs without its GPU is cancelled once the grace is over."""
    batch = {"pyspark_batch": {"main_python_file_uri": "gs://acme-ml-spark/jobs/etl.py", "args": ["seconds=60"]}}
    outcome = both(google, "gpu-missing", batch=batch, fallback=[A100])
    assert outcome["error"] == "AcceleratorMissingError"
    assert "accelerator missing: executors run without l4" in outcome["text"]


def test_executor_churn(google: LocalGoogle) -> None:
    """Executors that are replaced for ever are found out, on the newer figures too."""
    outcome = both(google, "executor-churn", runtime_version="3.0", fallback=[A100])
    assert outcome["error"] == "AcceleratorMissingError"
    assert "replaced for ever" in outcome["text"]


def test_user_code_fails(google: LocalGoogle) -> None:
    """A program that raises on its GPU fails the task with its words, and never moves."""
    batch = {"pyspark_batch": {"main_python_file_uri": "gs://acme-ml-spark/jobs/etl.py", "args": ["fail=no row 7"]}}
    outcome = both(google, "plenty", batch=batch, fallback=[A100])
    assert outcome["error"] == "AcceleratorPipelineError"
    assert f"etl failed on {L4} (job BATCH), user code" in outcome["text"]
    assert "no row 7" in outcome["text"]


def test_console_cancel(google: LocalGoogle) -> None:
    """A batch that somebody cancels fails the task and is started nowhere else."""

    def cancel(batch_id: str) -> None:
        SparkHook(google.session()).cancel(batch_id, REGION)

    outcome = both(google, "executor-churn", cancel, proof_grace=600, fallback=[A100])
    assert outcome["error"] == "AcceleratorCancelledError"
    assert "somebody cancelled the job" in outcome["text"]


def test_deleted_batch(google: LocalGoogle) -> None:
    """A batch that somebody cancels and deletes between two looks is given up, and nothing else is started."""

    def delete(batch_id: str) -> None:
        session = google.session()
        SparkHook(session).cancel(batch_id, REGION)
        deadline = time.monotonic() + 30
        while (job := SparkHook(session).get(batch_id, REGION).job) and not job.state.is_terminal:
            assert time.monotonic() < deadline
        session.request("dataproc", "DELETE", f"projects/{PROJECT}/locations/{REGION}/batches/{batch_id}")

    since = google.mark()
    outcome = both(google, "executor-churn", delete, proof_grace=600, poll_interval=8, fallback=[A100])
    assert outcome["error"] == "AcceleratorServiceError"
    assert f"the service no longer knows job BATCH in {REGION}" in outcome["text"]
    assert len(google.events("dataproc.batch.created", since=since)) == 2
