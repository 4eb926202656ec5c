"""One wish, one job: a try that begins again finds what runs, and a new wish ends the old job first."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from airflow.sdk.exceptions import TaskDeferred

from airflow_accel_provider.exceptions import (
    AcceleratorConfigurationError,
    AcceleratorStockoutError,
)
from demo.waiting import wait_for
from tests.integration.killing import killed_at_the_end
from tests.integration.local_google import CREATE
from tests.integration.pipelines import ECHO, run_of

if TYPE_CHECKING:
    from tests.integration.local_google import LocalGoogle
    from tests.integration.task_run import TaskRun


# A job of this many seconds is still alive when the next step looks for it.
LONG = 120
SECONDS = {"seconds": "{{ params.seconds }}"}


def begun(run: TaskRun) -> str:
    """Execute until the task waits, and return the job's id."""
    with pytest.raises(TaskDeferred):
        run.execute()
    job_id: str = run.xcom["dataflow_job_id"]
    return job_id


def test_next_try_attaches_to_the_job(google: LocalGoogle) -> None:
    """A try that begins with the record of a running job waits for that job and creates no other."""
    since = google.mark()
    run = run_of(google)
    job_id = begun(run)
    assert begun(run) == job_id
    value = run.run()
    assert value["job_id"] == job_id
    assert len(value["attempts"]) == 1
    assert len(google.calls(CREATE, since=since)) == 1


def test_next_try_finds_a_job_whose_id_was_lost(google: LocalGoogle) -> None:
    """When the worker died before it wrote down the job's id, the next try finds the job by its name."""
    since = google.mark()
    run = run_of(google)
    job_id = begun(run)
    record = run.record
    (attempt,) = record["attempts"]
    intent = {key: attempt[key] for key in ("n", "candidate", "round", "placement", "job_name", "intent_at")}
    run.set("accel_job", {**record, "attempts": [{**intent, "outcome": "intent"}]})
    assert begun(run) == job_id
    assert run.run()["job_id"] == job_id
    assert len(google.calls(CREATE, since=since)) == 1


def test_next_try_needs_no_file(google: LocalGoogle, tmp_path: Path) -> None:
    """A try that finds its job running does not need the pipeline's file, which another worker may lack."""
    file = tmp_path / "score.py"
    file.write_bytes(Path(ECHO).read_bytes())
    run = run_of(google, py_file=str(file))
    job_id = begun(run)
    file.unlink()
    assert run.run()["job_id"] == job_id


def test_finished_job_is_not_run_again(google: LocalGoogle) -> None:
    """When the worker died after the job's end, the next try takes the result of that job."""
    since = google.mark()
    run = run_of(google)
    begun(run)
    waiting = dict(run.stored)
    first = run.run()
    run.stored = waiting
    assert run.run()["job_id"] == first["job_id"]
    assert len(google.calls(CREATE, since=since)) == 1


@pytest.mark.parametrize("deferrable", [True, False], ids=["deferrable", "synchronous"])
def test_cleared_task_ends_its_old_job_first(google: LocalGoogle, *, deferrable: bool) -> None:
    """A cleared task cancels the job of its earlier life, sees it end, and only then starts a new one."""
    since = google.mark()
    run = run_of(google, deferrable=True, pipeline_options=SECONDS, run={"params": {"seconds": LONG}})
    old = begun(run)
    run.max_tries, run.params = run.max_tries + 1, {"seconds": 0}
    run.make = run_of(google, deferrable=deferrable, pipeline_options=SECONDS).make
    value = run.run()
    assert google.states(old)[-1] == "CANCELLED"
    assert value["state"] == "done"
    assert value["job_id"] != old
    assert [attempt["n"] for attempt in value["attempts"]] == [1]
    ended = next(
        event["seq"]
        for event in google.events("dataflow.job.state", since=since)
        if (event["job_id"], event["state"]) == (old, "JOB_STATE_CANCELLED")
    )
    _, second = google.created(since=since)
    assert second["job_id"] == value["job_id"]
    assert second["seq"] > ended
    labels = google.job(value["job_id"], "us-central1")["labels"]
    assert (labels["accel-life"], labels["accel-attempt"]) == ("2", "1")


def test_cleared_task_that_finished_runs_again(google: LocalGoogle) -> None:
    """A task that is cleared after its end runs a new job and leaves the old one as it is."""
    run = run_of(google)
    first = run.run()
    run.max_tries += 1
    second = run.run()
    assert second["job_id"] != first["job_id"]
    assert [google.states(each["job_id"])[-1] for each in (first, second)] == ["DONE", "DONE"]


def test_cleared_task_that_cannot_start_forgets_nothing(google: LocalGoogle) -> None:
    """When a cleared task fails before it ends its old job, the next try still ends that job."""
    run = run_of(google, pipeline_options={"seconds": LONG})
    old = begun(run)
    run.max_tries += 1
    make, run.make = run.make, run_of(google, py_file="/opt/pipelines/missing.py").make
    with pytest.raises(AcceleratorConfigurationError, match="There is no file"):
        run.execute()
    run.make = make
    begun(run)
    assert google.states(old)[-1] == "CANCELLED"
    google.cancel(google.job(run.xcom["dataflow_job_id"], "us-central1"))


def test_strangers_job_is_left_alone(google: LocalGoogle) -> None:
    """A job that has the name but not the owner's label is refused, not adopted and not cancelled."""
    run = run_of(google)
    old = begun(run)
    record = run.record
    (attempt,) = record["attempts"]
    intent = {key: attempt[key] for key in ("n", "candidate", "round", "placement", "job_name", "intent_at")}
    stranger = {**record, "owner": "0" * 32, "attempts": [{**intent, "outcome": "intent"}]}
    run.set("accel_job", stranger)
    with pytest.raises(AcceleratorConfigurationError, match=f"Job {old} .* belongs to somebody else"):
        run.execute()
    assert "CANCELLED" not in google.states(old)


def test_retry_after_a_failure_tries_all_places_again(google: LocalGoogle) -> None:
    """A try after a reported failure begins again with the first place, and its attempts go on counting."""
    google.emulator.set_world("nowhere")
    run = run_of(google)
    with pytest.raises(AcceleratorStockoutError):
        run.run()
    google.emulator.set_world("plenty")
    value = run.run()
    assert [(each["n"], each["outcome"]) for each in value["attempts"]] == [(1, "failed"), (2, "done")]
    assert len({each["job_name"] for each in value["attempts"]}) == 2


def test_killed_on_a_worker(google: LocalGoogle) -> None:
    """A task that is killed while it waits on a worker cancels its job, and its next try is a new wish."""
    run = run_of(google, deferrable=False, pipeline_options=SECONDS, run={"params": {"seconds": LONG}})
    with killed_at_the_end(run) as said:
        old = wait_for("the job's id", lambda: run.xcom.get("dataflow_job_id"), seconds=120)
    assert said == [f"score was killed; job {old} was asked to cancel"]
    run.params = {"seconds": 0}
    value = run.run()
    assert value["job_id"] != old
    assert google.states(old)[-1] == "CANCELLED"
    assert google.job(value["job_id"], "us-central1")["labels"]["accel-life"] == "2"
