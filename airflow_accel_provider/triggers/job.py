"""The trigger that waits for a job, proves it, and cancels it when it has to move on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from airflow.triggers.base import BaseTrigger, TriggerEvent

from airflow_accel_provider.core.failures import Failure
from airflow_accel_provider.core.fallback import ending
from airflow_accel_provider.core.notes import is_left_running, recall
from airflow_accel_provider.core.policy import Policy
from airflow_accel_provider.core.record import VERSION, Attempt, Record, UnknownVersionError, check_version
from airflow_accel_provider.exceptions import AcceleratorError
from airflow_accel_provider.triggers._airflow import AirflowSilentError, read_note, task_state, write_note
from airflow_accel_provider.triggers._follow import Followed, follow
from airflow_accel_provider.triggers._sessions import Who
from airflow_accel_provider.triggers._settling import settling_seconds
from airflow_accel_provider.triggers._watch import SharedLook


def event(followed: Followed) -> dict[str, Any]:
    """Return the event's payload: the record as it is now, and the failure that ends the task if there is one."""
    failure = followed.failure.to_json() if followed.failure else None
    return {"v": VERSION, "record": followed.record.to_json(), "failure": failure}


def read_event(payload: Mapping[str, Any]) -> Followed:
    """Return what :func:`event` wrote. Raises :class:`UnknownVersionError`."""
    check_version(payload, "trigger event")
    failure = payload["failure"]
    return Followed(Record.from_json(payload["record"]), Failure.from_json(failure) if failure else None)


class AcceleratorJobTrigger(BaseTrigger):
    """Follow the record's open attempt and fire when the worker has something to do.

    Everything it is given is stored by Airflow and may be logged: ids, places and outcomes, never a user's options. The
    record rides along and is echoed in the event, since triggers cannot reach the task's state store.

    :param record: the record as JSON
    :param policy: the policy as JSON
    :param gcp_conn_id: the connection whose identity asks
    :param poll_interval: seconds between two looks at the job
    """

    def __init__(
        self,
        *,
        v: int,
        record: Mapping[str, Any],
        policy: Mapping[str, Any],
        gcp_conn_id: str,
        impersonation_chain: Sequence[str] = (),
        project_id: str | None = None,
        quota_project_id: str | None = None,
        poll_interval: float = 10,
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # Airflow's base is not annotated
        self.v = v
        self.record = record
        self.policy = policy
        self.gcp_conn_id = gcp_conn_id
        self.impersonation_chain = tuple(impersonation_chain)
        self.project_id = project_id
        self.quota_project_id = quota_project_id
        self.poll_interval = poll_interval

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Return the class path and the arguments, as Airflow stores them."""
        return (
            "airflow_accel_provider.triggers.job.AcceleratorJobTrigger",
            {
                "v": self.v,
                "record": dict(self.record),
                "policy": dict(self.policy),
                "gcp_conn_id": self.gcp_conn_id,
                "impersonation_chain": list(self.impersonation_chain),
                "project_id": self.project_id,
                "quota_project_id": self.quota_project_id,
                "poll_interval": self.poll_interval,
            },
        )

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Follow the job and yield one event, see :func:`event`."""
        loop = asyncio.get_running_loop()
        not_before = loop.time() + settling_seconds()
        payload = await self._payload()
        await asyncio.sleep(max(not_before - loop.time(), 0))
        yield TriggerEvent(payload)

    async def _payload(self) -> dict[str, Any]:
        try:
            record = self._read()
        except UnknownVersionError as error:
            # The worker reads the same versions, and fails saying the same.
            self.log.error("%s", error)  # noqa: TRY400 - the sentence is all there is to say
            return {"v": self.v, "record": dict(self.record), "failure": None}
        policy = Policy.from_json(self.policy)
        journal = _Notes(self)
        return event(await follow(record, self._look(record), policy, now=_now, log=self.log, journal=journal))

    async def on_kill(self) -> None:
        """End this record's job as asked, and no other, when a person ended or cleared the task.

        Airflow 3.3 also calls this when a trigger merely moves to another triggerer: while the task is still
        deferred, the job is somebody's, and so is one that another trigger has proven and left running. When Airflow
        cannot be asked the job is left alone too: a job too many costs money until the task is cleared or `accel reap`
        finds it, a cancelled job costs the work.
        """
        # The triggerer cancels this call at each of its rounds until it has ended; the work must outlive that.
        kill = asyncio.create_task(self._kill())
        _kills.add(kill)
        kill.add_done_callback(_kills.discard)
        await asyncio.shield(kill)

    async def _kill(self) -> None:
        record = self._read()
        attempt = record.open
        if attempt is None or attempt.job_id is None:
            return
        kept = await self._why_not(attempt)
        if kept:
            self.log.warning("kill=ignored job=%s reason=%s", attempt.job_id, kept)
            return
        asked = ending(attempt, "the task was killed", Policy.from_json(self.policy), _now())
        self.log.info("kill=%s job=%s", asked.outcome, attempt.job_id)
        try:
            await self._look(record).end(asked)
        except AcceleratorError as error:
            self.log.warning("kill=failed job=%s may go on, clear the task or end it error=%s", attempt.job_id, error)

    def _read(self) -> Record:
        check_version({"v": self.v}, "trigger")
        return Record.from_json(self.record)

    def _look(self, record: Record) -> SharedLook:
        who = Who(
            gcp_conn_id=self.gcp_conn_id,
            impersonation_chain=self.impersonation_chain,
            project_id=self.project_id,
            quota_project_id=self.quota_project_id,
        )
        return SharedLook(who, self.poll_interval, record.service)

    async def _why_not(self, attempt: Attempt) -> str | None:
        """Return why a kill must not end the job, ``None`` when it must."""
        ti = self.task_instance
        if ti is None:
            return None
        try:
            if await task_state(ti) == "deferred":
                return "the task is still deferred"
            note = await read_note(ti) if self.policy.get("wait_until") == "proven" else None
        except AirflowSilentError as silence:
            return f"Airflow could not be asked about the task: {silence}"
        return "it was proven and is left running" if is_left_running(attempt, note) else None


class _Notes:
    """A trigger's journal: an XCom of its task, which lasts as long as the try."""

    def __init__(self, trigger: AcceleratorJobTrigger) -> None:
        self._ti = trigger.task_instance
        self._log = trigger.log

    async def write(self, record: Record) -> None:
        """Write a note; where that fails the job is acted on nevertheless, since it costs money meanwhile."""
        if self._ti is None:
            return
        try:
            await write_note(self._ti, record.attempts[-1])
        except AirflowSilentError as silence:
            self._log.warning("note=failed error=%s", silence)

    async def recall(self, attempt: Attempt) -> Attempt:
        """Return what an earlier trigger noted, if it did and Airflow answers."""
        if self._ti is None:
            return attempt
        try:
            return recall(attempt, await read_note(self._ti))
        except AirflowSilentError as silence:
            self._log.warning("note=unread error=%s", silence)
            return attempt


_kills: set[asyncio.Task[None]] = set()
"""Kills under way; the loop itself holds its tasks only weakly."""


def _now() -> datetime:
    return datetime.now(UTC)
