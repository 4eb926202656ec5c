"""What can be decided about a record. Each carries it as it must be written before anybody acts on the decision."""

from __future__ import annotations

from dataclasses import dataclass

from airflow_accel_provider.core.failures import Failure
from airflow_accel_provider.core.record import Record


@dataclass(frozen=True, slots=True)
class Launch:
    """Submit the record's open attempt."""

    record: Record


@dataclass(frozen=True, slots=True)
class Cancel:
    """End the job of the record's open attempt, in the way its outcome says, then ask again."""

    record: Record


@dataclass(frozen=True, slots=True)
class Wait:
    """Look again later."""

    record: Record


@dataclass(frozen=True, slots=True)
class Finish:
    """The job did its work, or was proven and is left running."""

    record: Record


@dataclass(frozen=True, slots=True)
class GiveUp:
    """Nothing more will be tried; ``failure`` is what the task fails with."""

    record: Record
    failure: Failure


Decision = Launch | Cancel | Wait | Finish | GiveUp
