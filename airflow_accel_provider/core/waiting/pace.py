"""How long to pause between two looks."""

from __future__ import annotations

from dataclasses import dataclass

_MOST_DOUBLINGS = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """Seconds between two looks: always the same, or doubling up to ``longest`` where it ``grows``."""

    seconds: float
    grows: bool = False
    longest: float | None = None

    def pause(self, looks: int) -> float:
        """Return the seconds to pause after so many looks, the first being 1."""
        doublings = min(looks - 1, _MOST_DOUBLINGS) if self.grows else 0
        pause = self.seconds * 2.0**doublings
        return pause if self.longest is None else min(pause, self.longest)
