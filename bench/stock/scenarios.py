"""What happens to each subject, side by side, and the figures that come of it."""

from __future__ import annotations

import contextlib
import secrets
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from bench.stock.reading import most_at_once, subject_of
from bench.stock.subjects import Subject
from demo.jobs import Job
from demo.waiting import wait_for

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from bench.stock.world import World

T = TypeVar("T")

LIVE_TASK = {"running", "deferred", "queued", "scheduled", "up_for_retry", "restarting", None}
FINAL = {"success", "failed"}
QUIET_SECONDS = 15
"""A scenario is over when nothing has changed for so long: twice what a task takes to start and submit."""
SETTLING_SECONDS = 6
LONGEST_SECONDS = 150
AGAIN_SECONDS = 60
"""How long a second job is waited for: what a retry takes to start and to submit, on a busy machine."""
AT_ONCE_SECONDS = 0.1
CLEAR, AT_ONCE = "clear", "mark failed at once"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """The figures of one subject in one scenario; ``seconds`` is None where what was waited for never came.

    ``reaped`` is how many of the orphans ``accel reap`` would end; None where there was nothing to ask it about.
    """

    subject: str
    operator: str
    ours: bool
    scenario: str
    created: int
    most_at_once: int
    orphaned: int
    cancelled: int
    outcome: str
    seconds: float | None
    reaped: int | None = None

    @property
    def is_clean(self) -> bool:
        """Tell whether there was a job, none was lost, and there were never two; a clear ends one and makes one.

        A task that is marked failed before a triggerer has heard of it has nobody to end its job: that must be found.
        """
        if self.most_at_once != 1:
            return False
        if self.scenario == CLEAR:
            return (self.created, self.cancelled, self.orphaned) == (2, 1, 0)
        return self.orphaned == ((self.reaped or 0) if self.scenario == AT_ONCE else 0)

    def as_json(self) -> dict[str, Any]:
        """Return plain JSON."""
        return asdict(self)


@dataclass(slots=True, kw_only=True)
class Act:
    """One subject within a scenario."""

    world: World
    subject: Subject
    since: int
    marker: Path
    places: Sequence[str] = ("us-central1",)
    run_id: str = ""
    acted: float = 0.0
    seen: tuple[Any, ...] = ()
    changed: float = field(default_factory=time.time)

    @property
    def key(self) -> str:
        """The subject's key."""
        return self.subject.key

    def start(self) -> None:
        """Trigger a run."""
        conf = {"marker": str(self.marker), "token": secrets.token_hex(4), "places": list(self.places)}
        api = self.world.airflow.api
        self.run_id = patiently(lambda: api.trigger(self.key, logical_date=None, conf=conf))
        self.acted = time.time()

    def task(self) -> dict[str, Any]:
        """Return its task instance."""
        return patiently(lambda: self.world.task(self.key, self.run_id))

    def jobs(self) -> list[Job]:
        """Return its jobs."""
        return [job for job in self.world.jobs(since=self.since) if subject_of(job) == self.key]

    def is_waiting(self) -> bool:
        """Tell whether there is a job and the task does nothing but wait for it; if deferred, in a triggerer."""
        wanted = "deferred" if self.subject.deferrable else "running"
        jobs, task = self.jobs(), self.task()
        if not jobs or task["state"] != wanted or time.time() - jobs[-1].made < SETTLING_SECONDS:
            return False
        # Before a triggerer has taken the trigger nobody hears a kill; that is another case than the one measured here.
        return not self.subject.deferrable or bool((task["trigger"] or {}).get("triggerer_id"))

    def is_over(self) -> bool:
        """Tell whether its task has ended."""
        return self.task()["state"] in FINAL

    def is_quiet(self) -> bool:
        """Tell whether nothing has changed for long enough."""
        task = self.task()
        said = (task["state"], task["try_number"], *[(job.id, job.state, bool(job.asked_by)) for job in self.jobs()])
        if said != self.seen:
            self.seen, self.changed = said, time.time()
        return time.time() - self.changed > QUIET_SECONDS

    def row(self, scenario: str) -> Row:
        """Return the figures as they stand; a live task instance owns one live job."""
        jobs, state = self.jobs(), self.task()["state"]
        alive = sum(job.ended is None for job in jobs)
        return Row(
            subject=self.key,
            operator=self.subject.operator,
            ours=self.subject.ours,
            scenario=scenario,
            created=len(jobs),
            most_at_once=most_at_once(jobs),
            orphaned=max(0, alive - (state in LIVE_TASK)),
            cancelled=sum(bool(job.asked_by) for job in jobs),
            outcome=state or "none",
            seconds=None,
        )


def until(acts: Sequence[Act], condition: Callable[[Act], bool], *, seconds: float = LONGEST_SECONDS) -> list[Act]:
    """Wait until the condition has been true of each; return those of which it never was."""
    left, end = list(acts), time.monotonic() + seconds
    while left and time.monotonic() < end:
        left = [act for act in left if not condition(act)]
        time.sleep(0.5)
    return left


def crash(acts: Sequence[Act]) -> None:
    """Kill each task's process when its job was made and the answer is on its way."""
    faults = {act.key: act.world.front.arm(act.key, "create", holds=True) for act in acts}
    begin(acts)

    def kill(act: Act) -> bool:
        if not faults[act.key].came.is_set():
            return False
        act.world.kill_task(act.key, act.run_id)
        act.acted = time.time()
        faults[act.key].over.set()
        return True

    until(acts, kill)
    for fault in faults.values():
        fault.over.set()


def patiently(call: Callable[[], T]) -> T:
    """Return what a call returns, asking again where Airflow's SQLite was busy."""
    for _ in range(10):
        with contextlib.suppress(RuntimeError):
            return call()
        time.sleep(1)
    return call()


def begin(acts: Sequence[Act]) -> None:
    """Trigger all."""
    for act in acts:
        act.start()


def user(verb: str) -> Callable[[Sequence[Act]], None]:
    """Return the scenario of a user's act upon a task that waits."""

    def play(acts: Sequence[Act]) -> None:
        begin(acts)
        until(acts, act_when_waiting)

    def act_when_waiting(act: Act) -> bool:
        if not act.is_waiting():
            return act.is_over()
        api, key, run = act.world.airflow.api, act.key, act.run_id
        act.acted = time.time()
        if verb == "mark failed":
            patiently(lambda: api.set_task_state(key, run, key, "failed"))
        elif verb == CLEAR:
            said = {"dry_run": False, "dag_run_id": run, "task_ids": [key], "only_failed": False}
            path = f"/dags/{key}/clearTaskInstances"
            patiently(lambda: api.call("POST", path, {**said, "reset_dag_runs": True}))
        else:
            patiently(lambda: api.call("PATCH", f"/dags/{key}/dagRuns/{run}", {"state": "failed"}))
        return True

    return play


def marked_at_once(acts: Sequence[Act]) -> None:
    """Mark each task failed in the moment in which it is seen to be deferred, whether or not a triggerer has it."""
    begin(acts)

    def mark(act: Act) -> None:
        end = time.monotonic() + LONGEST_SECONDS
        while time.monotonic() < end and not act.is_over():
            if act.task()["state"] == "deferred":
                act.acted = time.time()
                patiently(lambda: act.world.airflow.api.set_task_state(act.key, act.run_id, act.key, "failed"))
            time.sleep(AT_ONCE_SECONDS)

    with ThreadPoolExecutor(max_workers=len(acts)) as each:
        list(each.map(mark, acts))


def refused_create(acts: Sequence[Act]) -> None:
    """Answer the first creation with 503."""
    for act in acts:
        act.world.front.arm(act.key, "create")
    begin(acts)
    until(acts, lambda act: act.is_waiting() or act.is_over())


def refused_look(acts: Sequence[Act]) -> None:
    """Answer one look at the job with 503."""
    begin(acts)

    def arm(act: Act) -> bool:
        if not act.is_waiting():
            return act.is_over()
        act.acted = time.time()
        act.world.front.arm(act.key, "get")
        return True

    until(acts, arm)


def triggerer(acts: Sequence[Act]) -> None:
    """Kill the triggerer while all wait, and start another."""
    begin(acts)
    until(acts, lambda act: act.is_waiting() or act.is_over())
    acts[0].world.kill_triggerer()
    for act in acts:
        act.acted = time.time()


def stockout(acts: Sequence[Act]) -> None:
    """Have no accelerator in the first region."""
    acts[0].world.emulator.set_world("us-central1-stockout")
    for act in acts:
        act.places = ("us-central1", "europe-west4")
    begin(acts)
    until(acts, lambda act: len(act.jobs()) > 1 or act.is_over())


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """``ends`` tells whether the task is over with it; else the work is let go on to its end afterwards.

    ``again`` tells whether there may be a further try, so that a second job must be given the time to come.
    """

    name: str
    play: Callable[[Sequence[Act]], None]
    ends: bool = False
    again: bool = False
    deferred_only: bool = False


SCENARIOS = (
    Scenario(name="kill -9 before the answer to create", play=crash, again=True),
    Scenario(name="mark failed", play=user("mark failed"), ends=True),
    Scenario(name=AT_ONCE, play=marked_at_once, ends=True, deferred_only=True),
    Scenario(name=CLEAR, play=user(CLEAR), again=True),
    Scenario(name="mark the run failed", play=user("fail run"), ends=True),
    Scenario(name="503 to create", play=refused_create),
    Scenario(name="503 to a look", play=refused_look, again=True),
    Scenario(name="kill -9 of the triggerer", play=triggerer, deferred_only=True),
    Scenario(name="no stock in the first region", play=stockout),
)


def run(world: World, scenario: Scenario, subjects: Sequence[Subject], say: Callable[[str], None]) -> list[Row]:
    """Play a scenario for all subjects at once and return a row for each."""
    marker = world.directory / "markers" / secrets.token_hex(4)
    chosen = [subject for subject in subjects if subject.deferrable or not scenario.deferred_only]
    since = world.last()
    acts = [Act(world=world, subject=subject, since=since, marker=marker) for subject in chosen]
    scenario.play(acts)
    if scenario.again:
        until(acts, lambda act: len(act.jobs()) > 1 or act.is_over(), seconds=AGAIN_SECONDS)
    say("judged when all is quiet")
    until(acts, Act.is_quiet, seconds=120)
    rows = [act.row(scenario.name) for act in acts]
    if any(row.orphaned for row in rows if row.ours):
        orphans = world.orphans()
        rows = [found(row, act, orphans) if row.ours else row for row, act in zip(rows, acts, strict=True)]
    world.front.disarm()
    if scenario.ends:
        rows = [over(row, act) for row, act in zip(rows, acts, strict=True)]
    else:
        say("let go on to the end")
        marker.touch()
        rows = ended(rows, acts)
    clean_up(world, since)
    world.emulator.set_world("plenty")
    marker.touch()
    return rows


def found(row: Row, act: Act, orphans: set[str]) -> Row:
    """Return a row with how many of its jobs the provider itself would take for orphans."""
    return changed(row, reaped=sum(job.id in orphans for job in act.jobs()))


def over(row: Row, act: Act) -> Row:
    """Return a row with the time that the end of the last job took; None if one lives."""
    ends = [job.ended for job in act.jobs()]
    known = [end for end in ends if end is not None]
    return changed(row, seconds=max(known) - act.acted if known and len(known) == len(ends) else None)


def ended(rows: Sequence[Row], acts: Sequence[Act]) -> list[Row]:
    """Return the rows with what became of the tasks."""
    took: dict[str, float] = {}

    def is_over(act: Act) -> bool:
        if not act.is_over():
            return False
        took[act.key] = time.time() - act.acted
        return True

    until(acts, is_over)
    final = []
    for row, act in zip(rows, acts, strict=True):
        jobs = act.jobs()
        most = most_at_once(jobs)
        # A second job that came only after the judgement, and that nobody asked to end, left the first one alone, too.
        left = sum(not job.asked_by and job.state != "failed" for job in jobs)
        told = {"created": len(jobs), "most_at_once": most, "outcome": act.task()["state"] or "none"}
        alone = max(row.orphaned, min(most, left) - 1)
        final.append(changed(row, **told, orphaned=alone, seconds=took.get(act.key)))
    return final


def changed(row: Row, **said: Any) -> Row:
    """Return a row with other figures."""
    return Row(**{**asdict(row), **said})


def clean_up(world: World, since: int) -> None:
    """End what the scenario left, so that the next one begins with nothing."""
    for job in world.jobs(since=since):
        if job.ended is None:
            with contextlib.suppress(Exception):
                world.end(job)
    with contextlib.suppress(TimeoutError):
        wait_for("all jobs to end", lambda: all(job.ended for job in world.jobs(since=since)), seconds=60)
