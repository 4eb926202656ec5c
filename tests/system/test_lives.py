"""What becomes of a job when processes die, freeze and come back, on PostgreSQL with two triggerers.

The emulator's ledger is the judge.
"""

from __future__ import annotations

import signal
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from demo.home import running
from demo.jobs import overlap
from demo.processes import is_alive, send
from demo.waiting import wait_for
from tests.system.postgres import postgres
from tests.system.stage import BUCKET, FILES, SLOW, Run, Stage, hold, kill

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    import psutil

DAGS = Path(__file__).parent / "dags"
TRIGGERERS = {"triggerer", "triggerer-2"}
ON_KILL_TIMEOUT = 30
"""Airflow's default for ``[triggerer] on_kill_timeout``."""

LAUNCH = "dataflow.projects.locations.templates.launch"
UPDATE = "dataflow.projects.locations.jobs.update"
LIST = "dataflow.projects.locations.jobs.list"
CREATE = "dataproc.projects.locations.batches.create"
VARIABLES = {
    "AIRFLOW__ACCEL__POLL_INTERVAL": "1",
    "AIRFLOW__CORE__PARALLELISM": "4",
    "AIRFLOW__DAG_PROCESSOR__PARSING_PROCESSES": "1",
    # Google's durations are a fifteenth of its own here, and Airflow's are to be no longer.
    "AIRFLOW__SCHEDULER__SCHEDULER_IDLE_SLEEP_TIME": "0.3",
    "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT": "8",
    "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT_DETECTION_INTERVAL": "1",
    "AIRFLOW__SCHEDULER__TRIGGER_TIMEOUT_CHECK_INTERVAL": "1",
    "AIRFLOW__TRIGGERER__JOB_HEARTBEAT_SEC": "1",
    "AIRFLOW__TRIGGERER__TRIGGERER_HEALTH_CHECK_THRESHOLD": "8",
}
NAMES = (
    *("endless_deferred", "endless_waiting", "stuck_deferred", "stuck_waiting", "spark_deferred", "spark_waiting"),
    *("siblings", "searching", "limited", "mapped", "sensing"),
)


@pytest.fixture(scope="module")
def whole_stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """Run all of it, once for these tests."""
    directory = tmp_path_factory.mktemp("lives")
    with postgres() as database:
        variables = {**VARIABLES, "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": database}
        with running(directory, world="plenty", dags=DAGS, variables=variables, time_scale="15") as home:
            for name in NAMES:
                home.airflow.api.unpause(name)
            for name, content in FILES.items():
                home.emulator.bucket(BUCKET).blob(name).upload_from_string(content)
            yield Stage(home)


@pytest.fixture
def stage(whole_stage: Stage) -> Iterator[Stage]:
    """Leave both triggerers, and no fault, for the next test."""
    yield whole_stage
    whole_stage.home.emulator.clear_faults()
    for name in TRIGGERERS - whole_stage.triggerers:
        whole_stage.start_triggerer(name)


@pytest.fixture
def gate(tmp_path: Path) -> Path:
    """Return the file that a Spark batch waits for to be gone."""
    path = tmp_path / "gate"
    path.touch()
    return path


@pytest.fixture(scope="module")
def limited(whole_stage: Stage) -> Run:
    """Start the run that takes longest, for the tests in that world: it is looked at in the last of them."""
    return whole_stage.start("limited", world="image-missing")


@pytest.fixture(scope="module")
def proven(whole_stage: Stage) -> Run:
    """Return a run whose job is proven and goes on."""
    run = whole_stage.start("endless_deferred", world="plenty", run_id="made-again")
    run.reaches("success")
    return run


Faults = list[tuple[str, dict[str, Any]]]

# The worker gets no answer to its creation, and asks about the job, which takes long.
MADE: dict[str, Faults] = {
    "endless_deferred": [(LIST, {"delay": 0}), (LAUNCH, {"reset": "after"}), (LIST, {"delay": 30})],
    "spark_waiting": [(CREATE, {"reset": "after"}), (CREATE, {"delay": 30})],
}
# The creation is slow: its worker is long dead, and another one at work, when the job is made.
WANTED: dict[str, Faults] = {
    "endless_waiting": [(LAUNCH, {"delay": 10})],
    "spark_deferred": [(CREATE, {"delay": 10})],
}


def test_a_worker_killed_before_it_knows_its_job_leaves_one_job(stage: Stage) -> None:
    """A worker that is killed when its job is made, and not yet written down, is followed by one that finds the job."""
    for run in (runs := begin(stage, MADE)):
        wait_for_calls(stage, MADE[run.dag_id])
        assert len(run.jobs) == 1
        kill(run.processes()[:1])
    see_one_job_each(runs)


def test_a_worker_killed_before_its_job_is_made_leaves_one_job(stage: Stage) -> None:
    """A job that is made after its worker and the supervisor were killed is taken over, and not made twice."""
    for run in (runs := begin(stage, WANTED)):
        wait_for_calls(stage, WANTED[run.dag_id])
        assert run.jobs == []
        kill(run.processes())
    see_one_job_each(runs)


def test_a_worker_without_memory_loses_nothing(stage: Stage, gate: Path) -> None:
    """A worker that waits for its job and is killed by the kernel is followed by one that takes the job over."""
    run = stage.start("spark_waiting", world="plenty", gate=str(gate))
    run.has("running")
    kill(run.processes()[:1])
    run.reaches("running", try_number=2)
    gate.unlink()
    run.reaches("success")
    assert [job.asked_by for job in run.jobs] == [()]


def test_a_triggerer_that_was_paused_cancels_nothing(stage: Stage, gate: Path) -> None:
    """A triggerer whose triggers were moved to another one while it stood still cancels nothing when it goes on."""
    run = stage.start("spark_deferred", world="plenty", gate=str(gate))
    run.has("running")
    paused = stage.triggerer_of(run)
    stage.home.processes.signal(paused, signal.SIGSTOP)
    try:
        stage.triggerer_of(run, other_than=paused)
    finally:
        stage.home.processes.signal(paused, signal.SIGCONT)
    hold(lambda: not run.jobs[0].asked_by, seconds=5)
    gate.unlink()
    run.reaches("success")
    assert [job.asked_by for job in run.jobs] == [()]
    assert run.task()["try_number"] == 1


def test_a_killed_triggerer_loses_nothing(stage: Stage, gate: Path) -> None:
    """When a triggerer is killed, the other one goes on to wait for its jobs."""
    run = stage.start("spark_deferred", world="plenty", gate=str(gate))
    run.has("running")
    killed = stage.triggerer_of(run)
    stage.kill_triggerer(killed)
    stage.triggerer_of(run, other_than=killed)
    gate.unlink()
    run.reaches("success")
    assert [job.asked_by for job in run.jobs] == [()]
    assert run.task()["try_number"] == 1


def test_a_triggerer_killed_in_the_middle_of_a_cancel_moves_on(stage: Stage) -> None:
    """When a triggerer is killed while it cancels a job for want of stock, the task still goes to the next place."""
    emulator = stage.home.emulator
    emulator.add_fault(UPDATE, reset="after")
    run = stage.start("searching", world="l4-stockout")
    wait_for("the job to be cancelled", lambda: used(emulator.faults()), seconds=SLOW)
    stage.kill_triggerer(stage.triggerer_of(run))
    run.reaches("success")
    first, second = run.jobs
    assert first.state == "cancelled"
    assert second.state == "running"
    assert overlap(run.jobs) == []
    assert run.task()["try_number"] == 1


@pytest.mark.usefixtures("limited")
def test_ending_a_deferred_task_ends_its_job(stage: Stage) -> None:
    """Marking a deferred task failed or successful, or failing its run, cancels its job within ``on_kill_timeout``."""
    api = stage.home.airflow.api
    ends: dict[str, Callable[[Run], None]] = {
        "task-failed": lambda run: api.set_task_state(run.dag_id, run.id, "job", "failed"),
        "task-success": lambda run: api.set_task_state(run.dag_id, run.id, "job", "success"),
        "run-failed": lambda run: api.set_run_state(run.dag_id, run.id, "failed"),
    }
    runs = {name: stage.start("stuck_deferred", world="image-missing", run_id=name) for name in ends}
    for run in runs.values():
        run.has("running")
        looked_at(stage, run)
    for name, end in ends.items():
        end(runs[name])
    for run in runs.values():
        wait_for("the job to be ended", partial(is_asked_to_end, run), seconds=ON_KILL_TIMEOUT)
    for run in runs.values():
        run.has("cancelled")


def test_a_cleared_task_starts_anew_when_its_job_has_ended(stage: Stage) -> None:
    """Clearing a deferred task cancels its job, and starts another one only when that has ended."""
    run = stage.start("stuck_deferred", world="image-missing")
    run.has("running")
    looked_at(stage, run)
    stage.home.airflow.api.clear(run.dag_id, run.id, "job")
    run.has("cancelled", "running")
    assert overlap(run.jobs) == []
    end(stage, run)
    run.has("cancelled", "cancelled")


def test_a_running_task_that_is_cleared_starts_anew(stage: Stage, gate: Path) -> None:
    """Clearing tasks that wait on their workers cancels their jobs, and starts others only when those have ended."""
    runs = [
        stage.start("stuck_waiting", world="image-missing"),
        stage.start("spark_waiting", world="image-missing", gate=str(gate)),
    ]
    for run in runs:
        run.has("running")
    now = stage.home.emulator.ledger()["last"]
    wait_for("a look at the jobs", lambda: calls_since(stage, now), seconds=SLOW)
    for run in runs:
        stage.home.airflow.api.clear(run.dag_id, run.id, "job")
    for run in runs:
        run.has("cancelled", "running")
        assert overlap(run.jobs) == []
        stage.home.airflow.api.set_task_state(run.dag_id, run.id, "job", "failed")
    for run in runs:
        run.has("cancelled", "cancelled")


def test_clearing_another_task_changes_nothing(stage: Stage) -> None:
    """Clearing a sibling of a deferred task neither ends the task's job nor makes another."""
    run = stage.start("siblings", world="image-missing")
    run.has("running")
    looked_at(stage, run)
    run.reaches("success", "other")
    stage.home.airflow.api.clear(run.dag_id, run.id, "other")
    run.reaches("success", "other", try_number=2)
    hold(lambda: [(job.state, job.asked_by) for job in run.jobs] == [("running", ())], seconds=3)
    assert run.task()["state"] == "deferred"
    end(stage, run)
    run.has("cancelled")


@pytest.mark.usefixtures("stage")
def test_a_deferred_task_is_held_to_its_time(limited: Run) -> None:
    """``execution_timeout`` cancels the job of a deferred task; the retry has the whole time again."""
    run = limited
    run.reaches("failed", try_number=2)
    assert [job.state for job in run.jobs] == ["cancelled", "cancelled"]
    assert overlap(run.jobs) == []
    for n in (1, 2):
        assert "execution_timeout (8 s) has passed" in run.log(try_number=n)
        assert run.seconds_of(n) >= 8


def test_a_clear_that_no_triggerer_hears_of_ends_the_job(stage: Stage) -> None:
    """Where no triggerer is left when a task is cleared, the next life ends the old job before it starts its own."""
    run = stage.start("stuck_deferred", world="image-missing")
    run.has("running")
    looked_at(stage, run)
    for name in sorted(stage.triggerers):
        stage.kill_triggerer(name)
    stage.home.airflow.api.clear(run.dag_id, run.id, "job")
    run.has("cancelled", "running")
    assert overlap(run.jobs) == []
    run.reaches("deferred", try_number=2)
    for name in sorted(TRIGGERERS):
        stage.start_triggerer(name)
    stage.triggerer_of(run)
    end(stage, run)
    run.has("cancelled", "cancelled")


def test_sensors_that_are_late_leave_the_job_alone(stage: Stage, proven: Run) -> None:
    """A sensor whose ``timeout`` is over fails, or skips if told so, in each mode; the job it asks about goes on."""
    run = stage.start("sensing", world="plenty", job_id=proven.jobs[0].id)
    for task_id in ("deferred", "rescheduled", "poking", "skipping"):
        run.reaches("skipped" if task_id == "skipping" else "failed", task_id)
        assert "nvidia-tesla-t4" in run.log(task_id)
    assert (proven.jobs[0].state, proven.jobs[0].asked_by) == ("running", ())


def test_a_run_that_is_made_again_has_its_own_job(stage: Stage, proven: Run) -> None:
    """A run that was deleted and made again with the same id neither takes over its predecessor's job nor ends it."""
    wait_for("the run to end", lambda: proven.state == "success", seconds=SLOW)
    stage.home.airflow.api.delete_run(proven.dag_id, proven.id)
    stage.start(proven.dag_id, world="plenty", run_id=proven.id).reaches("success")
    old, new = proven.jobs
    assert old.name != new.name
    assert [(job.state, job.asked_by) for job in (old, new)] == [("running", ())] * 2


def test_a_killed_mapped_task_leaves_the_others_alone(stage: Stage) -> None:
    """Of three mapped tasks one is killed and takes its own job over; the others notice nothing."""
    run = stage.start("mapped", world="l4-stockout")
    wait_for("three jobs", lambda: len(run.jobs) == 3, seconds=SLOW)
    kill(run.processes(map_index=1)[:1])
    stage.home.emulator.set_world("plenty")
    tries = [run.reaches("success", map_index=n)["try_number"] for n in range(3)]
    assert tries == [1, 2, 1]
    assert [(job.state, job.asked_by) for job in run.jobs] == [("running", ())] * 3
    assert {job.labels["accel-map-index"] for job in run.jobs} == {"0", "1", "2"}


def test_a_frozen_worker_that_wakes_up_leaves_the_job_to_the_next_try(stage: Stage, gate: Path) -> None:
    """A worker that stands still until another try has taken its job over does not end that job when it goes on."""
    run = stage.start("spark_waiting", world="plenty", gate=str(gate))
    run.has("running")
    with frozen(run.processes()) as worker:
        now = stage.home.emulator.ledger()["last"]
        run.reaches("running", try_number=2)
        wait_for("a look at the job", lambda: calls_since(stage, now), seconds=SLOW)
    wait_for("the first try to be over", lambda: not is_alive(worker), seconds=SLOW)
    hold(lambda: not run.jobs[0].asked_by, seconds=3)
    gate.unlink()
    run.reaches("success")
    assert [job.asked_by for job in run.jobs] == [()]


def test_a_worker_frozen_before_its_launch_launches_nothing(stage: Stage) -> None:
    """A worker that stands still between intent and launch starts no job once another try has gone on without it."""
    emulator = stage.home.emulator
    emulator.add_fault(LIST, delay=2)
    run = stage.start("searching", world="l4-stockout")
    wait_for("the job to be looked for", lambda: used(emulator.faults()), seconds=SLOW)
    with frozen(run.processes()) as worker:
        # In the meantime its job was made by another, had no stock, and was given up for the next place.
        run.reaches("success", try_number=2)
        stage.home.emulator.set_world("plenty")
    wait_for("the first try to be over", lambda: not is_alive(worker), seconds=SLOW)
    assert [job.state for job in run.jobs] == ["cancelled", "running"]


def begin(stage: Stage, cases: Mapping[str, Faults]) -> list[Run]:
    """Start a run of each DAG, with what is to go wrong."""
    for method, action in (fault for faults in cases.values() for fault in faults):
        stage.home.emulator.add_fault(method, **action)
    return [stage.start(dag_id, world="plenty") for dag_id in cases]


def wait_for_calls(stage: Stage, faults: Faults) -> None:
    """Wait until all that was to go wrong with these methods does."""
    methods = {method for method, _ in faults}

    def all_used() -> bool:
        return all(fault["used"] for fault in stage.home.emulator.faults() if fault["method"] in methods)

    wait_for("the worker to ask", all_used, seconds=SLOW)


def see_one_job_each(runs: Iterable[Run]) -> None:
    """Wait for the success of a later try, and see that each run had one job that nobody ended."""
    for run in runs:
        run.reaches("success", try_number=2)
        assert [job.asked_by for job in run.jobs] == [()]


@contextmanager
def frozen(processes: list[psutil.Process]) -> Iterator[psutil.Process]:
    """Let a worker and its supervisor stand still for as long as the block; yield the worker."""
    send(signal.SIGSTOP, processes)
    try:
        yield processes[0]
    finally:
        send(signal.SIGCONT, processes)


def looked_at(stage: Stage, run: Run) -> None:
    """Wait until a triggerer follows the run's newest job."""
    run.reaches("deferred")
    stage.triggerer_of(run)
    now = stage.home.emulator.ledger()["last"]
    wait_for("a look at the job", lambda: calls_since(stage, now), seconds=SLOW)


def calls_since(stage: Stage, now: int) -> list[dict[str, Any]]:
    """Return what Google was asked after a number of the ledger."""
    calls: list[dict[str, Any]] = stage.home.emulator.ledger(since=now)["calls"]
    return calls


def is_asked_to_end(run: Run) -> bool:
    """Return whether somebody asked the run's first job to end."""
    return bool(run.jobs[0].asked_by)


def end(stage: Stage, run: Run) -> None:
    """Mark the task as failed, so that its job ends."""
    looked_at(stage, run)
    stage.home.airflow.api.set_task_state(run.dag_id, run.id, "job", "failed")


def used(faults: list[dict[str, Any]]) -> int:
    """Return how often something went wrong as it was to."""
    return sum(fault["used"] for fault in faults)
