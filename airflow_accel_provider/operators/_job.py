"""The shell that all operators share: it reads, writes, submits and waits; what to do is decided in the core."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from airflow.sdk.exceptions import AirflowTaskTimeout, TaskDeferralError, TaskDeferralTimeout

from airflow_accel_provider.core.decisions import Finish, GiveUp
from airflow_accel_provider.core.failures import Failure, FailureKind
from airflow_accel_provider.core.fallback import close, decide, ending, timing_out
from airflow_accel_provider.core.observing import submitted_at
from airflow_accel_provider.core.record import VERSION, Attempt, Outcome, Record
from airflow_accel_provider.core.report import attempt_line, plan_table, report
from airflow_accel_provider.core.search import is_searching
from airflow_accel_provider.exceptions import (
    AcceleratorConfigurationError,
    AcceleratorError,
    AcceleratorKilledError,
    AcceleratorSupersededError,
    GoogleApiError,
    job_error,
)
from airflow_accel_provider.operators._context import (
    alive_attempt,
    check_current,
    labels_for,
    mark_cleared,
    noted,
    open_record,
    pages_of,
    publish,
    store,
)
from airflow_accel_provider.operators._deadline import LATE, deadline_of, held_to
from airflow_accel_provider.operators._face import AcceleratorOperator
from airflow_accel_provider.operators._item import item_of

# Hooks and triggers are imported where a task runs: parsing a DAG needs neither, and pays for every import.
if TYPE_CHECKING:
    from collections.abc import Callable

    from airflow.sdk import Context

    from airflow_accel_provider.core.deadline import Deadline
    from airflow_accel_provider.core.jobs import Job
    from airflow_accel_provider.hooks.session import GoogleSession
    from airflow_accel_provider.triggers._follow import Followed
    from airflow_accel_provider.triggers.job import AcceleratorJobTrigger

_STEP_SECONDS = 5.0
_KILL_SECONDS = 30.0

_MOST_CRASHES = 2
"""How many triggers may crash before the task waits on its worker: what crashes each of them would go on for ever."""


class AcceleratorJobOperator(AcceleratorOperator):
    """Run one accelerated job in the first place that has room, prove the accelerator, and wait for the end."""

    console_pages: Mapping[str, str] = MappingProxyType({})
    """The pages of the current job, by link."""
    _written: Record | None = None
    _context: Context | None = None
    _is_killed = False
    _killing: threading.Thread | None = None

    def execute(self, context: Context) -> dict[str, Any]:
        """Plan, adopt or submit, wait, and return the winner with every attempt."""
        return self._in_time(context, partial(self._begin, context))

    def resume(self, context: Context, event: dict[str, Any]) -> dict[str, Any]:
        """Go on with what the trigger saw."""
        return self._in_time(context, partial(self._hear, context, event))

    def resume_execution(self, next_method: str, next_kwargs: dict[str, Any] | None, context: Context) -> Any:
        """Go on after a deferral, also when no trigger told of the job: whatever it does, it is looked after."""
        try:
            return super().resume_execution(next_method, next_kwargs, context)
        except TaskDeferralTimeout:
            # Where no triggerer was heard of, another trigger would not be either.
            self.log.warning("trigger=silent reason=no triggerer was heard of in time; the job is looked at from here")
            self.deferrable = False
            return self._in_time(context, partial(self._begin, context, is_unheard=True))
        except TaskDeferralError as crashed:
            self.log.warning("trigger=crashed error=%s; the job is looked at again", crashed)
            return self._in_time(context, partial(self._begin, context, is_unheard=True, crashes=1))

    def _in_time(self, context: Context, step: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """Do a step of the life within the time of the try; what Google leaves unanswered ends the try, not the job."""
        self._context = context
        self._deadline = deadline = deadline_of(context, self.execution_timeout)
        try:
            try:
                with held_to(deadline):
                    return step()
            except AirflowTaskTimeout:
                if deadline is None:
                    raise
                return self._time_out(context, deadline)
        except AcceleratorSupersededError:
            mark_cleared(context)
            raise
        except GoogleApiError as error:
            said = f"{error}".rstrip(".")
            raise job_error(error.kind, f"{self.task_id} failed, {error.kind}: {said}. {_left(context)}") from error
        except AcceleratorConfigurationError as error:
            alive = alive_attempt(context)
            if alive is None or (alive.job_id or alive.job_name) in str(error):
                raise
            raise AcceleratorConfigurationError(f"{error}\n{_left(context)}") from error
        finally:
            # Airflow ends the process at once when this returns, whatever its threads have still to do.
            if self._killing:
                self._killing.join(_KILL_SECONDS)

    def _begin(self, context: Context, *, is_unheard: bool = False, crashes: int = 0) -> dict[str, Any]:
        session = self._usable_session()
        record, stale = open_record(
            context,
            project=session.project,
            prefix=self.name_prefix,
            service=self.service,
            item=item_of(self, context),
        )
        record = replace(noted(context, record) if is_unheard else record, crashes=record.crashes + crashes)
        if record.crashes > _MOST_CRASHES:
            self.deferrable = False
        self._record = record
        # Written only when it has ended, so that a crash in between does not forget it.
        for attempt in stale:
            self._end_stale(session, record, attempt)
        if stale:
            self._save(context, record)
        # Only now: what an earlier life left must end whether or not anything new can begin.
        self._check_again(session, submits=record.alive is None)
        self._save(context, record)
        return self._advance(context, session, record)

    def _hear(self, context: Context, event: dict[str, Any]) -> dict[str, Any]:
        from airflow_accel_provider.triggers.job import read_event

        followed = read_event(event)
        self._save(context, followed.record)
        if followed.record.is_about_another(item_of(self, context)):
            return self._begin(context)
        return self._go_on(context, self._connect(), followed)

    def on_kill(self) -> None:
        """End the job of a task that is killed on a worker, as asked; the waiting code notices and stops."""
        self._is_killed = True
        # Until a new life is written down, the record is of the old one, whose job the next try must still know of.
        if self._context and self._session and self._written:
            # Airflow calls this from a signal handler: the code it interrupted may hold a lock that the calls need.
            said = (self._context, self._session, self._written)
            self._killing = threading.Thread(target=self._end_meanwhile, args=said, name="kill")
            self._killing.start()

    def _end_killed(self, context: Context, session: GoogleSession, record: Record) -> None:
        """Write down that the task was killed, then ask for its job's end: what cannot be written is not acted on."""
        try:
            store(context, replace(record, killed=True))
        except AcceleratorSupersededError:
            if not mark_cleared(context):
                raise
        if record.alive:
            asked = ending(record.alive, "the task was killed", self.policy, _now())
            self.log.warning("kill=%s job=%s", asked.outcome, asked.job_id or asked.job_name)
            self.cancel(session, asked)

    def _end_meanwhile(self, *said: Any) -> None:
        try:
            self._end_killed(*said)
        except AcceleratorSupersededError as superseded:
            self.log.warning("kill=ignored reason=%s", superseded)
        except AcceleratorError as error:
            self.log.warning("kill=failed error=%s", error)

    def _save(self, context: Context, record: Record) -> None:
        self._record = record = replace(record, killed=record.killed or self._is_killed)
        store(context, record)
        self._written = record
        pages = pages_of(record)
        if record.open and record.open.job_id and pages != self.console_pages:
            self.console_pages = pages
            publish(context, self.service, record.open.job_id, pages)

    def _advance(self, context: Context, session: GoogleSession, record: Record) -> dict[str, Any]:
        """Act on decisions until the task waits, ends, or has nowhere to go."""
        while True:
            if is_searching(record, self.policy):
                record = self._replan(session, record)
            decision = decide(record, None, self.policy, _now())
            if isinstance(decision, Finish):
                return self._finish(context, decision.record)
            if isinstance(decision, GiveUp):
                self._give_up(context, decision.record, decision.failure)
            record = self._launch(context, session, decision.record)
            if record.open:
                return self._wait(context, session, record)

    def _replan(self, session: GoogleSession, record: Record) -> Record:
        places = self.plan(session)
        if places != record.plan:
            self.log.info("Plan for %s:\n%s", self.task_id, plan_table(places))
        return replace(record, plan=places)

    def _launch(self, context: Context, session: GoogleSession, record: Record) -> Record:
        """Write the intent, then find the attempt's job or submit it; a crash in between loses nothing."""
        attempt = record.open
        if attempt is None or attempt.outcome is not Outcome.INTENT:
            return record
        self._save(context, record)
        found = self.find(session, attempt)
        self._stop_if_killed(context, record)
        if found:
            self.log.info("adopt job=%s name=%s placement=%s", found.job_id, found.job_name, found.placement)
        else:
            said = (attempt.placement, attempt.job_name, record.label(attempt), len(record.plan))
            self.log.info("launch placement=%s name=%s candidate=%s/%s", *said)
        check_current(context)
        outcome = found or self.submit(session, attempt, labels_for(context, record, attempt))
        launched = close(record, outcome, _now()) if isinstance(outcome, Failure) else record.with_attempt(outcome)
        self._stop_if_killed(context, launched)
        self._save(context, launched)
        return launched

    def _wait(self, context: Context, session: GoogleSession, record: Record) -> dict[str, Any]:
        if self.deferrable:
            # The trigger keeps the time itself; Airflow's own limit is for triggers that nobody runs.
            left = self._deadline.left(_now()) if self._deadline else None
            late = None if left is None else left + self.policy.cancel_timeout + LATE
            self.defer(trigger=self._trigger(record), method_name="resume", timeout=late)
        followed = self._follow(session, record, write=partial(self._save, context))
        self._stop_if_killed(context, followed.record)
        self._save(context, followed.record)
        return self._go_on(context, session, followed)

    def _go_on(self, context: Context, session: GoogleSession, followed: Followed) -> dict[str, Any]:
        if followed.failure:
            self._give_up(context, followed.record, followed.failure)
        for attempt in followed.record.attempts[-1:]:
            self.log.info("%s. %s", followed.record.label(attempt), attempt_line(attempt))
        return self._advance(context, session, followed.record)

    def _trigger(self, record: Record) -> AcceleratorJobTrigger:
        from airflow_accel_provider.triggers.job import AcceleratorJobTrigger

        chain = self.impersonation_chain
        return AcceleratorJobTrigger(
            v=VERSION,
            record=record.to_json(),
            policy=self.policy.to_json(),
            gcp_conn_id=self.gcp_conn_id,
            impersonation_chain=[chain] if isinstance(chain, str) else list(chain or ()),
            project_id=self.project_id,
            quota_project_id=self.quota_project_id,
            poll_interval=self.poll_interval,
        )

    def _finish(self, context: Context, record: Record) -> dict[str, Any]:
        winner = record.attempts[-1]
        if not winner.is_proven:
            self.log.warning("%s. %s", record.label(winner), attempt_line(winner))
        self._save(context, replace(record, ended=True))
        if record.alive:
            # Nobody looks after that job from here on, and a kill meant it.
            self._stop_if_killed(context, record)
        return self.value(record)

    def _give_up(self, context: Context, record: Record, failure: Failure) -> None:
        text = report(self.task_id, record, failure)
        self._save(context, replace(record, ended=record.open is None))
        self.log.error("%s", text)
        raise job_error(failure.kind, text)

    def _stop_if_killed(self, context: Context, record: Record) -> None:
        if not self._is_killed:
            return
        if self._session:
            self._end_killed(context, self._session, record)
        wish = "drain if it can, else to cancel" if self.policy.drain else "cancel"
        job = f"job {record.alive.job_id or record.alive.job_name}" if record.alive else "its job"
        raise AcceleratorKilledError(f"{self.task_id} was killed; {job} was asked to {wish}")

    def _time_out(self, context: Context, deadline: Deadline) -> dict[str, Any]:
        """End the job of a try that has no time left, and see it end; a job that is done by then is a success."""
        record, session = self._record, self._session
        alive = record.alive if record else None
        if session and record and alive:
            found = alive if alive.job_id else self.find(session, alive)
            if found:
                asked = record.with_attempt(timing_out(found, deadline, self.policy, _now()))
                self._save(context, asked)
                self.log.warning("cancel job=%s reason=%s", found.job_id, deadline.failure.explanation)
                followed = self._follow(session, asked, write=partial(self._save, context))
                self._stop_if_killed(context, followed.record)
                self._save(context, followed.record)
                return self._go_on(context, session, followed)
        # What was only intended is written down; the next try looks for it.
        raise job_error(FailureKind.TIMEOUT, report(self.task_id, record, deadline.failure))

    def _end_stale(self, session: GoogleSession, record: Record, attempt: Attempt) -> None:
        """End the job of an earlier life and see it end, so that the next never runs beside it."""
        found = attempt if attempt.job_id else self._find_late(session, attempt)
        if found is None:
            return
        asked = ending(found, "the task was cleared", self.policy, _now())
        self.log.warning("%s job=%s reason=it belongs to an earlier life of this task", asked.outcome, found.job_id)
        followed = self._follow(session, replace(record, attempts=(asked,)), write=None)
        if followed.record.open and followed.failure:
            raise job_error(followed.failure.kind, followed.failure.explanation)
        self._leave_stale_if_killed(attempt)

    def _find_late(self, session: GoogleSession, attempt: Attempt) -> Attempt | None:
        """Look for a job that nobody knows to be there, until it would be listed: its worker may just have died."""
        until = _now() + self.listed_within
        while True:
            found = self.find(session, attempt)
            self._leave_stale_if_killed(attempt)
            if found or _now() >= until:
                return found
            time.sleep(_STEP_SECONDS)

    def _leave_stale_if_killed(self, attempt: Attempt) -> None:
        """Stop with the record of the earlier life as it is, so that the next try ends that life's job."""
        if self._is_killed:
            job = attempt.job_id or attempt.job_name
            raise AcceleratorKilledError(f"{self.task_id} was killed before job {job} of its earlier life had ended")

    def _follow(self, session: GoogleSession, record: Record, *, write: Callable[[Record], None] | None) -> Followed:
        """Follow the job on this worker; a kill ends that early and leaves the record as it was."""
        from airflow_accel_provider.triggers._follow import Followed, NoJournal, OwnLook, Stopped, follow

        source = OwnLook(session, self.poll_interval, stopped=lambda: self._is_killed, service=record.service)
        journal = _Written(write) if write else NoJournal()
        try:
            return asyncio.run(follow(record, source, self.policy, now=_now, log=self.log, journal=journal))
        except Stopped:
            return Followed(self._written if write and self._written else record)


class _Written:
    """A worker's journal: the record itself. What cannot be written is not acted on."""

    def __init__(self, write: Callable[[Record], None]) -> None:
        self._write = write

    async def write(self, record: Record) -> None:
        """Write the record."""
        self._write(record)

    async def recall(self, attempt: Attempt) -> Attempt:
        """Return the attempt as it is: the record is what was written."""
        return attempt


def _left(context: Context) -> str:
    """Return the sentence that says what a try leaves behind that ends since something could not be asked or done."""
    alive = alive_attempt(context)
    if alive is None:
        return "Nothing was cancelled; the next try goes on from here."
    job = alive.job_id or alive.job_name
    return f"Nothing was cancelled; job {job} may go on: the next try takes it over, a clear ends it."


def with_job(attempt: Attempt, job: Job) -> Attempt:
    """Return the attempt with the job that was made for it."""
    outcome = Outcome.SUBMITTED if attempt.outcome is Outcome.INTENT else attempt.outcome
    return replace(attempt, job_id=job.id, submitted_at=submitted_at(attempt, job, _now()), outcome=outcome)


def _now() -> datetime:
    return datetime.now(UTC)
