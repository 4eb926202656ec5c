"""Jobs of the simulated services: what becomes of each is written when it is made, its state follows from the time."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Literal

Ending = Literal["done", "stockout", "user_code", "bare", "stuck", "ended_by_somebody", "streaming"]
TERMINAL = frozenset({"DONE", "FAILED", "CANCELLED", "DRAINED", "UPDATED"})

_WEIGHTS: dict[Ending, int] = {
    "done": 60,
    "stockout": 14,
    "user_code": 6,
    "bare": 6,
    "stuck": 4,
    "ended_by_somebody": 4,
}


@dataclass(slots=True, kw_only=True)
class Script:
    """What will become of a job, in seconds since its creation."""

    ending: Ending = "done"
    pending: float = 60.0
    workers: float = 120.0
    length: float = 900.0
    first_state: str = "PENDING"
    skips_running: bool = False
    deaf: float = 0.0
    """Until when requests to end the job are taken and not heeded."""
    dying: float = 20.0
    """How long the job takes to end once it heeds."""
    lag: float = 0.0
    """How old a state that is read may be; it jumps to and fro."""
    listed_after: float = 0.0
    """From when on lists show the job."""
    somebody: str = "CANCELLED"
    """What somebody who ends the job makes of it."""
    leaving: float = 0.0
    """For how long before that the job is on its way there."""
    course: tuple[tuple[float, str], ...] = ()
    """States by the age from which they hold, in place of all the above that says so; the first from the beginning."""

    @classmethod
    def drawn(cls, luck: random.Random, *, streaming: bool, is_calm: bool) -> Script:
        """Return a script by chance."""
        ending = luck.choices(list(_WEIGHTS), list(_WEIGHTS.values()))[0]
        somebody = luck.choice(["CANCELLED", "DRAINED"])
        if streaming and ending in {"done", "stuck"}:
            ending = "streaming"
        pending = luck.uniform(5, 200)
        workers = pending + luck.uniform(5, 300)
        length = workers + luck.uniform(60, 3000)
        script = cls(
            ending=ending, pending=pending, workers=workers, length=length, dying=luck.uniform(1, 90), somebody=somebody
        )
        if not is_calm:
            script.first_state = luck.choice(["PENDING", "QUEUED", "SOMETHING_NEW", ""])
            script.skips_running = ending != "streaming" and luck.random() < 0.2
            script.deaf = luck.choice([0.0, 0.0, luck.uniform(5, 200)])
            script.lag = luck.choice([0.0, 0.0, luck.uniform(5, 60)])
            script.listed_after = luck.choice([0.0, luck.uniform(0, 5), luck.uniform(0, 40)])
            script.somebody = luck.choice(["CANCELLED", "DRAINED", "DRAINED", "UPDATED"])
            script.leaving = luck.choice([0.0, luck.uniform(10, 200)])
        return script


@dataclass(slots=True, kw_only=True)
class SimJob:
    """One job in the ledger."""

    service: str
    id: str
    name: str
    region: str
    labels: dict[str, str]
    created: float
    script: Script
    request_id: str | None = None
    machine_type: str = ""
    is_foreign: bool = False
    item: str | None = None
    """What the task stood for when the job was made."""
    epoch: int = 0
    """Of which try it is, see :class:`~tests.chaos.keeping.Kept`."""
    asked_to_end: list[float] = field(default_factory=list)
    heeded_at: float | None = None

    def ask_to_end(self, now: float) -> None:
        """Take a request to end; one that comes too early is lost."""
        self.asked_to_end.append(now)
        if self.heeded_at is None and self.is_live(now) and now - self.created >= self.script.deaf:
            self.heeded_at = now

    def state(self, now: float) -> str:
        """Return the true state."""
        own = self._own_state(now - self.created)
        if self.heeded_at is None or (own in TERMINAL and self._own_end() + self.created <= self.heeded_at):
            return own
        return "CANCELLED" if now - self.heeded_at >= self.script.dying else "CANCELLING"

    def is_live(self, now: float) -> bool:
        """Tell whether somebody pays for the job."""
        return self.state(now) not in TERMINAL

    def shown(self, now: float, luck: random.Random) -> str:
        """Return the state that a reading shows, which may be an old one."""
        return self.state(max(now - luck.uniform(0, self.script.lag), self.created))

    def has_workers(self, now: float) -> bool:
        """Tell whether worker VMs are up."""
        age = now - self.created
        return self.script.ending not in {"stockout", "stuck"} and age >= self.script.workers and self.is_live(now)

    def has_run(self, now: float) -> bool:
        """Tell whether workers ever came up."""
        at = now if self.heeded_at is None else min(now, self.heeded_at)
        return self.script.ending not in {"stockout", "stuck"} and at - self.created >= self.script.workers

    def ended_at(self, now: float) -> float:
        """Return when the job ended, the present while it has not."""
        own = self.created + self._own_end()
        asked = float("inf") if self.heeded_at is None or own <= self.heeded_at else self.heeded_at + self.script.dying
        return min(own, asked, now)

    def held(self, now: float) -> float:
        """Return for how many seconds the job has had its workers."""
        if self.script.ending in {"stockout", "stuck"}:
            return 0.0
        return max(self.ended_at(now) - self.created - self.script.workers, 0.0)

    def is_short(self, now: float) -> bool:
        """Tell whether the service has said by now that there is no such machine in stock."""
        return self.script.ending == "stockout" and now - self.created >= self.script.workers

    def _own_end(self) -> float:
        if self.script.course:
            return next((at for at, state in self.script.course if state in TERMINAL), float("inf"))
        return float("inf") if self.script.ending in {"stuck", "streaming"} else self.script.length

    def _own_state(self, age: float) -> str:
        script = self.script
        if script.course:
            return next(state for at, state in reversed(script.course) if age >= at)
        if age >= self._own_end():
            return {"done": "DONE", "bare": "DONE", "ended_by_somebody": script.somebody}.get(script.ending, "FAILED")
        if script.ending == "ended_by_somebody" and age >= self._own_end() - script.leaving:
            return "DRAINING" if script.somebody == "DRAINED" else "CANCELLING"
        if age < script.pending / 2:
            return script.first_state
        # A batch of Spark runs when its machines are there; a Dataflow job says so before.
        until = script.workers if self.service == "dataproc" else script.pending
        never = self.service == "dataproc" and script.ending in {"stockout", "stuck"}
        if age < until or never or script.skips_running:
            return "PENDING"
        return "RUNNING"
