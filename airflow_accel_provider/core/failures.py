"""What went wrong with an attempt, and how far the news reaches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any


class FailureKind(StrEnum):
    """Why a place did not run the job."""

    STOCKOUT = "stockout"
    QUOTA = "quota"
    NOT_OFFERED = "not_offered"
    PREEMPTED = "preempted"
    ACCELERATOR_MISSING = "accelerator_missing"
    IMAGE = "image"
    CONFIGURATION = "configuration"
    PERMISSION = "permission"
    USER_CODE = "user_code"
    SERVICE = "service"
    CANCELLED = "cancelled"
    TIMEOUT = "timeout"
    UNKNOWN = "unknown"


class Scope(StrEnum):
    """Which other candidates the failure speaks about."""

    ZONE = "zone"
    REGION = "region"
    PROJECT = "project"
    JOB = "job"
    NONE = "none"


class Resource(StrEnum):
    """What was short."""

    ACCELERATOR = "accelerator"
    LAUNCHER = "launcher"
    CPU = "cpu"
    DISK = "disk"
    ADDRESS = "address"


DEFAULT_FALLBACK_ON: tuple[FailureKind, ...] = (
    FailureKind.STOCKOUT,
    FailureKind.QUOTA,
    FailureKind.NOT_OFFERED,
    FailureKind.PREEMPTED,
)
"""The kinds after which another place is worth trying, unless the user says otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """One failure with its evidence.

    ``explanation`` is what happened, short enough for a line of a report, ``advice`` what a person can do about it,
    ``evidence`` the service's own words (shortened). ``limit`` is the quota's, in the metric's own unit.
    """

    kind: FailureKind
    scope: Scope
    explanation: str
    evidence: str = ""
    resource: Resource | None = None
    zone: str | None = None
    region: str | None = None
    metric: str | None = None
    limit: float | None = None
    hint_zones: tuple[str, ...] = ()
    advice: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return the failure as plain JSON, leaving out what is not known."""
        fields = asdict(self) | {"hint_zones": list(self.hint_zones)}
        return {name: value for name, value in fields.items() if value not in (None, "", [])}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Failure:
        """Return the failure that :meth:`to_json` wrote."""
        return cls(
            kind=FailureKind(value["kind"]),
            scope=Scope(value["scope"]),
            explanation=value["explanation"],
            evidence=value.get("evidence", ""),
            resource=Resource(value["resource"]) if value.get("resource") else None,
            zone=value.get("zone"),
            region=value.get("region"),
            metric=value.get("metric"),
            limit=value.get("limit"),
            hint_zones=tuple(value.get("hint_zones", ())),
            advice=value.get("advice", ""),
        )
