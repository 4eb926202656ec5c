"""Jobs, messages, workers and quotas as the hooks read them from a Google that lives."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from connections import google_session, plain_connection
from emulators import Emulator, running
from stand_in import StandIn
from submitted import REGION, fresh_name, submit, until

from airflow_accel_provider.core.jobs import Importance, Job, JobState
from airflow_accel_provider.exceptions import GoogleApiError
from airflow_accel_provider.hooks.dataflow import DataflowHook
from airflow_accel_provider.hooks.quota import read_quotas
from airflow_accel_provider.hooks.session import GoogleSession
from airflow_accel_provider.hooks.workers import WorkersHook

if TYPE_CHECKING:
    from collections.abc import Iterator

LIST = "dataflow.projects.locations.jobs.list"
INSTANCES = "compute.instances.aggregatedList"
REGIONS_GET = "compute.regions.get"


@pytest.fixture(scope="module")
def emulator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Emulator]:
    """Return an emulator of this module's own, slow enough to see workers."""
    with running(tmp_path_factory.mktemp("emulator"), time_scale=60.0) as started:
        yield started


@pytest.fixture(scope="module")
def session(emulator: Emulator) -> GoogleSession:
    """Return a session of airflow@."""
    return google_session(emulator)


@pytest.fixture(autouse=True)
def _left_as_found(emulator: Emulator, session: GoogleSession) -> Iterator[None]:
    yield
    emulator.admin("DELETE", "faults")
    emulator.enter("plenty")
    for job in DataflowHook(session).list_active(REGION):
        DataflowHook(session).cancel(job.id, REGION)


@pytest.fixture
def hook(session: GoogleSession) -> DataflowHook:
    """Return the hook under test."""
    return DataflowHook(session)


def ended(hook: DataflowHook, job_id: str) -> Job:
    def job() -> Job | None:
        found = hook.get(job_id, REGION)
        return found if found and found.state.is_terminal else None

    return until(job)


def test_jobs_are_found_by_exact_name_with_labels(session: GoogleSession, hook: DataflowHook) -> None:
    """A name finds its own jobs with their labels, not those whose names begin with it."""
    wanted, longer = fresh_name(), fresh_name()
    job_id = submit(session, wanted)
    submit(session, f"{wanted}-{longer}")
    (job,) = hook.find(wanted, REGION)
    assert (job.id, job.name, job.region, job.label("accel-owner")) == (job_id, wanted, REGION, "ab12")
    assert job.created_at is not None
    assert hook.find("no-such-name", REGION) == ()


def test_finished_jobs_are_found_too_newest_first(session: GoogleSession, hook: DataflowHook) -> None:
    """Jobs that have ended are found by their name, behind a newer one."""
    name = fresh_name()
    first = submit(session, name)
    hook.cancel(first, REGION)
    ended(hook, first)
    second = submit(session, name)
    assert [job.id for job in hook.find(name, REGION)] == [second, first]
    assert [job.id for job in hook.list_active(REGION) if job.name == name] == [second]


def test_the_list_shows_no_labels(session: GoogleSession, hook: DataflowHook) -> None:
    """A listed job's labels are not known, which is not the same as none."""
    job_id = submit(session)
    (listed,) = [job for job in hook.list_active(REGION) if job.id == job_id]
    assert listed.labels is None
    read = hook.get(job_id, REGION)
    assert read is not None
    assert read.labels is not None


def test_a_job_nobody_knows_is_none(hook: DataflowHook) -> None:
    """Reading an unknown job gives None, and cancelling it is no error."""
    assert hook.get("2026-01-01_00_00_00-1", REGION) is None
    hook.cancel("2026-01-01_00_00_00-1", REGION)


def test_every_page_is_read(session: GoogleSession, emulator: Emulator) -> None:
    """A listing is read to its last page."""
    ids = {submit(session) for _ in range(3)}
    path = f"projects/{session.project}/locations/{REGION}/jobs"
    mark = emulator.mark()
    pages = list(session.pages("dataflow", path, params={"pageSize": 1, "filter": "ACTIVE"}))
    assert ids <= {job["id"] for page in pages for job in page["jobs"]}
    assert len(emulator.calls(LIST, since=mark)) == len(pages) >= 3


def test_a_list_that_lacks_a_region_is_an_error() -> None:
    """When a region didn't answer, the look-up says so instead of finding nothing."""
    path = f"/v1b3/projects/p/locations/{REGION}/jobs"
    with StandIn({path: {"failedLocation": [{"name": REGION}]}}) as google:
        hook = DataflowHook(anonymous(google))
        with pytest.raises(GoogleApiError, match="didn't answer"):
            hook.find("any", REGION)


def test_cancelling_ends_a_job_and_twice_is_once(session: GoogleSession, hook: DataflowHook) -> None:
    """A cancelled job ends as cancelled, and cancelling it again is no error."""
    job_id = submit(session)
    hook.cancel(job_id, REGION)
    hook.cancel(job_id, REGION)
    assert ended(hook, job_id).state is JobState.CANCELLED
    hook.cancel(job_id, REGION)


def test_a_cancel_bears_a_bad_moment(session: GoogleSession, hook: DataflowHook, emulator: Emulator) -> None:
    """A cancel whose answer is lost is asked for again, and one that is forbidden says so."""
    job_id = submit(session)
    update = "dataflow.projects.locations.jobs.update"
    emulator.fail(update, status=403)
    with pytest.raises(GoogleApiError, match="403"):
        hook.cancel(job_id, REGION)
    emulator.fail(update, status=503)
    emulator.fail(update, reset="after")
    hook.cancel(job_id, REGION)
    assert ended(hook, job_id).state is JobState.CANCELLED


def test_a_stockout_shows_in_messages_and_scaling(
    session: GoogleSession, hook: DataflowHook, emulator: Emulator
) -> None:
    """While the service retries, its message and its autoscaling event tell of the stockout."""
    emulator.enter("l4-stockout")
    job_id = submit(session)

    def seen() -> bool:
        messages, scaling = hook.messages(job_id, REGION)
        return "ZONE_RESOURCE_POOL_EXHAUSTED" in " ".join(message.text for message in messages) and any(
            event.kind == "actuation_failure" for event in scaling
        )

    until(seen)
    messages, _ = hook.messages(job_id, REGION)
    assert list(messages) == sorted(messages, key=lambda message: message.at)
    assert {message.importance for message in messages} <= {Importance.BASIC, Importance.WARNING, Importance.ERROR}


def test_messages_can_be_narrowed(session: GoogleSession, hook: DataflowHook) -> None:
    """Only messages of the asked importance and time come."""
    job_id = submit(session)
    until(lambda: hook.messages(job_id, REGION)[0])
    debug, _ = hook.messages(job_id, REGION, minimum=Importance.DEBUG)
    errors, _ = hook.messages(job_id, REGION, minimum=Importance.ERROR)
    assert len(debug) > len(hook.messages(job_id, REGION)[0]) > len(errors)
    assert hook.messages(job_id, REGION, since=datetime.now(UTC) + timedelta(hours=1))[0] == ()


@pytest.mark.parametrize(("world", "accelerators"), [("plenty", (("nvidia-l4", 1),)), ("gpu-missing", ())])
def test_workers_show_what_is_attached(
    session: GoogleSession, emulator: Emulator, world: str, accelerators: tuple[tuple[str, int], ...]
) -> None:
    """A worker VM shows its machine, zone and accelerators, or that it has none."""
    emulator.enter(world)
    hook = WorkersHook(session)
    job_id = submit(session)
    (worker,) = until(lambda: hook.workers_of(job_id, region=REGION))
    assert (worker.machine_type, worker.accelerators) == ("g2-standard-8", accelerators)
    assert worker.zone.startswith(REGION)
    assert [w.name for w in hook.all_workers()[job_id]] == [worker.name]


def test_the_workers_of_a_job_are_its_own(session: GoogleSession) -> None:
    """Workers are told apart by job, and a job without any has none."""
    hook = WorkersHook(session)
    jobs = [submit(session) for _ in range(2)]
    by_job = until(lambda: found if set(jobs) <= set(found := hook.all_workers()) else None)
    assert {worker.name for worker in by_job[jobs[0]]}.isdisjoint(worker.name for worker in by_job[jobs[1]])
    assert hook.workers_of("2026-01-01_00_00_00-1") == ()


def test_workers_that_cannot_be_read_are_an_error(session: GoogleSession, emulator: Emulator) -> None:
    """Without the right to list instances nothing is known of workers."""
    emulator.fail(INSTANCES, status=403)
    with pytest.raises(GoogleApiError, match="403"):
        WorkersHook(session).workers_of("2026-01-01_00_00_00-1")


@pytest.mark.parametrize(("silent", "known"), [(f"{REGION}-a", False), ("asia-east1-a", True)])
def test_a_silent_zone_may_hide_workers(silent: str, known: bool) -> None:
    """No workers and a silent zone of the region mean that nothing is known; other regions don't matter."""
    path = "/compute/v1/projects/p/aggregated/instances"
    with StandIn({path: {"items": {}, "unreachables": [f"zones/{silent}"]}}) as google:
        hook = WorkersHook(anonymous(google))
        if known:
            assert hook.workers_of("j", region=REGION) == ()
        else:
            with pytest.raises(GoogleApiError, match=silent):
                hook.workers_of("j", region=REGION)


def test_quotas_of_all_places_are_read_once_each(session: GoogleSession, emulator: Emulator) -> None:
    """The project's and each region's quotas come by metric, each place asked once."""
    emulator.enter("stockout-then-quota-then-stock")
    mark = emulator.mark()
    readings = read_quotas(session, ["europe-west4", REGION, "europe-west4"])
    full, project = readings["europe-west4"], readings["global"]
    assert full is not None
    assert project is not None
    assert (full["NVIDIA_L4_GPUS"].limit, full["NVIDIA_L4_GPUS"].usage) == (1, 1)
    assert "GPUS_ALL_REGIONS" in project
    assert len(emulator.calls(REGIONS_GET, since=mark)) == 2


def test_unreadable_quotas_are_unknown(session: GoogleSession, emulator: Emulator) -> None:
    """A refusal and a region that isn't there give None, and no error."""
    emulator.fail("compute.projects.get", status=403)
    readings = read_quotas(session, ["mars-north1", REGION])
    assert (readings["global"], readings["mars-north1"]) == (None, None)
    assert readings[REGION]


def test_quotas_are_read_at_once(session: GoogleSession, emulator: Emulator) -> None:
    """Seven places that each take a second take little longer than one."""
    regions = ["us-central1", "us-east1", "us-west1", "europe-west1", "europe-west4", "asia-east1"]
    for method, times in (("compute.projects.get", 1), (REGIONS_GET, 6)):
        emulator.fail(method, times=times, delay=1)
    begun = time.monotonic()
    assert None not in read_quotas(session, regions).values()
    assert time.monotonic() - begun < 3.5


def test_a_late_quota_is_unknown(session: GoogleSession, emulator: Emulator) -> None:
    """What isn't read within the time limit is unknown, and what is read counts."""
    emulator.fail("compute.projects.get", times=1, delay=5)
    begun = time.monotonic()
    readings = read_quotas(session, [REGION], seconds=1.5)
    assert time.monotonic() - begun < 4
    assert readings["global"] is None
    assert readings[REGION]


def anonymous(google: StandIn) -> GoogleSession:
    return GoogleSession.from_connection(plain_connection(is_anonymous=True, project="p", endpoint_url=google.url))
