"""The shell that all operators share: it reads, writes, submits and waits; what to do is decided in the core."""

from __future__ import annotations

import asyncio
import threading
import time
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from airflow.sdk import BaseOperator
from airflow.sdk.exceptions import AirflowTaskTimeout, TaskDeferralError, TaskDeferralTimeout

from airflow_accel_provider.core.decisions import Finish, GiveUp
from airflow_accel_provider.core.failures import DEFAULT_FALLBACK_ON, Failure, FailureKind
from airflow_accel_provider.core.fallback import close, decide, ending, timing_out
from airflow_accel_provider.core.policy import Policy
from airflow_accel_provider.core.problems import Problem, error
from airflow_accel_provider.core.record import VERSION, Attempt, Outcome, PlannedPlace, Record
from airflow_accel_provider.core.report import attempt_line, plan_table, report
from airflow_accel_provider.core.result import result
from airflow_accel_provider.core.search import is_searching
from airflow_accel_provider.core.validation import check_life
from airflow_accel_provider.exceptions import (
    AcceleratorConfigurationError,
    AcceleratorKilledError,
    GoogleApiError,
    job_error,
)
from airflow_accel_provider.links import LINKS
from airflow_accel_provider.operators._connections import hide, named_connection
from airflow_accel_provider.operators._context import alive_attempt, labels_for, open_record, pages_of, publish, store
from airflow_accel_provider.operators._deadline import LATE, deadline_of, held_to
from airflow_accel_provider.operators._settings import default_deferrable
from airflow_accel_provider.operators._settings import poll_interval as default_poll_interval
from airflow_accel_provider.operators._verdict import judge, refuse

# Hooks and triggers are imported where a task runs: parsing a DAG needs neither, and pays for every import.
if TYPE_CHECKING:
    from collections.abc import Callable

    from airflow.sdk import Context

    from airflow_accel_provider.core.deadline import Deadline
    from airflow_accel_provider.core.jobs import Job, Service
    from airflow_accel_provider.hooks.session import GoogleSession
    from airflow_accel_provider.triggers._follow import Followed
    from airflow_accel_provider.triggers.job import AcceleratorJobTrigger

OnUnproven = Literal["warn", "fail"]

_STEP_SECONDS = 5.0

_MOST_CRASHES = 2
"""How many triggers may crash before the task waits on its worker: what crashes each of them would go on for ever."""


class AcceleratorJobOperator(BaseOperator):
    """Run one accelerated job in the first place that has room, prove the accelerator, and wait for the end.

    :param placement: where the job should run: ``ACCELERATOR[:COUNT or :TOPOLOGY] [on MACHINE_TYPE] [in REGION or
    ZONE]``
    :param fallback: further places in order, each a placement or a mapping of a ``placement`` and what differs there
    :param fallback_on: kinds of failure after which the next place is tried
    :param region: location for placements that name none
    :param project_id: project the job runs in; the connection's when left out
    :param gcp_conn_id: the Google Cloud connection
    :param impersonation_chain: service account to act as, or a list of accounts that leads to it
    :param quota_project_id: project that API calls are charged to
    :param deferrable: wait in the triggerer instead of on a worker
    :param poll_interval: seconds between two looks at the job; ``[accel] poll_interval`` (10) when left out
    :param start_timeout: how long a first worker may take, in seconds or as a timedelta
    :param cancel_timeout: how long a job that was asked to end may take, in seconds or as a timedelta
    :param on_unproven: what to do with a job that finished before its accelerator was seen: ``warn`` or ``fail``
    """

    operator_extra_links = LINKS
    service: ClassVar[Service] = "dataflow"
    """What runs the jobs."""
    listed_within: ClassVar[timedelta] = timedelta(seconds=45)
    """How long after its creation a job may be missing where it is looked up by its name."""

    def __init__(
        self,
        *,
        placement: str,
        fallback: Sequence[str | Mapping[str, Any]] = (),
        fallback_on: Sequence[str] = DEFAULT_FALLBACK_ON,
        region: str | None = None,
        project_id: str | None = None,
        gcp_conn_id: str = "google_cloud_default",
        impersonation_chain: str | Sequence[str] | None = None,
        quota_project_id: str | None = None,
        deferrable: bool | None = None,
        poll_interval: float | None = None,
        start_timeout: float | timedelta = 1800,
        cancel_timeout: float | timedelta = 300,
        on_unproven: OnUnproven = "warn",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.placement = placement
        self.fallback = fallback
        self.fallback_on = fallback_on
        self.region = region
        self.project_id = project_id
        self.gcp_conn_id = gcp_conn_id
        self.impersonation_chain = impersonation_chain
        self.quota_project_id = quota_project_id
        self.deferrable = default_deferrable() if deferrable is None else deferrable
        self.poll_interval = default_poll_interval() if poll_interval is None else poll_interval
        self.start_timeout = start_timeout
        self.cancel_timeout = cancel_timeout
        self.on_unproven = on_unproven
        self.console_pages: dict[str, str] = {}
        self._session: GoogleSession | None = None
        self._record: Record | None = None
        self._deadline: Deadline | None = None
        self._is_killed = False

    # What a kind of job must say.

    @property
    @abstractmethod
    def name_prefix(self) -> str | None:
        """The readable beginning of the jobs' names, ``None`` for that of the DAG and the task."""

    @abstractmethod
    def problems(self, project: str | None) -> Sequence[Problem]:
        """Return all that is wrong, or worth a warning, as far as it is known; ``project`` is ``None`` until it is."""

    @abstractmethod
    def missing(self, session: GoogleSession) -> Sequence[Problem]:
        """Return what a new submission needs and cannot reach from here, such as the pipeline's file."""

    @abstractmethod
    def plan(self, session: GoogleSession) -> tuple[PlannedPlace, ...]:
        """Return the candidates in the user's order, each kept or put aside with a reason."""

    @abstractmethod
    def find(self, session: GoogleSession, attempt: Attempt) -> Attempt | None:
        """Return the attempt with the job of its name, or ``None`` when there is none. Refuses a stranger's job."""

    @abstractmethod
    def submit(self, session: GoogleSession, attempt: Attempt, labels: Mapping[str, str]) -> Attempt | Failure:
        """Submit the attempt; return it with its job, as it is when the task was killed meanwhile, or why it failed."""

    @abstractmethod
    def cancel(self, session: GoogleSession, attempt: Attempt) -> None:
        """Ask the service to end the attempt's job: to drain it where the attempt says so, else to cancel it."""

    @abstractmethod
    def secrets(self) -> Sequence[Mapping[str, Any]]:
        """Return the options, by name, of which those with the name of a secret must not be shown in any log."""

    def value(self, record: Record) -> dict[str, Any]:
        """Return what a task hands on in XCom."""
        return result(record)

    # The life of a task.

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
            return self._in_time(context, partial(self._begin, context))
        except TaskDeferralError as crashed:
            self.log.warning("trigger=crashed error=%s; the job is looked at again", crashed)
            return self._in_time(context, partial(self._begin, context, crashes=1))

    def _in_time(self, context: Context, step: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """Do a step of the life within the time of the try; what Google leaves unanswered ends the try, not the job."""
        self._deadline = deadline = deadline_of(context, self.execution_timeout)
        try:
            try:
                with held_to(deadline):
                    return step()
            except AirflowTaskTimeout:
                if deadline is None:
                    raise
                return self._time_out(context, deadline)
        except GoogleApiError as error:
            said = f"{error}".rstrip(".")
            alive = alive_attempt(context)
            job = f"job {alive.job_id or alive.job_name} may go on, and " if alive else ""
            rest = f"Nothing was cancelled; {job}the next try goes on from here."
            raise job_error(error.kind, f"{self.task_id} failed, {error.kind}: {said}. {rest}") from error

    def _begin(self, context: Context, *, crashes: int = 0) -> dict[str, Any]:
        session = self._usable_session()
        record, stale = open_record(context, project=session.project, prefix=self.name_prefix, service=self.service)
        record = replace(record, crashes=record.crashes + crashes)
        if record.crashes > _MOST_CRASHES:
            self.deferrable = False
        self._check_again(session, submits=record.alive is None)
        self._record = record
        # Written only when it has ended, so that a crash in between does not forget it.
        for attempt in stale:
            self._end_stale(session, record, attempt)
        self._save(context, record)
        return self._advance(context, session, record)

    def _hear(self, context: Context, event: dict[str, Any]) -> dict[str, Any]:
        from airflow_accel_provider.triggers.job import read_event

        followed = read_event(event)
        self._save(context, followed.record)
        return self._go_on(context, self._connect(), followed)

    def on_kill(self) -> None:
        """End the job of a task that is killed on a worker, as asked; the waiting code notices and stops."""
        self._is_killed = True
        attempt = self._record.alive if self._record else None
        if self._session and attempt:
            asked = ending(attempt, "the task was killed", self.policy, _now())
            self.log.warning("kill=%s job=%s", asked.outcome, attempt.job_id or attempt.job_name)
            # Airflow calls this from a signal handler: the code it interrupted may hold a lock that the call needs.
            threading.Thread(target=self.cancel, args=(self._session, asked), name="kill").start()

    def check(self) -> None:
        """Raise one error that names all that is known to be wrong when a DAG is parsed; warn of the rest."""
        project = self.project_id if isinstance(self.project_id, str) else None
        judge(self, self._all_problems(project))

    def _usable_session(self) -> GoogleSession:
        """Return the session; where there can be none, the error names also all else that is wrong."""
        try:
            return self._connect()
        except AcceleratorConfigurationError as unusable:
            told = error("connection", str(unusable), "gcp_conn_id")
            refuse(self.task_id, (*self._all_problems(None), told))
            raise

    def _check_again(self, session: GoogleSession, *, submits: bool) -> None:
        """Raise one error that names all that is wrong now that everything is known; log the rest."""
        # What runs already needs none of what a new submission does.
        missing = self.missing(session) if submits else ()
        for problem in refuse(self.task_id, (*self._all_problems(session.project), *missing)):
            self.log.warning("%s", problem)

    def _all_problems(self, project: str | None) -> tuple[Problem, ...]:
        return (*check_life(vars(self)), *self.problems(project))

    def _connect(self) -> GoogleSession:
        from airflow_accel_provider.hooks.session import GoogleSession

        hide(self.secrets())
        self._session = GoogleSession.from_connection(
            named_connection(self.gcp_conn_id),
            impersonation_chain=self.impersonation_chain,
            project_id=self.project_id,
            quota_project_id=self.quota_project_id,
        )
        return self._session

    def _save(self, context: Context, record: Record) -> None:
        self._record = record
        store(context, record)
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
        outcome = found or self.submit(session, attempt, labels_for(context, record, attempt))
        launched = close(record, outcome, _now()) if isinstance(outcome, Failure) else record.with_attempt(outcome)
        self._save(context, launched)
        self._stop_if_killed(context, launched)
        return launched

    def _wait(self, context: Context, session: GoogleSession, record: Record) -> dict[str, Any]:
        if self.deferrable:
            # The trigger keeps the time itself; Airflow's own limit is for triggers that nobody runs.
            left = self._deadline.left(_now()) if self._deadline else None
            late = None if left is None else left + self.policy.cancel_timeout + LATE
            self.defer(trigger=self._trigger(record), method_name="resume", timeout=late)
        followed = self._follow(session, record)
        self._save(context, followed.record)
        self._stop_if_killed(context, followed.record)
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
        if record.alive and self._session:
            self.cancel(self._session, ending(record.alive, "the task was killed", self.policy, _now()))
        self._save(context, replace(record, killed=True))
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
                followed = self._follow(session, asked)
                self._save(context, followed.record)
                self._stop_if_killed(context, followed.record)
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
        followed = self._follow(session, replace(record, attempts=(asked,)))
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

    def _follow(self, session: GoogleSession, record: Record) -> Followed:
        """Follow the job on this worker; a kill ends that early and leaves the record as it was."""
        from airflow_accel_provider.triggers._follow import Followed, OwnLook, Stopped, follow

        source = OwnLook(session, self.poll_interval, stopped=lambda: self._is_killed, service=record.service)
        try:
            return asyncio.run(follow(record, source, self.policy, now=_now, log=self.log))
        except Stopped:
            return Followed(record)

    @property
    def policy(self) -> Policy:
        """What the user decided beforehand, as the core reads it."""
        return Policy(
            fallback_on=tuple(FailureKind(kind) for kind in self.fallback_on),
            on_unproven=self.on_unproven,
            start_timeout=as_timedelta(self.start_timeout),
            cancel_timeout=as_timedelta(self.cancel_timeout),
            deadline=self._deadline,
        )


def with_job(attempt: Attempt, job: Job) -> Attempt:
    """Return the attempt with the job that was made for it."""
    outcome = Outcome.SUBMITTED if attempt.outcome is Outcome.INTENT else attempt.outcome
    return replace(attempt, job_id=job.id, submitted_at=job.created_at or _now(), outcome=outcome)


def as_timedelta(value: float | timedelta) -> timedelta:
    """Return a duration that may be given in seconds."""
    return value if isinstance(value, timedelta) else timedelta(seconds=value)


def _now() -> datetime:
    return datetime.now(UTC)
