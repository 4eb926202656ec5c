"""Time that passes for what a service runs: whatever is due is taken out of its phase into the next."""

from __future__ import annotations

import logging
import math
import threading
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

log = logging.getLogger(__name__)

NEVER = math.inf
"""``due`` of what waits for something other than time."""


class Thing(Protocol):
    """A dataclass for something that lives; ``due``, in seconds since the epoch, is when its phase is over."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def id(self) -> str:
        """Return what people call it."""

    @property
    def due(self) -> float:
        """Return when something next happens to it."""

    @property
    def is_over(self) -> bool:
        """Tell whether nothing will happen to it any more."""


T = TypeVar("T", bound=Thing)


class Things(Protocol[T]):
    """A store of them."""

    def active(self) -> tuple[T, ...]:
        """Return all that is not over."""

    def due(self, now: float) -> tuple[T, ...]:
        """Return what something happens to now."""

    def next_due(self) -> float:
        """Return when something next happens to any of them."""

    def save(self, thing: T, /) -> None:
        """Store how far one is."""


class Passing(Generic[T]):
    """A thread that lets time pass between ``start`` and ``stop``.

    ``step`` takes one thing to its next phase; what ``broken`` makes of it is stored if that fails. Hold ``changed``
    from reading a thing to storing it, and notify it when something is due earlier than before.
    """

    def __init__(
        self,
        name: str,
        things: Things[T],
        *,
        step: Callable[[T], T],
        broken: Callable[[T, Exception], T],
        now: Callable[[], datetime],
    ) -> None:
        self.changed = threading.Condition(threading.RLock())
        self._things = things
        self._take = step
        self._broken = broken
        self._now = now
        self._is_stopping = False
        self._thread = threading.Thread(target=self._pass, name=name, daemon=True)

    def start(self) -> None:
        """Let time pass. What was executing when an earlier emulator ended is due at once."""
        for thing in self._things.active():
            if thing.due == NEVER:
                self._things.save(replace(thing, due=0.0))
        self._thread.start()

    def stop(self, end: Callable[[], None]) -> None:
        """Let time stand still, and end what executes; everything stays as it is."""
        with self.changed:
            self._is_stopping = True
            self.changed.notify_all()
        end()
        if self._thread.is_alive():
            self._thread.join()

    def wake(self, find: Callable[[], T | None]) -> None:
        """Make one due that waited for something other than time."""
        with self.changed:
            thing = find()
            if thing and thing.due == NEVER and not thing.is_over and not self._is_stopping:
                self._things.save(replace(thing, due=0.0))
                self.changed.notify_all()

    def _pass(self) -> None:
        with self.changed:
            while not self._is_stopping:
                for thing in self._things.due(self._now().timestamp()):
                    self._things.save(self._step(thing))
                wait = self._things.next_due() - self._now().timestamp()
                if wait > 0 and not self._is_stopping:
                    self.changed.wait(None if wait == NEVER else wait)

    def _step(self, thing: T) -> T:
        try:
            return self._take(thing)
        except Exception as error:
            log.exception("%s cannot go on", thing.id)
            return self._broken(thing, error)
