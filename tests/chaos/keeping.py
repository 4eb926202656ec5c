"""What Airflow keeps for a task instance, as its processes reach it: state store, XCom, and the states of tasks."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from airflow.sdk.exceptions import AirflowRuntimeError, ErrorType
from airflow.sdk.execution_time.comms import ErrorResponse

from tests.chaos.process import Process


@dataclass(slots=True, kw_only=True)
class Kept:
    """All that is kept of one task instance.

    ``epoch`` stands for the id of its row. Airflow 3.3.2 gives it a new one whenever a try is over and another may
    come (``TaskInstance.prepare_db_for_next_try``, ``models/taskinstance.py``): after a failure, a missing heartbeat, a
    clear, that of a running task included.
    """

    epoch: int = 0
    stored: dict[str, str] = field(default_factory=dict)
    xcom: dict[str, str] = field(default_factory=dict)
    on_set: Callable[[Mapping[str, Any]], None] = lambda _: None

    def get(self, key: str) -> Any:
        """Return what is stored under a key."""
        return json.loads(self.stored.get(key, "null"))


@dataclass(frozen=True, slots=True)
class StateStore:
    """``task_state_store`` of one worker.

    The execution API looks the row up by its id and answers 404 to the id of an older try
    (``execution_api/routes/task_state_store.py``). Reading, the client takes that for a missing key, and the accessor
    returns its default (``sdk/execution_time/context.py``); writing, it is an error.
    """

    kept: Kept
    process: Process

    def get(self, key: str, default: Any = None) -> Any:
        """Return a value, the default to a worker of an older try."""
        if not self._is_current or key not in self.kept.stored:
            return default
        return self.kept.get(key)

    def set(self, key: str, value: Any) -> None:
        """Keep a value; a worker of an older try is refused."""
        self.process.point(f"before set {key}")
        if not self._is_current:
            detail = {"status_code": 404, "message": "Not Found", "detail": {"detail": {"reason": "not_found"}}}
            raise AirflowRuntimeError(ErrorResponse(error=ErrorType.API_SERVER_ERROR, detail=detail))
        self.kept.stored[key] = json.dumps(value)
        self.kept.on_set(value)
        self.process.point(f"after set {key}")

    @property
    def _is_current(self) -> bool:
        return self.process.epoch == self.kept.epoch


@dataclass(frozen=True, slots=True)
class XComs:
    """XCom of one worker; no id is checked there (``execution_api/routes/xcoms.py``), an older try may push too."""

    kept: Kept
    process: Process

    def push(self, key: str, value: Any) -> None:
        """Keep a value as ``ti.xcom_push`` does."""
        self.process.point(f"before push {key}")
        self.kept.xcom[key] = json.dumps(value)

    def pull(self, *, key: str, **_: Any) -> Any:
        """Return a value as ``ti.xcom_pull`` does."""
        return json.loads(self.kept.xcom.get(key, "null"))
