"""Following one job until something must be decided elsewhere: the loop that both modes share."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Protocol

from airflow_accel_provider.core.decisions import Cancel, Decision, Finish, GiveUp, Launch
from airflow_accel_provider.core.failures import Failure, FailureKind, Scope
from airflow_accel_provider.core.fallback import decide
from airflow_accel_provider.core.jobs import JobState, Service, Snapshot
from airflow_accel_provider.core.policy import Policy
from airflow_accel_provider.core.record import Attempt, Outcome, Record
from airflow_accel_provider.exceptions import AcceleratorConfigurationError, AcceleratorError, GoogleApiError
from airflow_accel_provider.hooks.services import end, look
from airflow_accel_provider.hooks.session import GoogleSession

PATIENCE = timedelta(minutes=15)
"""For how long the service may fail to answer before the task fails. The job is left as it is."""


class Log(Protocol):
    """The part of a logger that is used here; Airflow's are not the standard library's."""

    def info(self, event: str, *args: Any) -> Any:
        """Say what happened."""

    def warning(self, event: str, *args: Any) -> Any:
        """Say what should not have happened."""


class JobSource(Protocol):
    """Where a follower gets its snapshots; each call returns when it is time for another look."""

    async def snapshot(self, attempt: Attempt) -> Snapshot:
        """Return the next look at the attempt's job. Raises :class:`GoogleApiError`."""

    async def end(self, attempt: Attempt) -> None:
        """Ask the service to end the attempt's job, as the attempt says. Raises :class:`GoogleApiError`."""


class Journal(Protocol):
    """Where a follower writes before it acts, for whoever follows the same job after it."""

    async def write(self, record: Record) -> None:
        """Keep what the record's last attempt was asked for, and why. Raises where it must not be acted on."""

    async def recall(self, attempt: Attempt) -> Attempt:
        """Return the attempt as it was written before, or as it is."""


class NoJournal:
    """Nothing is kept: nobody else follows the job."""

    async def write(self, record: Record) -> None:
        """Keep nothing."""

    async def recall(self, attempt: Attempt) -> Attempt:
        """Return the attempt as it is."""
        return attempt


_NO_JOURNAL = NoJournal()


@dataclass(frozen=True, slots=True)
class Followed:
    """How the following of a job ended.

    ``record`` has no attempt that was only intended: where to go next is decided anew, on a fresh plan, by the worker.
    ``failure`` is set when nothing may be tried any more, whatever the plan.
    """

    record: Record
    failure: Failure | None = None


async def follow(
    record: Record,
    source: JobSource,
    policy: Policy,
    *,
    now: Callable[[], datetime],
    log: Log,
    journal: Journal = _NO_JOURNAL,
) -> Followed:
    """Poll, decide and cancel until the job has ended, may be left running, or may be waited for no longer.

    A cancel is carried out here, and its end seen here, so that a next attempt never overlaps with this one.
    """
    began = answered_at = now()
    refused: GoogleApiError | None = None
    while attempt := record.open:
        try:
            snapshot = await source.snapshot(attempt)
            answered_at = now()
            if not attempt.outcome.is_ending and snapshot.job and snapshot.job.state in _ASKED_FOR:
                record = record.with_attempt(await journal.recall(attempt))
            decision = decide(record, snapshot, policy, now())
            _tell(log, record, decision)
            # Kept before a cancel is asked for: its time runs also while the service does not take the request.
            record = _without_intent(decision.record) if isinstance(decision, Launch) else decision.record
            if _is_news(attempt, decision):
                await journal.write(record)
            if isinstance(decision, Cancel):
                refused = await _end(source, record.attempts[-1], log)
        except AcceleratorConfigurationError as error:
            return Followed(record, unanswered(attempt, FailureKind.CONFIGURATION, error))
        except GoogleApiError as error:
            if not error.is_transient or now() > _patience_ends(began, answered_at, policy):
                return Followed(record, unanswered(attempt, error.kind, error, silent=now() - answered_at))
            log.warning("poll=failed job=%s error=%s", attempt.job_id, error)
            continue
        if isinstance(decision, GiveUp):
            evidence = decision.failure.evidence or (str(refused) if refused else "")
            return Followed(record, replace(decision.failure, evidence=evidence))
    return Followed(record)


async def _end(source: JobSource, attempt: Attempt, log: Log) -> GoogleApiError | None:
    """Ask for a job's end; return what keeps the service from taking that for now. Raises what it refuses for good."""
    try:
        await source.end(attempt)
    except GoogleApiError as error:
        if not error.is_transient:
            raise
        log.warning("cancel=failed job=%s error=%s", attempt.job_id, error)
        return error
    return None


_ASKED_FOR = frozenset({JobState.CANCELLING, JobState.CANCELLED, JobState.DRAINING, JobState.DRAINED})
"""States that somebody has asked for: perhaps a follower before this one."""


def _is_news(attempt: Attempt, decision: Decision) -> bool:
    """Tell whether a decision must be known to whoever follows the job next: its end is asked for, or it is left."""
    is_asked = isinstance(decision, Cancel) and not attempt.outcome.is_ending
    return is_asked or (isinstance(decision, Finish) and decision.record.alive is not None)


def _patience_ends(began: datetime, answered_at: datetime, policy: Policy) -> datetime:
    """Return until when to wait for an answer: no longer than the try lasts, and the cancel that it ends with."""
    ends = answered_at + PATIENCE
    return min(ends, max(policy.deadline.at, began) + policy.cancel_timeout) if policy.deadline else ends


def _without_intent(record: Record) -> Record:
    attempts = tuple(attempt for attempt in record.attempts if attempt.outcome is not Outcome.INTENT)
    return replace(record, attempts=attempts)


def unanswered(
    attempt: Attempt, kind: FailureKind, error: AcceleratorError, *, silent: timedelta = timedelta()
) -> Failure:
    """Return the failure of a service that can't be asked, refuses, or did not answer, questions about a job."""
    lasted = f" for {silent.total_seconds() / 60:.0f} min" if silent >= timedelta(minutes=1) else ""
    return Failure(
        kind=kind,
        scope=Scope.JOB,
        explanation=f"nobody could be asked{lasted} about job {attempt.job_id}, which may go on; nothing was cancelled",
        evidence=str(error),
    )


def _tell(log: Log, before: Record, decision: Decision) -> None:
    """Log one line an event, and nothing for a poll that changed nothing."""
    old, new = before.open, decision.record.attempts[-1] if decision.record.attempts else None
    if old is None or new is None or old.n != new.n:
        return
    if new.is_proven and not old.is_proven and new.proof:
        proof = new.proof
        log.info(
            "proof=seen accelerator=%s count=%s machine=%s zone=%s job=%s",
            proof.accelerator,
            proof.count,
            proof.machine_type,
            proof.zone,
            new.job_id,
        )
    if isinstance(decision, Cancel) and old.outcome != new.outcome and new.failure:
        log.warning("cancel job=%s kind=%s reason=%s", new.job_id, new.failure.kind, new.failure.explanation)


class Stopped(Exception):  # noqa: N818 - nothing went wrong: somebody asked the follower to stop
    """The follower was told to stop waiting."""


class OwnLook:
    """Snapshots for one follower alone, at its own pace; what a task that waits on a worker uses."""

    def __init__(
        self,
        session: GoogleSession,
        poll_interval: float,
        *,
        stopped: Callable[[], bool],
        service: Service = "dataflow",
    ) -> None:
        self._session = session
        self._service = service
        self._poll_interval = poll_interval
        self._stopped = stopped
        self._looked = False

    async def snapshot(self, attempt: Attempt) -> Snapshot:
        """Return a look at the job, waiting one interval before each but the first. Raises :class:`Stopped`."""
        if self._looked:
            await self._pause()
        self._looked = True
        if self._stopped():
            raise Stopped
        if attempt.job_id is None:
            return Snapshot(job=None)
        wanted = {attempt.job_id: not attempt.is_proven}
        looked = await asyncio.to_thread(look, self._session, self._service, attempt.placement.region, wanted)
        return looked[attempt.job_id]

    async def end(self, attempt: Attempt) -> None:
        """Ask for the job's end."""
        await asyncio.to_thread(end, self._session, self._service, attempt)

    async def _pause(self) -> None:
        """Sleep for an interval, in short steps so that a kill is noticed within a second."""
        left = self._poll_interval
        while left > 0 and not self._stopped():
            await asyncio.sleep(min(left, 1))
            left -= 1
