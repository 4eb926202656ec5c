"""Each crash point of each operator in each mode: what the ledger counts when the next try is through."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import pytest

from tests.chaos.clock import Clock, virtual
from tests.chaos.google import SimGoogle
from tests.chaos.jobs import Script
from tests.chaos.life import TaskLife
from tests.chaos.process import Process
from tests.chaos.tasks import OPERATORS

MODES = {"deferrable": True, "synchronous": False}


@dataclass(slots=True)
class Course:
    """One calm life with at most one crash, at the numbered point of all that its processes do."""

    life: TaskLife
    crash_at: int | None
    passed: int = 0
    most_live: int = 0
    trail: list[str] = field(default_factory=list)
    """Every point that was passed, by its name."""

    def play(self) -> None:
        """Live the life to its end."""
        while self.life.state not in {"success", "failed"}:
            process = self._process()
            if self.life.state == "queued":
                self.life.work(process)
            elif self.life.state == "deferred":
                self.life.wait(process, None, _never)
            else:
                self.life.clock.advance(60)
                self.life.retry()
            self.passed += len(process.trail)
            self.trail += process.trail
            self.most_live = max(self.most_live, len(self.life.google.live()))

    def _process(self) -> Process:
        process = Process()
        if self.crash_at is not None and self.crash_at >= self.passed:
            process.plan[self.crash_at - self.passed] = process.die
        return process


async def _never(*_: object) -> bool:
    return True


GOOD = Script(pending=40, workers=50, length=100, listed_after=3)
SHORT = {
    "dataflow": Script(ending="stockout", pending=10, workers=20, length=9000, dying=40),
    "dataproc": Script(ending="stuck", pending=10, workers=20, dying=40),
}
"""A job that must be cancelled for another place: short of machines, or, where nobody says so, waiting too long."""


@contextmanager
def course(
    kind: str, crash_at: int | None, *, deferrable: bool, retries: int = 1, scripts: tuple[Script, ...] = ()
) -> Iterator[Course]:
    """Yield a course that begins with an empty ledger; its first jobs take the scripts, each other takes four looks."""
    clock, luck = Clock(), random.Random(7)  # noqa: S311 - the same each time is what it is for
    left = list(scripts)
    google = SimGoogle(clock, luck, lambda: left.pop(0) if left else GOOD)
    life = TaskLife(
        make=lambda: OPERATORS[kind](deferrable=deferrable, poll_interval=30),
        google=google,
        clock=clock,
        retries=retries,
    )
    with virtual(clock, luck), life.connected():
        yield Course(life, crash_at)


def points(kind: str, *, deferrable: bool) -> int:
    """Return how many points a life without a crash has."""
    with course(kind, None, deferrable=deferrable) as calm:
        calm.play()
        assert (calm.life.state, len(calm.life.google.ours())) == ("success", 1)
        return calm.passed


def each_point(kind: str, mode: str) -> Iterator[Callable[[], Course]]:
    """Yield the course of each crash, to be played."""
    for point in range(points(kind, deferrable=MODES[mode])):

        def played(point: int = point) -> Course:
            with course(kind, point, deferrable=MODES[mode]) as one:
                one.play()
            return one

        yield played


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", OPERATORS)
def test_one_job_whatever_the_crash_point(kind: str, mode: str) -> None:
    """Wherever a worker or triggerer is killed, one job is made in all, one at most lives, and the task succeeds."""
    counted = [
        (one.life.state, len(one.life.google.ours()), one.most_live, len(one.life.google.live()))
        for one in (play() for play in each_point(kind, mode))
    ]
    assert len(counted) > 30
    assert {(state, made, left) for state, made, _, left in counted} == {("success", 1, 0)}
    assert max(most for _, _, most, _ in counted) <= 1


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", OPERATORS)
def test_move_whatever_the_crash_point(kind: str, mode: str) -> None:
    """Whatever is killed while a job is cancelled for the next place, it ends, and the next place does the work."""
    deferrable, short = MODES[mode], SHORT["dataproc" if kind == "spark" else "dataflow"]

    def played(crash_at: int | None) -> Course:
        with course(kind, crash_at, deferrable=deferrable, scripts=(short,)) as one:
            one.play()
        return one

    calm = played(None)
    first_end = next(
        number for number, name in enumerate(calm.trail) if name.startswith("before PUT") or ":cancel" in name
    )
    points_of_the_move = range(first_end - 3, calm.passed)
    wrong = [
        (point, calm.trail[point], one.life.state, str(one.life.error))
        for point in points_of_the_move
        for one in (played(point),)
        if (one.life.state, len(one.life.google.ours()), one.life.google.live()) != ("success", 2, [])
        or one.most_live > 1
    ]
    assert wrong == []


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", OPERATORS)
def test_last_try_leaves_what_a_clear_ends(kind: str, mode: str) -> None:
    """A job that outlives the last try is in the record, and a clear ends it before it makes another."""
    left = 0
    for point in range(points(kind, deferrable=MODES[mode])):
        with course(kind, point, deferrable=MODES[mode], retries=0) as one:
            one.play()
            if one.life.state == "success":
                continue
            live = one.life.google.live()
            record = one.life.record
            left += len(live)
            assert [job.name for job in live] in ([], [record and record.alive and record.alive.job_name])
            one.life.clear()
            one.play()
            made = one.life.google.ours()
            assert one.life.state == "success"
            assert all(job.state(made[-1].created) in {"CANCELLED", "DONE"} for job in made[:-1])
            assert one.life.value["job_id"] == made[-1].id
    assert left
