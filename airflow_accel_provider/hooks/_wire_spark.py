"""Batches of managed Spark: Google's JSON and the core's values.

Read over REST, since the typed client (google-cloud-dataproc 5.32) drops the usage fields of runtimes from 3.0 on.
Source: discovery document dataproc v1, read 2026-11.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_accel_provider.core.jobs import Importance, Job, JobState, JobType, Message, Snapshot
from airflow_accel_provider.core.usage import UNNAMED, InUse, Spent
from airflow_accel_provider.hooks._wire import last_segment, number_from_wire, time_from_wire

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import datetime

_STATES = {
    "PENDING": JobState.PENDING,
    "RUNNING": JobState.RUNNING,
    "CANCELLING": JobState.CANCELLING,
    "CANCELLED": JobState.CANCELLED,
    "SUCCEEDED": JobState.DONE,
    "FAILED": JobState.FAILED,
}
# The ends of the fields that runtimes from 3.0 on fill, one for each type.
_TYPES = {"L4": "l4", "A10040": "a100-40", "A10080": "a100-80"}
_THOUSAND = 1000
_LONGEST_MESSAGE = 10_000


def batch_from_json(value: Mapping[str, Any]) -> Snapshot:
    """Return all that a batch shows of itself. Its id, which is the job's, is the last part of its name."""
    history = list(value.get("stateHistory") or ())
    states = [str(each.get("state", "")) for each in (*history, value)]
    info = value.get("runtimeInfo") or {}
    return Snapshot(
        job=_job(value),
        messages=tuple(_messages(history, value)),
        has_run="RUNNING" in states,
        in_use=_in_use(info.get("currentUsage") or {}),
        spent=_spent(info.get("approximateUsage") or {}),
    )


def _job(value: Mapping[str, Any]) -> Job:
    name = str(value.get("name", ""))
    parts = name.split("/")
    version = (value.get("runtimeConfig") or {}).get("version")
    return Job(
        id=last_segment(name),
        name=last_segment(name),
        region=parts[3] if len(parts) > 3 else "",
        state=_STATES.get(str(value.get("state")), JobState.UNKNOWN),
        labels=tuple(sorted((str(key), str(text)) for key, text in (value.get("labels") or {}).items())),
        created_at=time_from_wire(value.get("createTime")),
        state_at=time_from_wire(value.get("stateTime")),
        type=JobType.BATCH,
        runtime_version=str(version) if version else None,
    )


def _messages(history: list[Mapping[str, Any]], value: Mapping[str, Any]) -> Iterator[Message]:
    """Yield what the service says of the batch's states, oldest first; only of an end it says what went wrong."""
    said = [(each.get("stateStartTime"), each) for each in history]
    for at, each in (*said, (value.get("stateTime"), value)):
        text, moment = str(each.get("stateMessage") or ""), time_from_wire(at)
        if text and moment:
            has_ended = each.get("state") in {"FAILED", "CANCELLED"}
            importance = Importance.ERROR if has_ended else Importance.BASIC
            yield Message(text=text[:_LONGEST_MESSAGE], importance=importance, at=moment)


def _in_use(usage: Mapping[str, Any]) -> InUse | None:
    at = time_from_wire(usage.get("snapshotTime"))
    if at is None:
        return None
    thousandths = _by_type(usage, "milliAccelerator")
    return InUse(at=at, gpus={type_: round(number) for type_, number in thousandths.items()})


def _spent(usage: Mapping[str, Any]) -> Spent | None:
    if not usage:
        return None
    gpus = _by_type(usage, "milliAcceleratorSeconds")
    return Spent(
        gpu_seconds={type_: number / _THOUSAND for type_, number in gpus.items()},
        dcu_seconds=(number_from_wire(usage.get("milliDcuSeconds")) or 0) / _THOUSAND,
        storage_gb_seconds=number_from_wire(usage.get("shuffleStorageGbSeconds")) or 0,
    )


def _by_type(usage: Mapping[str, Any], name: str) -> dict[str, float]:
    """Return a figure by type: of the one field that older runtimes fill, or of one a type."""
    known = {type_: number_from_wire(usage.get(f"{name}{end}")) or 0 for end, type_ in _TYPES.items()}
    older = number_from_wire(usage.get(name)) or 0
    type_ = _type(str(usage.get("acceleratorType") or ""))
    # Both sets may be filled with the same GPUs.
    known[type_] = max(known.get(type_, 0), older)
    return {type_: number for type_, number in known.items() if number}


def _type(word: str) -> str:
    """Return Spark's name of a type; no page says how the older field writes it. One that isn't known has no name."""
    name = word.lower().replace("_", "-").removeprefix("nvidia-")
    return name if name in _TYPES.values() else UNNAMED


def created_at(operation: Mapping[str, Any]) -> datetime | None:
    """Return when the batch of an operation was created, as its answer says."""
    return time_from_wire((operation.get("metadata") or {}).get("createTime"))
