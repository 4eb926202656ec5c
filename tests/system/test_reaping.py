"""``airflow accel reap`` beside a real Airflow: a deferred task's job is kept, what nobody owns is cancelled."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from airflow.sdk import Connection

from airflow_accel_provider.core.identity import job_labels, job_name
from airflow_accel_provider.hooks.session import GoogleSession
from demo.stack import USER
from demo.waiting import wait_for
from tests.system.driver import DAG_ID
from tests.system.test_worlds import MODEL, SlowToLoad

if TYPE_CHECKING:
    from tests.system.driver import Driver, Run

JOBS = "projects/acme-ml-prod/locations/us-central1/jobs"
COMMAND = str(Path(sys.executable).with_name("airflow"))
OTHER = "e" * 32
"""An owner that no record here has."""


@pytest.mark.parametrize("google_and_airflow", ["deferrable"], indirect=True)
def test_only_what_nobody_owns_is_cancelled(google_and_airflow: Driver) -> None:
    """The deferred task's job is kept, one of an earlier life is cancelled, and so, when told, is a deleted run's."""
    driver = google_and_airflow
    bucket = driver.bucket("reaping")
    bucket.blob(MODEL).upload_from_string(pickle.dumps(SlowToLoad()))
    run = driver.start(bucket, world="plenty")
    wait_for("the task to wait for its job", lambda: run.tasks["score"] == "deferred", seconds=120)
    kept = run.jobs[0].id
    owner = driver.home.airflow.api.stored(DAG_ID, run.id, "score")["accel_job"]["owner"]
    earlier = again(driver, kept, owner=owner, run_id=run.id)
    deleted = again(driver, kept, owner=OTHER, run_id=deleted_run(driver))
    code, found = reap(driver)
    verdicts = {id_: found[id_]["verdict"] for id_ in (kept, earlier, deleted)}
    assert (code, verdicts) == (1, {kept: "owned", earlier: "orphan", deleted: "unclaimed"})
    assert endings(run) == {kept: "running", earlier: "running", deleted: "running"}
    reap(driver, "--yes")
    wait_for("the orphan to be cancelled", lambda: endings(run)[earlier] == "cancelled", seconds=60)
    reap(driver, "--yes", "--owner", OTHER)
    wait_for("the other to be cancelled", lambda: endings(run)[deleted] == "cancelled", seconds=60)
    assert endings(run)[kept] == "running"
    assert run.tasks["score"] == "deferred"
    driver.home.airflow.api.set_task_state(DAG_ID, run.id, "score", "failed")
    wait_for("the job to be cancelled", lambda: endings(run)[kept] == "cancelled", seconds=60)
    code, found = reap(driver)
    assert (code, {kept, earlier, deleted} & set(found)) == (0, set())


def deleted_run(driver: Driver) -> str:
    """Return the id of a run that was there, and is no more."""
    api = driver.home.airflow.api
    run_id = api.trigger(DAG_ID, logical_date=None, conf={})
    wait_for("the run to fail", lambda: api.run_state(DAG_ID, run_id) == "failed", seconds=120)
    api.call("DELETE", f"/dags/{DAG_ID}/dagRuns/{run_id}")
    return run_id


def again(driver: Driver, job_id: str, *, owner: str, run_id: str) -> str:
    """Submit a job once more, with the labels of a life before the first; return the id of the new one."""
    shown = google(driver).request("dataflow", "GET", f"{JOBS}/{job_id}", params={"view": "JOB_VIEW_ALL"})
    ids = {"dag_id": DAG_ID, "task_id": "score", "run_id": run_id}
    body = {
        "name": job_name("score", owner=owner, life=0, attempt=1),
        "type": shown["type"],
        "environment": shown["environment"],
        "labels": job_labels(owner=owner, life=0, attempt=1, **ids),
    }
    made = google(driver).request("dataflow", "POST", JOBS, body=body)
    return str(made["id"])


def google(driver: Driver) -> GoogleSession:
    said = driver.home.airflow.environment["AIRFLOW_CONN_GOOGLE_CLOUD_DEFAULT"]
    return GoogleSession.from_connection(Connection.from_json(said, "google_cloud_default"))


def reap(driver: Driver, *arguments: str) -> tuple[int, dict[str, Any]]:
    """Run the command as a person on Airflow's machine does; return its exit code, and what it said by job."""
    airflow = driver.home.airflow
    environment = {**airflow.environment, "AIRFLOW_API_USER": USER, "AIRFLOW_API_PASSWORD": airflow.password}
    command = [COMMAND, "accel", "reap", "--json", "--service", "dataflow", *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode in {0, 1}, done.stderr
    return done.returncode, {row["job_id"]: row for row in rows}


def endings(run: Run) -> dict[str, str]:
    return {job.id: job.ending for job in run.jobs}
