"""Batches of managed Spark: Google's JSON and the core's values.

Read over REST, since the typed client (google-cloud-dataproc 5.32) drops the usage fields of runtimes from 3.0 on.
Source: discovery document dataproc v1, read 2026-11.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_accel_provider.core.jobs import Importance, Job, JobState, JobType, Message, Snapshot
from airflow_accel_provider.core.legible import cut
from airflow_accel_provider.core.usage import UNNAMED, InUse, Spent
from airflow_accel_provider.hooks._fields import Fields, unreadable
from airflow_accel_provider.hooks._wire import labels_in, last_segment, number_from_wire, time_from_wire

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
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


def batch_from_json(value: Mapping[str, Any]) -> Snapshot:
    """Return all that a batch shows of itself. Its id, which is the job's, is the last part of its name.

    Raises :class:`GoogleApiError` for one without a name, and for fields that are not of the kind they must be.
    """
    batch = Fields(value, "dataproc", "batch")
    history = batch.objects("stateHistory")
    states = [each.all.get("state") for each in (*history, batch)]
    info = batch.object("runtimeInfo")
    return Snapshot(
        job=_job(batch),
        messages=tuple(_messages(history, batch)),
        has_run="RUNNING" in states,
        in_use=_in_use(info.object("currentUsage").all),
        spent=_spent(info.object("approximateUsage").all),
    )


def batches_from_json(page: Mapping[str, Any]) -> tuple[Snapshot, ...]:
    """Return the batches of one page of a list."""
    return tuple(batch_from_json(each.all) for each in Fields(page, "dataproc", "batches").objects("batches"))


def _job(batch: Fields) -> Job:
    name = batch.text("name")
    parts = name.split("/")
    if not parts[-1]:
        raise unreadable("dataproc", "batch", "it has no name")
    state = batch.all.get("state")
    return Job(
        id=last_segment(name),
        name=last_segment(name),
        region=parts[3] if len(parts) > 3 else "",
        state=_STATES.get(state, JobState.UNKNOWN) if isinstance(state, str) else JobState.UNKNOWN,
        labels=labels_in(batch),
        created_at=time_from_wire(batch.all.get("createTime")),
        state_at=time_from_wire(batch.all.get("stateTime")),
        type=JobType.BATCH,
        runtime_version=batch.object("runtimeConfig").text("version") or None,
    )


def _messages(history: Sequence[Fields], batch: Fields) -> Iterator[Message]:
    """Yield what the service says of the batch's states, oldest first; only of an end it says what went wrong."""
    said = [("stateStartTime", each) for each in history]
    for when, each in (*said, ("stateTime", batch)):
        text, moment = each.text("stateMessage"), time_from_wire(each.all.get(when))
        if text and moment:
            has_ended = each.all.get("state") in ("FAILED", "CANCELLED")
            importance = Importance.ERROR if has_ended else Importance.BASIC
            yield Message(text=cut(text), importance=importance, at=moment)


def _in_use(usage: Mapping[str, Any]) -> InUse | None:
    at, thousandths = time_from_wire(usage.get("snapshotTime")), _by_type(usage, "milliAccelerator")
    if at is None or thousandths is None:
        return None
    return InUse(at=at, gpus={type_: round(number) for type_, number in thousandths.items()})


def _spent(usage: Mapping[str, Any]) -> Spent | None:
    gpus = _by_type(usage, "milliAcceleratorSeconds")
    if not usage or gpus is None:
        return None
    return Spent(
        gpu_seconds={type_: number / _THOUSAND for type_, number in gpus.items()},
        dcu_seconds=(number_from_wire(usage.get("milliDcuSeconds")) or 0) / _THOUSAND,
        storage_gb_seconds=number_from_wire(usage.get("shuffleStorageGbSeconds")) or 0,
    )


def _by_type(usage: Mapping[str, Any], name: str) -> dict[str, float] | None:
    """Return a figure by type: of the one field that older runtimes fill, or of one a type.

    A figure of zero is left out by the service; one that is there and no number says nothing, and is ``None``.
    """
    said = {end: usage[f"{name}{end}"] for end in ("", *_TYPES) if usage.get(f"{name}{end}") is not None}
    figures = {end: number_from_wire(value) for end, value in said.items()}
    if None in figures.values():
        return None
    known = {_TYPES[end]: number or 0 for end, number in figures.items() if end}
    word = usage.get("acceleratorType")
    type_ = _type(word if isinstance(word, str) else "")
    # Both sets may be filled with the same GPUs.
    known[type_] = max(known.get(type_, 0), figures.get("") or 0)
    return {type_: number for type_, number in known.items() if number}


def _type(word: str) -> str:
    """Return Spark's name of a type; no page says how the older field writes it. One that isn't known has no name."""
    name = word.lower().replace("_", "-").removeprefix("nvidia-")
    return name if name in _TYPES.values() else UNNAMED


def created_at(operation: Mapping[str, Any]) -> datetime | None:
    """Return when the batch of an operation was created, as its answer says."""
    metadata = operation.get("metadata")
    return time_from_wire(metadata.get("createTime")) if isinstance(metadata, dict) else None
