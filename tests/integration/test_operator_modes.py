"""Deferrable and synchronous tell the same story, under ``dag.test()``."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from demo.processes import Processes
from demo.stack import Airflow
from tests.integration.dags.operator_modes import L4, MODES, STORIES, T4

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.integration.local_google import LocalGoogle

DAGS = Path(__file__).parent / "dags"
Outcomes = dict[str, tuple[dict[str, Any], dict[str, Any]]]

# What differs between any two runs: ids, times, and the names that are made of them.
_PASSING = [
    (re.compile(r"\d{4}-\d\d-\d\d_[\d_]+-\d+"), "JOB"),
    (re.compile(r"(deferrable|synchronous)"), "MODE"),
    (re.compile(r"\d+ (s|min)\b"), "SPAN"),
    (re.compile(r"[\w-]+-harness-\w+"), "VM"),
    (re.compile(r"0x[0-9a-f]+"), "ADDRESS"),
]
# Whether a doomed attempt is cancelled or fails first, and the service's last words on it, are a matter of seconds.
_PASSING_KEYS = {"outcome", "evidence", "job_id", "job_name", "submitted_at", "ended_at", "at", "url"}


@pytest.fixture(scope="module")
def outcomes(started_google: LocalGoogle, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Outcomes]:
    """Run every story in both modes, in one process."""
    directory = tmp_path_factory.mktemp("modes")
    started_google.bucket("acme-ml-modes")
    processes = Processes(directory)
    try:
        variables = {**started_google.environment, "OUTCOMES": str(directory)}
        airflow = Airflow(processes, directory / "airflow", dags=DAGS, variables=variables)
        airflow.prepare()
        command = [sys.executable, str(DAGS / "operator_modes.py"), started_google.emulator.url, *STORIES]
        done = subprocess.run(
            command, env=airflow.environment, capture_output=True, text=True, check=False, timeout=540
        )
        assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
        yield {name: _both(directory, name) for name in STORIES}
    finally:
        processes.stop()


def _both(directory: Path, name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    deferrable, synchronous = (json.loads((directory / f"{name}-{mode}.json").read_text()) for mode in MODES)
    return deferrable, synchronous


def lasting(value: Any) -> Any:
    """Return a value without what differs between any two runs."""
    if isinstance(value, dict):
        return {key: lasting(item) for key, item in value.items() if key not in _PASSING_KEYS}
    if isinstance(value, list):
        return [lasting(item) for item in value]
    if isinstance(value, str):
        for pattern, word in _PASSING:
            value = pattern.sub(word, value)
    return value


@pytest.mark.parametrize("name", STORIES)
def test_modes_agree(outcomes: Outcomes, name: str) -> None:
    """Both modes return the same value, or raise the same exception with the same text, but for ids and times."""
    deferrable, synchronous = outcomes[name]
    assert lasting(deferrable) == lasting(synchronous)


def test_falls_back(outcomes: Outcomes) -> None:
    """The value names the winner, and every attempt with why it ended."""
    for outcome in outcomes["falls_back"]:
        value = outcome["value"]
        assert (value["v"], value["state"], value["placement"]) == (1, "done", T4)
        assert value["proof"]["status"] == "seen"
        tried = [(each["n"], each["placement"], (each["failure"] or {}).get("kind")) for each in value["attempts"]]
        assert tried == [(1, L4, "stockout"), (2, T4, None)]
        for attempt in value["attempts"]:
            assert attempt["job_id"] in attempt["url"]


def test_leaves_the_job_running(google: LocalGoogle, outcomes: Outcomes) -> None:
    """A streaming pipeline's task succeeds once its accelerator is seen, and its value says that the job runs."""
    for outcome in outcomes["left_running"]:
        value = outcome["value"]
        assert (value["state"], value["placement"], value["proof"]["status"]) == ("running", L4, "seen")
        assert [(each["outcome"], each["ended_at"]) for each in value["attempts"]] == [("running", None)]
        job = google.job(value["job_id"], value["region"])
        assert job["currentState"] == "JOB_STATE_RUNNING"
        google.cancel(job)


SAID: dict[str, tuple[str, list[str]]] = {
    "stockout": (
        "AcceleratorStockoutError",
        [
            "No place could run score. Tried 1, skipped 0.",
            f"1. {L4}: stockout in us-central1-",
            "Add a place to fallback=",
        ],
    ),
    "no_quota": (
        "AcceleratorQuotaError",
        [
            "No place could run score. Tried 0, skipped 2.",
            f"1. {L4}: skipped, ",
            f"2. {T4}: skipped, ",
            "Raise a quota",
        ],
    ),
    "nowhere": (
        "AcceleratorStockoutError",
        ["No place could run score. Tried 2, skipped 0.", f"1. {L4}: stockout", f"2. {T4}: stockout"],
    ),
    "unproven": (
        "AcceleratorMissingError",
        [f"score failed on {L4} (job ", "accelerator missing: worker g2-standard-8", "runs without nvidia-l4"],
    ),
    "raises": (
        "AcceleratorPipelineError",
        [
            f"score failed on {L4} (job ",
            "user code: the pipeline's own code raised",
            "row 7 has no pixels",
            "while running 'Score'",
        ],
    ),
    "endless": (
        "AcceleratorPipelineError",
        [f"score failed on {L4} (job ", "configuration: it is a streaming job", 'give wait_until="proven"'],
    ),
}


@pytest.mark.parametrize("name", SAID)
def test_failure_says_what_happened(outcomes: Outcomes, name: str) -> None:
    """A failed task's exception is of its kind of failure, and its text tells the whole story."""
    kind, said = SAID[name]
    for outcome in outcomes[name]:
        assert outcome["error"] == kind
        for words in said:
            assert words in outcome["text"]
