"""A worker that hangs at a point, is taken for dead, and goes on much later as if nothing had happened."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from tests.chaos.life import TaskLife
from tests.chaos.process import Process


@dataclass(slots=True, kw_only=True)
class HangingWorker:
    """A worker in a thread of its own, which runs only while all others stand still."""

    life: TaskLife
    process: Process
    on_waking: Callable[[], None] = lambda: None
    """What happens to it when it goes on, such as a signal."""
    is_over: bool = False
    _error: BaseException | None = None
    _go: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    _back: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))

    def start(self) -> None:
        """Run the worker until it hangs or ends."""
        threading.Thread(target=self._run, daemon=True).start()
        self._hand_over()

    def hang(self) -> None:
        """Stand still, as the worker, until :meth:`go_on`."""
        clock = self.life.clock
        alarm, clock.alarm = clock.alarm, None
        self._back.release()
        self._go.acquire()
        self.life.enter(self.process)
        clock.alarm = alarm
        self.on_waking()

    def go_on(self) -> None:
        """Let the worker go on to its end, in the middle of whatever runs now."""
        life, clock = self.life, self.life.clock
        process, alarm = life.process, clock.alarm
        self._hand_over()
        life.enter(process)
        clock.alarm = alarm

    def _hand_over(self) -> None:
        self._go.release()
        self._back.acquire()
        if self._error is not None:
            raise self._error

    def _run(self) -> None:
        self._go.acquire()
        try:
            self.life.work(self.process)
        except BaseException as error:  # noqa: BLE001 - whoever handed over hears of it
            self._error = error
        finally:
            self.is_over = True
            self._back.release()
