"""What the user decided beforehand about waiting, moving on and ending."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal

from airflow_accel_provider.core.deadline import Deadline
from airflow_accel_provider.core.failures import DEFAULT_FALLBACK_ON, FailureKind


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """What the user decided beforehand.

    ``start_timeout`` bounds the wait for a first worker, ``cancel_timeout`` the wait for a cancelled job's end.
    ``grace`` is how long workers may run without the device before it counts as missing (a VM has its accelerators from
    its creation, so a second look is enough), ``lost_after`` how long the service may deny knowing a job.
    ``wait_until`` says what the task waits for: the job's end, or the proof of its accelerator. ``drain`` lets a
    streaming job that was proven finish what it has taken in when the user ends it. After ``deadline``, which there is
    only where the user limits a try's time, the job is ended and nothing else is started.
    """

    fallback_on: tuple[FailureKind, ...] = DEFAULT_FALLBACK_ON
    on_unproven: Literal["warn", "fail"] = "warn"
    wait_until: Literal["done", "proven"] = "done"
    drain: bool = False
    start_timeout: timedelta = timedelta(minutes=30)
    cancel_timeout: timedelta = timedelta(minutes=5)
    grace: timedelta = timedelta(seconds=3)
    lost_after: timedelta = timedelta(minutes=2)
    deadline: Deadline | None = None

    def is_over(self, now: datetime) -> bool:
        """Tell whether the try has no time left."""
        return self.deadline is not None and self.deadline.is_over(now)

    def to_json(self) -> dict[str, Any]:
        """Return the policy as plain JSON, durations in seconds."""
        return {
            "fallback_on": [str(kind) for kind in self.fallback_on],
            "on_unproven": self.on_unproven,
            "wait_until": self.wait_until,
            "drain": self.drain,
            **{name: getattr(self, name).total_seconds() for name in _DURATIONS},
            **({"deadline": self.deadline.to_json()} if self.deadline else {}),
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Policy:
        """Return the policy that :meth:`to_json` wrote."""
        return cls(
            fallback_on=tuple(FailureKind(kind) for kind in value["fallback_on"]),
            on_unproven=value["on_unproven"],
            # Triggers of an earlier release know none of them.
            wait_until=value.get("wait_until", "done"),
            drain=value.get("drain", False),
            deadline=Deadline.from_json(value["deadline"]) if value.get("deadline") else None,
            **{name: timedelta(seconds=value[name]) for name in _DURATIONS},
        )


_DURATIONS = ("start_timeout", "cancel_timeout", "grace", "lost_after")
