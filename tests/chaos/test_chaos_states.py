"""What a task makes of each state that somebody else, or the service by itself, may bring a job into."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping
from typing import Any

import pytest

from tests.chaos.clock import Clock, virtual
from tests.chaos.google import SimGoogle
from tests.chaos.jobs import Ending, Script
from tests.chaos.life import TaskLife
from tests.chaos.process import Process
from tests.chaos.tasks import OPERATORS

Course = tuple[tuple[float, str], ...]
Outcome = tuple[str, int, str]
"""State of the task, jobs that were made, and what its error says."""

_NEVER_SECONDS = 1e7

_SUCCESS: Outcome = ("success", 1, "")
_CANCELLED: Outcome = ("failed", 1, "cancelled: somebody cancelled the job.")
_DRAINED: Outcome = ("failed", 1, "cancelled: somebody ended the job (it is drained).")
_UPDATED: Outcome = ("failed", 1, "cancelled: somebody replaced the job by another (it is updated).")

COURSES: Mapping[str, tuple[Course, Outcome]] = {
    "cancelled": (((0, "PENDING"), (40, "RUNNING"), (150, "CANCELLED")), _CANCELLED),
    "cancelled before its workers": (((0, "PENDING"), (20, "CANCELLED")), _CANCELLED),
    "cancelling, then cancelled": (
        ((0, "PENDING"), (40, "RUNNING"), (150, "CANCELLING"), (700, "CANCELLED")),
        _CANCELLED,
    ),
    "paused, then goes on": (
        ((0, "PENDING"), (40, "RUNNING"), (150, "PAUSING"), (200, "PAUSED"), (4000, "RUNNING"), (4100, "DONE")),
        _SUCCESS,
    ),
    "queued for long": (((0, "QUEUED"), (1500, "PENDING"), (1600, "RUNNING"), (2000, "DONE")), _SUCCESS),
    "queued for ever": (((0, "QUEUED"),), ("failed", 2, "no worker came up within start_timeout")),
    "cleaning up": (((0, "PENDING"), (40, "RUNNING"), (300, "RESOURCE_CLEANING_UP"), (3000, "DONE")), _SUCCESS),
    "unknown": (
        ((0, "SOMETHING_NEW"), (40, "RUNNING"), (100, "SOMETHING_NEW"), (300, "RUNNING"), (400, "DONE")),
        _SUCCESS,
    ),
    "missing": (((0, ""), (40, "RUNNING"), (100, ""), (400, "DONE")), _SUCCESS),
    "goes backwards": (
        ((0, "PENDING"), (40, "RUNNING"), (70, "PENDING"), (130, "QUEUED"), (300, "RUNNING"), (400, "DONE")),
        _SUCCESS,
    ),
    "skips running": (((0, "PENDING"), (400, "DONE")), _SUCCESS),
    "done at the first look": (((0, "DONE"),), _SUCCESS),
}
DATAFLOW_COURSES: Mapping[str, tuple[Course, Outcome]] = {
    "updated": (((0, "PENDING"), (40, "RUNNING"), (150, "UPDATED")), _UPDATED),
    "drained": (((0, "PENDING"), (40, "RUNNING"), (150, "DRAINED")), _DRAINED),
    "drained before its workers": (((0, "PENDING"), (20, "DRAINED")), _DRAINED),
    "draining, then drained": (((0, "PENDING"), (40, "RUNNING"), (150, "DRAINING"), (2900, "DRAINED")), _DRAINED),
    "draining, then cancelled": (((0, "PENDING"), (40, "RUNNING"), (150, "DRAINING"), (900, "CANCELLED")), _CANCELLED),
}
STREAMING_COURSES: Mapping[str, tuple[Course, Outcome]] = {
    "proven": (((0, "PENDING"), (40, "RUNNING")), _SUCCESS),
    "proven, then drained": (((0, "PENDING"), (40, "RUNNING"), (500, "DRAINED")), _SUCCESS),
    "drained before its workers": (((0, "PENDING"), (40, "DRAINING"), (45, "DRAINED")), _DRAINED),
    "updated before its workers": (((0, "PENDING"), (45, "UPDATED")), _UPDATED),
    "queued for ever": (((0, "QUEUED"),), ("failed", 2, "no worker came up within start_timeout")),
}
_ROWS = [
    *((kind, name, *row) for kind in OPERATORS for name, row in COURSES.items()),
    *((kind, name, *row) for kind in ("gpu", "tpu") for name, row in DATAFLOW_COURSES.items()),
]
_STREAMING_ROWS = [(kind, name, *row) for kind in ("gpu", "tpu") for name, row in STREAMING_COURSES.items()]


def lived(kind: str, course: Course, *, ending: Ending = "done", **said: Any) -> TaskLife:
    """Return the life of a task whose jobs all take the same course; their workers come with the state that runs."""
    clock, luck = Clock(), random.Random(7)  # noqa: S311 - the same each time is what it is for
    workers = next((at + 10 for at, state in course if state == "RUNNING"), _NEVER_SECONDS)
    google = SimGoogle(clock, luck, lambda: Script(ending=ending, course=course, workers=workers))
    life = TaskLife(make=lambda: OPERATORS[kind](poll_interval=30, **said), google=google, clock=clock)
    with virtual(clock, luck), life.connected():
        while life.state not in {"success", "failed"}:
            if life.state == "queued":
                life.work(Process())
            else:
                life.wait(Process(), None, _never)
    return life


async def _never(*_: object) -> bool:
    return True


def outcome(life: TaskLife) -> tuple[Any, ...]:
    """Return all that a user sees of an end, save for a minute more or less."""
    text = re.sub(r"after \d+ min", "after a while", str(life.error or ""))
    value = life.value and {name: life.value[name] for name in ("state", "job_id", "placement")}
    return life.state, len(life.google.ours()), type(life.error).__name__, text, value


def check(kind: str, course: Course, expected: Outcome, **said: Any) -> None:
    """Hold both modes against what is expected, and against each other."""
    deferred, synchronous = (outcome(lived(kind, course, deferrable=mode, **said)) for mode in (True, False))
    state, jobs, sentence = expected
    assert deferred[:2] == (state, jobs)
    assert sentence in deferred[3]
    assert deferred == synchronous


@pytest.mark.parametrize(("kind", "name", "course", "expected"), _ROWS)
def test_states_of_others(kind: str, name: str, course: Course, expected: Outcome) -> None:
    """Each state that is not of the task's own making has one outcome, which both modes share to the word."""
    check(kind, course, expected)


@pytest.mark.parametrize(("kind", "name", "course", "expected"), _STREAMING_ROWS)
def test_states_of_streaming_jobs(kind: str, name: str, course: Course, expected: Outcome) -> None:
    """A streaming job that is proven succeeds, and one that somebody ends before that fails, alike in both modes."""
    check(kind, course, expected, ending="streaming", wait_until="proven")
