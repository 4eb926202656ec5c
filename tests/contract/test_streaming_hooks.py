"""Jobs without an end as the hooks and the trigger see them, in a Google that lives."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
from connections import connection, google_session
from emulators import Emulator, running
from submitted import submit, until

from airflow_accel_provider.core.failures import FailureKind
from airflow_accel_provider.core.fallback import ending
from airflow_accel_provider.core.jobs import Job, JobState, JobType
from airflow_accel_provider.core.placement import Placement
from airflow_accel_provider.core.policy import Policy
from airflow_accel_provider.core.record import Attempt, Outcome, PlannedPlace, Record, begin
from airflow_accel_provider.hooks.dataflow import DataflowHook
from airflow_accel_provider.hooks.ending import end
from airflow_accel_provider.hooks.session import GoogleSession
from airflow_accel_provider.hooks.workers import WorkersHook
from airflow_accel_provider.triggers._follow import Followed, OwnLook, follow
from airflow_accel_provider.triggers.job import AcceleratorJobTrigger, read_event

if TYPE_CHECKING:
    from collections.abc import Iterator

HERE = Placement.parse("nvidia-l4 on g2-standard-8 in us-central1")
UPDATE = "dataflow.projects.locations.jobs.update"
PROVEN, DRAIN = Policy(wait_until="proven"), Policy(wait_until="proven", drain=True)

STREAMING = "JOB_TYPE_STREAMING"


@pytest.fixture(scope="module")
def emulator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Emulator]:
    """Return an emulator of this module's own."""
    with running(tmp_path_factory.mktemp("emulator"), time_scale=120.0) as started:
        yield started


@pytest.fixture(scope="module")
def session(emulator: Emulator) -> GoogleSession:
    """Return a session of airflow@."""
    return google_session(emulator)


@pytest.fixture
def hook(session: GoogleSession) -> Iterator[DataflowHook]:
    """Return the hook under test; what is left running ends with the test."""
    hook = DataflowHook(session)
    yield hook
    for job in hook.list_active("us-central1"):
        hook.cancel(job.id, "us-central1")


@pytest.fixture(autouse=True)
def _connected(emulator: Emulator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_GCP", connection(emulator).as_json())
    monkeypatch.setenv("AIRFLOW__WORKERS__MIN_HEARTBEAT_INTERVAL", "0")


def job_of(hook: DataflowHook, job_id: str) -> Job:
    job = hook.get(job_id, "us-central1")
    assert job is not None
    return job


def ended(hook: DataflowHook, job_id: str) -> JobState:
    job: Job = until(lambda: job if (job := job_of(hook, job_id)).state.is_terminal else None)
    return job.state


def with_workers(session: GoogleSession, job_id: str) -> str:
    """Wait until the job has workers, and return its id."""
    until(lambda: WorkersHook(session).workers_of(job_id, region="us-central1"))
    return job_id


def record_of(job_id: str) -> Record:
    """Return the record of a task that submitted the job just now."""
    now = datetime.now(UTC)
    record = begin(owner="f" * 32, max_tries=0, now=now, project="acme-ml-prod", prefix="score")
    record = replace(record, plan=(PlannedPlace(placement=HERE),)).intend(0, HERE, now)
    attempt = replace(record.attempts[-1], outcome=Outcome.SUBMITTED, job_id=job_id, submitted_at=now)
    return record.with_attempt(attempt)


def killed(job_id: str, policy: Policy) -> Attempt:
    return ending(record_of(job_id).attempts[-1], "the task was killed", policy, datetime.now(UTC))


async def by_trigger(emulator: Emulator, record: Record, policy: Policy) -> Followed:
    trigger = AcceleratorJobTrigger(
        v=1, record=record.to_json(), policy=policy.to_json(), gcp_conn_id="gcp", poll_interval=0.2
    )
    async with asyncio.timeout(90):
        (event,) = [event async for event in trigger.run()]
    return read_event(event.payload)


async def on_worker(emulator: Emulator, record: Record, policy: Policy) -> Followed:
    class Silence:
        def info(self, event: str, *args: Any) -> None:
            """Say nothing."""

        warning = info

    source = OwnLook(google_session(emulator), 0.2, stopped=lambda: False)
    async with asyncio.timeout(90):
        return await follow(record, source, policy, now=lambda: datetime.now(UTC), log=Silence())


MODES = pytest.mark.parametrize("followed", [by_trigger, on_worker])


@pytest.mark.parametrize("type_", [JobType.BATCH, JobType.STREAMING])
def test_a_job_says_its_type(session: GoogleSession, hook: DataflowHook, type_: JobType) -> None:
    """A job's type is known whether it is asked for alone or taken from the list."""
    job_id = submit(session, type=f"JOB_TYPE_{type_.upper()}")
    assert job_of(hook, job_id).type is type_
    assert [job.type for job in hook.list_active("us-central1") if job.id == job_id] == [type_]


def test_a_streaming_job_drains(session: GoogleSession, hook: DataflowHook) -> None:
    """A streaming job that is asked to drain ends as drained, and asking again is no error."""
    job_id = with_workers(session, submit(session, type=STREAMING))
    end(session, killed(job_id, DRAIN))
    hook.drain(job_id, "us-central1")
    assert ended(hook, job_id) is JobState.DRAINED
    hook.drain(job_id, "us-central1")
    end(session, killed(job_id, DRAIN))


@pytest.mark.parametrize("type_", ["BATCH", "STREAMING"])
def test_what_cannot_drain_is_cancelled(session: GoogleSession, hook: DataflowHook, type_: str) -> None:
    """A batch job, and a streaming job without a worker, is cancelled even where drains are asked."""
    job_id = submit(session, type=f"JOB_TYPE_{type_}")
    end(session, killed(job_id, DRAIN))
    assert ended(hook, job_id) is JobState.CANCELLED


def test_a_drain_can_be_cut_short(session: GoogleSession, hook: DataflowHook) -> None:
    """A job that drains can still be cancelled, and its end is an end either way."""
    job_id = with_workers(session, submit(session, type=STREAMING))
    hook.drain(job_id, "us-central1")
    end(session, killed(job_id, PROVEN))
    assert ended(hook, job_id) in {JobState.CANCELLED, JobState.DRAINED}


@MODES
async def test_a_proven_job_is_left_running(
    emulator: Emulator, session: GoogleSession, hook: DataflowHook, followed: Any
) -> None:
    """Following until the proof leaves a streaming job running, and asks nothing of it."""
    job_id, mark = submit(session, type=STREAMING), emulator.mark()
    done = await followed(emulator, record_of(job_id), PROVEN)
    (attempt,) = done.record.attempts
    assert (done.failure, attempt.outcome, attempt.is_proven) == (None, Outcome.RUNNING, True)
    assert emulator.calls(UPDATE, since=mark) == []
    assert job_of(hook, job_id).state is JobState.RUNNING


@MODES
async def test_a_streaming_job_is_not_waited_for(
    emulator: Emulator, session: GoogleSession, hook: DataflowHook, followed: Any
) -> None:
    """Following a streaming job to its end is one clear failure, and the job is cancelled."""
    job_id = submit(session, type=STREAMING)
    done = await followed(emulator, record_of(job_id), Policy())
    assert done.failure is not None
    assert done.failure.kind is FailureKind.CONFIGURATION
    assert 'give wait_until="proven"' in done.failure.explanation
    assert ended(hook, job_id) is JobState.CANCELLED


@MODES
async def test_a_drain_is_seen_through(
    emulator: Emulator, session: GoogleSession, hook: DataflowHook, followed: Any
) -> None:
    """Following a job that must drain asks for that and returns when it has drained."""
    job_id = with_workers(session, submit(session, type=STREAMING))
    record = record_of(job_id).with_attempt(killed(job_id, DRAIN))
    done = await followed(emulator, record, DRAIN)
    assert (done.record.open, done.record.attempts[-1].outcome) == (None, Outcome.CANCELLED)
    assert job_of(hook, job_id).state is JobState.DRAINED


@pytest.mark.parametrize(("policy", "state"), [(DRAIN, JobState.DRAINED), (PROVEN, JobState.CANCELLED)])
async def test_a_kill_in_the_triggerer_ends_as_asked(
    session: GoogleSession, hook: DataflowHook, policy: Policy, state: JobState
) -> None:
    """A deferred task that is killed drains or cancels its job, as asked."""
    job_id = with_workers(session, submit(session, type=STREAMING))
    trigger = AcceleratorJobTrigger(
        v=1, record=record_of(job_id).to_json(), policy=policy.to_json(), gcp_conn_id="gcp", poll_interval=0.2
    )
    await trigger.on_kill()
    assert ended(hook, job_id) is state
