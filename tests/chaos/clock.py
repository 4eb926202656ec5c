"""Virtual time: hours of waiting pass in milliseconds, and the same seed sees the same moments."""

from __future__ import annotations

import asyncio
import importlib
import pkgutil
import random
import selectors
import sys
import time
import uuid
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from airflow.sdk.exceptions import AirflowTaskTimeout
from airflow.sdk.execution_time import timeout as airflow_timeout

import airflow_accel_provider
from airflow_accel_provider.exceptions import GoogleApiError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

START = datetime(2026, 3, 2, tzinfo=UTC)
_LONGEST = 14 * 24 * 3600.0
_FLOORS = ("core", "hooks", "triggers", "operators")


class Clock:
    """The time of one story, in seconds since its beginning.

    ``skew`` is how far the clock of the process that runs is ahead of it, ``alarm`` when that process is interrupted.
    """

    def __init__(self) -> None:
        self.seconds = 0.0
        self.skew = 0.0
        self.alarm: float | None = None

    def advance(self, seconds: float) -> None:
        """Let time pass, until the alarm if there is one; a story that takes weeks goes in circles."""
        then = self.seconds + max(seconds, 0.0)
        if self.alarm is not None and then >= self.alarm:
            self.seconds, self.alarm = max(self.seconds, self.alarm), None
            raise AirflowTaskTimeout("Timeout")
        self.seconds = then
        assert self.seconds < _LONGEST, "the story goes in circles"

    def at(self, seconds: float | None = None) -> datetime:
        """Return a moment of the story, the present one when none is said."""
        return START + timedelta(seconds=self.seconds if seconds is None else seconds)

    @property
    def shown(self) -> datetime:
        """The present moment as the process that runs sees it."""
        return self.at(self.seconds + self.skew)


class _Selector(selectors.DefaultSelector):  # type: ignore[misc, valid-type]  # chosen by the platform
    """Where nothing is ready, time passes instead of being waited for."""

    clock: Clock

    def select(self, timeout: float | None = None) -> Any:
        ready = super().select(0)
        if not ready:
            if timeout is None:
                raise AssertionError("the event loop waits for what nobody will do")
            self.clock.advance(timeout)
        return ready


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop whose timers go by a story's clock."""

    def __init__(self, clock: Clock) -> None:
        selector = _Selector()
        selector.clock = clock
        self._clock = clock
        super().__init__(selector)

    def time(self) -> float:
        """Return the story's time."""
        return self._clock.seconds


@contextmanager
def virtual(clock: Clock, luck: random.Random) -> Iterator[None]:
    """Have all of the product live by the clock, with the luck's dice, in one thread."""
    replacements = _Replacements(clock)
    with ExitStack() as stack:
        for module in _modules():
            for name, new in replacements.of(module).items():
                stack.enter_context(patch.object(module, name, new))
        from airflow_accel_provider.hooks import _retry

        own = {"clock": lambda: clock.seconds, "sleep": clock.advance}
        stack.enter_context(patch.object(_retry.retrying, "__kwdefaults__", own))
        stack.enter_context(patch.object(_retry, "_jitter", luck))
        stack.enter_context(patch.object(uuid, "uuid4", lambda: uuid.UUID(int=luck.getrandbits(128), version=4)))
        stack.enter_context(patch.object(asyncio, "to_thread", _inline))
        stack.enter_context(patch.object(asyncio.events, "new_event_loop", lambda: VirtualLoop(clock)))
        stack.enter_context(patch.object(airflow_timeout, "timeout", partial(Alarm, clock)))
        yield


def everywhere(name: str, new: Any) -> Iterator[Any]:
    """Yield what puts something in the place of a name in each module of the product that has it."""
    for module in _modules():
        if name in vars(module):
            yield patch.object(module, name, new)


class Alarm:
    """Airflow's ``timeout``: a process has a single alarm, so one within another puts the outer one off for good."""

    def __init__(self, clock: Clock, seconds: float) -> None:
        self._clock = clock
        self._seconds = seconds

    def __enter__(self) -> Alarm:
        self._clock.alarm = self._clock.seconds + self._seconds
        return self

    def __exit__(self, *_: object) -> None:
        self._clock.alarm = None


def _modules() -> list[Any]:
    root = airflow_accel_provider.__name__
    for floor in _FLOORS:
        package = importlib.import_module(f"{root}.{floor}")
        for info in pkgutil.walk_packages(package.__path__, f"{root}.{floor}."):
            importlib.import_module(info.name)
    return [module for name, module in sorted(sys.modules.items()) if name.startswith(f"{root}.")]


class _Replacements:
    """What stands in for the real things that modules name at their top."""

    def __init__(self, clock: Clock) -> None:
        class Meta(type):
            def __instancecheck__(cls, value: object) -> bool:
                return isinstance(value, datetime)

        class Virtual(datetime, metaclass=Meta):
            @classmethod
            def now(cls, tz: Any = None) -> datetime:  # type: ignore[override]
                return clock.shown.astimezone(tz)

        self._by_value = (
            (datetime, Virtual),
            (time, SimpleNamespace(monotonic=lambda: clock.seconds, sleep=clock.advance, time=lambda: clock.seconds)),
            (sys.modules["threading"], _Threads(sys.modules["threading"])),
        )
        self._by_name: Mapping[str, Any] = {"ask_together": _ask_together}

    def of(self, module: Any) -> dict[str, Any]:
        found = {
            name: new
            for name, value in vars(module).items()
            for old, new in self._by_value
            if value is old and not name.startswith("__")
        }
        return found | {name: new for name, new in self._by_name.items() if name in vars(module)}


class _Threads:
    """Threads that have done their work when they have started."""

    def __init__(self, real: Any) -> None:
        self._real = real

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def Thread(self, *, target: Callable[..., Any], args: tuple[Any, ...] = (), **_: Any) -> Any:  # noqa: N802
        """Return a thread that runs when it is started; its error is its own."""

        def start() -> None:
            # What a thread raises reaches nobody.
            with suppress(Exception):
                target(*args)

        return SimpleNamespace(start=start, join=lambda *_: None)


async def _inline(call: Callable[..., Any], *args: Any, **named: Any) -> Any:
    return call(*args, **named)


def _ask_together(calls: Mapping[Any, Callable[[], Any]], *, seconds: float) -> dict[Any, Any]:
    answers = {}
    for key, call in calls.items():
        try:
            answers[key] = call()
        except GoogleApiError:
            continue
    return answers
