"""One poll loop per identity and region, shared by every trigger of a triggerer.

A thousand deferred tasks that wait for jobs of one project and region cost the same few calls a tick as one of them.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from airflow_accel_provider.core.jobs import Snapshot
from airflow_accel_provider.core.record import Attempt
from airflow_accel_provider.hooks.polling import look
from airflow_accel_provider.hooks.session import GoogleSession
from airflow_accel_provider.triggers._follow import cancel


@dataclass(frozen=True, slots=True, kw_only=True)
class Who:
    """The identity a session is made for; equal ones share a session and its polls."""

    gcp_conn_id: str
    impersonation_chain: tuple[str, ...] = ()
    project_id: str | None = None
    quota_project_id: str | None = None

    async def session(self) -> GoogleSession:
        """Read the connection and return a session for it.

        The connection is read with Airflow's asynchronous getter, as a trigger must; the rest (credential files,
        imports that take seconds) happens in a thread.
        """
        from airflow.sdk import BaseHook

        connection = await BaseHook.aget_connection(self.gcp_conn_id)
        return await asyncio.to_thread(
            GoogleSession.from_connection,
            connection,
            impersonation_chain=list(self.impersonation_chain) or None,
            project_id=self.project_id,
            quota_project_id=self.quota_project_id,
        )


@dataclass(slots=True, kw_only=True)
class _Waiter:
    """One follower that waits for the next look at its job."""

    to_prove: bool
    poll_interval: float
    future: asyncio.Future[Snapshot]


@dataclass(slots=True, kw_only=True)
class _Poll:
    """The loop of one identity and region: it ticks while anybody waits, and ends when nobody does."""

    session: GoogleSession
    region: str
    waiting: dict[str, _Waiter] = field(default_factory=dict)
    task: asyncio.Task[None] | None = None
    ticked_at: float = float("-inf")

    def wait_for(self, job_id: str, waiter: _Waiter) -> None:
        """Take a waiter into the next tick, starting the loop when it rests."""
        self.waiting[job_id] = waiter
        if self.task is None or self.task.done():
            self.task = asyncio.create_task(self._run())

    async def _run(self) -> None:
        while self.waiting:
            loop = asyncio.get_running_loop()
            pace = min(waiter.poll_interval for waiter in self.waiting.values())
            await asyncio.sleep(max(self.ticked_at + pace - loop.time(), 0))
            self.ticked_at = loop.time()
            await self._tick()
            # A follower comes back for its next look as soon as it has decided on this one.
            await asyncio.sleep(0)

    async def _tick(self) -> None:
        waiting, self.waiting = self.waiting, {}
        waiting = {job_id: waiter for job_id, waiter in waiting.items() if not waiter.future.done()}
        if not waiting:
            return
        wanted = {job_id: waiter.to_prove for job_id, waiter in waiting.items()}
        try:
            looked = await asyncio.to_thread(look, self.session, self.region, wanted)
        except Exception as error:  # noqa: BLE001 - whatever it is, every follower must hear of it
            for waiter in waiting.values():
                if not waiter.future.done():
                    waiter.future.set_exception(error)
            return
        for job_id, waiter in waiting.items():
            if not waiter.future.done():
                waiter.future.set_result(looked[job_id])


_sessions: dict[tuple[int, Who], asyncio.Task[GoogleSession]] = {}
_polls: dict[tuple[int, Who, str], _Poll] = {}


class SharedLook:
    """Snapshots that come from the poll shared with every other follower of the same identity and region."""

    def __init__(self, who: Who, poll_interval: float) -> None:
        self._who = who
        self._poll_interval = poll_interval

    async def snapshot(self, attempt: Attempt) -> Snapshot:
        """Return the job as the next shared tick sees it."""
        if attempt.job_id is None:
            return Snapshot(job=None)
        loop = asyncio.get_running_loop()
        session = await self._session()
        key = (id(loop), self._who, attempt.placement.region)
        poll = _polls.setdefault(key, _Poll(session=session, region=attempt.placement.region))
        waiter = _Waiter(to_prove=not attempt.is_proven, poll_interval=self._poll_interval, future=loop.create_future())
        poll.wait_for(attempt.job_id, waiter)
        return await waiter.future

    async def cancel(self, attempt: Attempt) -> None:
        """Ask for the job's cancellation."""
        await cancel(await self._session(), attempt)

    async def _session(self) -> GoogleSession:
        """Return the identity's session, made once for all who ask at the same time."""
        key = (id(asyncio.get_running_loop()), self._who)
        if key not in _sessions:
            _sessions[key] = asyncio.create_task(self._who.session())
        try:
            return await asyncio.shield(_sessions[key])
        except Exception:
            _sessions.pop(key, None)
            raise
