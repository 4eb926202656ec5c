"""Airflow's word to a child: its own Execution API in that process; errors are told as by a supervisor."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from airflow.sdk.api.client import ServerResponseError
from airflow.sdk.exceptions import AirflowRuntimeError, ErrorType
from airflow.sdk.execution_time import supervisor
from airflow.sdk.execution_time.comms import ErrorResponse
from airflow.sdk.execution_time.supervisor import InProcessSupervisorComms

if TYPE_CHECKING:
    from tests.kills.points import Points

WRITES = ("SetTaskStateStore", "SetXCom", "DeferTask", "SucceedTask", "RetryTask", "TaskState")
"""What a task says to Airflow that changes something there."""


class Comms(InProcessSupervisorComms):
    """Takes one word at a time, from any thread: ``on_kill`` of a worker speaks from one of its own."""

    points: Points
    lock = threading.RLock()

    def send(self, msg: Any) -> Any:
        """Return Airflow's answer. Raises ``AirflowRuntimeError`` where its API refuses."""
        what = type(msg).__name__
        is_writing = what in WRITES
        if is_writing:
            self.points.reach(f"before {what}")
        with self.lock:
            answer = self._answer(msg)
        if is_writing:
            self.points.reach(f"after {what}")
        return answer

    async def asend(self, msg: Any) -> Any:
        """Answer as to a trigger."""
        return self.send(msg)

    def _answer(self, msg: Any) -> Any:
        try:
            self.supervisor._handle_request(msg, supervisor.log, 0)
        except ServerResponseError as refused:
            status = refused.response.status_code
            detail = {"status_code": status, "message": str(refused), "detail": refused.response.json()}
            raise AirflowRuntimeError(ErrorResponse(error=ErrorType.API_SERVER_ERROR, detail=detail)) from refused
        return self._get_response()
