"""What tasks of a release leave in Airflow's database is read, and gone on with, by every later one.

The rows in ``golden/`` were written by real runs (``tests/integration/write_golden.py``) and are never changed: a row
that no longer passes here would be a task that fails in the middle of an upgrade.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from airflow_accel_provider.core.decisions import Finish
from airflow_accel_provider.core.fallback import decide
from airflow_accel_provider.core.jobs import Job, JobState, JobType, Snapshot
from airflow_accel_provider.core.notes import note_of, recall
from airflow_accel_provider.core.policy import Policy
from airflow_accel_provider.core.record import Attempt, Outcome, Record, UnknownVersionError, resume
from airflow_accel_provider.core.waiting.questions import question_from_json, question_to_json
from airflow_accel_provider.operators.beam import BeamTpuPipelineOperator
from airflow_accel_provider.sensors.quota import AcceleratorQuotaSensor
from airflow_accel_provider.triggers import job as job_trigger
from airflow_accel_provider.triggers import sensor as sensor_trigger
from tests.core.drawn_records import MOMENT
from tests.integration.batches import etl
from tests.integration.pipelines import BUCKET, score
from tests.integration.task_run import TaskRun

ROWS = {
    f"{path.parent.name}/{path.stem}": json.loads(path.read_text(encoding="utf-8"))
    for path in sorted((Path(__file__).parent / "golden").glob("*/*.json"))
}
JOBS = [name for name in ROWS if "sensor" not in name]
SENSORS = [name for name in ROWS if "sensor" in name]
L4, T4 = "nvidia-l4 on g2-standard-8 in us-central1", "nvidia-tesla-t4 on n1-standard-8 in us-central1"
# What the tasks that left the rows were told, as far as it matters to a resumed one.
TASKS: dict[str, Any] = {
    "beam_gpu": partial(score, fallback=[T4]),
    "beam_tpu": partial(
        score,
        kind=BeamTpuPipelineOperator,
        placement="tpu-v6e-slice:2x2 in us-east5-b",
        number_of_worker_harness_threads=5,
    ),
    "flex": partial(score, py_file=None, flex_template=f"gs://{BUCKET}/templates/echo.json"),
    "streaming": partial(score, wait_until="proven", drain_pipeline=True),
    "spark": partial(etl, fallback=["a100-40 in us-central1"]),
}


def holds(now: Any, then: Any) -> bool:
    """Tell whether all that was said then is said now; later releases may say more."""
    if isinstance(then, dict):
        return isinstance(now, dict) and all(key in now and holds(now[key], value) for key, value in then.items())
    if isinstance(then, list):
        return isinstance(now, list) and len(now) == len(then) and all(map(holds, now, then))
    return bool(now == then)


@pytest.fixture(autouse=True)
def _connection(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a connection that leads to nobody: what is read here needs no answer."""
    extra = {"is_anonymous": True, "project": "acme-ml-prod", "endpoint_url": "http://localhost:9"}
    value = json.dumps({"conn_type": "google_cloud_platform", "extra": extra})
    monkeypatch.setenv("AIRFLOW_CONN_GOOGLE_CLOUD_DEFAULT", value)


def test_every_operator_and_sensor_has_left_a_row() -> None:
    """There are rows of all operators and sensors, and of each way in which records differ."""
    assert {name.partition("/")[2] for name in JOBS} >= {*TASKS}
    kinds = {"sensor_quota", "sensor_reservation", "sensor_proof", "sensor_utilization"}
    assert {name.partition("/")[2] for name in SENSORS} >= kinds
    outcomes = {attempt["outcome"] for name in JOBS for attempt in ROWS[name]["record"]["attempts"]}
    assert outcomes >= {"done", "running", "cancelled"}
    noted = {ROWS[name]["note"]["attempt"]["outcome"] for name in JOBS if "note" in ROWS[name]}
    assert noted == {"cancelling", "running"}


@pytest.mark.parametrize("name", JOBS)
def test_a_stored_trigger_goes_on(name: str) -> None:
    """A trigger's row makes a trigger that is stored as it was, and its record goes on to the end that is seen."""
    row = ROWS[name]["trigger"]
    _, stored = job_trigger.AcceleratorJobTrigger(**row).serialize()
    assert holds(stored, row)
    policy, record = Policy.from_json(row["policy"]), Record.from_json(row["record"])
    assert holds(policy.to_json(), row["policy"])
    assert holds(record.to_json(), row["record"])
    waited_for = record.open
    assert waited_for
    ended = Job(
        id=str(waited_for.job_id),
        name=waited_for.job_name,
        region=waited_for.placement.region,
        state=JobState.DONE,
        type=JobType.BATCH,
    )
    decision = decide(record, Snapshot(job=ended, workers=()), replace(policy, on_unproven="warn"), MOMENT)
    assert isinstance(decision, Finish)
    assert decision.record.attempts[-1].outcome is Outcome.DONE


@pytest.mark.parametrize("name", JOBS)
def test_a_task_resumes_with_the_event(name: str) -> None:
    """A worker that gets a trigger's event ends its task with the value that the releasing worker gave."""
    run = TaskRun(make=TASKS[name.partition("/")[2]])
    value = run.operator().resume(run.context, ROWS[name]["event"])  # type: ignore[arg-type]
    assert holds(value, ROWS[name]["xcom"])
    assert holds(run.record, ROWS[name]["record"])


@pytest.mark.parametrize("name", JOBS)
def test_a_kept_record_is_taken_over(name: str) -> None:
    """A retry reads what a task kept: a reached end stays reached, and a clear begins the next life of its owner."""
    record = Record.from_json(ROWS[name]["record"])
    said = {"now": MOMENT, "project": record.project, "prefix": record.prefix}
    again, stale = resume(record, max_tries=record.max_tries, **said)  # type: ignore[arg-type]
    assert (again, tuple(stale)) == (record, ())
    fresh, stale = resume(record, max_tries=record.max_tries + 1, **said)  # type: ignore[arg-type]
    assert (fresh.owner, fresh.life, fresh.service) == (record.owner, record.life + 1, record.service)
    assert bool(stale) is (record.attempts[-1].outcome is Outcome.RUNNING)


@pytest.mark.parametrize("name", [name for name in JOBS if "note" in ROWS[name]])
def test_a_note_is_understood(name: str) -> None:
    """What a trigger noted tells the next one of its job's end, or that it goes on; another version tells nothing."""
    note, attempts = ROWS[name]["note"], Record.from_json(ROWS[name]["record"]).attempts
    noted = Attempt.from_json(note["attempt"])
    attempt = next(each for each in attempts if each.job_id == noted.job_id)
    waited_for = replace(attempt, outcome=Outcome.SUBMITTED, failure=None, cancel_requested_at=None)
    assert recall(waited_for, note).outcome in {Outcome.CANCELLING, Outcome.RUNNING}
    assert holds(note_of(recall(waited_for, note))["attempt"]["outcome"], note["attempt"]["outcome"])
    with pytest.raises(UnknownVersionError, match="Nothing was cancelled"):
        recall(waited_for, {**note, "v": 2})


@pytest.mark.parametrize("name", SENSORS)
def test_a_stored_sensor_goes_on(name: str) -> None:
    """A sensor's row makes a trigger that is stored as it was, with the question it had, and its event is read."""
    row, event = ROWS[name]["trigger"], ROWS[name]["event"]
    _, stored = sensor_trigger.AcceleratorSensorTrigger(**row).serialize()
    assert holds(stored, row)
    assert holds(json.loads(json.dumps(question_to_json(question_from_json(row["question"])))), row["question"])
    sensor = AcceleratorQuotaSensor(task_id="wait", placements=[L4])
    value = sensor.resume({}, event)  # type: ignore[arg-type]
    assert holds(value, ROWS[name]["xcom"])


@pytest.mark.parametrize("name", ROWS)
@pytest.mark.parametrize("version", [0, 2, None, "1"])
def test_an_unknown_version_is_refused(name: str, version: Any) -> None:
    """Triggers, events and records of a version that is not known fail saying so, and nothing is cancelled."""
    row = ROWS[name]
    trigger, module = (
        (sensor_trigger.AcceleratorSensorTrigger, sensor_trigger)
        if name in SENSORS
        else (job_trigger.AcceleratorJobTrigger, job_trigger)
    )
    # Of such a trigger nothing is read, be it of another form altogether: it fires for the worker to fail.
    said = {"question", "policy", "record"} & row["trigger"].keys()
    strange = {**row["trigger"], "v": version, **{key: {"v": version} for key in said}}
    payload = asyncio.run(trigger(**strange)._payload())
    refused = partial(pytest.raises, UnknownVersionError, match="Nothing was cancelled")
    for event in (payload, {**row["event"], "v": version}, {"v": version}):
        with refused():
            module.read_event(event)
    if "record" in row:
        for told in ({**row["record"], "v": version}, {"v": version}):
            with refused():
                Record.from_json(told)
        with refused():
            job_trigger.read_event({**row["event"], "record": {"v": version}})
