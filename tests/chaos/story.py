"""A story: one seed, one task instance from its first try to its last, with all that happens to it on the way."""

from __future__ import annotations

import asyncio
import json
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from airflow.sdk.bases.operator import TriggerFailureReason
from airflow.sdk.exceptions import AirflowFailException

from tests.chaos.clock import Clock, virtual
from tests.chaos.google import SimGoogle
from tests.chaos.hanging import HangingWorker
from tests.chaos.jobs import Script, SimJob
from tests.chaos.life import TaskLife
from tests.chaos.process import SUBMITTED, Killed, Process
from tests.chaos.promises import POLL, Watch
from tests.chaos.tasks import OPERATORS

_MOST_STEPS = 150


@dataclass(slots=True, kw_only=True)
class Told:
    """What a story was like."""

    seed: int
    operator: str
    deferrable: bool
    state: str = ""
    events: Counter[str] = field(default_factory=Counter)
    jobs: int = 0
    minutes: float = 0.0
    """For how long its jobs have had their workers, and with them the accelerators."""
    left: int = 0
    """Jobs that were alive when nobody was left to end them; the record names each."""
    violations: list[str] = field(default_factory=list)


def tell(seed: int) -> Told:
    """Play the story of a seed."""
    luck = random.Random(seed)  # noqa: S311 - the same each time is what it is for
    kind = luck.choice(list(OPERATORS))
    return _Story(seed=seed, luck=luck, kind=kind, deferrable=luck.random() < 0.6).play()


class _Story:
    def __init__(self, *, seed: int, luck: random.Random, kind: str, deferrable: bool) -> None:
        self.luck = luck
        self.told = Told(seed=seed, operator=kind, deferrable=deferrable)
        self.clock = Clock()
        self.is_calm = luck.random() < 0.25
        self.proven = kind != "spark" and luck.random() < 0.2
        self.google = SimGoogle(self.clock, luck, self._script)
        self._make_weather()
        self.google.on_create, self.google.on_end = self._check_creation, self._check_request
        drain = {"wait_until": "proven", "drain_pipeline": luck.random() < 0.5} if self.proven else {}
        limit = luck.uniform(100, 4000) if luck.random() < 1 / 3 else None
        said: dict[str, Any] = {"deferrable": deferrable, "poll_interval": POLL, **drain}
        if limit is not None:
            said["execution_timeout"] = timedelta(seconds=limit)
        is_mapped = luck.random() < 0.2
        self.life = TaskLife(
            make=lambda: OPERATORS[kind](**said),
            google=self.google,
            clock=self.clock,
            retries=luck.choice([0, 1, 2, 3]),
            map_index=3 if is_mapped else -1,
            item="[1]" if is_mapped else None,
        )
        self.google.item = self.life.item
        self.life.kept.on_set = self._maybe_plant
        self.plants = luck.random() < 0.06
        # A limit is counted by the clock of whoever looks, so that only a task without one may live with wrong clocks.
        self.wrong_by = luck.choice([60.0, 900.0, 3600.0]) if limit is None and luck.random() < 0.25 else 0.0
        self.watch = Watch(google=self.google, limit=limit, wrong_by=self.wrong_by)
        self.clears = luck.choice([0, 1, 1, 2])
        self.marks = luck.choice([0, 1, 1])
        self.mishaps = luck.choice([0, 1, 2] if self.is_calm else [1, 2, 4, 8])
        self.hangs = int(luck.random() < 0.25)
        self.items = int(is_mapped and luck.random() < 0.6)
        self.recreations = int(luck.random() < 0.06)
        self.hanging: HangingWorker | None = None
        self.signalled: str | None = None
        self.is_unheard = False
        self.marked = False
        self.has_reported = False
        self.inherited: str | None = None
        """The job whose end an earlier try had asked for when this one began."""
        self.late: list[Any] = []
        self.neighbours: list[SimJob] = []

    def _make_weather(self) -> None:
        luck, google = self.luck, self.google
        google.fault_rate = 0.0 if self.is_calm else luck.choice([0.0, 0.02, 0.1, 0.25])
        if not self.is_calm and luck.random() < 0.3:
            begins = luck.uniform(0, 1500)
            google.outage = (begins, begins + luck.choice([20, 100, 1200]))
        if not self.is_calm and luck.random() < 0.15:
            google.forbidden = frozenset(luck.sample(["messages", "list_instances", "read_region"], 1))
        if luck.random() < 0.3:
            google.tokens.withdrawn_at = luck.uniform(0, 1500)
        if not self.is_calm and luck.random() < 0.15:
            begins = luck.uniform(0, 1500)
            google.tokens.revoked = (begins, begins + luck.choice([60, 600, 2000]))

    def play(self) -> Told:
        self._plant_neighbours()
        with virtual(self.clock, self.luck), self.life.connected():
            try:
                self._live()
                self._check_end()
                if self.told.left:
                    self._clear_up()
            except AssertionError as hang:
                self._violated(f"hang: {hang}")
            finally:
                self._bury()
        told, made = self.told, [job for job in self.google.jobs if job not in self.neighbours]
        told.state, told.jobs = self.life.state, len(made)
        told.minutes = sum(job.held(self.clock.seconds) for job in made) / 60
        for what, happened in self._happened(made).items():
            told.events[what] += happened
        told.events += Counter()
        return told

    def _happened(self, made: Sequence[SimJob]) -> dict[str, int]:
        """Return what the ledger shows to have happened."""
        ended = [job for job in made if job.script.ending == "ended_by_somebody" and job.heeded_at is None]
        drained = [job for job in ended if job.state(self.clock.seconds) == "DRAINED"]
        return {
            "job ended by somebody": len(ended) - len(drained),
            "job drained by somebody": len(drained),
            "token refused": self.google.calls["401"],
            "no token given": self.google.tokens.refused,
        }

    # The course of things.

    def _live(self) -> None:
        for _ in range(_MOST_STEPS):
            self._step()
            self._check_step()
            if self.life.state in {"success", "failed"}:
                if self.hanging:
                    self._wake()
                    continue
                if not self._has(0.5) or not self._spend("clears"):
                    return
                self._event("streaming job cleared" if self._runs_on() else "clear finished")
                self._dark(self.luck.choice([1, 600]))
                self._maybe_change_item(0.5)
                self._wish()
                self.life.clear()
                self.is_unheard = self.marked = False
            elif self.hanging and self._has(0.3):
                self._wake()
            elif self.life.state in {"deferred", "up_for_retry"} and self._has(0.3) and self._spend("recreations"):
                self._recreate()
        self._violated("it never ends")

    def _runs_on(self) -> bool:
        record = self.life.record
        return record is not None and record.alive is not None and self.life.state == "success"

    def _step(self) -> None:
        state = self.life.state
        if state == "queued":
            self._work()
        elif state == "deferred":
            self._wait()
        else:
            self._dark(self.luck.choice([1, 300]))
            self._maybe_change_item(0.3)
            if self._has(0.25) and self._spend("clears"):
                self._event("clear up_for_retry")
                self._wish()
                self.life.clear()
            else:
                self.life.retry()

    def _dark(self, seconds: float) -> None:
        """Let time pass while no process of the task runs."""
        begins = self.clock.seconds
        self.clock.advance(seconds)
        self.watch.dark.append((begins, self.clock.seconds))

    def _wish(self) -> None:
        self.watch.wished_at = self.clock.seconds

    def _maybe_change_item(self, chance: float) -> None:
        """Have what the task is expanded over be another by its next try."""
        if self.items and self._has(chance) and self._spend("items"):
            self._event("item changed")
            self._wish()
            self.life.item = self.google.item = "[2]"

    def _recreate(self) -> None:
        self._event("run made again")
        self.life.recreate()
        self.is_unheard = self.marked = self.has_reported = False

    def _process(self) -> Process:
        return Process(skew=self.luck.uniform(-self.wrong_by, self.wrong_by))

    def _work(self) -> None:
        process = self._process()
        self.signalled = None
        self._begin_count()
        hanging = None
        if self.hanging is None and self._has(0.3) and self._spend("hangs"):
            hanging = self._hang(process)
        elif self._has(0.6) and self._spend("mishaps"):
            self._upset_worker(process)
        if self.hanging and self._has(0.6):
            process.plan.setdefault(self.luck.randrange(25), self._wake)
        made, is_due = len(self.google.ours()), self._is_due()
        if hanging:
            hanging.start()
            if not hanging.is_over:
                self._take_for_dead(hanging)
                return
        else:
            self.life.work(process)
        self._judge(process, must_try=is_due and len(self.google.ours()) == made)
        if self.signalled and self.life.state != "success":
            self._obey(process)

    def _begin_count(self) -> None:
        """Note when a try begins, and whether Airflow had to wake it."""
        resumption, record = self.life.resumption, self.life.record
        if resumption is None:
            alive = record.alive if record else None
            self.inherited = alive.job_name if alive and alive.outcome.is_ending else None
            self.watch.begun_at, self.watch.deferrals_expired = self.clock.seconds, 0
        elif resumption[1].get("error") == TriggerFailureReason.TRIGGER_TIMEOUT:
            self._event("deferral timed out")
            self.watch.deferrals_expired += 1

    def _judge(self, process: Process, *, must_try: bool) -> None:
        """Judge a worker's run by how it ended."""
        error, is_killed = self.life.error, isinstance(self.life.error, Killed)
        if self.signalled is None and process.is_alive:
            self._check_time()
        has_failed = self.life.state in {"failed", "up_for_retry"}
        is_upset = self.signalled is not None or is_killed or isinstance(error, AirflowFailException)
        if must_try and has_failed and not is_upset and self.watch.limit is None:
            self._violated(f"a retry after a reported failure tried nothing: {error}")
        self.has_reported = has_failed and not is_upset
        if has_failed and self.signalled is None and not is_killed:
            self._check_failure()
        if is_killed and self.life.state == "failed":
            self.is_unheard = True

    # A worker that hangs.

    def _hang(self, process: Process) -> HangingWorker:
        hanging = HangingWorker(life=self.life, process=process)
        points = self.luck.choice([10, 20] if self.told.deferrable else [10, 20, 100])
        process.plan[SUBMITTED if self._has(0.3) else self.luck.randrange(points)] = hanging.hang
        hanging.on_waking = lambda: self._signal_late(process)
        return hanging

    def _take_for_dead(self, hanging: HangingWorker) -> None:
        self._event("worker hangs")
        self.hanging = hanging
        self._dark(self.luck.uniform(300, 600))
        self.life.fail(Killed("no heartbeat was heard"))
        self.is_unheard = self.life.state == "failed"
        self.has_reported = False

    def _wake(self) -> None:
        """Let the worker that hung go on to its end."""
        hanging, self.hanging = self.hanging, None
        if hanging:
            self._event("worker goes on")
            hanging.go_on()

    def _signal_late(self, process: Process) -> None:
        """Have its supervisor, to which Airflow answers that the try is over, end a worker that goes on."""

        def end() -> None:
            if process.operator is None:
                process.die()
                return
            if process.epoch == self.life.kept.epoch:
                self._wish()
            process.plan[len(process.trail) + self.luck.randrange(12)] = process.die
            process.is_signalled = True
            process.operator.on_kill()

        later = self.luck.choice([0, 1, 3, 8])
        if later:
            process.plan[len(process.trail) + later] = end
        else:
            end()

    def _bury(self) -> None:
        """Let no worker outlive its story."""
        hanging, self.hanging = self.hanging, None
        if hanging:
            hanging.process.die()
            hanging.on_waking = lambda: None
            hanging.go_on()

    def _is_due(self) -> bool:
        """Tell whether this try follows upon a failure that was reported, so that it must look for a place anew."""
        record = self.life.record
        is_over = record is not None and record.alive is None and bool(record.attempts)
        return self.is_calm and self.has_reported and is_over and self.life.resumption is None

    def _upset_worker(self, process: Process) -> None:
        points = self.luck.choice([6, 15, 30] if self.told.deferrable else [15, 30, 150])
        wishes = ["kill", "sigterm retry", "clear", "clear", "mark failed", "mark success", "mark failed"]
        wish = self.luck.choice(wishes if self.marks else wishes[:4])
        at = SUBMITTED if self._has(0.3) else self.luck.randrange(points)
        if self.google.live() and self._has(0.5):
            # Where there is a job of an earlier try or life, its taking over or its end is disturbed.
            wish, at = self.luck.choice(["kill", "sigterm retry"]), self.luck.randrange(4, 14)
        if wish.startswith("mark") and not self._spend("marks"):
            wish = "kill"
        if wish == "clear" and not self._spend("clears"):
            wish = "kill"
        if wish == "kill":
            process.plan[at] = lambda: (self._event("worker killed"), process.die())
            return
        grace = self.luck.choice([None, None, self.luck.randrange(1, 6)])

        def terminate() -> None:
            self._event(f"worker signalled: {wish}")
            self.signalled = wish
            self._wish()
            if wish == "clear":
                # Airflow gives the task instance a new id at the click, before it ends the worker.
                self.life.kept.epoch += 1
                self.life.state = "restarting"
            if process.operator is None:
                # Nothing catches the signal yet.
                process.die()
                return
            process.is_signalled = True
            process.operator.on_kill()
            if grace is not None:
                process.plan[len(process.trail) + grace] = process.die

        process.plan[at] = terminate

    def _obey(self, process: Process) -> None:
        """Bring about what somebody wished of a running task, now that its process has ended."""
        wish = self.signalled
        # A submission that was under way may have gone through meanwhile.
        self._wish()
        if wish in {"mark failed", "mark success"}:
            self.marked = True
            self.life.state = "failed" if wish == "mark failed" else "success"
            self.life.value = None
            self.life.deferral = None
            # A worker that is killed in its turn may have been too slow to end the job.
            self.is_unheard = not (process.is_alive and self.is_calm)
        elif wish == "clear" and self._has(0.75):
            self.watch.cleared_at = self.watch.wished_at
            self.life.clear()
        elif wish == "clear":
            # An executor that tells of a failure leaves Airflow no other way than a retry
            # (``models/taskinstance.py``, handle_failure of a task instance that is restarting).
            self.life.state = "up_for_retry"
            self.life.deferral = None
            if process.is_alive:
                self.watch.cleared_at = self.watch.wished_at

    def _wait(self) -> None:
        deferral, process = self.life.deferral, self._process()
        assert deferral
        if deferral.expires is not None and self._has(0.1) and self._spend("mishaps"):
            self._event("no triggerer for long")
            self._dark(max(deferral.expires - self.clock.seconds, 0.0) + 15)
        if self.life.expire():
            return
        if not self._has(0.6) or not (self.mishaps or self.clears or self.marks):
            self.life.wait(process, None, _goes_on)
            return
        if self._has(0.35) and self._spend("mishaps"):
            self._upset_triggerer(process)
            self.life.wait(process, None, _goes_on)
            if not process.is_alive:
                self._dark(self.luck.choice([5, 60, 900]))
            return
        self.life.wait(process, self.luck.uniform(0, 1500), lambda *trigger: self._upset_trigger(process, *trigger))

    def _upset_triggerer(self, process: Process) -> None:
        def crash() -> None:
            self._event("trigger crashed")
            raise RuntimeError("a trigger has a fault")

        def die() -> None:
            self._event("triggerer killed")
            process.die()

        process.plan[self.luck.randrange(40)] = self.luck.choice([crash, die])

    async def _upset_trigger(self, process: Process, trigger: Any, running: asyncio.Task[Any]) -> bool:
        choices = ["move", "restart", "sibling"] if self._spend("mishaps") else []
        choices += ["clear"] * min(self.clears, 1) + ["mark failed", "mark success"] * (2 * min(self.marks, 1))
        deed = self.luck.choice(choices or ["nothing"])
        self._event(f"deferred: {deed}")
        if deed == "move":
            asked = self._asked()
            await trigger.on_kill()
            if self._asked() != asked:
                self._violated("a trigger that only moved ended its job")
            await self._end_trigger(trigger, running)
            return False
        if deed == "restart":
            await self._end_trigger(trigger, running)
            return False
        if deed in {"sibling", "nothing"}:
            self.life.clear_number += 1
            return True
        self._spend("clears" if deed == "clear" else "marks")
        self._wish()
        is_heard = self._has(0.7)
        if deed == "clear":
            self.life.clear()
        else:
            self.marked = True
            self.life.state = "failed" if deed == "mark failed" else "success"
            self.life.value, self.life.deferral = None, None
            self.is_unheard = not is_heard
        if not is_heard:
            self._event("no triggerer alive")
            process.die()
        elif deed == "clear" and self._has(0.4):
            self.late.append(trigger)
            process.die()
        else:
            await self._kill_trigger(trigger)
            await self._end_trigger(trigger, running)
        return False

    async def _kill_trigger(self, trigger: Any) -> None:
        asked = self._asked()
        await trigger.on_kill()
        if self._asked() == asked and not self.is_calm:
            # The service took no request for longer than a triggerer tries.
            self.is_unheard = True

    async def _end_trigger(self, trigger: Any, running: asyncio.Task[Any]) -> None:
        running.cancel()
        await asyncio.wait({running})
        await trigger.cleanup()

    def _clear_up(self) -> None:
        """Clear the task once more in calm weather: what was left must end before anything new begins."""
        self._event("clear of what was left")
        self.google.fault_rate, self.google.outage, self.google.forbidden = 0.0, (0.0, 0.0), frozenset()
        self.google.tokens.revoked = (0.0, 0.0)
        self.mishaps = self.clears = self.marks = self.hangs = self.items = self.recreations = 0
        self.is_unheard = self.marked = False
        self._dark(60)
        self._wish()
        self.life.clear()
        self._live()
        self._check_end()

    # What must hold.

    def _check_request(self, job: SimJob, caller: Process) -> None:
        """Judge a request to end a job, and perhaps strike down whoever makes it."""
        record = self.life.record
        is_known = record is not None and record.alive is not None and record.alive.outcome.is_ending
        if caller.operator is not None and caller.epoch < self.life.begun and not is_known:
            self._violated(f"a worker whose try is over asked for the end of {job.name}")
        # What an earlier try was right to ask for, and the service did not hear, the next may ask for again.
        is_heir = job.name == self.inherited
        if not (job.is_foreign or caller.is_signalled or is_heir or self.watch.why_end(job)):
            self._violated(f"{job.name}, which is well, was asked to end")
        if job.script.ending in {"stockout", "bare"} and self._has(0.25) and self._spend("mishaps"):
            self._event("killed in a cancel")
            caller.plan[len(caller.trail) + self.luck.randrange(4)] = caller.die

    def _check_time(self) -> None:
        if self.life.state in {"success", "failed", "up_for_retry"} and self.watch.overtime() > 0:
            self._violated(f"a try took {self.watch.overtime():.0f} s longer than it may")

    def _check_failure(self) -> None:
        """Judge what a task says that failed by itself."""
        error = self.life.error
        if self.watch.false_blame(error):
            self._violated(f"nobody ended a job, and yet: {error}")
        if self.watch.is_hasty(error):
            self._violated(f"a try gave up with time left: {error}")
        if "401" in str(error) and not self.google.tokens.refused:
            self._violated(f"a token that can be renewed was not: {error}")
        for job in self.google.live():
            if job.id in str(error) or job.name in str(error):
                self.watch.left.add(job.id)

    def _check_creation(self, job: SimJob) -> None:
        job.epoch = self.life.kept.epoch
        live = self.google.live()
        if live:
            self._violated(f"{job.name} was made while {live[0].name} was {live[0].state(self.clock.seconds)}")
        for other in self.google.ours():
            did_its_work = other.state(self.clock.seconds) == "DONE" and other.script.ending == "done"
            if _life(other) == _life(job) and did_its_work:
                self._violated(f"{job.name} was made though {other.name} of the same life is done")
            is_left = other.script.ending == "ended_by_somebody" and other.heeded_at is None
            if is_left and (_life(other), other.epoch) == (_life(job), job.epoch):
                self._violated(f"{job.name} was made though somebody ended {other.name}")

    def _check_step(self) -> None:
        for trigger in [late for late in self.late if self._has(0.5)]:
            self.late.remove(trigger)
            self._event("late kill")
            self.life.kill_late(trigger)
        for job in self.google.jobs:
            if job.is_foreign and job.asked_to_end:
                self._violated(f"{job.name}, which is somebody else's, was asked to end")
        for job in self.google.live():
            if job.heeded_at is None and not self._is_recorded(job):
                self._violated(f"{job.name} is alive and forgotten after {self.life.state}")

    def _is_recorded(self, job: SimJob) -> bool:
        record = self.life.record
        return record is not None and record.alive is not None and record.alive.job_name == job.name

    def _check_end(self) -> None:
        self.told.left = 0
        for job in self.google.ours():
            if (seconds := self.watch.too_long(job)) > 0:
                self._violated(f"{job.name} ({job.script.ending}) lasted {seconds:.0f} s longer than it may")
        if self.life.state == "success" and self.life.value is not None:
            self._check_value(self.life.value)
        for job in self.google.live():
            if job.heeded_at is not None or self._is_meant_to_run(job):
                continue
            text = str(self.life.error)
            is_named = job.id in text or job.name in text or job.id in self.watch.left
            # A request that the service took and forgot is nobody's fault; what waits for the end asks again.
            if not (self.is_unheard or is_named or self._is_marked(job)):
                self._violated(f"{job.name} was left alive when the task was {self.life.state}: {text}")
            self.told.left += 1

    def _is_marked(self, job: SimJob) -> bool:
        return bool(job.asked_to_end) and self.marked

    def _is_meant_to_run(self, job: SimJob) -> bool:
        value = self.life.value or {}
        return self.proven and self.life.state == "success" and value.get("job_id") == job.id

    def _check_value(self, value: Mapping[str, Any]) -> None:
        job = next((each for each in self.google.jobs if each.id == value["job_id"]), None)
        if job is None or job.is_foreign:
            self._violated("the value names a job that is not the task's")
            return
        if value["state"] == "done" and job.state(self.clock.seconds) != "DONE":
            self._violated(f"the value calls {job.name} done, which is {job.state(self.clock.seconds)}")
        if job.created < self.watch.cleared_at:
            self._violated(f"the value names {job.name}, which was made before the task was cleared")
        if job.item != self.life.item:
            self._violated(f"the value names a job for {job.item}, and the task stands for {self.life.item}")
        newest = max(map(_life, self.google.ours()))
        if _life(job) != newest:
            self._violated(f"the value names a job of life {_life(job)}, and there is one of life {newest}")

    # Chance, and what is planted.

    def _script(self) -> Script:
        return Script.drawn(self.luck, streaming=self.proven, is_calm=self.is_calm)

    def _plant_neighbours(self) -> None:
        """Put jobs beside the task's: of a sibling, and of a second Airflow in which a task has the same ids."""
        for region in ("us-central1", "us-east5"):
            for service in ("dataflow", "dataproc"):
                name = f"nightly-score-sibling-{region}"
                labels = {"accel-owner": "0123456789abcdef", "accel-dag": "nightly", "accel-task": "sibling"}
                said = {"service": service, "id": name, "name": name, "region": region, "labels": labels}
                self.google.add(**said, script=Script(ending="stuck"), is_foreign=True)
                name = f"nightly-score-{len(self.google.jobs):012x}"
                labels = {"accel-owner": "f" * 32, "accel-dag": "nightly", "accel-task": "score", "accel-life": "1"}
                said |= {"id": name, "name": name, "labels": labels}
                self.google.add(**said, script=Script(ending="stuck"), is_foreign=True)
        self.neighbours = list(self.google.jobs)

    def _maybe_plant(self, stored: Mapping[str, Any]) -> None:
        """Put somebody else's job where the next of the task's would be."""
        attempts = stored["attempts"]
        if not self.plants or not attempts or attempts[-1]["outcome"] != "intent" or self.luck.random() < 0.3:
            return
        name, kind = attempts[-1]["job_name"], self.told.operator
        if any(job.name == name for job in self.google.jobs):
            return
        self.plants = False
        self._event("foreign job of the name")
        region = attempts[-1]["placement"].rpartition(" in ")[2]
        region = region[:-2] if region[-2] == "-" else region
        service = "dataproc" if kind == "spark" else "dataflow"
        identity = {"id": name} if kind == "spark" else {}
        labels = {"accel-owner": "somebody"}
        script = Script(ending="stuck")
        planted = self.google.add(
            service=service, name=name, region=region, labels=labels, script=script, is_foreign=True, **identity
        )
        self.neighbours.append(planted)

    def _asked(self) -> int:
        return sum(len(job.asked_to_end) for job in self.google.jobs)

    def _has(self, chance: float) -> bool:
        return self.luck.random() < chance

    def _spend(self, what: str) -> bool:
        left = getattr(self, what)
        if left:
            setattr(self, what, left - 1)
        return bool(left)

    def _event(self, what: str) -> None:
        self.told.events[what] += 1

    def _violated(self, text: str) -> None:
        if text not in self.told.violations:
            self.told.violations.append(text)


async def _goes_on(*_: Any) -> bool:
    return True


def _life(job: SimJob) -> int:
    return int(job.labels["accel-life"].lstrip("n"))


def dumped(told: Told) -> str:
    """Return a story on one line."""
    return json.dumps({"seed": told.seed, "state": told.state, "events": told.events, "violations": told.violations})
