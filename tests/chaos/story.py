"""A story: one seed, one task instance from its first try to its last, with all that happens to it on the way."""

from __future__ import annotations

import asyncio
import json
import random
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from airflow.sdk.exceptions import AirflowFailException

from airflow_accel_provider.operators.beam import BeamGpuPipelineOperator, BeamTpuPipelineOperator
from airflow_accel_provider.operators.dataproc import DataprocGpuBatchOperator
from tests.chaos.clock import Clock, virtual
from tests.chaos.google import SimGoogle
from tests.chaos.jobs import Script, SimJob
from tests.chaos.life import TaskLife
from tests.chaos.process import SUBMITTED, Killed, Process

_BEAM: dict[str, Any] = {
    "task_id": "score",
    "flex_template": "gs://acme-ml/templates/score.json",
    "pipeline_options": {"temp_location": "gs://acme-ml/tmp"},
    "sdk_container_image": "us-docker.pkg.dev/acme-ml/beam/score:2.77.0",
    "number_of_worker_harness_threads": 12,
}
OPERATORS: Mapping[str, Callable[..., Any]] = {
    "gpu": lambda **said: BeamGpuPipelineOperator(
        **_BEAM,
        placement="nvidia-l4 on g2-standard-8 in us-central1",
        fallback=["nvidia-l4 on g2-standard-8 in europe-west4"],
        **said,
    ),
    "tpu": lambda **said: BeamTpuPipelineOperator(
        **_BEAM,
        placement="tpu-v6e-slice:2x2 in us-east5-b",
        fallback=["tpu-v6e-slice:2x2 in europe-west4-a"],
        **said,
    ),
    "spark": lambda **said: DataprocGpuBatchOperator(
        task_id="score",
        placement="l4 in us-central1",
        fallback=["l4 in europe-west4"],
        batch={"pyspark_batch": {"main_python_file_uri": "gs://acme-ml/jobs/etl.py"}},
        runtime_version="2.3",
        ttl="36000s",
        properties={"spark.dynamicAllocation.enabled": "false"},
        **said,
    ),
}
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
        self.google.fault_rate = 0.0 if self.is_calm else luck.choice([0.0, 0.02, 0.1, 0.25])
        if not self.is_calm and luck.random() < 0.3:
            begins = luck.uniform(0, 1500)
            self.google.outage = (begins, begins + luck.choice([20, 100, 1200]))
        if not self.is_calm and luck.random() < 0.15:
            self.google.forbidden = frozenset(luck.sample(["messages", "list_instances", "read_region"], 1))
        self.google.on_create = self._check_creation
        drain = {"wait_until": "proven", "drain_pipeline": luck.random() < 0.5} if self.proven else {}
        said = {"deferrable": deferrable, "poll_interval": 30, **drain}
        self.life = TaskLife(
            make=lambda: OPERATORS[kind](**said),
            google=self.google,
            clock=self.clock,
            retries=luck.choice([0, 1, 2, 3]),
        )
        self.life.kept.on_set = self._maybe_plant
        self.plants = luck.random() < 0.06
        self.clears = luck.choice([0, 0, 1, 2])
        self.marks = luck.choice([0, 0, 1])
        self.mishaps = luck.choice([0, 1, 2] if self.is_calm else [1, 2, 4, 8])
        self.signalled: str | None = None
        self.is_unheard = False
        self.marked = False
        self.has_reported = False
        self.late: list[Any] = []

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
        told = self.told
        told.state, told.jobs = self.life.state, len(self.google.ours())
        return told

    # The course of things.

    def _live(self) -> None:
        for _ in range(_MOST_STEPS):
            self._step()
            self._check_step()
            if self.life.state in {"success", "failed"}:
                if not self._has(0.5) or not self._spend("clears"):
                    return
                self._event("clear finished")
                self.clock.advance(self.luck.choice([1, 600]))
                self.life.clear()
                self.is_unheard = self.marked = False
        self._violated("it never ends")

    def _step(self) -> None:
        state = self.life.state
        if state == "queued":
            self._work()
        elif state == "deferred":
            self._wait()
        else:
            self.clock.advance(self.luck.choice([1, 300]))
            if self._has(0.25) and self._spend("clears"):
                self._event("clear up_for_retry")
                self.life.clear()
            else:
                self.life.retry()

    def _work(self) -> None:
        process = Process()
        self.signalled = None
        if self._has(0.6) and self._spend("mishaps"):
            self._upset_worker(process)
        made, is_due = len(self.google.ours()), self._is_due()
        self.life.work(process)
        has_failed = self.life.state in {"failed", "up_for_retry"}
        is_upset = self.signalled is not None or isinstance(self.life.error, (Killed, AirflowFailException))
        if is_due and has_failed and not is_upset and len(self.google.ours()) == made:
            self._violated(f"a retry after a reported failure tried nothing: {self.life.error}")
        self.has_reported = has_failed and not is_upset
        if isinstance(self.life.error, Killed) and self.life.state == "failed":
            self.is_unheard = True
        if self.signalled and self.life.state != "success":
            self._obey(process)

    def _is_due(self) -> bool:
        """Tell whether this try follows upon a failure that was reported, so that it must look for a place anew."""
        record = self.life.record
        is_over = record is not None and record.alive is None and bool(record.attempts)
        return self.is_calm and self.has_reported and is_over and self.life.event is None

    def _upset_worker(self, process: Process) -> None:
        points = self.luck.choice([6, 15, 30] if self.told.deferrable else [15, 30, 150])
        wish = self.luck.choice(["kill", "kill", "sigterm retry", "mark failed", "mark success", "clear"])
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
            if self.life.operator is None:
                # Nothing catches the signal yet.
                process.die()
                return
            self.life.operator.on_kill()
            if grace is not None:
                process.plan[len(process.trail) + grace] = process.die

        process.plan[at] = terminate

    def _obey(self, process: Process) -> None:
        """Bring about what somebody wished of a running task, now that its process has ended."""
        wish = self.signalled
        if wish in {"mark failed", "mark success"}:
            self.marked = True
            self.life.state = "failed" if wish == "mark failed" else "success"
            self.life.value = None
            self.life.deferral = None
            # A worker that is killed in its turn may have been too slow to end the job.
            self.is_unheard = not (process.is_alive and self.is_calm)
        elif wish == "clear":
            self.life.state = "up_for_retry"
            self.life.deferral = None

    def _wait(self) -> None:
        process = Process()
        if not self._has(0.6) or not (self.mishaps or self.clears or self.marks):
            self.life.wait(process, None, _goes_on)
            return
        if self._has(0.25) and self._spend("mishaps"):
            process.plan[self.luck.randrange(40)] = lambda: (self._event("triggerer killed"), process.die())
            self.life.wait(process, None, _goes_on)
            self.clock.advance(self.luck.choice([5, 60, 900]))
            return
        self.life.wait(process, self.luck.uniform(0, 1500), lambda *trigger: self._upset_trigger(process, *trigger))

    async def _upset_trigger(self, process: Process, trigger: Any, running: asyncio.Task[Any]) -> bool:
        choices = ["move", "restart", "sibling"] if self._spend("mishaps") else []
        choices += ["clear"] * min(self.clears, 1) + ["mark failed", "mark success"] * min(self.marks, 1)
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
        self.mishaps = self.clears = self.marks = 0
        self.is_unheard = self.marked = False
        self.clock.advance(60)
        self.life.clear()
        self._live()
        self._check_end()

    # What must hold.

    def _check_creation(self, job: SimJob) -> None:
        live = self.google.live()
        if live:
            self._violated(f"{job.name} was made while {live[0].name} was {live[0].state(self.clock.seconds)}")
        for other in self.google.ours():
            did_its_work = other.state(self.clock.seconds) == "DONE" and other.script.ending == "done"
            if _life(other) == _life(job) and did_its_work:
                self._violated(f"{job.name} was made though {other.name} of the same life is done")

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
        if self.life.state == "success" and self.life.value is not None:
            self._check_value(self.life.value)
        for job in self.google.live():
            if job.heeded_at is not None or self._is_meant_to_run(job):
                continue
            text = str(self.life.error)
            is_named = job.id in text or job.name in text
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
        newest = max(map(_life, self.google.ours()))
        if _life(job) != newest:
            self._violated(f"the value names a job of life {_life(job)}, and there is one of life {newest}")

    # Chance, and what is planted.

    def _script(self) -> Script:
        return Script.drawn(self.luck, streaming=self.proven, is_calm=self.is_calm)

    def _plant_neighbours(self) -> None:
        for region in ("us-central1", "us-east5"):
            for service in ("dataflow", "dataproc"):
                name = f"nightly-score-sibling-{region}"
                labels = {"accel-owner": "0123456789abcdef", "accel-dag": "nightly", "accel-task": "sibling"}
                said = {"service": service, "id": name, "name": name, "region": region, "labels": labels}
                self.google.add(**said, script=Script(ending="stuck"), is_foreign=True)

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
        self.google.add(
            service=service, name=name, region=region, labels=labels, script=script, is_foreign=True, **identity
        )

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
