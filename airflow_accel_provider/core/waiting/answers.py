"""What a question can be answered with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from airflow_accel_provider.core.failures import Failure


@dataclass(frozen=True, slots=True)
class Met:
    """It is so. ``value`` is what a task hands on in XCom; ``remark`` is what a person should know about it."""

    value: dict[str, Any]
    remark: str = ""


@dataclass(frozen=True, slots=True)
class NotYet:
    """It is not so now and may become so; ``reason`` is a clause without a full stop."""

    reason: str


@dataclass(frozen=True, slots=True)
class Never:
    """Waiting is of no use any more."""

    failure: Failure


Answer = Met | NotYet | Never
