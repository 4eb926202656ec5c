"""Streaming pipelines: proven and left running, ended when the task is cleared or killed, never run twice."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from airflow.sdk.exceptions import TaskDeferred

from airflow_accel_provider.exceptions import AcceleratorConfigurationError
from airflow_accel_provider.hooks.dataflow import DataflowHook
from airflow_accel_provider.hooks.workers import WorkersHook
from demo.waiting import wait_for
from tests.integration.killing import killed_at_the_end
from tests.integration.local_google import CREATE
from tests.integration.pipelines import run_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.integration.local_google import LocalGoogle
    from tests.integration.task_run import TaskRun

MODES = pytest.mark.parametrize("deferrable", [True, False], ids=["deferrable", "synchronous"])
ENDS = pytest.mark.parametrize(("drain", "end"), [(False, "CANCELLED"), (True, "DRAINED")], ids=["cancel", "drain"])
# The pipeline itself makes the job a streaming one, so that nobody can tell before it says so.
ENDLESS = {"endless": True}


@pytest.fixture(autouse=True)
def _nothing_left(google: LocalGoogle) -> Iterator[None]:
    """End what a test left running."""
    yield
    hook = DataflowHook(google.session())
    for job in hook.list_active("us-central1"):
        hook.cancel(job.id, "us-central1")


def endless(google: LocalGoogle, **parameters: Any) -> TaskRun:
    """Return a task instance whose pipeline has no end."""
    return run_of(google, **{"pipeline_options": ENDLESS, "wait_until": "proven", **parameters})


def state(google: LocalGoogle, job_id: str) -> str:
    """Return the state that a job is in."""
    shown: str = google.job(job_id, "us-central1")["currentState"]
    return shown.removeprefix("JOB_STATE_")


@MODES
def test_proven_job_is_left_running(google: LocalGoogle, *, deferrable: bool) -> None:
    """The task succeeds once the accelerator is seen; its job goes on running, and the value says so."""
    run = endless(google, deferrable=deferrable)
    value = run.run()
    assert (value["state"], value["proof"]["status"], value["proof"]["accelerator"]) == ("running", "seen", "nvidia-l4")
    assert [(row["outcome"], row["ended_at"], row["failure"]) for row in value["attempts"]] == [("running", None, None)]
    assert value["job_id"] == run.xcom["dataflow_job_id"]
    shown = google.job(value["job_id"], "us-central1")
    assert (shown["currentState"], shown["type"]) == ("JOB_STATE_RUNNING", "JOB_TYPE_STREAMING")


@MODES
def test_batch_job_is_left_running_too(google: LocalGoogle, *, deferrable: bool) -> None:
    """A batch pipeline may be waited for until it is proven, and no longer."""
    value = run_of(google, wait_until="proven", deferrable=deferrable, pipeline_options={"seconds": 120}).run()
    assert value["state"] == "running"
    assert state(google, value["job_id"]) == "RUNNING"


@MODES
def test_waiting_for_the_end_is_one_error(google: LocalGoogle, *, deferrable: bool) -> None:
    """A streaming job that is waited for until done is cancelled, and the error says what to write."""
    run = endless(google, wait_until="done", deferrable=deferrable)
    with pytest.raises(AcceleratorConfigurationError, match=r'configuration: .*give wait_until="proven"'):
        run.run()
    assert google.states(run.xcom["dataflow_job_id"])[-1] == "CANCELLED"


@pytest.mark.parametrize("ended", [True, False], ids=["after the report", "before the report"])
def test_next_try_starts_no_second_job(google: LocalGoogle, *, ended: bool) -> None:
    """A try that begins after the proof, since the worker died around its report, takes the job that runs."""
    since = google.mark()
    run = endless(google)
    value = run.run()
    run.set("accel_job", {**run.record, "ended": ended})
    assert run.run() == value
    assert len(google.calls(CREATE, since=since)) == 1
    assert state(google, value["job_id"]) == "RUNNING"


@ENDS
@MODES
def test_cleared_task_ends_the_job_it_left(google: LocalGoogle, *, deferrable: bool, drain: bool, end: str) -> None:
    """A clear of a task that succeeded ends the job it left running, as asked, and only then starts another."""
    since = google.mark()
    run = endless(google, deferrable=deferrable, drain_pipeline=drain)
    old = run.run()["job_id"]
    run.max_tries += 1
    value = run.run()
    assert (value["state"], google.states(old)[-1]) == ("running", end)
    assert value["job_id"] != old
    states = google.events("dataflow.job.state", since=since)
    over = next(each["seq"] for each in states if (each["job_id"], each["state"]) == (old, f"JOB_STATE_{end}"))
    _, second = google.created(since=since)
    assert (second["job_id"], second["seq"] > over) == (value["job_id"], True)
    assert google.job(value["job_id"], "us-central1")["labels"]["accel-life"] == "2"


VMS = "compute.instances.aggregatedList"
WISHES = {False: "cancel", True: "drain if it can, else to cancel"}


@ENDS
def test_killed_on_a_worker(google: LocalGoogle, *, drain: bool, end: str) -> None:
    """A task that is killed while its job waits to be proven ends that job as asked, and leaves none."""
    # The first look sees no VMs and the second comes late, so that the job has workers that the task has not seen.
    run = endless(google, deferrable=False, drain_pipeline=drain, poll_interval=300)
    since = google.mark()
    google.fail(VMS, times=1000, status=403)
    with killed_at_the_end(run) as said:
        job_id = wait_for("the job's id", lambda: run.xcom.get("dataflow_job_id"), seconds=120)
        wait_for("the first look", lambda: google.calls(VMS, since=since), seconds=60)
        google.heal()
        vms = WorkersHook(google.session())
        wait_for("a worker", lambda: vms.workers_of(job_id, region="us-central1"), seconds=120)
    assert said == [f"score was killed; job {job_id} was asked to {WISHES[drain]}"]
    wait_for(end, lambda: google.states(job_id)[-1] == end, seconds=60)


def test_killed_in_the_triggerer(google: LocalGoogle) -> None:
    """A deferred task hands its wish to drain to the triggerer."""
    run = endless(google, drain_pipeline=True, deferrable=True)
    with pytest.raises(TaskDeferred) as deferred:
        run.execute()
    _, arguments = deferred.value.trigger.serialize()
    assert (arguments["policy"]["wait_until"], arguments["policy"]["drain"]) == ("proven", True)
