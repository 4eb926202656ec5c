"""A story: one task on the emulator, with processes that are killed at numbered points."""

from __future__ import annotations

import os
import re
import signal
import time
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.utils.state import TaskInstanceState

from airflow_accel_provider.operators._job import AcceleratorJobOperator
from demo.jobs import Job, jobs_of, overlap
from tests.integration.local_google import PROJECT
from tests.kills.children import USER_ACTED, fork, wait, work
from tests.kills.instance import RUN_ID, Instance
from tests.kills.light import PAUSE
from tests.kills.plot import HOPELESS, UNHEARD, Plot
from tests.kills.points import Points
from tests.kills.strangers import labels_of, plant
from tests.kills.tasks import TASK, dag_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from airflow.sdk import DAG

    from tests.integration.local_google import LocalGoogle

_MOST_STEPS = 150
_ABSENT = 0.3
"""How likely it is that after a kill nobody comes until the job is over."""
_LAST_WORDS = 20.0
"""Seconds within which the last job must have ended once its task has."""
_ON_THE_WAY = 12.0
"""Seconds of accelerators that a job may cost beyond what excuses it: two looks, calls, dying, a slow machine."""


@dataclass(slots=True, kw_only=True)
class Told:
    """What a story was like."""

    name: str
    kind: str
    deferrable: bool
    world: str
    state: str = ""
    jobs: int = 0
    events: list[str] = field(default_factory=list)
    held: float = 0.0
    """For how many seconds its jobs had accelerators, as the emulator counts them."""
    seconds: float = 0.0
    violations: list[str] = field(default_factory=list)
    points: list[tuple[str, list[str]]] = field(default_factory=list)
    """What each process of the task was, and the points that it passed."""


@dataclass(slots=True)
class Wish:
    """A user cleared the task, or marked it."""

    at: float
    heard: float = inf
    """When whoever could hear of it was done: nobody, as long as there is no process of the task."""


class Story:
    """One task's life; ``play`` tells it."""

    def __init__(self, google: LocalGoogle, light: Path, directory: Path, name: str) -> None:
        self.google = google
        self.directory = directory
        self.plot = plot = Plot.of(name)
        self.told = Told(name=name, kind=plot.kind, deferrable=plot.deferrable, world=plot.world)
        self.id = "story-" + re.sub(r"[^a-z0-9]+", "-", name.lower())
        launcher = None if plot.has_real_launcher else light
        said: dict[str, Any] = {"deferrable": plot.deferrable, "retries": plot.retries}
        self.make: Callable[[], DAG] = partial(dag_of, self.id, plot.kind, launcher, **said)
        self.instance = Instance(self.make(), TASK)
        self.strangers: dict[str, str] = {}
        """Regions of other people's jobs, by id."""
        self.wishes: list[Wish] = []
        self.marked = False
        self.dark = 0.0
        """For how many seconds no process of the task ran."""
        self.left = plot.troubles
        self.since = 0
        """The number of the ledger at which the story begins."""

    def play(self) -> Told:
        """Play it to its end."""
        begun = time.monotonic()
        self.since = self._set_the_stage()
        try:
            self._live()
            self._judge()
        except TimeoutError as late:
            self.told.violations.append(str(late))
        finally:
            for id_, region in self.strangers.items():
                self.google.cancel({"id": id_, "location": region})
        self.told.seconds = round(time.monotonic() - begun, 1)
        return self.told

    def _set_the_stage(self) -> int:
        plot, google = self.plot, self.google
        google.heal()
        google.emulator.set_world(plot.world)
        since = google.mark()
        self.instance.begin()
        if plot.has_namesake:
            self._plant("somebodys-job", "us-central1", labels_of(self.instance.dag.dag_id, TASK, RUN_ID))
        for method, times, action in plot.faults:
            google.fail(method, times=times, **action)
            self.told.events.append(f"fault: {method}")
        os.environ[PAUSE] = str(plot.pause)
        # What is left of a launch that was cut off shows sooner here than at Google.
        AcceleratorJobOperator.listed_within = timedelta(seconds=20 if plot.has_real_launcher else 4)
        return since

    def _plant(self, name: str, region: str, labels: Mapping[str, str]) -> None:
        self.strangers[plant(self.google, name, region, labels)["id"]] = region

    def _live(self) -> None:
        is_to_be_cleared, ended = self.plot.is_cleared, time.time()
        for _ in range(_MOST_STEPS):
            state = self.instance.state
            if state in {"success", "failed"}:
                if not is_to_be_cleared or self.marked:
                    return
                is_to_be_cleared = False
                self._note("cleared when it was over")
                self._clear()
            elif state in {None, "up_for_retry"}:
                self.instance.schedule()
            else:
                self.dark += time.time() - ended
                self._step("trigger" if state == "deferred" else "worker")
                ended = time.time()
        raise TimeoutError("it never ends")

    def _clear(self) -> None:
        """Clear the task while nobody is there to hear of it but the next try."""
        self.wishes.append(Wish(time.time()))
        self.instance.clear()

    def _hear(self, now: float) -> None:
        for wish in self.wishes:
            wish.heard = min(wish.heard, now)

    def _step(self, who: str) -> None:
        what, at = (self.left and self.plot.trouble(who, len(self.told.points) + 1)) or (None, None)
        if what == UNHEARD:
            self.left -= 1
            self._note(f"{who} {what}")
            self._clear()
            return
        points = Points(
            at=at,
            deed=partial(self._do, who, what or ""),
            trail=self.directory / f"{self.id}.trail",
            launched=self.directory / "launched",
        )
        points.launched.unlink(missing_ok=True)
        step = wait(self.instance, points) if who == "trigger" else work(self.instance, self.make)
        child = fork(step, points, self.directory / f"{self.id}.log")
        code = child.end()
        self.told.points.append((who, points.passed_by(child.pid)))
        if what and points.happened(child.pid):
            self.left -= 1
            self._note(f"{who} {what}")
            self._after(what, points)
        elif who == "worker":
            self._hear(time.time())
        if who == "worker":
            self.instance.notice_end(as_success=self.plot.luck.random() < 0.5)
        elif code not in {0, -signal.SIGKILL}:
            self.told.violations.append(f"a trigger's process ended with {code}")

    def _do(self, who: str, what: str) -> None:
        """Do in a child what happens to it."""
        if what == "cleared":
            self.instance.clear()
        elif what.startswith("marked"):
            self.instance.mark(TaskInstanceState(what.removeprefix("marked ")))
        os.kill(os.getpid(), signal.SIGKILL if what == "killed" else USER_ACTED if who == "trigger" else signal.SIGTERM)

    def _after(self, what: str, points: Points) -> None:
        """Do what follows, outside of the child."""
        if what == "cleared" or what.startswith("marked"):
            self.wishes.append(Wish(now := time.time(), heard=now))
            self.marked = self.marked or what.startswith("marked")
        if what != "killed":
            return
        self._kill_launcher(points)
        if self.plot.is_calm:
            if self.plot.is_late:
                self._jobs_when_over()
            return
        if self.plot.absence.random() < _ABSENT:
            self._note("nobody came until its job was over")
            self._jobs_when_over()
        record = self.instance.record
        intent = record.open if record else None
        lives = points.launched.exists()
        if intent and not intent.job_id and not lives and self.plot.kind != "spark" and self.plot.luck.random() < 0.3:
            region = intent.placement.region
            if region and not self._is_taken(intent.job_name, region):
                self._note("a stranger's job of that name")
                self._plant(intent.job_name, region, {})

    def _kill_launcher(self, points: Points) -> None:
        """Have the launcher of a killed worker die with it, or go on alone."""
        if points.launched.exists() and self.plot.luck.random() < 0.5:
            self._note("launcher killed")
            with suppress(ProcessLookupError):
                os.killpg(int(points.launched.read_text()), signal.SIGKILL)
            points.launched.unlink()

    def _is_taken(self, name: str, region: str) -> bool:
        path = f"projects/{PROJECT}/locations/{region}/jobs"
        listed = self.google.session().request("dataflow", "GET", path, params={"name": name})
        return bool(listed.get("jobs"))

    def _note(self, event: str) -> None:
        self.told.events.append(event)

    def _jobs_when_over(self) -> tuple[Sequence[Job], Sequence[Job]]:
        """Return the task's jobs, when these are over or have had the time for that, and those of strangers."""
        deadline = time.monotonic() + _LAST_WORDS
        while True:
            jobs = jobs_of(self.google.emulator.ledger(since=self.since))
            own = [job for job in jobs if job.id not in self.strangers]
            if all(job.is_over for job in own) or time.monotonic() > deadline:
                return own, [job for job in jobs if job.id in self.strangers]
            time.sleep(0.2)

    def _judge(self) -> None:
        told, (own, strangers) = self.told, self._jobs_when_over()
        told.state, told.jobs = str(self.instance.state), len(own)
        told.held = round(sum(job.held for job in own), 1)
        told.violations += [f"{later.name} was made while {job.name} lived" for job, later in overlap(own)]
        told.violations += [f"{job.name} is left alone" for job in own if not job.is_over]
        told.violations += [f"{job.name} went on after a user's word" for job in own if self._is_deaf(job)]
        told.violations += [
            f"{job.name}, of somebody else, was ended" for job in strangers if job.asked_by or job.is_over
        ]
        told.violations += [f"{job.name} held accelerators for {job.held:.0f} s" for job in own if self._wasted(job)]
        if not self.marked:
            told.violations += self._disagreement(own)
            told.violations += self._again(own)

    def _disagreement(self, own: Sequence[Job]) -> list[str]:
        """Return what the end of the task says otherwise than its last job."""
        state, last = self.told.state, own[-1] if own else None
        if state == "success":
            if not last or last.state != "done":
                return [f"a success, and the last job is {last.state if last else 'missing'}"]
            if self.wishes and last.made < self.wishes[-1].at:
                return ["a success with the job of before the clear"]
            return []
        is_refused = len(self.strangers) > self.plot.has_namesake
        if last and last.state == "done" and not is_refused and self.plot.world != "gpu-missing":
            return ["a failure, and the last job is well"]
        return [] if is_refused or self.plot.world in HOPELESS else ["a failure without a reason"]

    def _again(self, own: Sequence[Job]) -> list[str]:
        """Return whether the work of one wish was done twice; a worker that was told to stop gives its job up."""
        if self.plot.world == "gpu-missing" or "worker stopped" in self.told.events:
            return []
        since = max((wish.at for wish in self.wishes), default=0.0)
        wells = [job.name for job in own if job.state == "done" and job.made > since]
        return [f"{', '.join(wells)} did the same"] if len(wells) > 1 else []

    def _is_deaf(self, job: Job) -> bool:
        """Tell whether a job was never asked to end, though it was there when a user acted and outlived who heard."""
        ended = job.ended or inf
        return not job.asked_by and any(job.made < wish.at and wish.heard < ended for wish in self.wishes)

    def _wasted(self, job: Job) -> bool:
        """Tell whether a job that did no good had accelerators for longer than anything excuses."""
        wished = max([0.0, *(wish.at - job.made for wish in self.wishes)])
        return job.state != "done" and job.held > wished + self.dark + _ON_THE_WAY
