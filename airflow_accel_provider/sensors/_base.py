"""The shell that all sensors share: it checks, asks or has the triggerer ask, and tells how it ended."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator, BaseSensorOperator, PokeReturnValue
from airflow.sdk.exceptions import AirflowRescheduleException, AirflowSensorTimeout, TaskDeferralTimeout

from airflow_accel_provider.core.problems import Problem, error
from airflow_accel_provider.core.validation import check_life
from airflow_accel_provider.core.waiting.answers import Met, NotYet
from airflow_accel_provider.core.waiting.checks import check_waiting
from airflow_accel_provider.core.waiting.pace import Pace
from airflow_accel_provider.exceptions import AcceleratorConfigurationError
from airflow_accel_provider.operators._connections import named_connection
from airflow_accel_provider.operators._settings import default_deferrable
from airflow_accel_provider.operators._verdict import judge, refuse
from airflow_accel_provider.sensors._ending import skipping, value_of

# Hooks and triggers are imported where a task runs: parsing a DAG needs neither, and pays for every import.
if TYPE_CHECKING:
    from airflow.sdk import Context

    from airflow_accel_provider.core.waiting.answers import Answer
    from airflow_accel_provider.core.waiting.questions import Question
    from airflow_accel_provider.hooks.session import GoogleSession
    from airflow_accel_provider.triggers._wait import Listener, Settled
    from airflow_accel_provider.triggers.sensor import AcceleratorSensorTrigger

UNANSWERED_KEY = "accel_unanswered_since"
"""The key of ``task_state_store`` under which a rescheduled sensor keeps since when nobody answers."""

IDENTITY_FIELDS = ("project_id", "gcp_conn_id", "impersonation_chain", "quota_project_id")

_LATE = timedelta(minutes=2)
"""How long after the deadline a trigger must have fired; later there is no triggerer."""


class AcceleratorSensor(BaseSensorOperator):
    """Wait until a question about accelerators is settled.

    The parameters of Airflow's sensors (``poke_interval``, ``timeout``, ``mode``, ``soft_fail``, …) come on top, and
    mean the same whether the sensor waits on a worker or in the triggerer. ``timeout`` counts from the task's start.

    :param project_id: project that is asked about; the connection's when left out
    :param gcp_conn_id: the Google Cloud connection
    :param impersonation_chain: service account to act as, or a list of accounts that leads to it
    :param quota_project_id: project that API calls are charged to
    :param deferrable: wait in the triggerer instead of on a worker
    """

    def __init__(
        self,
        *,
        project_id: str | None = None,
        gcp_conn_id: str = "google_cloud_default",
        impersonation_chain: str | Sequence[str] | None = None,
        quota_project_id: str | None = None,
        deferrable: bool | None = None,
        poke_interval: float | timedelta = 60,
        timeout: float | timedelta | None = None,
        max_wait: float | timedelta | None = None,
        mode: str = "poke",
        soft_fail: bool = False,
        never_fail: bool = False,
        **kwargs: Any,
    ) -> None:
        said: dict[str, Any] = {"poke_interval": poke_interval, "timeout": timeout, "max_wait": max_wait, "mode": mode}
        said |= {"soft_fail": soft_fail, "never_fail": never_fail}
        wrong = tuple(check_waiting(said))
        # Airflow's own checks tell of one mistake at a time, so they are given none to find.
        sound = {} if wrong else said
        super().__init__(**sound, **kwargs)
        self.project_id = project_id
        self.gcp_conn_id = gcp_conn_id
        self.impersonation_chain = impersonation_chain
        self.quota_project_id = quota_project_id
        self.deferrable = default_deferrable() if deferrable is None else deferrable
        self._wrong_waiting = wrong

    # What a kind of sensor must say.

    @abstractmethod
    def problems(self) -> Sequence[Problem]:
        """Return all that is wrong with what is asked, or worth a warning, as far as it is known."""

    @abstractmethod
    def question(self, started_at: datetime) -> Question:
        """Return the question; the parameters were checked before."""

    # The life of a task.

    def execute(self, context: Context) -> dict[str, Any]:
        """Wait until the question is settled and return its value."""
        with self._skipping():
            question = self._checked_question(context)
            session = self._usable_session()
            if self.deferrable:
                # One look first: what is so already, or never will be, needs no triggerer.
                answer = asyncio.run(self._hear(session, question))
                if not isinstance(answer, NotYet):
                    return self._end(answer)
                self._defer(question, context)
            if self.reschedule:
                return self._look_or_come_back(session, question, context)
            return self._end(self._wait(session, question, context))

    def resume(self, context: Context, event: dict[str, Any]) -> dict[str, Any]:  # noqa: ARG002 - Airflow gives it
        """Return, or fail, as the trigger found."""
        from airflow_accel_provider.triggers.sensor import read_event

        return self._end(read_event(event))

    def resume_execution(self, next_method: str, next_kwargs: dict[str, Any] | None, context: Context) -> Any:
        """Go on after a deferral; its own words stay the reason of a failure that is turned into a skip."""
        with self._skipping():
            try:
                return BaseOperator.resume_execution(self, next_method, next_kwargs, context)
            except TaskDeferralTimeout as late:
                raise AirflowSensorTimeout(
                    f"{self.task_id} was not heard of by its deadline; does a triggerer run?"
                ) from late

    def poke(self, context: Context) -> PokeReturnValue:
        """Look once."""
        answer = asyncio.run(self._hear(self._usable_session(), self._checked_question(context)))
        if isinstance(answer, NotYet):
            return PokeReturnValue(is_done=False)
        return PokeReturnValue(is_done=True, xcom_value=self._end(answer))

    def check(self) -> None:
        """Raise one error that names all that is known to be wrong when a DAG is parsed; warn of the rest."""
        judge(self, self._all_problems())

    def _checked_question(self, context: Context) -> Question:
        for problem in refuse(self.task_id, self._all_problems()):
            self.log.warning("%s", problem)
        return self.question(self._started_at(context))

    def _all_problems(self) -> tuple[Problem, ...]:
        identity = {name: getattr(self, name) for name in (*IDENTITY_FIELDS, "deferrable")}
        return (*check_life(identity), *self._wrong_waiting, *self.problems())

    def _usable_session(self) -> GoogleSession:
        from airflow_accel_provider.hooks.session import GoogleSession

        try:
            return GoogleSession.from_connection(
                named_connection(self.gcp_conn_id),
                impersonation_chain=self.impersonation_chain,
                project_id=self.project_id,
                quota_project_id=self.quota_project_id,
            )
        except AcceleratorConfigurationError as unusable:
            refuse(self.task_id, (error("connection", str(unusable), "gcp_conn_id"),))
            raise

    async def _hear(self, session: GoogleSession, question: Question, listener: Listener | None = None) -> Answer:
        from airflow_accel_provider.triggers._wait import look_now

        look = partial(asyncio.to_thread, look_now, session, question)
        return await (listener or self._listener()).hear(look, _now())

    def _listener(self, unanswered_since: datetime | None = None) -> Listener:
        from airflow_accel_provider.triggers._follow import PATIENCE
        from airflow_accel_provider.triggers._wait import Listener

        return Listener(None if self.silent_fail else PATIENCE, unanswered_since)

    def _wait(self, session: GoogleSession, question: Question, context: Context) -> Settled:
        from airflow_accel_provider.triggers._wait import look_now, wait

        look = partial(asyncio.to_thread, look_now, session, question)
        deadline = self._deadline(context)
        return asyncio.run(wait(look, self._listener(), pace=self._pace, deadline=deadline, now=_now, log=self.log))

    def _defer(self, question: Question, context: Context) -> None:
        deadline = self._deadline(context)
        left = max(deadline - _now(), timedelta(0))
        self.defer(trigger=self._trigger(question, deadline), method_name="resume", timeout=left + _LATE)

    def _trigger(self, question: Question, deadline: datetime) -> AcceleratorSensorTrigger:
        from airflow_accel_provider.core.record import VERSION
        from airflow_accel_provider.core.waiting.questions import question_to_json
        from airflow_accel_provider.triggers.sensor import AcceleratorSensorTrigger

        chain = self.impersonation_chain
        return AcceleratorSensorTrigger(
            v=VERSION,
            question=question_to_json(question),
            deadline=deadline.isoformat(),
            pace=asdict(self._pace),
            is_patient=self.silent_fail,
            gcp_conn_id=self.gcp_conn_id,
            impersonation_chain=[chain] if isinstance(chain, str) else list(chain or ()),
            project_id=self.project_id,
            quota_project_id=self.quota_project_id,
        )

    def _look_or_come_back(self, session: GoogleSession, question: Question, context: Context) -> dict[str, Any]:
        """Look once; when it is not so yet, free the worker until the next look."""
        from airflow_accel_provider.triggers._wait import TimedOut

        store = context["task_state_store"]
        since = store.get(UNANSWERED_KEY)
        listener = self._listener(datetime.fromisoformat(since) if isinstance(since, str) else None)
        answer = asyncio.run(self._hear(session, question, listener))
        if not isinstance(answer, NotYet):
            return self._end(answer)
        left = self._deadline(context) - _now()
        if left <= timedelta(0):
            return self._end(TimedOut(answer.reason))
        self.log.info("wait reason=%s", answer.reason)
        unanswered = listener.unanswered_since.isoformat() if listener.unanswered_since else None
        if unanswered != since:
            store.set(UNANSWERED_KEY, unanswered)
        looks = int(context.get("task_reschedule_count", 0)) + 1
        raise AirflowRescheduleException(_now() + min(timedelta(seconds=self._pace.pause(looks)), left))

    def _end(self, settled: Settled) -> dict[str, Any]:
        if isinstance(settled, Met) and settled.remark:
            self.log.warning("%s: %s", self.task_id, settled.remark)
        return value_of(self.task_id, settled, limit=self._limit)

    def _skipping(self) -> AbstractContextManager[None]:
        return skipping(wanted=self.soft_fail or self.never_fail)

    def _started_at(self, context: Context) -> datetime:
        ti = context["ti"]
        first = ti.get_first_reschedule_date(context) if self.reschedule and not self.deferrable else None
        return first or ti.start_date

    def _deadline(self, context: Context) -> datetime:
        return self._started_at(context) + timedelta(seconds=self._limit)

    @property
    def _limit(self) -> float:
        """The seconds after which the wait is over.

        Airflow does not hold a deferred task to ``execution_timeout``, and would end one on a worker with other words.
        Of a rescheduled one each look has that time.
        """
        limit = self.execution_timeout if self.deferrable or not self.reschedule else None
        return min(self.timeout, limit.total_seconds()) if limit else self.timeout

    @property
    def _pace(self) -> Pace:
        longest = self.max_wait.total_seconds() if self.max_wait else None
        return Pace(seconds=self.poke_interval, grows=self.exponential_backoff, longest=longest)


def _now() -> datetime:
    return datetime.now(UTC)
