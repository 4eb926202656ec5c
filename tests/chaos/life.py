"""A task instance's whole life as Airflow 3.3 leads it: tries, deferrals, retries, clears, marks, kills."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from airflow.sdk import BaseHook
from airflow.sdk._shared.module_loading import import_string
from airflow.sdk.exceptions import AirflowFailException, TaskDeferred
from airflow.sdk.execution_time import task_runner
from airflow.sdk.execution_time.comms import TaskStatesResult

from airflow_accel_provider.core.record import Record
from airflow_accel_provider.hooks.session import GoogleSession
from airflow_accel_provider.operators import _job
from tests.chaos.clock import Clock
from tests.chaos.google import SimGoogle
from tests.chaos.process import Kept, Killed, Process, SimSession

RUN_ID = "scheduled__2026-03-02T00:00:00+00:00"


@dataclass(slots=True)
class Deferral:
    """Where a task waits."""

    path: str
    row: dict[str, Any]
    method: str


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
    value: Any = None
    error: BaseException | None = None
    deferral: Deferral | None = None
    event: Any = None
    operator: Any = None
    started_at: datetime | None = None
    process: Process = field(default_factory=Process)
    kept: Kept = field(default_factory=lambda: Kept(process=Process()))

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
        comms = SimpleNamespace(asend=self._states)
        with ExitStack() as stack:
            made = lambda *_, **__: SimSession(self.google, self.process)  # noqa: E731
            stack.enter_context(patch.object(GoogleSession, "from_connection", made))
            stack.enter_context(patch.object(_job, "named_connection", lambda _: None))
            stack.enter_context(patch.object(BaseHook, "aget_connection", _no_connection))
            stack.enter_context(patch.object(task_runner, "SUPERVISOR_COMMS", comms, create=True))
            yield

    # What a worker does.

    def work(self, process: Process) -> None:
        """Run a try, or the rest of one, on a worker."""
        self.process = self.kept.process = process
        self.operator = None
        self.state = "running"
        if self.event is None or self.started_at is None:
            # A deferral keeps the try's start.
            self.started_at = self.clock.at()
        event, deferral, self.event, self.deferral = self.event, self.deferral, None, None
        try:
            process.point("the worker begins")
            self.operator = self.make()
            self.operator.render_template_fields(self._context)
            self.value = self._step(event, deferral)
            process.point("the worker reports success")
            self.state = "success"
        except TaskDeferred as deferred:
            path, row = deferred.trigger.serialize()
            self.deferral = Deferral(path, json.loads(json.dumps(row)), deferred.method_name)
            self.state = "deferred"
        except AirflowFailException as error:
            self._failed(error, is_final=True)
        except Killed as error:
            self._failed(error, is_final=False)
        except Exception as error:  # noqa: BLE001 - Airflow takes any
            self._failed(error, is_final=False)

    def _step(self, event: Any, deferral: Deferral | None) -> Any:
        if event is None or deferral is None:
            return self.operator.execute(self._context)
        return getattr(self.operator, deferral.method)(self._context, event)

    def _failed(self, error: BaseException, *, is_final: bool) -> None:
        self.error = error
        may_retry = self.try_number <= self.max_tries and not is_final
        self.state = "up_for_retry" if may_retry else "failed"

    # What users and the scheduler do.

    def retry(self) -> None:
        """Begin the next try."""
        self.try_number += 1
        self.state = "queued"
        self.event = self.deferral = None

    def clear(self) -> None:
        """Clear the task while no worker runs it."""
        self.max_tries = self.try_number + self.retries
        self.clear_number += 1
        self.retry()

    # What a triggerer does.

    def wait(self, process: Process, seconds: float | None, then: Callable[[Any, asyncio.Task[Any]], Any]) -> None:
        """Run the trigger; after some seconds, if it still runs, something happens to it."""
        deferral = self.deferral
        assert deferral
        self.process = process
        with _fresh_sharing():
            event = asyncio.run(self._wait(process, deferral, seconds, then))
        if event is not None and self.state == "deferred" and process.is_alive:
            self.event, self.state = event, "queued"

    async def _wait(
        self, process: Process, deferral: Deferral, seconds: float | None, then: Callable[[Any, asyncio.Task[Any]], Any]
    ) -> Any:
        loop = asyncio.get_running_loop()
        # What tasks of a dead process would have said is of no interest.
        loop.set_exception_handler(lambda *_: None)
        death = loop.create_future()
        process.on_death = lambda: death.done() or death.set_result(None)
        trigger = self.trigger(deferral)
        running = asyncio.create_task(_first_event(trigger))
        await asyncio.wait({running, death}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        if running.done() and process.is_alive:
            return running.result()
        if not process.is_alive:
            return None
        goes_on = await then(trigger, running)
        if not goes_on or not process.is_alive:
            return None
        await asyncio.wait({running, death}, return_when=asyncio.FIRST_COMPLETED)
        return running.result() if running.done() and process.is_alive else None

    def trigger(self, deferral: Deferral) -> Any:
        """Return the trigger of a row as a triggerer makes it."""
        trigger = import_string(deferral.path)(**deferral.row)
        trigger.task_instance = SimpleNamespace(dag_id="nightly", task_id="score", run_id=RUN_ID, map_index=-1)
        return trigger

    def kill_late(self, trigger: Any) -> None:
        """Have a triggerer tell a trigger of its kill only now, in a loop of its own."""
        before, self.process = self.process, Process()
        thread = threading.Thread(target=lambda: asyncio.run(trigger.on_kill()))
        thread.start()
        thread.join()
        self.process = before

    async def _states(self, _: Any) -> TaskStatesResult:
        return TaskStatesResult(task_states={RUN_ID: {"score": self.state}})

    @property
    def _context(self) -> Any:
        ti = SimpleNamespace(
            dag_id="nightly",
            task_id="score",
            run_id=RUN_ID,
            map_index=-1,
            try_number=self.try_number,
            max_tries=self.max_tries,
            start_date=self.started_at,
            xcom_push=self.kept.xcom_push,
        )
        run = SimpleNamespace(clear_number=self.clear_number, run_id=RUN_ID, dag_id="nightly")
        return {"ti": ti, "task_state_store": self.kept, "params": {}, "ds": "2026-03-02", "dag_run": run}


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
