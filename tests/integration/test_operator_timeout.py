"""A try has its time, however often it is deferred; when that is over, or a trigger is lost, no job is forgotten."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from airflow.sdk.exceptions import TaskDeferred

from airflow_accel_provider.exceptions import AcceleratorTimeoutError
from airflow_accel_provider.hooks.dataflow import DataflowHook
from tests.integration.endless import LAUNCH, REGION, endless_run

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.integration.local_google import LocalGoogle
    from tests.integration.task_run import TaskRun

MODES = pytest.mark.parametrize("deferrable", [True, False], ids=["deferrable", "synchronous"])
INSTANCES = "compute.instances.aggregatedList"
LIMIT = timedelta(seconds=4)


@pytest.fixture(autouse=True)
def _never_proven(google: LocalGoogle) -> Iterator[None]:
    """Let nobody see workers, so that a job is waited for until the test heals that; end what a test left running."""
    google.fail(INSTANCES, times=10_000, status=403)
    yield
    google.heal()
    hook = DataflowHook(google.session())
    for job in hook.list_active(REGION):
        hook.cancel(job.id, REGION)


def deferred(run: TaskRun) -> TaskDeferred:
    """Execute until the task waits."""
    with pytest.raises(TaskDeferred) as raised:
        run.execute()
    return raised.value


def woken_by_a_crash(run: TaskRun) -> None:
    with pytest.raises(TaskDeferred):
        run.woken("__fail__", error="Trigger failure", traceback=["KeyError: 'zone'"])


@MODES
def test_the_job_is_cancelled_and_the_task_fails(google: LocalGoogle, *, deferrable: bool) -> None:
    """After execution_timeout the job is cancelled and seen to end, the task fails saying why, a retry begins anew."""
    run = endless_run(google, deferrable=deferrable, execution_timeout=LIMIT)
    with pytest.raises(AcceleratorTimeoutError) as failed:
        run.run()
    old = run.xcom["dataflow_job_id"]
    assert str(failed.value) == (
        f"score failed on nvidia-l4 on g2-standard-8 in us-central1 (job {old}), timeout: "
        "execution_timeout (4 s) has passed."
    )
    assert google.states(old)[-1] == "CANCELLED"
    google.heal()
    run.make = endless_run(google, deferrable=deferrable, execution_timeout=timedelta(minutes=5)).make
    value = run.run()
    assert (value["state"], value["job_id"] != old) == ("running", True)


def test_time_counts_from_the_start_of_the_try(google: LocalGoogle) -> None:
    """What the worker used of a try's time is gone for the trigger, which keeps the rest without a worker."""
    run = endless_run(google, execution_timeout=timedelta(minutes=10), cancel_timeout=60)
    run.start_date = datetime.now(UTC) - timedelta(minutes=9)
    with pytest.raises(TaskDeferred) as raised:
        run.operator().execute(run.context)  # type: ignore[arg-type]
    _, arguments = raised.value.trigger.serialize()
    assert arguments["policy"]["deadline"] == {
        "at": (run.start_date + timedelta(minutes=10)).isoformat(),
        "limit": 600.0,
    }
    # Airflow's own limit comes after the cancel, for when no triggerer runs.
    assert raised.value.timeout is not None
    assert timedelta(minutes=3) < raised.value.timeout <= timedelta(minutes=4)


def test_without_a_limit_there_is_none(google: LocalGoogle) -> None:
    """A task without execution_timeout waits as long as its job lives."""
    raised = deferred(endless_run(google))
    assert raised.timeout is None
    assert "deadline" not in raised.trigger.serialize()[1]["policy"]


def test_no_triggerer_by_the_deadline(google: LocalGoogle) -> None:
    """When no triggerer was heard of in time, the worker that Airflow wakes cancels the job and sees it end."""
    run = endless_run(google, execution_timeout=timedelta(hours=1))
    deferred(run)
    run.start_date -= timedelta(hours=2)
    with pytest.raises(AcceleratorTimeoutError, match=r"execution_timeout \(3600 s\) has passed"):
        run.woken("__fail__", error="Trigger timeout")
    assert google.states(run.xcom["dataflow_job_id"])[-1] == "CANCELLED"


def test_a_job_that_went_on_is_found_proven(google: LocalGoogle) -> None:
    """When no triggerer was heard of, a job that has what it needs is the task's result even so."""
    run = endless_run(google, execution_timeout=timedelta(hours=1))
    deferred(run)
    google.heal()
    value = run.woken("__fail__", error="Trigger timeout")
    assert (value["state"], value["job_id"]) == ("running", run.xcom["dataflow_job_id"])


def test_a_crashed_trigger_loses_no_job(google: LocalGoogle) -> None:
    """When a trigger crashes the same job is waited for again, at last on a worker if triggers go on crashing."""
    since = google.mark()
    run = endless_run(google)
    deferred(run)
    woken_by_a_crash(run)
    woken_by_a_crash(run)
    assert run.record["crashes"] == 2
    google.heal()
    value = run.woken("__fail__", error="Trigger failure", traceback=["KeyError: 'zone'"])
    assert (value["state"], value["job_id"]) == ("running", run.xcom["dataflow_job_id"])
    assert len(google.created(since=since)) == 1


def test_a_trigger_that_nobody_ran_is_cleared(google: LocalGoogle) -> None:
    """A task that is cleared while no triggerer is there to hear the kill ends its old job before it starts anew."""
    since = google.mark()
    run = endless_run(google)
    deferred(run)
    old = run.xcom["dataflow_job_id"]
    google.heal()
    run.max_tries += 1
    value = run.run()
    first, second = google.created(since=since)
    ends = [each for each in google.events("dataflow.job.state", since=since) if each["job_id"] == old]
    assert (first["job_id"], second["job_id"]) == (old, value["job_id"])
    assert (ends[-1]["state"], ends[-1]["seq"] < second["seq"]) == ("JOB_STATE_CANCELLED", True)


@MODES
def test_time_is_over_during_the_launch(google: LocalGoogle, *, deferrable: bool) -> None:
    """A launch that the deadline interrupts is written down: the next try takes the job that came of it."""
    google.fail(LAUNCH, delay=6)
    since = google.mark()
    run = endless_run(google, deferrable=deferrable, execution_timeout=LIMIT)
    with pytest.raises(AcceleratorTimeoutError, match=r"timeout: execution_timeout \(4 s\) has passed"):
        run.run()
    google.heal()
    run.make = endless_run(google, deferrable=deferrable).make
    assert run.run()["state"] == "running"
    assert len(google.created(since=since)) == 1
