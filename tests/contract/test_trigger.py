"""The trigger: what it is stored as, what it fires, whom it cancels."""

from __future__ import annotations

import asyncio
import contextlib
import json
import uuid
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cache
from typing import TYPE_CHECKING, Any

import pytest
from airflow.executors.workloads import TaskInstanceDTO
from airflow.models.trigger import Trigger
from airflow.sdk.execution_time import task_runner
from airflow.sdk.execution_time.comms import GetTaskStates, TaskStatesResult
from airflow.serialization.decoders import smart_decode_trigger_kwargs
from connections import connection, google_session
from dataflow_jobs import BUCKET, L4, Client, environment
from emulators import Emulator, running
from test_polling import Silence

from airflow_accel_provider.core.failures import FailureKind
from airflow_accel_provider.core.placement import Placement
from airflow_accel_provider.core.policy import Policy
from airflow_accel_provider.core.record import Outcome, PlannedPlace, Record, UnknownVersionError, begin
from airflow_accel_provider.triggers._follow import Followed, OwnLook, follow
from airflow_accel_provider.triggers.job import AcceleratorJobTrigger, read_event

if TYPE_CHECKING:
    from collections.abc import Iterator

    from google.auth.transport.requests import AuthorizedSession

PATIENCE = 120
HERE = Placement.parse("nvidia-l4 on g2-standard-8 in us-central1")
ELSEWHERE = Placement.parse("nvidia-l4 on g2-standard-8 in europe-west4")
CANCEL = "dataflow.projects.locations.jobs.update"
CREATE = "dataflow.projects.locations.jobs.create"
LIST = "dataflow.projects.locations.jobs.list"
INSTANCES = "compute.instances.aggregatedList"


@pytest.fixture(scope="module")
def emulator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Emulator]:
    """Return an emulator of this module's own, slow enough to see workers."""
    with running(tmp_path_factory.mktemp("emulator"), time_scale=60.0) as started:
        yield started


@pytest.fixture
def jobs(emulator: Emulator, session: AuthorizedSession, monkeypatch: pytest.MonkeyPatch) -> Iterator[Client]:
    """Return a client that submits jobs; none is left behind. Triggers find a connection to the same emulator."""
    monkeypatch.setenv("AIRFLOW_CONN_GCP", connection(emulator).as_json())
    client = Client(emulator=emulator, session=session)
    yield client
    emulator.admin("DELETE", "faults")
    emulator.enter("plenty")
    client.clear()


@cache
def pipeline() -> bytes:
    """Return a small pipeline as Beam stages it."""
    import apache_beam as beam
    from apache_beam.transforms.environments import DockerEnvironment

    built = beam.Pipeline(runner="DirectRunner")
    _ = built | beam.Create([1, 2, 3]) | beam.Map(abs)
    image = DockerEnvironment.from_container_image("apache/beam_python3.11_sdk:2.77.0")
    return built.to_runner_api(default_environment=image).SerializeToString()


def submitted(client: Client, url: str | None = None) -> dict[str, Any]:
    """Create a job with one L4 by a plain request."""
    env = environment(machine="g2-standard-8", option=L4)
    if url:
        env["sdkPipelineOptions"] = {"options": {"pipelineUrl": url}}
    return client.create(env)


def record_of(job: dict[str, Any], *places: Placement) -> Record:
    """Return the record of a task that submitted the job just now."""
    now = datetime.now(UTC)
    record = begin(owner="f" * 32, max_tries=0, now=now, project="acme-ml-prod", prefix="score")
    record = replace(record, plan=tuple(PlannedPlace(placement=place) for place in places or (HERE,)))
    record = record.intend(0, HERE, now)
    attempt = replace(record.attempts[-1], outcome=Outcome.SUBMITTED, job_id=job["id"], submitted_at=now)
    return record.with_attempt(attempt)


def trigger_for(of: Record, **changes: Any) -> AcceleratorJobTrigger:
    arguments: dict[str, Any] = {
        "v": 1,
        "record": of.to_json(),
        "policy": Policy().to_json(),
        "gcp_conn_id": "gcp",
        "poll_interval": 0.2,
        **changes,
    }
    return AcceleratorJobTrigger(**arguments)


def stored(trigger: AcceleratorJobTrigger) -> AcceleratorJobTrigger:
    """Return the trigger that a triggerer builds from the row of this one."""
    classpath, arguments = trigger.serialize()
    module, _, name = classpath.rpartition(".")
    assert (module, name) == (AcceleratorJobTrigger.__module__, AcceleratorJobTrigger.__name__)
    read = Trigger(classpath, arguments).kwargs
    return AcceleratorJobTrigger(**{key: smart_decode_trigger_kwargs(value) for key, value in read.items()})


async def fired(trigger: AcceleratorJobTrigger) -> dict[str, Any]:
    """Return the payload of the trigger's only event, as it comes out of the database."""
    async with asyncio.timeout(PATIENCE):
        (event,) = [event async for event in trigger.run()]
    return json.loads(json.dumps(event.payload))


# --- what is stored

SOME = record_of({"id": "2026-03-02_06_00_00-1"}, HERE, ELSEWHERE)


def test_a_trigger_survives_being_stored() -> None:
    """A trigger that went through Airflow's database has the arguments it had."""
    trigger = trigger_for(SOME, impersonation_chain=["a@p", "b@p"], project_id="p", quota_project_id="q")
    assert stored(trigger).serialize() == trigger.serialize()
    assert Record.from_json(stored(trigger).record) == SOME
    assert Policy.from_json(stored(trigger).policy) == Policy()


def test_a_stored_trigger_holds_ids_and_places_only() -> None:
    """What Airflow stores and logs are these arguments, and nothing of the user's options is among them."""
    _, arguments = trigger_for(SOME).serialize()
    assert set(arguments) == {
        *("v", "record", "policy", "poll_interval"),
        *("gcp_conn_id", "impersonation_chain", "project_id", "quota_project_id"),
    }
    assert set(arguments["record"]) == {
        *("v", "owner", "life", "max_tries", "started_at", "project", "prefix", "round", "plan", "attempts"),
        *("ended", "killed", "service"),
    }
    assert set(arguments["policy"]) == {
        *("fallback_on", "on_unproven", "wait_until", "drain"),
        *("start_timeout", "cancel_timeout", "grace", "lost_after"),
    }


# --- unknown versions

NEWER = {**SOME.to_json(), "v": 99}


@pytest.mark.parametrize("changes", [{"v": 99}, {"record": NEWER}, {"v": 99, "record": NEWER}])
async def test_an_unknown_version_fails_the_task_and_cancels_nothing(
    jobs: Client, emulator: Emulator, changes: dict[str, Any]
) -> None:
    """A trigger or record of another release's form becomes one error that says so; Google is not called."""
    mark = emulator.mark()
    trigger = stored(trigger_for(SOME, **changes))
    payload = await fired(trigger)
    with pytest.raises(UnknownVersionError, match=r"version 99; this release reads version 1. Nothing was cancelled"):
        read_event(payload)
    with pytest.raises(UnknownVersionError, match="Nothing was cancelled"):
        await trigger.on_kill()
    assert emulator.mark() == mark


def test_an_event_of_another_version_is_refused() -> None:
    """The worker refuses an event that another release's triggerer wrote."""
    with pytest.raises(UnknownVersionError, match="trigger event has version 2"):
        read_event({"v": 2, "result": "of another form"})


async def test_a_trigger_settles_before_it_fires(monkeypatch: pytest.MonkeyPatch) -> None:
    """An event that is ready at once is held until the deferring worker's supervisor must have reported."""
    monkeypatch.setenv("AIRFLOW__WORKERS__MIN_HEARTBEAT_INTERVAL", "1")
    monkeypatch.setattr("airflow_accel_provider.triggers._settling._SCHEDULER_ROUNDS", 0.2)
    ended = SOME.with_attempt(replace(SOME.attempts[-1], outcome=Outcome.DONE))
    begun = asyncio.get_running_loop().time()

    await fired(trigger_for(ended))

    assert asyncio.get_running_loop().time() - begun >= 1.2


async def test_a_kill_outlives_its_cancellations(jobs: Client, emulator: Emulator) -> None:
    """A kill that Airflow cancels over and over while it works still cancels the job."""
    job = submitted(jobs)
    mark = emulator.mark()
    kill = asyncio.create_task(trigger_for(record_of(job)).on_kill())

    await asyncio.sleep(0)
    kill.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await kill
    async with asyncio.timeout(PATIENCE):
        while not cancelled(emulator, mark):
            await asyncio.sleep(0.05)

    assert cancelled(emulator, mark) == [job["id"]]


# --- against a Google that lives


async def test_a_job_is_followed_to_its_end(jobs: Client, emulator: Emulator, google_environment: None) -> None:
    """A job that anybody submitted is proven, waited for, and told of in one event; nothing is cancelled."""
    from google.cloud import storage

    blob = storage.Client(project=emulator.project).create_bucket(BUCKET).blob("trigger/pipeline.pb")
    blob.upload_from_string(pipeline())
    mark = emulator.mark()
    job = submitted(jobs, f"gs://{BUCKET}/{blob.name}")
    followed = read_event(await fired(stored(trigger_for(record_of(job)))))
    (attempt,) = followed.record.attempts
    assert (followed.failure, attempt.outcome, attempt.failure) == (None, Outcome.DONE, None)
    assert attempt.proof is not None
    assert (attempt.proof.status, attempt.proof.accelerator, attempt.proof.count) == ("seen", "nvidia-l4", 1)
    assert attempt.zone is not None
    assert attempt.zone.startswith("us-central1-")
    assert emulator.calls(CANCEL, since=mark) == []
    assert len(emulator.calls(CREATE, since=mark)) == 1


async def test_a_stockout_is_cancelled_and_seen_to_end(jobs: Client, emulator: Emulator) -> None:
    """The trigger cancels a job without stock and fires when it has ended, with the next place left to the worker."""
    emulator.enter("l4-stockout")
    job = submitted(jobs)
    followed = read_event(await fired(trigger_for(record_of(job, HERE, ELSEWHERE))))
    (attempt,) = followed.record.attempts
    assert (followed.failure, attempt.outcome) == (None, Outcome.CANCELLED)
    assert attempt.failure is not None
    assert attempt.failure.kind is FailureKind.STOCKOUT
    assert jobs.get(job)["currentState"] == "JOB_STATE_CANCELLED"


@pytest.mark.parametrize("world", ["plenty", "gpu-missing"])
async def test_both_modes_tell_the_same(jobs: Client, emulator: Emulator, world: str) -> None:
    """A follower on a worker and a trigger end alike, with a job that fails and with one that lacks its device."""
    emulator.enter(world)
    on_worker, deferred = submitted(jobs), submitted(jobs)
    policy = replace(Policy(), grace=Policy().grace / 60)
    source = OwnLook(google_session(emulator), 0.2, stopped=lambda: False)
    ends = await asyncio.gather(
        follow(record_of(on_worker), source, policy, now=lambda: datetime.now(UTC), log=Silence()),
        fired(trigger_for(record_of(deferred), policy=policy.to_json())),
    )
    here, there = ends[0], read_event(ends[1])

    def told(followed: Followed, job: dict[str, Any]) -> str:
        (attempt,) = followed.record.attempts
        assert followed.failure is not None
        return f"{followed.failure.kind} {attempt.outcome} {followed.failure.explanation}".replace(job["id"], "JOB")

    assert told(here, on_worker) == told(there, deferred)


async def test_many_triggers_cost_what_a_few_cost(jobs: Client, emulator: Emulator) -> None:
    """Thirty triggers of one identity and region share the calls of a tick."""
    triggers = [trigger_for(record_of(submitted(jobs)), poll_interval=1) for _ in range(30)]
    mark = emulator.mark()
    tasks = [asyncio.create_task(fired(trigger)) for trigger in triggers]
    async with asyncio.timeout(PATIENCE):
        while len(emulator.calls(LIST, since=mark)) < 3:
            await asyncio.sleep(0.1)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert len(emulator.calls(LIST, since=mark)) <= 4
    assert len(emulator.calls(INSTANCES, since=mark)) <= 4


async def test_a_trigger_that_is_stopped_cancels_nothing(jobs: Client, emulator: Emulator) -> None:
    """A triggerer that shuts down takes its triggers along and leaves their jobs alone."""
    mark = emulator.mark()
    trigger = trigger_for(record_of(submitted(jobs)))
    task = asyncio.create_task(fired(trigger))
    async with asyncio.timeout(PATIENCE):
        while not emulator.calls("dataflow.projects.locations.jobs.get", since=mark):
            await asyncio.sleep(0.05)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await trigger.cleanup()
    assert emulator.calls(CANCEL, since=mark) == []


async def test_a_missing_connection_is_one_clear_failure(jobs: Client) -> None:
    """A connection that was deleted while the task waited is named in the failure."""
    followed = read_event(await fired(trigger_for(SOME, gcp_conn_id="gone")))
    assert followed.failure is not None
    assert followed.failure.kind is FailureKind.CONFIGURATION
    assert "gone" in followed.failure.evidence


# --- kills


@dataclass
class Supervisor:
    """Airflow's supervisor, which knows the states of some task instances."""

    states: dict[str, dict[tuple[str, int], str]] = field(default_factory=dict)
    asked: list[GetTaskStates] = field(default_factory=list)

    async def asend(self, message: object) -> TaskStatesResult | None:
        """Answer a question about states as the API server does; other messages need no answer."""
        if not isinstance(message, GetTaskStates):
            return None
        self.asked.append(message)
        found: dict[str, dict[str, str]] = {}
        for run_id in message.run_ids or ():
            for (task_id, index), state in self.states.get(run_id, {}).items():
                if task_id in (message.task_ids or ()) and index == message.map_index:
                    found.setdefault(run_id, {})[task_id if index < 0 else f"{task_id}_{index}"] = state
        return TaskStatesResult(task_states=found)


@pytest.fixture
def supervisor(monkeypatch: pytest.MonkeyPatch) -> Supervisor:
    """Return the supervisor that triggers talk to."""
    started = Supervisor()
    monkeypatch.setattr(task_runner, "SUPERVISOR_COMMS", started, raising=False)
    return started


def task_instance(map_index: int = -1) -> TaskInstanceDTO:
    return TaskInstanceDTO(
        id=uuid.uuid4(),
        dag_version_id=uuid.uuid4(),
        dag_id="scores",
        task_id="score",
        run_id="daily",
        try_number=1,
        map_index=map_index,
        pool_slots=1,
        queue="default",
        priority_weight=1,
    )


def cancelled(emulator: Emulator, since: int) -> list[str]:
    return [call["path"]["jobId"] for call in emulator.calls(CANCEL, since=since)]


@pytest.mark.parametrize("map_index", [-1, 3])
@pytest.mark.parametrize("state", ["failed", "success", None])
async def test_a_kill_cancels_its_own_job_and_no_other(
    jobs: Client, emulator: Emulator, supervisor: Supervisor, state: str | None, map_index: int
) -> None:
    """When a person ended the task, its job is cancelled; that of its mapped neighbour goes on."""
    mine, _ = submitted(jobs), submitted(jobs)
    supervisor.states = {"daily": {("score", 4): "deferred"} | ({("score", map_index): state} if state else {})}
    mark = emulator.mark()
    trigger = stored(trigger_for(record_of(mine)))
    trigger.task_instance = task_instance(map_index)
    await trigger.on_kill()
    assert cancelled(emulator, mark) == [mine["id"]]
    jobs.wait(mine, "CANCELLED")


@pytest.mark.parametrize("map_index", [-1, 3])
async def test_a_trigger_that_moves_cancels_nothing(
    jobs: Client, emulator: Emulator, supervisor: Supervisor, map_index: int
) -> None:
    """While its task is still deferred, a killed trigger has only moved to another triggerer."""
    supervisor.states = {"daily": {("score", map_index): "deferred"}}
    mark = emulator.mark()
    trigger = trigger_for(record_of(submitted(jobs)))
    trigger.task_instance = task_instance(map_index)
    await trigger.on_kill()
    assert cancelled(emulator, mark) == []
    assert len(supervisor.asked) == 1


@dataclass
class Deaf:
    """A supervisor that is gone, or that answers with something else."""

    answer: object

    async def asend(self, message: object) -> object:
        """Raise or return the answer."""
        if isinstance(message, GetTaskStates) and isinstance(self.answer, Exception):
            raise self.answer
        return None


@pytest.mark.parametrize("answer", [OSError("broken pipe"), RuntimeError("API server"), None], ids=str)
async def test_when_airflow_cannot_be_asked_nothing_is_cancelled(
    jobs: Client, emulator: Emulator, monkeypatch: pytest.MonkeyPatch, answer: object
) -> None:
    """A kill that cannot learn whether its task still waits leaves the job alone, and raises nothing."""
    monkeypatch.setattr(task_runner, "SUPERVISOR_COMMS", Deaf(answer), raising=False)
    mark = emulator.mark()
    trigger = trigger_for(record_of(submitted(jobs)))
    trigger.task_instance = task_instance()
    await trigger.on_kill()
    assert cancelled(emulator, mark) == []


async def test_a_kill_without_a_task_instance_cancels(jobs: Client, emulator: Emulator) -> None:
    """A trigger that knows no task instance can ask nobody, and cancels its job."""
    job = submitted(jobs)
    mark = emulator.mark()
    await trigger_for(record_of(job)).on_kill()
    assert cancelled(emulator, mark) == [job["id"]]


async def test_a_kill_before_any_job_calls_nobody(emulator: Emulator) -> None:
    """A record without an open job gives a kill nothing to do."""
    mark = emulator.mark()
    await trigger_for(SOME.with_attempt(replace(SOME.attempts[-1], outcome=Outcome.DONE))).on_kill()
    assert emulator.mark() == mark
