"""The numbered points of a child's life at which something happens: around each call to Google and word to Airflow."""

from __future__ import annotations

import os
import threading
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from airflow.sdk.execution_time import supervisor

from airflow_accel_provider.hooks.launcher import Launcher
from airflow_accel_provider.hooks.session import GoogleSession
from tests.kills.comms import Comms

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


@dataclass(slots=True, kw_only=True)
class Points:
    """Counts the points that a child passes, and does a deed at one of them: by its number, or by name and count."""

    at: int | str | None
    deed: Callable[[], None]
    trail: Path
    """Where each point is written down, for whoever looks for what went wrong."""
    launched: Path
    """Where the process group of the newest launcher is noted."""
    passed: int = 0
    _names: Counter[str] = field(default_factory=Counter)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def reach(self, what: str) -> None:
        """Pass a point."""
        with self._lock:
            number, self.passed = self.passed, self.passed + 1
            self._names[what] += 1
            name = f"{what}#{self._names[what]}"
            with self.trail.open("a") as trail:
                trail.write(f"{os.getpid()} {number} {what}\n")
        if self.at in {number, name}:
            with self.trail.open("a") as trail:
                trail.write(f"{os.getpid()} it happens\n")
            self.deed()

    def happened(self, pid: int) -> bool:
        """Tell whether a child came to the point."""
        return f"{pid} it happens\n" in self.trail.read_text()

    def passed_by(self, pid: int) -> list[str]:
        """Return the points that a child passed, each with its count."""
        counts: Counter[str] = Counter()
        passed = []
        for line in self.trail.read_text().splitlines():
            who, number, what = line.split(" ", 2)
            if who == str(pid) and number.isdecimal():
                counts[what] += 1
                passed.append(f"{what}#{counts[what]}")
        return passed

    def install(self) -> None:
        """Have this process pass them; it is a child that ends with its step."""
        Comms.points = self
        supervisor.InProcessSupervisorComms = Comms  # type: ignore[misc]
        self._around_calls()
        self._around_launchers()

    def _around_calls(self) -> None:
        answer = GoogleSession._answer

        @contextmanager
        def counted(session: GoogleSession, service: str, verb: str, path: str, **said: Any) -> Iterator[Any]:
            what = f"{verb} {service} {_object_of(path)}"
            self.reach(f"before {what}")
            with answer(session, service, verb, path, **said) as given:
                self.reach(f"after {what}")
                yield given

        GoogleSession._answer = counted  # type: ignore[assignment, method-assign]

    def _around_launchers(self) -> None:
        start = Launcher.start

        def noted(launcher: Launcher) -> None:
            self.reach("before the launcher")
            start(launcher)
            assert launcher._process
            self.launched.write_text(str(launcher._process.pid))
            self.reach("after the launcher")

        Launcher.start = noted  # type: ignore[assignment, method-assign]


def _object_of(path: str) -> str:
    *_, collection, last = ["", *path.split("/")]
    return _ONE_OF.get(collection, last)


_ONE_OF = {"jobs": "job", "batches": "batch", "operations": "operation", "regions": "region", "projects": "project"}
