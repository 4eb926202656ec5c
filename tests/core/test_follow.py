"""Following a job: the one loop that waits, proves, cancels and sees the end, on a clock of its own."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from airflow_accel_provider.core.failures import FailureKind
from airflow_accel_provider.core.fallback import cancelling
from airflow_accel_provider.core.jobs import Importance, Job, JobState, Message, Snapshot, Worker
from airflow_accel_provider.core.policy import Policy
from airflow_accel_provider.core.record import Attempt, Outcome, Record
from airflow_accel_provider.exceptions import AcceleratorConfigurationError, AcceleratorError, GoogleApiError
from airflow_accel_provider.triggers._follow import PATIENCE, Followed, OwnLook, Stopped, follow
from tests.core.drawn_records import MOMENT
from tests.core.test_classification import STOCKOUT
from tests.core.test_fallback import BARE, QUOTA_FULL, US, WITH_L4, running

POLL = timedelta(seconds=10)


@dataclass
class Service:
    """A service with one job that lives by a script: from a minute on, a state, workers or a message.

    Time passes only between two looks. A cancelled job takes a while to end; errors come in the order given, and
    ``None`` among them is an answer.
    """

    script: dict[float, JobState | Worker | str] = field(default_factory=dict)
    errors: list[AcceleratorError | None] = field(default_factory=list)
    cancel_errors: list[AcceleratorError] = field(default_factory=list)
    heeds_cancel: bool = True
    now: datetime = MOMENT
    looks: int = 0
    asked_to_cancel: list[datetime] = field(default_factory=list)
    ended: list[Attempt] = field(default_factory=list)

    async def snapshot(self, attempt: Attempt) -> Snapshot:
        """Return the job after another interval."""
        await asyncio.sleep(0)
        self.now += POLL
        self.looks += 1
        if error := self.errors.pop(0) if self.errors else None:
            raise error
        past = [said for minutes, said in self.script.items() if MOMENT + timedelta(minutes=minutes) <= self.now]
        workers = tuple(said for said in past if isinstance(said, Worker))
        texts = [said for said in past if isinstance(said, str) and not isinstance(said, JobState)]
        return Snapshot(
            job=Job(id=attempt.job_id or "", name=attempt.job_name, region="us-central1", state=self._state(past)),
            messages=tuple(Message(text=text, importance=Importance.ERROR, at=MOMENT) for text in texts),
            workers=workers,
        )

    def _state(self, past: list[JobState | Worker | str]) -> JobState:
        states = [said for said in past if isinstance(said, JobState)]
        if not self.asked_to_cancel or not self.heeds_cancel:
            return states[-1] if states else JobState.RUNNING
        is_over = self.now - self.asked_to_cancel[0] >= 3 * POLL
        return JobState.CANCELLED if is_over else JobState.CANCELLING

    async def end(self, attempt: Attempt) -> None:
        """Take the wish, or fail as told."""
        assert attempt.job_id == "job-1"
        if self.cancel_errors:
            raise self.cancel_errors.pop(0)
        self.asked_to_cancel.append(self.now)
        self.ended.append(attempt)


@dataclass
class Lines:
    """A log that keeps its lines."""

    lines: list[str] = field(default_factory=list)

    def info(self, event: str, *args: Any) -> None:
        """Keep the line."""
        self.lines.append(event % args)

    warning = info


async def followed(
    service: Service, record: Record | None = None, policy: Policy | None = None, log: Lines | None = None
) -> Followed:
    start = record or running(US)
    return await follow(start, service, policy or Policy(), now=lambda: service.now, log=log or Lines())


def refusal(status: int) -> GoogleApiError:
    return GoogleApiError(status, "why", "The service's words.", "dataflow", "GET jobs")


def last(done: Followed) -> Attempt:
    return done.record.attempts[-1]


async def test_a_proven_job_is_waited_for_and_finishes() -> None:
    """A job whose accelerator is seen is followed to its end, and the proof is told once."""
    log = Lines()
    service = Service({1: WITH_L4, 90: JobState.DONE})
    done = await followed(service, log=log)
    assert done.failure is None
    assert (last(done).outcome, last(done).is_proven, service.asked_to_cancel) == (Outcome.DONE, True, [])
    assert log.lines == ["proof=seen accelerator=nvidia-l4 count=1 machine=g2-standard-8 zone=us-central1-a job=job-1"]
    assert service.now >= MOMENT + timedelta(minutes=90)


async def test_a_stockout_is_cancelled_and_its_end_is_seen() -> None:
    """The follower cancels a job without stock, sees it end, and leaves the next place to the worker."""
    log = Lines()
    service = Service({1: STOCKOUT})
    done = await followed(service, running(), log=log)
    assert done.failure is None
    assert done.record.open is None
    assert [attempt.outcome for attempt in done.record.attempts] == [Outcome.CANCELLED]
    failure, ended_at = last(done).failure, last(done).ended_at
    assert failure is not None
    assert failure.kind is FailureKind.STOCKOUT
    assert ended_at is not None
    assert ended_at >= service.asked_to_cancel[0] + 3 * POLL
    assert [line.split(" reason=")[0] for line in log.lines] == ["cancel job=job-1 kind=stockout"]


async def test_a_job_without_its_device_is_cancelled() -> None:
    """Workers that stay without the device for the grace get their job cancelled, and no other place is tried."""
    done = await followed(Service({1: BARE}), running())
    assert done.failure is not None
    assert done.failure.kind is FailureKind.ACCELERATOR_MISSING
    assert last(done).outcome is Outcome.CANCELLED


async def test_a_job_that_does_not_end_is_named() -> None:
    """When a cancelled job has not ended in time, following ends with its name, and the attempt stays open."""
    service = Service({1: STOCKOUT}, heeds_cancel=False)
    done = await followed(service, running(), Policy(cancel_timeout=timedelta(minutes=2)))
    assert done.failure is not None
    assert "job job-1 in us-central1 was asked to cancel" in done.failure.explanation
    assert done.record.open is not None
    assert len(service.asked_to_cancel) > 1


async def test_a_cancel_that_never_gets_through_ends_in_time() -> None:
    """While the service takes no cancel, time runs all the same, and the job is named at its end."""
    log = Lines()
    service = Service({1: STOCKOUT}, cancel_errors=[refusal(503)] * 1000)
    done = await followed(service, running(), Policy(cancel_timeout=timedelta(minutes=2)), log)
    assert done.failure is not None
    assert "did not end within 120 s" in done.failure.explanation
    assert sum(line.startswith("cancel ") for line in log.lines) == 1


async def test_a_lost_cancel_is_asked_for_again() -> None:
    """A cancel that failed for a moment is repeated until it is taken."""
    service = Service({1: STOCKOUT}, cancel_errors=[refusal(503)] * 3)
    done = await followed(service, running())
    assert done.failure is None
    assert last(done).outcome is Outcome.CANCELLED


async def test_a_job_that_was_being_cancelled_goes_on_being_cancelled() -> None:
    """A follower that takes over an attempt in cancellation sees it through."""
    record = running(US)
    ending = cancelling(record.attempts[-1], QUOTA_FULL, MOMENT)
    done = await followed(Service(), record.with_attempt(ending))
    assert last(done).outcome is Outcome.CANCELLED
    assert last(done).failure == QUOTA_FULL


async def test_nothing_open_is_nothing_to_follow() -> None:
    """A record without an open attempt comes back as it is, and nobody is asked."""
    record = running(US)
    ended = record.with_attempt(replace(record.attempts[-1], outcome=Outcome.DONE))
    service = Service()
    assert await followed(service, ended) == Followed(ended)
    assert service.looks == 0


@pytest.mark.parametrize(
    ("status", "kind"),
    [(401, FailureKind.PERMISSION), (403, FailureKind.PERMISSION), (400, FailureKind.SERVICE)],
)
async def test_a_refusal_ends_the_following_and_nothing_else(status: int, kind: FailureKind) -> None:
    """A refused question fails the task at once, with the service's words, and cancels nothing."""
    service = Service(errors=[refusal(status)])
    done = await followed(service)
    assert done.failure is not None
    assert done.failure.kind is kind
    assert "The service's words." in done.failure.evidence
    assert "job-1, which may go on" in done.failure.explanation
    assert (service.looks, service.asked_to_cancel, done.record) == (1, [], running(US))


async def test_an_unusable_connection_ends_the_following() -> None:
    """A connection that became unusable while the task waited is one clear failure, and cancels nothing."""
    service = Service(errors=[AcceleratorConfigurationError("Connection 'gcp' gives no usable credentials")])
    done = await followed(service)
    assert done.failure is not None
    assert (done.failure.kind, service.asked_to_cancel) == (FailureKind.CONFIGURATION, [])
    assert "Connection 'gcp'" in done.failure.evidence


@pytest.mark.parametrize("status", [0, 429, 500, 503])
async def test_an_outage_within_patience_passes(status: int) -> None:
    """A service that is silent for less than the patience costs nothing but a line for each failed look."""
    log = Lines()
    looks = PATIENCE // POLL - 1
    service = Service({1: WITH_L4, 30: JobState.DONE}, errors=[refusal(status)] * looks)
    done = await followed(service, log=log)
    assert done.failure is None
    assert last(done).outcome is Outcome.DONE
    assert sum(line.startswith("poll=failed job=job-1") for line in log.lines) == looks


async def test_an_outage_beyond_patience_fails_the_task() -> None:
    """A service that stays silent for longer than the patience fails the task and leaves the job alone."""
    service = Service(errors=[refusal(503)] * 1000)
    done = await followed(service)
    assert done.failure is not None
    assert (done.failure.kind, service.asked_to_cancel) == (FailureKind.SERVICE, [])
    assert PATIENCE < service.now - MOMENT <= PATIENCE + 2 * POLL


async def test_patience_begins_anew_with_every_answer() -> None:
    """Outages that add up to more than the patience are borne when the service answers in between."""
    outage: list[AcceleratorError | None] = [refusal(503)] * (PATIENCE // POLL - 1)
    service = Service({1: WITH_L4, 60: JobState.DONE}, errors=[*outage, None, *outage, None, *outage])
    assert (await followed(service)).failure is None


async def test_a_cancelled_follower_stops_and_cancels_no_job() -> None:
    """Whoever cancels the follower gets CancelledError back, and the job is left alone."""
    service = Service()
    task = asyncio.create_task(followed(service))
    while service.looks < 3:
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert service.asked_to_cancel == []


# --- a follower of its own, as on a worker


class OneJob:
    """A session that knows one running job and counts its questions."""

    project = "acme-ml-prod"
    told_at = None

    def __init__(self) -> None:
        self.asked: list[str] = []

    def request(self, service: str, verb: str, path: str, **_: Any) -> dict[str, Any]:
        """Answer with the job."""
        self.asked.append(f"{service} {verb} {path.rpartition('/')[2]}")
        return {"id": "job-1", "name": "score", "currentState": "JOB_STATE_RUNNING"}

    def pages(self, service: str, path: str, **_: Any) -> list[dict[str, Any]]:
        """Answer with an empty page."""
        self.asked.append(f"{service} GET {path.rpartition('/')[2]}")
        return [{}]


async def test_on_a_worker_a_look_comes_each_interval_until_told_to_stop() -> None:
    """Looks keep their interval, and a stop in the middle of an hour's pause is noticed within seconds."""
    session, stop = OneJob(), [False]
    source = OwnLook(session, 3600, stopped=lambda: stop[0])  # type: ignore[arg-type]
    log = Lines()
    task = asyncio.create_task(follow(running(US), source, Policy(), now=lambda: MOMENT, log=log))
    deadline = time.monotonic() + 30
    while not session.asked:
        assert time.monotonic() < deadline
        await asyncio.sleep(0.01)
    stop[0] = True
    with pytest.raises(Stopped):
        await asyncio.wait_for(task, 30)
    assert session.asked == ["dataflow GET job-1", "compute GET instances", "dataflow GET messages"]


async def test_on_a_worker_that_was_told_to_stop_nobody_is_asked() -> None:
    """A follower that was stopped beforehand asks nothing."""
    session = OneJob()
    source = OwnLook(session, 1, stopped=lambda: True)  # type: ignore[arg-type]
    with pytest.raises(Stopped):
        await follow(running(US), source, Policy(), now=lambda: MOMENT, log=Lines())
    assert session.asked == []
