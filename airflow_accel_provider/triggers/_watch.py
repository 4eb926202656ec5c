"""One poll loop per identity, service and region, shared by every trigger of a triggerer.

A thousand deferred tasks that wait for jobs of one project and region cost the same few calls a tick as one of them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

from airflow_accel_provider.core.jobs import Service, Snapshot
from airflow_accel_provider.core.record import Attempt
from airflow_accel_provider.hooks.services import end, look
from airflow_accel_provider.triggers._sessions import Sessions, Who

_AT_ONCE = 50
"""How many followers hear of a look before others get the event loop; each decides for a fraction of a millisecond."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Waiter:
    """One follower that waits for the next look at its job."""

    job_id: str
    to_prove: bool
    poll_interval: float
    future: asyncio.Future[Snapshot]


@dataclass(slots=True, kw_only=True)
class _Poll:
    """The loop of one identity, service and region: it ticks while anybody waits, and ends an interval after that."""

    who: Who
    service: Service
    region: str
    sessions: Sessions
    waiting: list[_Waiter] = field(default_factory=list)
    task: asyncio.Task[None] | None = None

    async def run(self) -> None:
        """Look, tell, rest for the shortest interval that is asked for, and begin again."""
        loop = asyncio.get_running_loop()
        while self.waiting:
            # A follower comes back for its next look as soon as it has decided on this one.
            waiting, self.waiting = self.waiting, []
            next_tick = loop.time() + min(waiter.poll_interval for waiter in waiting)
            await self._tick([waiter for waiter in waiting if not waiter.future.done()])
            await asyncio.sleep(max(next_tick - loop.time(), 0))

    async def _tick(self, waiting: Sequence[_Waiter]) -> None:
        if not waiting:
            return
        wanted: dict[str, bool] = {}
        for waiter in waiting:
            wanted[waiter.job_id] = waiter.to_prove or wanted.get(waiter.job_id, False)
        seen: dict[str, Snapshot] | Exception
        try:
            ask = partial(look, service=self.service, region=self.region, wanted=wanted)
            seen = await self.sessions.call(self.who, ask)
        except Exception as error:  # noqa: BLE001 - whatever it is, every follower must hear of it
            seen = error
        for start in range(0, len(waiting), _AT_ONCE):
            for waiter in waiting[start : start + _AT_ONCE]:
                _tell(waiter, seen)
            await asyncio.sleep(0)


def _tell(waiter: _Waiter, seen: dict[str, Snapshot] | Exception) -> None:
    if waiter.future.done():
        return
    if isinstance(seen, Exception):
        waiter.future.set_exception(seen)
    else:
        waiter.future.set_result(seen[waiter.job_id])


class _Shared:
    """What the followers of one event loop share."""

    def __init__(self) -> None:
        self.sessions = Sessions()
        self._polls: dict[tuple[Who, Service, str], _Poll] = {}

    def wait(self, who: Who, service: Service, region: str, waiter: _Waiter) -> None:
        """Take a waiter into the next tick of its poll, starting that when it rests."""
        key = who, service, region
        poll = self._polls.get(key)
        if poll is None:
            poll = self._polls[key] = _Poll(who=who, service=service, region=region, sessions=self.sessions)
            poll.task = asyncio.create_task(self._run(poll))
        poll.waiting.append(waiter)

    async def _run(self, poll: _Poll) -> None:
        """Run a poll, then forget it; the session goes with the last one, as the connection may change meanwhile."""
        try:
            await poll.run()
        finally:
            del self._polls[poll.who, poll.service, poll.region]
            if all(who != poll.who for who, _, _ in self._polls):
                self.sessions.forget(poll.who)


_of_loop: dict[asyncio.AbstractEventLoop, _Shared] = {}


def _shared() -> _Shared:
    """Return what is shared in the running event loop; a triggerer has one, a test run many after each other."""
    for loop in [loop for loop in _of_loop if loop.is_closed()]:
        del _of_loop[loop]
    return _of_loop.setdefault(asyncio.get_running_loop(), _Shared())


class SharedLook:
    """Snapshots that come from the poll shared with every other follower of the same identity, service and region."""

    def __init__(self, who: Who, poll_interval: float, service: Service = "dataflow") -> None:
        self._who = who
        self._poll_interval = poll_interval
        self._service = service

    async def snapshot(self, attempt: Attempt) -> Snapshot:
        """Return the job as the next shared tick sees it."""
        if attempt.job_id is None:
            return Snapshot(job=None)
        waiter = _Waiter(
            job_id=attempt.job_id,
            to_prove=not attempt.is_proven,
            poll_interval=self._poll_interval,
            future=asyncio.get_running_loop().create_future(),
        )
        _shared().wait(self._who, self._service, attempt.placement.region, waiter)
        return await waiter.future

    async def end(self, attempt: Attempt) -> None:
        """Ask for the job's end."""
        await _shared().sessions.call(self._who, partial(end, service=self._service, attempt=attempt))
