"""The poll that all triggers of a triggerer share: few calls, nobody forgotten, nobody held up."""

from __future__ import annotations

import asyncio
import gc
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from airflow_accel_provider.core.jobs import JobState, Snapshot
from airflow_accel_provider.core.placement import Placement
from airflow_accel_provider.core.policy import Policy
from airflow_accel_provider.core.proof import SOURCE_VMS, Proof, ProofStatus
from airflow_accel_provider.core.record import Attempt, Outcome, PlannedPlace, Record, begin
from airflow_accel_provider.exceptions import AcceleratorConfigurationError, GoogleApiError
from airflow_accel_provider.hooks.polling import look
from airflow_accel_provider.triggers._follow import follow
from airflow_accel_provider.triggers._watch import SharedLook

if TYPE_CHECKING:
    from collections.abc import Iterator

NOW = datetime(2026, 3, 2, 6, 0, tzinfo=UTC)
INTERVAL = 0.05
PATIENCE = 60
SEEN = Proof(status=ProofStatus.SEEN, source=SOURCE_VMS, at=NOW)


@dataclass
class Google:
    """A Google with running jobs that counts what it is asked, and how many are asking at the same time."""

    calls: Counter[str] = field(default_factory=Counter)
    ended: dict[str, str] = field(default_factory=dict)
    forgotten: set[str] = field(default_factory=set)
    refusing: dict[str, int] = field(default_factory=dict)
    failing: list[GoogleApiError] = field(default_factory=list)
    jobs: int = 0
    delay: float = 0.0
    connections_read: int = 0
    good_key: int = 1
    cancelled: list[str] = field(default_factory=list)
    asking: int = 0
    most_asking: int = 0

    def answer(self, key: int, call: str) -> None:
        """Count a call, take its time, and fail it as told."""
        self.calls[call] += 1
        time.sleep(self.delay)
        if key < self.good_key:
            raise refusal(401)
        if call in self.refusing:
            raise refusal(self.refusing[call])
        if self.failing:
            raise self.failing.pop(0)


def refusal(status: int) -> GoogleApiError:
    return GoogleApiError(status, "why", "no", "dataflow", "GET jobs")


@dataclass(frozen=True)
class Session:
    """Speaks to a Google with the key that was in the connection when it was read."""

    google: Google
    key: int
    project: str = "acme"
    told_at: None = None

    def request(self, _service: str, verb: str, path: str, **_: Any) -> dict[str, Any]:
        """Answer about one job, or cancel it."""
        job_id = path.rpartition("/")[2]
        self.google.answer(self.key, f"jobs.{verb.lower()}")
        if job_id in self.google.forgotten:
            raise refusal(404)
        if verb == "PUT":
            self.google.cancelled.append(job_id)
        return self._job(job_id)

    def pages(self, _service: str, path: str, **_: Any) -> Iterator[dict[str, Any]]:
        """Answer with all active jobs, with no messages, or with no VMs."""
        call = f"{path.rpartition('/')[2]}.list"
        self.google.asking += call == "jobs.list"
        self.google.most_asking = max(self.google.most_asking, self.google.asking)
        try:
            self.google.answer(self.key, call)
        finally:
            self.google.asking -= call == "jobs.list"
        active = [f"job-{n}" for n in range(self.google.jobs)]
        yield {"jobs": [self._job(job_id) for job_id in active if job_id not in self.google.ended]}

    def _job(self, job_id: str) -> dict[str, Any]:
        state = self.google.ended.get(job_id, "JOB_STATE_RUNNING")
        return {"id": job_id, "name": job_id, "currentState": state}


@dataclass(frozen=True, eq=False)
class Somebody:
    """An identity whose connection holds the newest key each time it is read."""

    google: Google
    newest_key: list[int] = field(default_factory=lambda: [1])

    async def session(self) -> Session:
        """Read the connection and return a session."""
        self.google.connections_read += 1
        await asyncio.sleep(0.01)
        if not self.newest_key:
            raise AcceleratorConfigurationError("Connection 'gcp' gives no usable credentials")
        return Session(self.google, self.newest_key[-1])


def attempt(job_id: str | None, *, region: str = "us-central1", proven: bool = True) -> Attempt:
    return Attempt(
        n=1,
        candidate=0,
        round=1,
        placement=Placement.parse(f"nvidia-l4 on g2-standard-8 in {region}"),
        job_name="score",
        job_id=job_id,
        intent_at=NOW,
        submitted_at=NOW,
        outcome=Outcome.SUBMITTED,
        proof=SEEN if proven else None,
    )


def looking(who: Somebody, interval: float = INTERVAL) -> SharedLook:
    return SharedLook(who, interval)  # type: ignore[arg-type]


async def looks(who: Somebody, times: int, job_id: str = "job-0", **about: Any) -> list[JobState]:
    """Follow a job for some looks, as a trigger does."""
    seen = [await looking(who).snapshot(attempt(job_id, **about)) for _ in range(times)]
    return [snapshot.job.state for snapshot in seen if snapshot.job]


async def until(condition: Any) -> None:
    async with asyncio.timeout(PATIENCE):
        while not condition():
            await asyncio.sleep(0.005)


async def at_rest() -> None:
    """Wait until no task but this one is left."""
    await until(lambda: len(asyncio.all_tasks()) == 1)


# --- few calls


@pytest.mark.parametrize("proven", [True, False])
@pytest.mark.parametrize("followers", [2, 200])
async def test_calls_do_not_grow_with_the_followers(followers: int, proven: bool) -> None:
    """However many jobs are followed, a tick costs one listing of jobs and, while one is unproven, one of VMs."""
    google = Google(jobs=followers)
    who = Somebody(google)
    seen = await asyncio.gather(*(looks(who, 5, f"job-{n}", proven=proven) for n in range(followers)))
    assert seen == [[JobState.RUNNING] * 5] * followers
    messages = google.calls.pop("messages.list", 0)
    assert google.calls == {"jobs.list": 5} | ({} if proven else {"instances.list": 5})
    assert messages == (0 if proven else 5 * followers)
    assert (google.connections_read, google.most_asking) == (1, 1)


async def test_a_late_follower_joins_the_loop() -> None:
    """Followers that come later are told by the same loop: no two ticks of it ever overlap."""
    google = Google(jobs=50, delay=0.01)
    who = Somebody(google)

    async def late(n: int) -> list[JobState]:
        await asyncio.sleep(n * 0.01)
        return await looks(who, 5, f"job-{n}")

    first = asyncio.create_task(looks(who, 12, "job-0"))
    await asyncio.gather(first, *(late(n) for n in range(1, 50)))
    assert google.most_asking == 1
    assert google.calls["jobs.list"] < 50
    assert google.connections_read == 1


async def test_two_followers_of_one_job_both_hear() -> None:
    """Followers of the same job, proven and not, get the same look."""
    google = Google(jobs=1)
    who = Somebody(google)
    both = await asyncio.gather(looks(who, 3), looks(who, 3, proven=False))
    assert both == [[JobState.RUNNING] * 3] * 2
    assert google.calls["instances.list"] == google.calls["messages.list"] == 3


async def test_the_shortest_interval_is_kept() -> None:
    """Ticks come no faster than the shortest interval, and a patient follower does not slow the others down."""
    who = Somebody(Google(jobs=2))
    patient = asyncio.create_task(looking(who, 3600).snapshot(attempt("job-1")))
    begun = time.monotonic()
    await asyncio.wait_for(looks(who, 4), PATIENCE)
    assert time.monotonic() - begun >= 3 * INTERVAL
    await asyncio.wait_for(patient, PATIENCE)


async def test_identities_and_regions_have_polls_of_their_own() -> None:
    """Another region is asked separately with the same session, another identity with a session of its own."""
    google, other = Google(jobs=2), Google(jobs=2)
    who = Somebody(google)
    await asyncio.gather(
        *(looks(who, 3, f"job-{n}", region=region) for n in range(2) for region in ("us-central1", "europe-west4")),
        *(looks(Somebody(other), 3, f"job-{n}") for n in range(2)),
    )
    assert (google.calls["jobs.list"], google.connections_read) == (6, 1)
    # Each of the two others is an identity of its own, with one job that is asked for by its id.
    assert (other.calls, other.connections_read) == ({"jobs.get": 6}, 2)


async def test_an_attempt_without_a_job_asks_nobody() -> None:
    """What was never submitted is known to be no job without a call."""
    google = Google()
    assert await looking(Somebody(google)).snapshot(attempt(None)) == Snapshot(job=None)
    assert (google.calls, google.connections_read) == ({}, 0)


# --- nobody forgotten


async def test_a_cancelled_follower_leaves_the_others_alone() -> None:
    """Followers that are cancelled before, during and after a tick disturb no other."""
    google = Google(jobs=40, delay=0.02)
    who = Somebody(google)
    tasks = [asyncio.create_task(looks(who, 6, f"job-{n}")) for n in range(40)]
    for n, task in enumerate(tasks[:20]):
        await asyncio.sleep(0.007 if n else 0)
        task.cancel()
    kept = await asyncio.wait_for(asyncio.gather(*tasks[20:]), PATIENCE)
    assert kept == [[JobState.RUNNING] * 6] * 20
    with suppress(asyncio.CancelledError):
        await tasks[0]
    assert tasks[0].cancelled()


async def test_the_first_follower_may_go_while_the_session_is_made() -> None:
    """The follower that started the loop is cancelled at once, and the others are told all the same."""
    who = Somebody(Google(jobs=2))
    first, second = asyncio.create_task(looks(who, 1, "job-0")), asyncio.create_task(looks(who, 1, "job-1"))
    await asyncio.sleep(0.001)
    first.cancel()
    assert await asyncio.wait_for(second, PATIENCE) == [JobState.RUNNING]


async def test_an_error_reaches_all_and_the_next_tick_works() -> None:
    """When a tick fails every follower of it hears so, and all are told by the next one."""
    google = Google(jobs=30, failing=[refusal(503)])
    who = Somebody(google)
    first = await asyncio.gather(*(looks(who, 1, f"job-{n}") for n in range(30)), return_exceptions=True)
    assert {str(error) for error in first} == {str(refusal(503))}
    assert await asyncio.gather(*(looks(who, 1, f"job-{n}") for n in range(30))) == [[JobState.RUNNING]] * 30
    assert google.calls == {"jobs.list": 2}


async def test_the_loop_ends_and_begins_again() -> None:
    """When nobody waits any more no task is left, and a new follower starts the loop again."""
    google = Google(jobs=1)
    who = Somebody(google)
    await looks(who, 2)
    await at_rest()
    calls = google.calls.total()
    await asyncio.sleep(3 * INTERVAL)
    assert google.calls.total() == calls
    assert await asyncio.wait_for(looks(who, 2), PATIENCE) == [JobState.RUNNING] * 2
    await at_rest()


def test_each_event_loop_has_its_own() -> None:
    """What one event loop shared is no other's, also when that ended in the middle of a wait."""
    google = Google(jobs=1)
    who = Somebody(google)

    async def interrupted() -> None:
        waiting = asyncio.create_task(looking(who, 3600).snapshot(attempt("job-0")))
        await waiting
        forever = asyncio.create_task(looking(who, 3600).snapshot(attempt("job-0")))
        await asyncio.sleep(0.01)
        assert not forever.done()

    for _ in range(3):
        asyncio.run(asyncio.wait_for(interrupted(), PATIENCE))
    assert google.calls == {"jobs.get": 3}
    assert google.connections_read == 3


# --- sessions


async def test_a_refused_key_has_the_connection_read_again() -> None:
    """When Google no longer takes the key, the connection's new one is used, and no follower hears of it."""
    google = Google(jobs=20)
    who = Somebody(google)
    tasks = [asyncio.create_task(looks(who, 8, f"job-{n}")) for n in range(20)]
    await until(lambda: google.calls["jobs.list"] >= 2)
    who.newest_key.append(2)
    google.good_key = 2
    assert await asyncio.wait_for(asyncio.gather(*tasks), PATIENCE) == [[JobState.RUNNING] * 8] * 20
    assert google.connections_read == 2


async def test_a_key_that_stays_refused_is_told() -> None:
    """When the connection's newest key is refused too, every follower hears so after one more try."""
    google = Google(jobs=5, good_key=9)
    who = Somebody(google)
    told = await asyncio.gather(*(looks(who, 1, f"job-{n}") for n in range(5)), return_exceptions=True)
    assert {getattr(error, "status", None) for error in told} == {401}
    assert (google.calls, google.connections_read) == ({"jobs.list": 2}, 2)


async def test_a_bad_connection_is_told_to_all_and_tried_again() -> None:
    """A connection that gives no session is one error for all who wait, and is read anew by the next tick."""
    google = Google(jobs=5)
    who = Somebody(google, newest_key=[])
    told = await asyncio.gather(*(looks(who, 1, f"job-{n}") for n in range(5)), return_exceptions=True)
    assert {type(error) for error in told} == {AcceleratorConfigurationError}
    assert google.connections_read == 1
    who.newest_key.append(1)
    assert await looks(who, 1) == [JobState.RUNNING]


async def test_a_connection_is_read_anew_after_a_rest() -> None:
    """When all followers of an identity are gone, the next one reads its connection as it is then."""
    google = Google(jobs=1)
    who = Somebody(google)
    await looks(who, 2)
    await at_rest()
    await looks(who, 2)
    assert google.connections_read == 2


async def test_cancels_go_through_the_shared_session() -> None:
    """A hundred cancels read the connection no more often than the looks before them: once."""
    google = Google(jobs=100)
    who = Somebody(google)
    waiting = asyncio.create_task(looks(who, 1000))
    await until(lambda: google.calls["jobs.get"] >= 1)
    await asyncio.gather(*(looking(who).end(attempt(f"job-{n}")) for n in range(100)))
    waiting.cancel()
    assert (len(set(google.cancelled)), google.connections_read) == (100, 1)


# --- nobody held up


@pytest.fixture
def small_heap() -> Iterator[None]:
    """Leave what other tests have loaded out of Python's collections: those alone take longer than is allowed here."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.mark.usefixtures("small_heap")
async def test_the_event_loop_is_never_held_up() -> None:
    """With 2,000 followers that decide at each tick, and a slow Google, the event loop never works over 100 ms at once.

    What is measured is the thread's own time, so that a busy machine does not count, and the loop's turns while Google
    is thinking, which a blocking call would take away.
    """
    google = Google(jobs=2000, delay=0.3)
    who = Somebody(google)
    policy, log = Policy(), Silence()

    def record(n: int) -> Record:
        begun = begin(owner="f" * 32, max_tries=0, now=NOW, project="acme", prefix="score")
        open_one = attempt(f"job-{n}")
        return replace(begun, plan=(PlannedPlace(placement=open_one.placement),)).with_attempt(open_one)

    tasks = []
    for start in range(0, 2000, 50):
        tasks += [
            asyncio.create_task(follow(record(n), looking(who), policy, now=lambda: NOW, log=log))
            for n in range(start, start + 50)
        ]
        await asyncio.sleep(0)
    worked: list[float] = []
    turns_while_asking = 0
    before = google.calls["jobs.list"]
    async with asyncio.timeout(PATIENCE):
        while google.calls["jobs.list"] < before + 5:
            begun = time.thread_time()
            await asyncio.sleep(0.001)
            worked.append(time.thread_time() - begun)
            turns_while_asking += google.asking > 0
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert max(worked) < 0.1
    assert turns_while_asking > 20


class Silence:
    """A log that keeps nothing."""

    def info(self, event: str, *args: Any) -> None:
        """Say nothing."""

    warning = info


# --- one look


def seen_by(google: Google, **wanted: bool) -> dict[str, Snapshot]:
    return look(Session(google, 1), "us-central1", {id_.replace("_", "-"): prove for id_, prove in wanted.items()})  # type: ignore[arg-type]


def test_a_single_job_is_asked_for_by_its_id() -> None:
    """A lone follower's tick lists nothing."""
    google = Google(jobs=1)
    assert list(seen_by(google, job_0=False)) == ["job-0"]
    assert google.calls == {"jobs.get": 1}


def test_jobs_that_left_the_list_are_asked_for() -> None:
    """What is no longer active is read by its id, and only its messages, since it ended badly."""
    google = Google(jobs=9, ended={"job-1": "JOB_STATE_DONE", "job-2": "JOB_STATE_FAILED"}, forgotten={"job-9"})
    snapshots = seen_by(google, job_0=False, job_1=False, job_2=False, job_9=True)
    assert {id_: snapshot.job and snapshot.job.state for id_, snapshot in snapshots.items()} == {
        "job-0": JobState.RUNNING,
        "job-1": JobState.DONE,
        "job-2": JobState.FAILED,
        "job-9": None,
    }
    assert google.calls == {"jobs.list": 1, "jobs.get": 3, "messages.list": 1}


@pytest.mark.parametrize("jobs", [1, 3])
def test_unreadable_parts_are_unknown(jobs: int) -> None:
    """Without the right to read messages or VMs the job is still seen: no messages, and workers unknown."""
    google = Google(jobs=jobs, refusing={"messages.list": 403, "instances.list": 403})
    snapshots = seen_by(google, **{f"job_{n}": True for n in range(jobs)})
    for snapshot in snapshots.values():
        assert snapshot.job is not None
        assert (snapshot.messages, snapshot.workers) == ((), None)


def test_unreadable_jobs_are_an_error() -> None:
    """When the jobs themselves can't be read the look fails, and tells of none."""
    with pytest.raises(GoogleApiError, match="403"):
        seen_by(Google(jobs=3, refusing={"jobs.list": 403}), job_0=False, job_1=False)
