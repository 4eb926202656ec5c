"""A task instance's whole life as Airflow 3.3 leads it: tries, deferrals, retries, clears, marks, kills."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from math import inf
from traceback import format_exception
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from airflow.sdk import BaseHook
from airflow.sdk._shared.module_loading import import_string
from airflow.sdk.bases.operator import TRIGGER_FAIL_REPR, TriggerFailureReason
from airflow.sdk.exceptions import AirflowFailException, AirflowTaskTimeout, TaskDeferred
from airflow.sdk.execution_time import task_runner
from airflow.sdk.execution_time.comms import GetTaskStates, GetXCom, SetXCom, TaskStatesResult, XComResult

from airflow_accel_provider.core.record import Record
from airflow_accel_provider.hooks.session import GoogleSession
from tests.chaos.clock import Alarm, Clock, everywhere
from tests.chaos.google import SimGoogle
from tests.chaos.keeping import Kept, StateStore, XComs
from tests.chaos.process import Killed, Process, SimSession

RUN_ID = "scheduled__2026-03-02T00:00:00+00:00"


@dataclass(slots=True)
class Deferral:
    """Where a task waits, and until when, in the story's seconds."""

    path: str
    row: dict[str, Any]
    method: str
    expires: float | None


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a worker's run ended: with a value, an error, or a deferral."""

    value: Any = None
    error: BaseException | None = None
    deferral: Deferral | None = None


@dataclass(slots=True, kw_only=True)
class TaskLife:
    """One task instance; its methods are what Airflow's parts do with it."""

    make: Callable[[], Any]
    google: SimGoogle
    clock: Clock
    retries: int = 0
    state: str = "queued"
    try_number: int = 1
    max_tries: int = 0
    clear_number: int = 0
    map_index: int = -1
    item: str | None = None
    """What a mapped task was expanded over."""
    value: Any = None
    error: BaseException | None = None
    deferral: Deferral | None = None
    resumption: tuple[str, dict[str, Any]] | None = None
    """``next_method`` and ``next_kwargs``: how the task goes on after a deferral."""
    started_at: datetime | None = None
    xcom_keys: list[str] = field(default_factory=list)
    """The keys that Airflow tells a beginning try to delete."""
    begun: int = -1
    """The newest epoch that a worker has begun."""
    process: Process = field(default_factory=Process)
    kept: Kept = field(default_factory=Kept)

    def __post_init__(self) -> None:
        self.max_tries = self.retries

    @property
    def record(self) -> Record | None:
        """Return the record as it is stored."""
        stored = self.kept.get("accel_job")
        return Record.from_json(stored) if stored else None

    @contextmanager
    def connected(self) -> Iterator[None]:
        """Have sessions and questions to Airflow end up here."""
        comms = SimpleNamespace(asend=self._answer)
        with ExitStack() as stack:
            made = lambda *_, **__: SimSession(self.google, self.process)  # noqa: E731
            stack.enter_context(patch.object(GoogleSession, "from_connection", made))
            for change in (
                *everywhere("named_connection", lambda _: None),
                *everywhere("item_of", lambda *_: self.item),
            ):
                stack.enter_context(change)
            stack.enter_context(patch.object(BaseHook, "aget_connection", _no_connection))
            stack.enter_context(patch.object(task_runner, "SUPERVISOR_COMMS", comms, create=True))
            yield

    def enter(self, process: Process) -> None:
        """Let a process be the one that runs."""
        self.process, self.clock.skew, self.clock.alarm = process, process.skew, None

    # What a worker does.

    def work(self, process: Process) -> None:
        """Run a try, or the rest of one, on a worker; of one whose try is over by its end nothing is heard."""
        process.epoch = self.begun = self.kept.epoch
        self.enter(process)
        self.state = "running"
        resumption, self.resumption, self.deferral = self.resumption, None, None
        if resumption is None or self.started_at is None:
            # A deferral keeps the try's start, and its XComs.
            self.started_at = self.clock.shown
            self.xcom_keys = list(self.kept.xcom)
            self.kept.xcom.clear()
        else:
            self.xcom_keys = []
        outcome = self._outcome(process, resumption)
        self.clock.alarm = None
        if process.epoch == self.kept.epoch:
            self._hear(outcome)

    def _outcome(self, process: Process, resumption: tuple[str, dict[str, Any]] | None) -> Outcome:
        try:
            process.point("the worker begins")
            context = self._context(process)
            process.operator = self.make()
            process.operator.render_template_fields(context)
            value = self._execute(process.operator, context, resumption)
            process.point("the worker reports success")
        except TaskDeferred as deferred:
            return Outcome(deferral=self._deferral(deferred))
        except (Killed, AirflowTaskTimeout, Exception) as error:  # noqa: BLE001 - Airflow takes any
            return Outcome(error=error)
        return Outcome(value=value)

    def _execute(self, operator: Any, context: Any, resumption: tuple[str, dict[str, Any]] | None) -> Any:
        """Run the operator as Airflow's ``_execute_with_timeout`` does: each time with its whole period."""
        run = partial(operator.resume_execution, *resumption) if resumption else operator.execute
        if operator.execution_timeout is None:
            return run(context=context)
        try:
            with Alarm(self.clock, operator.execution_timeout.total_seconds()):
                return run(context=context)
        except AirflowTaskTimeout:
            operator.on_kill()
            raise

    def _deferral(self, deferred: TaskDeferred) -> Deferral:
        path, row = deferred.trigger.serialize()
        expires = self.clock.seconds + deferred.timeout.total_seconds() if deferred.timeout is not None else None
        return Deferral(path, json.loads(json.dumps(row)), deferred.method_name, expires)

    def _hear(self, outcome: Outcome) -> None:
        if outcome.error is not None:
            self.fail(outcome.error)
        elif outcome.deferral is not None:
            self.deferral, self.state = outcome.deferral, "deferred"
        else:
            self.value, self.state = outcome.value, "success"

    def fail(self, error: BaseException) -> None:
        """Take a try for failed."""
        self.error = error
        may_retry = self.try_number <= self.max_tries and not isinstance(error, AirflowFailException)
        self.state = "up_for_retry" if may_retry else "failed"
        self.kept.epoch += may_retry

    # What users and the scheduler do.

    def retry(self) -> None:
        """Begin the next try."""
        self.try_number += 1
        self.state = "queued"
        self.resumption = self.deferral = None

    def clear(self) -> None:
        """Clear the task while no worker runs it."""
        self.max_tries = self.try_number + self.retries
        self.clear_number += 1
        self.kept.epoch += 1
        self.retry()

    def recreate(self) -> None:
        """Delete the run and make it again with the same ids: nothing is kept, and its jobs are nobody's."""
        self.kept.stored.clear()
        self.kept.xcom.clear()
        self.kept.epoch += 1
        self.max_tries, self.try_number, self.clear_number = self.retries, 0, 0
        self.value = self.error = None
        for job in self.google.ours():
            job.is_foreign = True
            job.asked_to_end.clear()
        self.retry()

    def expire(self) -> bool:
        """Wake the task where its deferral has lasted too long, as the scheduler does; tell whether it had."""
        deferral = self.deferral
        if self.state != "deferred" or deferral is None or deferral.expires is None:
            return False
        if self.clock.seconds < deferral.expires:
            return False
        self._resume(TRIGGER_FAIL_REPR, {"error": TriggerFailureReason.TRIGGER_TIMEOUT})
        return True

    def _resume(self, method: str, said: dict[str, Any]) -> None:
        self.resumption, self.state = (method, said), "queued"

    # What a triggerer does.

    def wait(self, process: Process, seconds: float | None, then: Callable[[Any, asyncio.Task[Any]], Any]) -> None:
        """Run the trigger; after some seconds, if it still runs, something happens to it."""
        deferral = self.deferral
        assert deferral
        process.epoch = self.kept.epoch
        self.enter(process)
        with _fresh_sharing():
            running = asyncio.run(self._wait(process, deferral, seconds, then))
        if self.deferral is not deferral or self.state != "deferred" or not process.is_alive:
            return
        if running is None or running.cancelled():
            self.expire()
        elif (error := running.exception()) is not None:
            failed = {"error": TriggerFailureReason.TRIGGER_FAILURE, "traceback": format_exception(error)}
            self._resume(TRIGGER_FAIL_REPR, failed)
        else:
            self._resume(deferral.method, {"event": running.result()})

    async def _wait(
        self, process: Process, deferral: Deferral, seconds: float | None, then: Callable[[Any, asyncio.Task[Any]], Any]
    ) -> asyncio.Task[Any] | None:
        loop = asyncio.get_running_loop()
        # What tasks of a dead process would have said is of no interest.
        loop.set_exception_handler(lambda *_: None)
        death = loop.create_future()
        process.on_death = lambda: death.done() or death.set_result(None)
        trigger = self.trigger(deferral)
        running = asyncio.create_task(_first_event(trigger))
        left = inf if deferral.expires is None else max(deferral.expires - self.clock.seconds, 0.0)
        upset_in = inf if seconds is None else seconds
        await _first_of(running, death, within=min(left, upset_in))
        if running.done() or not process.is_alive:
            return running
        if upset_in < left:
            goes_on = await then(trigger, running)
            if not goes_on or not process.is_alive:
                return None
            await _first_of(running, death, within=left - upset_in)
            if running.done() or not process.is_alive:
                return running
        # One that waits too long is cancelled, and not told of a kill.
        await asyncio.sleep(_SCHEDULER_ROUND)
        running.cancel()
        await asyncio.wait({running})
        await trigger.cleanup()
        return running

    def trigger(self, deferral: Deferral) -> Any:
        """Return the trigger of a row as a triggerer makes it."""
        trigger = import_string(deferral.path)(**deferral.row)
        said = {"dag_id": "nightly", "task_id": "score", "run_id": RUN_ID, "map_index": self.map_index}
        trigger.task_instance = SimpleNamespace(**said)
        return trigger

    def kill_late(self, trigger: Any) -> None:
        """Have a triggerer tell a trigger of its kill only now, in a loop of its own."""
        before = self.process
        self.enter(Process())
        thread = threading.Thread(target=lambda: asyncio.run(trigger.on_kill()))
        thread.start()
        thread.join()
        self.enter(before)

    async def _answer(self, question: Any) -> Any:
        """Answer a trigger as its supervisor does."""
        if isinstance(question, GetTaskStates):
            return TaskStatesResult(task_states=self._states)
        if isinstance(question, GetXCom):
            return XComResult(key=question.key, value=json.loads(self.kept.xcom.get(question.key, "null")))
        assert isinstance(question, SetXCom)
        self.process.point(f"before push {question.key}")
        self.kept.xcom[question.key] = json.dumps(question.value)
        self.process.point(f"after push {question.key}")
        return None

    @property
    def _states(self) -> dict[str, dict[str, str]]:
        name = "score" if self.map_index < 0 else f"score_{self.map_index}"
        return {RUN_ID: {name: self.state}}

    def _context(self, process: Process) -> Any:
        xcoms = XComs(self.kept, process)
        ti = SimpleNamespace(
            dag_id="nightly",
            task_id="score",
            run_id=RUN_ID,
            map_index=self.map_index,
            try_number=self.try_number,
            max_tries=self.max_tries,
            start_date=self.started_at,
            xcom_push=xcoms.push,
            xcom_pull=xcoms.pull,
            get_task_states=lambda **_: self._states,
            _ti_context_from_server=SimpleNamespace(xcom_keys_to_clear=self.xcom_keys),
        )
        run = SimpleNamespace(clear_number=self.clear_number, run_id=RUN_ID, dag_id="nightly")
        store = StateStore(self.kept, process)
        return {"ti": ti, "task_state_store": store, "params": {}, "ds": "2026-03-02", "dag_run": run}


_SCHEDULER_ROUND = 15.0
"""How often the scheduler looks for deferrals that have lasted too long."""


async def _first_of(*awaited: asyncio.Future[Any], within: float) -> None:
    await asyncio.wait(awaited, timeout=None if within == inf else within, return_when=asyncio.FIRST_COMPLETED)


async def _first_event(trigger: Any) -> Any:
    async for event in trigger.run():
        return json.loads(json.dumps(event.payload))
    raise AssertionError("the trigger ended without an event")


async def _no_connection(_: str) -> None:
    return None


@contextmanager
def _fresh_sharing() -> Iterator[None]:
    """Leave nothing of a triggerer's memory to the next."""
    from airflow_accel_provider.triggers import _watch

    _watch._of_loop.clear()
    try:
        yield
    finally:
        _watch._of_loop.clear()
