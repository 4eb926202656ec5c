"""Sensors under ``dag.test()``: what they wait for, what ends the wait, and that both modes tell the same story."""

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
from tests.integration.dags.sensor_modes import L4, MODES, REGION, STORIES, T4, TPU_NIGHT, job_name
from tests.integration.test_operator_modes import lasting

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.integration.local_google import LocalGoogle

DAGS = Path(__file__).parent / "dags"
Outcomes = dict[str, tuple[dict[str, Any], dict[str, Any]]]

TPU_PLACE = "tpu-v6e-slice:2x2 on ct6e-standard-4t in us-east5-b"

# Figures of a job that runs grow from look to look, and which other jobs are active changes.
_GROWING = {"mean", "highest", "points", "newest_at"}
_PASSING = re.compile(r"\d+ figures?|; (no job is active there|did you mean|active there).*")


@pytest.fixture(scope="module")
def outcomes(started_google: LocalGoogle, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Outcomes]:
    """Run every story in both modes, in one process."""
    directory = tmp_path_factory.mktemp("sensors")
    started_google.bucket("acme-ml-modes")
    processes = Processes(directory)
    try:
        variables = {**started_google.environment, "OUTCOMES": str(directory)}
        airflow = Airflow(processes, directory / "airflow", dags=DAGS, variables=variables)
        airflow.prepare()
        command = [sys.executable, str(DAGS / "sensor_modes.py"), started_google.emulator.url, *STORIES]
        done = subprocess.run(
            command, env=airflow.environment, capture_output=True, text=True, check=False, timeout=900
        )
        assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
        yield {name: _both(directory, name) for name in STORIES}
    finally:
        processes.stop()
        started_google.emulator.set_world("plenty")


def _both(directory: Path, name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    deferrable, synchronous = (json.loads((directory / f"{name}-{mode}.json").read_text()) for mode in MODES)
    return deferrable, synchronous


def lasting_of(outcome: dict[str, Any]) -> Any:
    """Return an outcome without what differs between any two runs."""
    value = {name: item for name, item in outcome.get("value", {}).items() if name not in _GROWING}
    without = {name: item for name, item in outcome.items() if name != "value"}
    return lasting({**without, "value": {**value, "state": None}})


@pytest.mark.parametrize("name", STORIES)
def test_modes_agree(outcomes: Outcomes, name: str) -> None:
    """Both modes return the same value, or raise the same exception with the same text, but for ids and times."""
    deferrable, synchronous = outcomes[name]
    assert _PASSING.sub("", str(lasting_of(deferrable))) == _PASSING.sub("", str(lasting_of(synchronous)))


def test_quota(outcomes: Outcomes) -> None:
    """The first place with room is returned with its figures, whether it had room at once or came to have it."""
    for name, place in (("quota_elsewhere", T4), ("quota_later", L4), ("quota_of_tpus", TPU_PLACE)):
        for outcome in outcomes[name]:
            value = outcome["value"]
            assert (value["v"], value["placement"], value["known"]) == (1, place, True)
            first = value["quotas"][0]
            assert 0 < first["needed"] <= first["left"] <= first["limit"]
            assert first["is_estimate"] is (name == "quota_of_tpus")


def test_proof(outcomes: Outcomes) -> None:
    """The proof is returned of a job that is given by its id, and of one that only comes to be, by its name."""
    for name in ("proof_by_id", "proof_by_name"):
        for outcome, mode in zip(outcomes[name], MODES, strict=True):
            value = outcome["value"]
            assert (value["job_name"], value["region"]) == (job_name(name, mode), REGION)
            assert value["job_id"] in value["url"]
            proof = value["proof"]
            assert (proof["status"], proof["accelerator"], proof["count"]) == ("seen", "nvidia-l4", 1)


def test_reservation(outcomes: Outcomes) -> None:
    """What is free in a reservation is returned."""
    for outcome in outcomes["reservation_free"]:
        value = outcome["value"]
        assert (value["reservation"], value["free"], value["count"]) == (TPU_NIGHT, 2, 2)


def test_utilization(outcomes: Outcomes) -> None:
    """The mean use of the GPUs is returned once figures are there."""
    for outcome in outcomes["used"]:
        value = outcome["value"]
        assert value["mean"] >= value["threshold"] == 20
        assert value["points"] > 0


SAID = {
    "quota_not_in_time": (
        "AirflowSensorTimeout",
        f"wait timed out after 2 s: no place has room: {L4}: needs at least 1 of NVIDIA_L4_GPUS; 0 of 0 left; {T4}: ",
    ),
    "proof_of_nothing": ("AcceleratorMissingError", "ended (failed) and a GPU or TPU was never seen on a worker."),
    "proof_of_no_job": (
        "AcceleratorConfigurationError",
        f"wait failed: {REGION} has no job 2026-03-02_01_02_03-4 in project acme-ml-prod; ",
    ),
    "proof_of_no_name": ("AcceleratorConfigurationError", f"wait failed: {REGION} has no job named nightly in project"),
    "reservation_full": ("AirflowSensorTimeout", "tpu-night holds 2 in all, and 3 must be free."),
    "reservation_unknown": (
        "AcceleratorConfigurationError",
        "there is no reservation zones/us-east5-b/reservations/",
    ),
    "idle": ("AcceleratorPipelineError", "and its GPUs were used 0 % on average and 0 % at most ("),
    "used_by_nobody": ("AcceleratorMissingError", "ended (failed) and nothing was recorded of any GPU."),
}


@pytest.mark.parametrize("name", SAID)
def test_failure_says_why(outcomes: Outcomes, name: str) -> None:
    """A wait that fails does so with one sentence, and with the exception of its kind."""
    kind, said = SAID[name]
    for outcome in outcomes[name]:
        assert outcome["error"] == kind
        assert said in outcome["text"]


def test_soft_fail_skips(outcomes: Outcomes) -> None:
    """A failure, a timeout included, is a skip where the user asks for that."""
    for outcome in outcomes["quota_not_in_time_skips"]:
        assert outcome["state"] == "skipped"
