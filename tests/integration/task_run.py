"""A task instance without scheduler and database: its state is kept, and its steps are run, as Airflow does it."""

from __future__ import annotations

import asyncio
import json
import threading
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from airflow.sdk._shared.module_loading import import_string
from airflow.sdk.exceptions import TaskDeferred
from airflow.sdk.execution_time import task_runner
from airflow.sdk.execution_time.comms import GetXCom, SetXCom, XComResult

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from airflow_accel_provider.operators._job import AcceleratorJobOperator


@dataclass(kw_only=True)
class TaskRun:
    """One task instance over all its tries, deferrals and clears.

    ``make`` gives the operator as parsing the DAG does: every step gets a new one, as on another worker. ``ago`` is how
    long before it executes the try is to have begun.
    """

    make: Callable[[], AcceleratorJobOperator]
    dag_id: str = "nightly"
    run_id: str = "scheduled__2026-03-02T00:00:00+00:00"
    map_index: int = -1
    max_tries: int = 0
    params: dict[str, Any] = field(default_factory=dict)
    stored: dict[str, str] = field(default_factory=dict)
    start_date: datetime = field(default_factory=lambda: datetime.now(UTC))
    ago: timedelta = timedelta()
    xcom: dict[str, Any] = field(default_factory=dict)
    triggers: list[dict[str, Any]] = field(default_factory=list)
    events: list[dict[str, Any]] = field(default_factory=list)

    def execute(self) -> dict[str, Any]:
        """Begin a try on a worker; raises ``TaskDeferred`` where the task would free it."""
        self.start_date = datetime.now(UTC) - self.ago
        return self.operator().execute(self.context)  # type: ignore[arg-type]

    def run(self) -> dict[str, Any]:
        """Run one try to its end, waiting in triggers for as long as it defers."""
        step = self.execute
        while True:
            try:
                return step()
            except TaskDeferred as deferred:
                step = self._resumed(deferred)

    def operator(self) -> AcceleratorJobOperator:
        """Return the operator with its templates rendered."""
        operator = self.make()
        operator.render_template_fields(self.context)  # type: ignore[arg-type]
        return operator

    @property
    def context(self) -> dict[str, Any]:
        """Return what a task is told about itself."""
        return {"ti": self, "task_state_store": self, "params": self.params, "ds": "2026-03-02"}

    @property
    def task_id(self) -> str:
        """Return the task's id."""
        return self.make().task_id

    @property
    def record(self) -> dict[str, Any]:
        """Return the record as it is stored."""
        record: dict[str, Any] = json.loads(self.stored["accel_job"])
        return record

    def xcom_pull(self, *, task_ids: str, key: str, map_indexes: int) -> Any:
        """Return an XCom value of the task itself as ``ti`` does."""
        assert (task_ids, map_indexes) == (self.task_id, self.map_index)
        return self.xcom.get(key)

    def xcom_push(self, key: str, value: Any) -> None:
        """Keep an XCom value as ``ti`` does."""
        self.xcom[key] = value

    def get(self, key: str) -> Any:
        """Return a value as ``task_state_store`` does."""
        return json.loads(self.stored.get(key, "null"))

    def set(self, key: str, value: Any) -> None:
        """Keep a value as ``task_state_store`` does."""
        self.stored[key] = json.dumps(value)

    def _resumed(self, deferred: TaskDeferred) -> Callable[[], dict[str, Any]]:
        path, arguments = deferred.trigger.serialize()
        row: dict[str, Any] = json.loads(json.dumps(arguments))
        self.triggers.append(row)
        trigger = import_string(path)(**row)
        trigger.task_instance = self
        with _comms.of(self):
            event = asyncio.run(first_event(trigger))
        self.events.append(event)
        return lambda: self.woken(deferred.method_name, event=event)

    async def answer(self, question: Any) -> Any:
        """Answer a trigger as its triggerer does, which asks Airflow."""
        if isinstance(question, SetXCom):
            self.xcom[question.key] = json.loads(json.dumps(question.value))
            return None
        assert isinstance(question, GetXCom)
        return XComResult(key=question.key, value=self.xcom.get(question.key))

    def woken(self, method: str, **arguments: Any) -> dict[str, Any]:
        """Go on with a try that was deferred, on another worker; ``__fail__`` is Airflow's word for a lost trigger."""
        value: dict[str, Any] = self.operator().resume_execution(method, arguments, self.context)  # type: ignore[arg-type]
        return value


class _Comms:
    """Where the triggers of this process reach their Airflow, each in its own thread's context."""

    def __init__(self) -> None:
        self._run: ContextVar[TaskRun] = ContextVar("run")
        self._users = 0
        self._lock = threading.Lock()

    @contextmanager
    def of(self, run: TaskRun) -> Iterator[None]:
        """Have what is asked within answered by a task's run."""
        said = self._run.set(run)
        self._count(1)
        try:
            yield
        finally:
            self._count(-1)
            self._run.reset(said)

    async def asend(self, question: Any) -> Any:
        """Answer as the triggerer's own do."""
        return await self._run.get().answer(question)

    def _count(self, more: int) -> None:
        with self._lock:
            if not self._users:
                self._before = vars(task_runner).get("SUPERVISOR_COMMS")
                task_runner.SUPERVISOR_COMMS = self  # type: ignore[assignment]
            self._users += more
            if not self._users:
                task_runner.SUPERVISOR_COMMS = self._before  # type: ignore[assignment]


_comms = _Comms()


async def first_event(trigger: Any) -> Any:
    """Return what a trigger fires, as Airflow stores it."""
    async for event in trigger.run():
        return json.loads(json.dumps(event.payload))
    raise AssertionError("The trigger ended without an event.")
