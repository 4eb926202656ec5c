"""When the time of a try is over, however often it was deferred meanwhile."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from airflow_accel_provider.core.failures import Failure, FailureKind, Scope


@dataclass(frozen=True, slots=True, kw_only=True)
class Deadline:
    """The end of a try: ``limit``, its ``execution_timeout``, after its start."""

    at: datetime
    limit: timedelta

    @classmethod
    def after(cls, started_at: datetime, limit: timedelta) -> Deadline:
        """Return the deadline of a try that began at a time."""
        return cls(at=started_at + limit, limit=limit)

    def left(self, now: datetime) -> timedelta:
        """Return what is left of the time, nothing once it is over."""
        return max(self.at - now, timedelta(0))

    def is_over(self, now: datetime) -> bool:
        """Tell whether the time is over."""
        return now >= self.at

    @property
    def failure(self) -> Failure:
        """What a task fails with that has no time left."""
        text = f"execution_timeout ({self.limit.total_seconds():g} s) has passed"
        return Failure(kind=FailureKind.TIMEOUT, scope=Scope.NONE, explanation=text)

    def to_json(self) -> dict[str, Any]:
        """Return the deadline as plain JSON, the limit in seconds."""
        return {"at": self.at.isoformat(), "limit": self.limit.total_seconds()}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Deadline:
        """Return the deadline that :meth:`to_json` wrote."""
        return cls(at=datetime.fromisoformat(value["at"]), limit=timedelta(seconds=value["limit"]))
