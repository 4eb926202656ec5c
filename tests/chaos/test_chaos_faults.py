"""Each fault of the service on each call that a task makes, in both modes: one table over hours that pass at once."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from email.utils import format_datetime, parsedate_to_datetime
from typing import Any

import pytest

from airflow_accel_provider.emulator.spoiling import spoiled
from airflow_accel_provider.exceptions import (
    AcceleratorLaunchError,
    AcceleratorPermissionError,
    AcceleratorServiceError,
)
from tests.chaos.clock import Clock, virtual
from tests.chaos.google import Answer, SimGoogle
from tests.chaos.jobs import Script
from tests.chaos.life import TaskLife
from tests.chaos.process import Process
from tests.chaos.story import OPERATORS

MODES = {"deferrable": True, "synchronous": False}
BEFORE = ("429", "500", "502", "503", "504", "reset", "slow", "html")
AFTER = ("504", "reset", "slow", "truncated", "html")
ONCE = (*(f"before:{each}" for each in BEFORE), *(f"after:{each}" for each in AFTER), "twice:503", "optional missing")
CALLS: Mapping[str, Sequence[str]] = {
    "gpu": (
        *("read_object", "read_region", "read_project", "list_jobs", "launch"),
        *("get_job", "messages", "list_instances", "end_job"),
    ),
    "spark": ("read_object", "read_region", "get_batch", "create_batch", "cancel_batch"),
}
PARTS = {
    "gpu": ("read_region", "read_project", "messages", "list_instances"),
    "spark": ("read_region", "read_project"),
}

Spoil = Callable[[Callable[[], Answer]], Answer]


class FaultyGoogle(SimGoogle):
    """A calm Google in which the calls of one route go wrong for a number of times."""

    route = ""
    times = 0
    met = 0
    skew = 0
    spoil: Spoil

    def call(self, *said: Any) -> Answer:
        """Answer by a clock of Google's own."""
        answer = super().call(*said)
        if not self.skew:
            return answer
        date = parsedate_to_datetime(answer.headers["Date"]) + timedelta(seconds=self.skew)
        text = json.dumps(spoiled(json.loads(answer.text), skew=self.skew))
        return replace(answer, text=text, headers={**answer.headers, "Date": format_datetime(date, usegmt=True)})

    def _answer(self, service: str, verb: str, path: str, *said: Any) -> Answer:
        def answer() -> Answer:
            return super(FaultyGoogle, self)._answer(service, verb, path, *said)

        forms = [(form, name) for method, form, name in self._routes if method == verb]
        name = next(name for form, name in forms if re.fullmatch(form, f"{service}/{path}"))
        if name != self.route or self.met >= self.times:
            return answer()
        self.met += 1
        return self.spoil(answer)

    def fails(self, fault: str) -> Spoil:
        """Return what a fault makes of a call, by its name in :data:`ONCE`, or ``status:N`` for good."""
        when, _, kind = fault.partition(":")
        if when == "optional missing":
            return _stripped
        if when == "after":
            return lambda answer: self._failed(fault, answer().text)
        return lambda _: self._failed(f"before:{kind}", "")


def _stripped(answer: Callable[[], Answer]) -> Answer:
    told = answer()
    return replace(told, text=json.dumps(spoiled(json.loads(told.text), missing="optional")))


def _refused(status: int) -> Spoil:
    body = json.dumps({"error": {"code": status, "message": "It is not to be.", "status": "NO"}})
    return lambda _: Answer(status, body)


@dataclass(slots=True)
class Course:
    """The life of one task, a try at a time."""

    life: TaskLife
    google: FaultyGoogle

    def play(self) -> None:
        """Live the life to the end of a try."""
        while self.life.state not in {"success", "failed", "up_for_retry"}:
            if self.life.state == "deferred":
                self.life.wait(Process(), None, _never)
            else:
                self.life.work(Process())


async def _never(*_: object) -> bool:
    return True


@contextmanager
def course(kind: str, mode: str, *scripts: Script, retries: int = 0) -> Iterator[Course]:
    """Yield a course whose jobs go by the scripts, by default one without workers, which is ended, and a success."""
    clock, luck = Clock(), random.Random(11)  # noqa: S311 - the same each time is what it is for
    done = Script(pending=40, workers=50, length=400, dying=5)
    written = iter(scripts or (replace(done, ending="stuck" if kind == "spark" else "stockout"), done))
    google = FaultyGoogle(clock, luck, lambda: next(written))
    life = TaskLife(
        make=lambda: OPERATORS[kind](deferrable=MODES[mode], poll_interval=30),
        google=google,
        clock=clock,
        retries=retries,
    )
    with virtual(clock, luck), life.connected():
        yield Course(life, google)


def rows() -> Iterator[tuple[str, str]]:
    """Yield each operator with each of its calls."""
    for kind, calls in CALLS.items():
        for call in calls:
            yield kind, call


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("kind", "call"), rows())
def test_a_fault_that_passes_changes_nothing(kind: str, call: str, mode: str) -> None:
    """Whatever goes wrong once with any call, the task succeeds in its second place and no job is made but the two."""
    met = 0
    for fault in ONCE:
        with course(kind, mode) as one:
            # A spoiled answer of a list that is asked for once says nothing of what is missing in it.
            one.google.route, one.google.times = call, 2 if fault.startswith("twice") else 1
            one.google.spoil = one.google.fails(fault)
            one.play()
            made = [(job.region, job.state(one.life.clock.seconds)) for job in one.google.ours()]
            ends = {"CANCELLED", "FAILED"}
            told = (fault, one.life.state, made, str(one.life.error))
            assert one.life.state == "success", told
            assert len(made) == 2, told
            assert made[0][1] in ends, told
            assert made[1][1] == "DONE", told
            met += one.google.met
    assert met > len(ONCE) - 2


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("status", [403, 404, 500, 503])
@pytest.mark.parametrize(("kind", "call"), [(kind, call) for kind, calls in PARTS.items() for call in calls])
def test_a_part_that_stays_away_is_unknown(kind: str, call: str, status: int, mode: str) -> None:
    """Quotas, messages and VMs that can never be read stop no task, and no job is cancelled for it."""
    with course(kind, mode, Script(pending=40, workers=50, length=2500)) as one:
        one.google.route, one.google.times, one.google.spoil = call, 10**6, _refused(status)
        one.play()
        assert (one.life.state, len(one.google.ours())) == ("success", 1), one.life.error
        assert one.google.ours()[0].asked_to_end == []


ASKED = "was asked to cancel"
FOR_GOOD = [
    ("gpu", "read_object", 503, AcceleratorServiceError, "storage GET"),
    ("gpu", "list_jobs", 503, AcceleratorServiceError, "dataflow GET"),
    ("gpu", "list_jobs", 403, AcceleratorPermissionError, "dataflow GET"),
    ("gpu", "launch", 503, AcceleratorLaunchError, "the next try looks for it"),
    ("gpu", "launch", 403, AcceleratorPermissionError, "refused the caller"),
    ("gpu", "get_job", 503, AcceleratorServiceError, "nothing was cancelled"),
    ("gpu", "get_job", 403, AcceleratorPermissionError, "nothing was cancelled"),
    ("gpu", "end_job", 503, AcceleratorServiceError, ASKED),
    ("spark", "get_batch", 503, AcceleratorServiceError, "dataproc GET"),
    ("spark", "create_batch", 503, AcceleratorLaunchError, "the next try sees"),
    ("spark", "create_batch", 403, AcceleratorPermissionError, "refused the caller"),
    ("spark", "cancel_batch", 503, AcceleratorServiceError, ASKED),
]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("row", FOR_GOOD, ids=lambda row: "-".join(map(str, row[:3])))
def test_what_goes_on_is_one_failure(row: tuple[str, str, int, type[Exception], str], mode: str) -> None:
    """A fault that does not pass is one failure in a bounded time, and the next try takes up what there is."""
    kind, call, status, error, words = row
    scripts = (Script(pending=40, workers=50, length=9000), Script(pending=40, workers=50, length=400))
    if call in {"end_job", "cancel_batch"}:
        scripts = (replace(scripts[0], ending="stuck" if kind == "spark" else "stockout"), scripts[1])
    with course(kind, mode, *scripts, retries=1) as one:
        one.google.route, one.google.times, one.google.spoil = call, 10**6, _refused(status)
        one.play()
        told = str(one.life.error)
        assert (one.life.state, type(one.life.error)) == ("up_for_retry", error), told
        assert words in told
        assert words == ASKED or "It is not to be" in told
        # Fifteen minutes for a running job, half a minute for any other call; a batch waits for machines before.
        assert one.life.clock.seconds < 2400
        assert len(one.google.live()) <= 1
        made = len(one.google.ours())
        assert made <= 1
        one.google.times = 0
        one.life.retry()
        one.play()
        if words == ASKED:
            # A job that was asked in vain is a person's; nothing else was started.
            assert len(one.google.ours()) == 1 or one.life.state == "success"
            return
        assert one.life.state == "success", one.life.error
        assert len(one.google.ours()) == max(made, 1)


STATES = {
    "goes back": ("RUNNING", "PENDING", "RUNNING", "QUEUED", "PENDING", "RUNNING"),
    "cancelling was a mistake": ("RUNNING", "CANCELLING", "RUNNING", "CANCELLING", "RUNNING"),
    "not known": ("", "SOMETHING_NEW", "RUNNING", "", "RUNNING"),
    "never runs": ("PENDING", "PENDING", "PENDING", "PENDING"),
    "done at once": (),
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", ["gpu", "spark"])
@pytest.mark.parametrize("states", STATES)
def test_states_come_in_any_order(kind: str, states: str, mode: str) -> None:
    """A job whose states go backwards, are unknown or skip RUNNING is waited for to its end, and never ended for it."""
    shown = iter(STATES[states])
    field, prefix = ("currentState", "JOB_STATE_") if kind == "gpu" else ("state", "")

    def said(answer: Callable[[], Answer]) -> Answer:
        told = answer()
        state = next(shown, None)
        if state is None:
            return told
        return replace(told, text=json.dumps({**json.loads(told.text), field: f"{prefix}{state}" if state else None}))

    length = 20 if states == "done at once" else 150
    with course(kind, mode, Script(pending=5, workers=10, length=length)) as one:
        # The look-up by name comes first, and finds nothing.
        one.google.route = "get_job" if kind == "gpu" else "get_batch"
        one.google.times, one.google.spoil = 10**6, said
        one.play()
        (job,) = one.google.ours()
        assert (one.life.state, job.asked_to_end) == ("success", []), one.life.error
        assert one.life.value["state"] == "done"


SKEWS = (3600, -3600)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("skew", SKEWS)
@pytest.mark.parametrize("kind", ["gpu", "spark"])
@pytest.mark.parametrize("ending", ["done", "stockout", "bare"])
def test_another_clock_changes_nothing(kind: str, ending: Any, skew: int, mode: str) -> None:
    """With Google's clock an hour ahead or behind, the same jobs are ended, for the same reason, at the same time."""
    slow = Script(pending=40, workers=1200, length=1500, dying=5)
    told = []
    for by in (0, skew):
        with course(kind, mode, replace(slow, ending=ending), slow) as one:
            one.google.skew = by
            one.play()
            value = one.life.value or {}
            attempts = value.get("attempts", ())
            outcomes = [(each["outcome"], (each["failure"] or {}).get("kind")) for each in attempts]
            asked = [[round(at) for at in job.asked_to_end] for job in one.google.ours()]
            told.append((one.life.state, outcomes, (value.get("proof") or {}).get("status"), asked))
    assert told[0] == told[1]
    assert told[0][0] == ("failed" if ending == "bare" else "success")
