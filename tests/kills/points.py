"""The numbered points of a child's life at which something happens: around each call to Google and word to Airflow."""

from __future__ import annotations

import os
import threading
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
    """Counts the points that a child passes, and does a deed at one of them."""

    at: int | None
    deed: Callable[[], None]
    trail: Path
    """Where each point is written down, for whoever looks for what went wrong."""
    launched: Path
    """Where the process group of the newest launcher is noted."""
    passed: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def reach(self, what: str) -> None:
        """Pass a point."""
        with self._lock:
            number, self.passed = self.passed, self.passed + 1
            with self.trail.open("a") as trail:
                trail.write(f"{os.getpid()} {number} {what}\n")
        if number == self.at:
            with self.trail.open("a") as trail:
                trail.write(f"{os.getpid()} it happens\n")
            self.deed()

    def happened(self, pid: int) -> bool:
        """Tell whether a child came to the point."""
        return f"{pid} it happens\n" in self.trail.read_text()

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
            what = f"{verb} {service} {path.rpartition('/')[2]}"
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
