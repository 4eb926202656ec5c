"""Batches as the hooks create, read and cancel them, at a Google that lives."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest
from connections import connection, google_session
from emulators import Emulator, running
from stand_in import StandIn

from airflow_accel_provider.core.jobs import Importance, JobState, Snapshot
from airflow_accel_provider.core.placement import Placement
from airflow_accel_provider.core.record import Attempt, Outcome
from airflow_accel_provider.core.usage import UNNAMED
from airflow_accel_provider.exceptions import GoogleApiError
from airflow_accel_provider.hooks._endpoints import Endpoints
from airflow_accel_provider.hooks._wire_spark import batch_from_json
from airflow_accel_provider.hooks.services import end, look
from airflow_accel_provider.hooks.session import GoogleSession
from airflow_accel_provider.hooks.spark import SparkHook, refusal
from airflow_accel_provider.hooks.spark_files import missing_files
from airflow_accel_provider.triggers._watch import SharedLook
from demo.waiting import wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator

REGION = "us-central1"
BATCHES = "dataproc.projects.locations.batches"
CANCEL = "dataproc.projects.regions.operations.cancel"
NOW = datetime(2026, 3, 2, 6, 0, tzinfo=UTC)
BODY: dict[str, Any] = {
    "pysparkBatch": {"mainPythonFileUri": "gs://nowhere/main.py"},
    "labels": {"accel-owner": "ab12"},
    "runtimeConfig": {
        "version": "2.3",
        "properties": {
            "spark.dataproc.executor.compute.tier": "premium",
            "spark.dataproc.executor.disk.tier": "premium",
            "spark.dataproc.executor.resource.accelerator.type": "l4",
            "spark.executor.instances": "2",
        },
    },
}
_ids = (f"hook-batch-{n}" for n in count())


@pytest.fixture(scope="module")
def emulator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Emulator]:
    """Return an emulator of this module's own, where executors churn: a batch runs without running anything."""
    with running(tmp_path_factory.mktemp("emulator"), time_scale=60.0) as started:
        yield started


@pytest.fixture(scope="module")
def session(emulator: Emulator) -> GoogleSession:
    """Return a session of airflow@."""
    return google_session(emulator)


@pytest.fixture
def hook(emulator: Emulator, session: GoogleSession) -> Iterator[SparkHook]:
    """Return the hook under test; nothing of what it made goes on after the test."""
    emulator.enter("executor-churn")
    hook = SparkHook(session)
    yield hook
    emulator.admin("DELETE", "faults")
    for each in hook.list_active(REGION):
        assert each.job
        hook.cancel(each.job.id, REGION)


def made(hook: SparkHook, batch_id: str | None = None, request_id: str | None = None) -> str:
    """Create a batch and return its id."""
    name = batch_id or next(_ids)
    return hook.create(name, REGION, BODY, request_id=request_id or f"r-{name}").id


def in_state(hook: SparkHook, batch_id: str, *states: JobState) -> Snapshot:
    """Wait until a batch is in one of the states."""

    def there() -> Snapshot | None:
        found = hook.get(batch_id, REGION)
        return found if found.job and found.job.state in states else None

    return wait_for(f"{batch_id} to be {states}", there, seconds=60)


def test_created_batch_is_read(hook: SparkHook) -> None:
    """A batch that was created is found under its id, with its labels and runtime."""
    job = hook.create("hook-first", REGION, BODY, request_id="r-first")
    assert job.created_at is not None
    read = hook.get("hook-first", REGION).job
    assert read is not None
    assert (read.id, read.region) == ("hook-first", REGION)
    # The service says which release of the runtime it took.
    assert str(read.runtime_version).startswith("2.3")
    assert read.label("accel-owner") == "ab12"
    assert read.created_at == job.created_at


def test_unknown_batch_is_none(hook: SparkHook) -> None:
    """A batch that is not there reads as none, and needs no cancellation."""
    assert hook.get("hook-nobody", REGION) == Snapshot(job=None)
    hook.cancel("hook-nobody", REGION)


@pytest.mark.parametrize("action", [{"reset": "after"}, {"reset": "before"}, {"status": 503}, {"truncate": True}])
def test_lost_answer_makes_one_batch(emulator: Emulator, hook: SparkHook, action: dict[str, Any]) -> None:
    """When the answer to a creation is lost, the same request is repeated and there is one batch."""
    since = emulator.mark()
    emulator.fail(f"{BATCHES}.create", **action)
    batch_id = made(hook)
    created = emulator.events("dataproc.batch.created", since=since)
    assert [event["batch_id"] for event in created] == [batch_id]


def test_an_id_that_is_taken_is_refused(hook: SparkHook) -> None:
    """A batch of the id that another request made is refused, and goes on."""
    batch_id = made(hook)
    with pytest.raises(GoogleApiError) as refused:
        made(hook, batch_id, "r-another")
    assert refused.value.status == 409
    job = hook.get(batch_id, REGION).job
    assert job
    assert job.state in {JobState.PENDING, JobState.RUNNING}


def test_headers_go_along(emulator: Emulator) -> None:
    """Further headers are sent with the creation, beside the credentials."""
    with StandIn() as google:
        hook = SparkHook(GoogleSession.from_connection(connection(emulator, endpoint_url=google.url)))
        hook.create("hook-headers", REGION, BODY, request_id="r-1", headers={"x-team": "ml"})
        assert google.headers["x-team"] == "ml"
        assert google.headers["authorization"].startswith("Bearer ")


def test_cancelled_while_it_waits(hook: SparkHook) -> None:
    """A batch that still waits for its machines can be cancelled through its operation; asking again is no error."""
    batch_id = made(hook)
    hook.cancel(batch_id, REGION)
    hook.cancel(batch_id, REGION)
    ended = in_state(hook, batch_id, JobState.CANCELLED)
    assert not ended.has_run
    hook.cancel(batch_id, REGION)


def test_cancelled_while_it_runs(hook: SparkHook) -> None:
    """A running batch shows what it uses, and can be cancelled."""
    batch_id = made(hook)
    running_batch = in_state(hook, batch_id, JobState.RUNNING)
    assert running_batch.has_run
    used = wait_for("figures", lambda: hook.get(batch_id, REGION).in_use, seconds=30)
    assert not used.gpus
    hook.cancel(batch_id, REGION)
    ended = in_state(hook, batch_id, JobState.CANCELLED)
    assert ended.spent
    assert ended.messages[-1].text


def test_cancel_that_came_too_late(emulator: Emulator, hook: SparkHook) -> None:
    """A refusal to cancel is none when the batch is ending all the same, and is told when it is not."""
    batch_id = made(hook)
    emulator.fail(CANCEL, status=403)
    with pytest.raises(GoogleApiError, match="403"):
        hook.cancel(batch_id, REGION)
    emulator.fail(CANCEL, status=400)
    with pytest.raises(GoogleApiError, match="400"):
        hook.cancel(batch_id, REGION)
    emulator.fail(CANCEL, reset="after")
    hook.cancel(batch_id, REGION)
    in_state(hook, batch_id, JobState.CANCELLED)


def test_one_listing_for_many(emulator: Emulator, hook: SparkHook, session: GoogleSession) -> None:
    """However many batches are looked at, one listing answers, and only those that ended are asked for."""
    ids = [made(hook) for _ in range(3)]
    hook.cancel(ids[0], REGION)
    in_state(hook, ids[0], JobState.CANCELLED)
    since = emulator.mark()
    looked = look(session, "dataproc", REGION, dict.fromkeys([*ids, "hook-nobody"], True))
    calls = {name: len(emulator.calls(f"{BATCHES}.{name}", since=since)) for name in ("list", "get")}
    assert calls == {"list": 1, "get": 2}
    jobs = [looked[id_].job for id_ in ids]
    assert all(jobs)
    assert [job.state.is_terminal for job in jobs if job] == [True, False, False]
    assert looked["hook-nobody"].job is None
    since = emulator.mark()
    assert look(session, "dataproc", REGION, {ids[1]: False})[ids[1]].job
    assert not emulator.calls(f"{BATCHES}.list", since=since)


@dataclass(frozen=True, eq=False)
class Somebody:
    """An identity that every follower shares."""

    google: GoogleSession

    async def session(self) -> GoogleSession:
        """Return the session."""
        return self.google


async def test_followers_share_one_listing(emulator: Emulator, hook: SparkHook, session: GoogleSession) -> None:
    """Triggers that wait for batches of one region cost one listing a tick, however many they are."""
    ids = [made(hook) for _ in range(4)]
    who, since = Somebody(session), emulator.mark()
    looks = [SharedLook(who, 0.3, "dataproc") for _ in ids]  # type: ignore[arg-type]

    async def follow(look: SharedLook, batch_id: str) -> list[str | None]:
        seen = [await look.snapshot(attempt_of(batch_id)) for _ in range(3)]
        return [each.job.id if each.job else None for each in seen]

    followed = await asyncio.gather(*(follow(*each) for each in zip(looks, ids, strict=True)))
    assert followed == [[batch_id] * 3 for batch_id in ids]
    assert len(emulator.calls(f"{BATCHES}.list", since=since)) == 3
    assert not emulator.calls(f"{BATCHES}.get", since=since)


def attempt_of(batch_id: str, **said: Any) -> Attempt:
    """Return an attempt whose batch is of this id."""
    place = Placement.parse("l4 in us-central1")
    usual: dict[str, Any] = {"outcome": Outcome.SUBMITTED, "job_id": batch_id, **said}
    return Attempt(n=1, candidate=0, round=1, placement=place, job_name=batch_id, intent_at=NOW, **usual)


def test_end_cancels_the_attempts_batch(hook: SparkHook, session: GoogleSession) -> None:
    """Ending an attempt cancels its batch; one without a batch needs nothing."""
    batch_id = made(hook)
    end(session, "dataproc", attempt_of(batch_id, job_id=None))
    assert in_state(hook, batch_id, JobState.PENDING, JobState.RUNNING)
    end(session, "dataproc", attempt_of(batch_id, outcome=Outcome.CANCELLING))
    in_state(hook, batch_id, JobState.CANCELLED)


@pytest.mark.parametrize(
    ("usage", "gpus"),
    [
        ({"acceleratorType": "L4", "milliAccelerator": "2000"}, {"l4": 2000}),
        ({"acceleratorType": "A100_40", "milliAccelerator": "1000"}, {"a100-40": 1000}),
        ({"acceleratorType": "a100-80", "milliAccelerator": 4000}, {"a100-80": 4000}),
        ({"acceleratorType": "new", "milliAccelerator": "1000"}, {UNNAMED: 1000}),
        ({"milliAcceleratorL4": "5000"}, {"l4": 5000}),
        ({"milliAcceleratorA10040": "1000", "milliAcceleratorA10080": "0"}, {"a100-40": 1000}),
        ({"acceleratorType": "L4", "milliAccelerator": "2000", "milliAcceleratorL4": "2000"}, {"l4": 2000}),
        ({"acceleratorType": "UNSPECIFIED"}, {}),
        ({}, {}),
    ],
)
def test_both_sets_of_usage_fields_are_read(usage: dict[str, Any], gpus: dict[str, int]) -> None:
    """The GPUs in use are read from the one field of older runtimes and from those by type of newer ones."""
    at = {"snapshotTime": "2026-03-02T06:00:00Z"}
    spent = {name.replace("milliAccelerator", "milliAcceleratorSeconds"): number for name, number in usage.items()}
    value = {
        "name": "projects/p/locations/us-central1/batches/etl",
        "state": "RUNNING",
        "runtimeInfo": {"currentUsage": {**usage, **at}, "approximateUsage": {**spent, "milliDcuSeconds": "1000"}},
    }
    read = batch_from_json(value)
    assert read.in_use
    assert read.spent
    assert (read.in_use.at, read.in_use.gpus) == (NOW, gpus)
    assert read.spent.gpu_seconds == {name: number / 1000 for name, number in gpus.items()}
    assert read.spent.dcu_seconds == 1


def test_bare_batch_is_read() -> None:
    """A batch that shows nothing but its name reads as one in no known state, without figures."""
    read = batch_from_json({"name": "projects/p/locations/r/batches/etl", "state": "SOMETHING_NEW"})
    assert read.job
    assert (read.job.state, read.has_run, read.in_use, read.spent) == (JobState.UNKNOWN, False, None, None)
    usage = {"milliAcceleratorL4": "1000"}
    assert batch_from_json({"name": "etl", "runtimeInfo": {"currentUsage": usage}}).in_use is None


def test_figures_that_are_no_numbers_say_nothing() -> None:
    """A usage whose figure cannot be read is no usage, which is not the same as one without GPUs."""
    usage = {"milliAccelerator": "no number", "milliAcceleratorSeconds": "no number"}
    said = {"snapshotTime": "2026-03-02T06:00:00Z", **usage}
    read = batch_from_json({"name": "etl", "runtimeInfo": {"currentUsage": said, "approximateUsage": usage}})
    assert (read.in_use, read.spent) == (None, None)


def test_only_an_end_is_an_error() -> None:
    """What the service says of a state is an error where the batch ended by it, and else only said."""
    value = {
        "name": "projects/p/locations/r/batches/etl",
        "state": "FAILED",
        "stateMessage": "Job failed",
        "stateTime": "2026-03-02T06:00:02Z",
        "stateHistory": [
            {"state": "PENDING", "stateMessage": "waiting", "stateStartTime": "2026-03-02T06:00:00Z"},
            {"state": "RUNNING", "stateStartTime": "2026-03-02T06:00:01Z"},
        ],
    }
    said = [(message.text, message.importance) for message in batch_from_json(value).messages]
    assert said == [("waiting", Importance.BASIC), ("Job failed", Importance.ERROR)]


@pytest.mark.parametrize("path", ["projects/p/locations/europe-west4/batches", "projects/p/regions/europe-west4/o:x"])
def test_batches_are_at_their_regions_endpoint(path: str) -> None:
    """Google's own endpoint is the region's; one that a connection names stays."""
    assert Endpoints().url("dataproc", path) == f"https://europe-west4-dataproc.googleapis.com/v1/{path}"
    here = Endpoints(everywhere="http://localhost:8085")
    assert here.url("dataproc", path) == f"http://localhost:8085/v1/{path}"


@pytest.mark.parametrize(
    ("status", "text", "kind"),
    [
        (400, "Insufficient 'NVIDIA_L4_GPUS' quota. Requested 2.0, available 0.0.", "quota"),
        (400, "Unknown property 'spark.dataproc.x'", "configuration"),
        (403, "Permission 'dataproc.batches.create' denied", "permission"),
        (429, "Quota exceeded for quota metric 'Batch requests'", "service"),
    ],
)
def test_refusal_says_why(status: int, text: str, kind: str) -> None:
    """A refused creation is a failure of the kind that its words mean, and keeps none of the secrets in them."""
    error = GoogleApiError(status, "WHY", f"{text} (hunter2)", "dataproc", "POST batches")
    failure = refusal(error, REGION, lambda said: said.replace("hunter2", "***"))
    assert failure.kind == kind
    assert "***" in failure.evidence
    assert "hunter2" not in failure.evidence


def test_files_that_are_not_there(emulator: Emulator, session: GoogleSession) -> None:
    """A file of a bucket that is not there is told once; what cannot be asked, or is not in a bucket, is not."""
    files = ["gs://nowhere/main.py", "gs://nowhere/main.py", "file:///opt/main.py", "gs://nowhere"]
    problems = missing_files(session, files)
    assert [problem.code for problem in problems] == ["batch-main-missing", "batch-main"]
    emulator.fail("storage.objects.get", status=403)
    assert missing_files(session, files[:1]) == []
