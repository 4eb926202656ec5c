"""The trigger of all sensors: it asks one question until that is settled."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from typing import Any

from airflow.triggers.base import BaseTrigger, TriggerEvent

from airflow_accel_provider.core.failures import Failure
from airflow_accel_provider.core.record import VERSION, UnknownVersionError, check_version
from airflow_accel_provider.core.waiting.answers import Met, Never
from airflow_accel_provider.core.waiting.pace import Pace
from airflow_accel_provider.core.waiting.questions import question_from_json
from airflow_accel_provider.triggers._follow import PATIENCE
from airflow_accel_provider.triggers._sessions import Sessions, Who
from airflow_accel_provider.triggers._settling import settling_seconds
from airflow_accel_provider.triggers._wait import Listener, Settled, TimedOut, look_now, wait


def event(settled: Settled) -> dict[str, Any]:
    """Return the event's payload: one of a value, a failure, and the reason of a timeout."""
    payload: dict[str, Any] = {"v": VERSION, "met": None, "failure": None, "timed_out": None}
    if isinstance(settled, Met):
        return payload | {"met": settled.value, "remark": settled.remark}
    if isinstance(settled, Never):
        return payload | {"failure": settled.failure.to_json()}
    return payload | {"timed_out": settled.reason}


def read_event(payload: Mapping[str, Any]) -> Settled:
    """Return what :func:`event` wrote. Raises :class:`UnknownVersionError`."""
    check_version(payload, "trigger event")
    if payload["failure"]:
        return Never(Failure.from_json(payload["failure"]))
    if payload["timed_out"] is not None:
        return TimedOut(payload["timed_out"])
    return Met(payload["met"], payload["remark"])


class AcceleratorSensorTrigger(BaseTrigger):
    """Ask a question until it is settled, and fire once with how.

    Everything it is given is stored by Airflow and may be logged; none of it is a secret. Its deadline is its own,
    since a task that is run by ``dag.test()`` is deferred without one.

    :param question: the question as JSON
    :param deadline: until when to ask, in ISO form
    :param pace: seconds between two looks, whether they grow, and up to what
    :param is_patient: wait out errors of the service until the deadline
    :param gcp_conn_id: the connection whose identity asks
    """

    def __init__(
        self,
        *,
        v: int,
        question: Mapping[str, Any],
        deadline: str,
        pace: Mapping[str, Any],
        is_patient: bool,
        gcp_conn_id: str,
        impersonation_chain: Sequence[str] = (),
        project_id: str | None = None,
        quota_project_id: str | None = None,
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # Airflow's base is not annotated
        self.v = v
        self.question = question
        self.deadline = deadline
        self.pace = pace
        self.is_patient = is_patient
        self.gcp_conn_id = gcp_conn_id
        self.impersonation_chain = tuple(impersonation_chain)
        self.project_id = project_id
        self.quota_project_id = quota_project_id

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Return the class path and the arguments, as Airflow stores them."""
        return (
            "airflow_accel_provider.triggers.sensor.AcceleratorSensorTrigger",
            {
                "v": self.v,
                "question": dict(self.question),
                "deadline": self.deadline,
                "pace": dict(self.pace),
                "is_patient": self.is_patient,
                "gcp_conn_id": self.gcp_conn_id,
                "impersonation_chain": list(self.impersonation_chain),
                "project_id": self.project_id,
                "quota_project_id": self.quota_project_id,
            },
        )

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Ask and yield one event, see :func:`event`."""
        loop = asyncio.get_running_loop()
        not_before = loop.time() + settling_seconds()
        payload = await self._payload()
        await asyncio.sleep(max(not_before - loop.time(), 0))
        yield TriggerEvent(payload)

    async def _payload(self) -> dict[str, Any]:
        try:
            check_version({"v": self.v}, "trigger")
        except UnknownVersionError as error:
            # The worker reads the same versions, and fails saying the same.
            self.log.error("%s", error)  # noqa: TRY400 - the sentence is all there is to say
            return {"v": self.v}
        question = question_from_json(self.question)
        with _sessions(self._who) as sessions:
            settled = await wait(
                lambda: sessions.call(self._who, partial(look_now, question=question)),
                Listener(None if self.is_patient else PATIENCE),
                pace=Pace(**self.pace),
                deadline=datetime.fromisoformat(self.deadline),
                now=partial(datetime.now, UTC),
                log=self.log,
            )
        return event(settled)

    @property
    def _who(self) -> Who:
        return Who(
            gcp_conn_id=self.gcp_conn_id,
            impersonation_chain=self.impersonation_chain,
            project_id=self.project_id,
            quota_project_id=self.quota_project_id,
        )


class _Shared:
    """The sessions of one event loop, and how many triggers speak through each."""

    def __init__(self) -> None:
        self.sessions = Sessions()
        self.users: Counter[Who] = Counter()


_of_loop: dict[asyncio.AbstractEventLoop, _Shared] = {}


@contextmanager
def _sessions(who: Who) -> Iterator[Sessions]:
    """Yield the sessions of the running loop; one goes with its last user, as the connection may change meanwhile."""
    for loop in [loop for loop in _of_loop if loop.is_closed()]:
        del _of_loop[loop]
    shared = _of_loop.setdefault(asyncio.get_running_loop(), _Shared())
    shared.users[who] += 1
    try:
        yield shared.sessions
    finally:
        shared.users[who] -= 1
        if not shared.users[who]:
            del shared.users[who]
            shared.sessions.forget(who)
