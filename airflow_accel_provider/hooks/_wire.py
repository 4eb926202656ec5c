"""Google's JSON and the core's values, both ways; the only place that knows Google's field names.

Missing fields are tolerated everywhere: views and service versions differ in what they carry. Names that are not known
read as unknown; what is not of the kind it must be raises :class:`GoogleApiError`. Sources: the discovery documents
dataflow v1b3 and compute v1, read 2026-11.
"""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from airflow_accel_provider.core.jobs import Importance, Job, JobState, JobType, Message, ScalingEvent, Worker
from airflow_accel_provider.core.legible import clean, cut
from airflow_accel_provider.hooks._fields import Fields, unreadable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

JOB_ID_LABEL = "goog-dataflow-job-id"
"""The label by which a worker VM says whose it is."""

_STATE_PREFIX = "JOB_STATE_"
_TYPE_PREFIX = "JOB_TYPE_"
_MESSAGE_PREFIX = "JOB_MESSAGE_"
_TIME = re.compile(r"(\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d)(?:\.(\d+))?([Zz]|[+-]\d\d:\d\d)")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def state_from_wire(name: object) -> JobState:
    """Return the state that Google's name means; one that isn't known reads as unknown."""
    try:
        return JobState(_name(name).removeprefix(_STATE_PREFIX).lower())
    except ValueError:
        return JobState.UNKNOWN


def state_to_wire(state: JobState) -> str:
    """Return Google's name of a state."""
    return _STATE_PREFIX + state.upper()


def type_from_wire(name: object) -> JobType:
    """Return the job type that Google's name means; one that isn't known reads as unknown."""
    try:
        return JobType(_name(name).removeprefix(_TYPE_PREFIX).lower())
    except ValueError:
        return JobType.UNKNOWN


def importance_from_wire(name: object) -> Importance:
    """Return the importance that Google's name means; one that isn't known reads as the least."""
    try:
        return Importance(_name(name).removeprefix(_MESSAGE_PREFIX).lower())
    except ValueError:
        return Importance.DEBUG


def _name(value: object) -> str:
    return value if isinstance(value, str) else ""


def importance_to_wire(importance: Importance) -> str:
    """Return Google's name of an importance."""
    return _MESSAGE_PREFIX + importance.upper()


def time_from_wire(text: object) -> datetime | None:
    """Return the moment an RFC 3339 text names, with any number of fraction digits, or ``None`` for no such text."""
    form = _TIME.fullmatch(_name(text).strip())
    if not form:
        return None
    fraction = (form[2] or "")[:6].ljust(6, "0")
    zone = "+00:00" if form[3] in "Zz" else form[3]
    try:
        return datetime.fromisoformat(f"{form[1].upper()}.{fraction}{zone}").astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def time_to_wire(at: datetime) -> str:
    """Return a moment as RFC 3339 in UTC."""
    return at.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def job_from_json(value: Mapping[str, Any], *, full: bool = False) -> Job:
    """Return a job; of a ``full`` view missing labels mean none, of any other that they weren't shown."""
    job = Fields(value, "dataflow", "job")
    is_shown = full or value.get("labels") is not None
    return Job(
        id=job.id("id"),
        name=job.text("name"),
        region=job.id("location"),
        state=state_from_wire(value.get("currentState")),
        labels=labels_in(job) if is_shown else None,
        zones=tuple(last_segment(zone) for zone in job.object("serviceResources").texts("zones")),
        created_at=time_from_wire(value.get("createTime")),
        state_at=time_from_wire(value.get("currentStateTime")),
        type=type_from_wire(value.get("type")),
    )


def jobs_from_json(page: Mapping[str, Any], region: str) -> Iterator[Job]:
    """Yield the jobs of one page of a list; one without an id is none that anybody can ask for."""
    for job in Fields(page, "dataflow", "jobs").objects("jobs"):
        if not job.text("id"):
            raise unreadable("dataflow", "jobs", "a job has no id")
        yield job_from_json({**job.all, "location": job.text("location", region)})


def labels_in(value: Fields) -> tuple[tuple[str, str], ...]:
    """Return the labels of a job, sorted."""
    return tuple(sorted((clean(str(key)), clean(str(text))) for key, text in value.object("labels").all.items()))


def messages_from_json(page: Mapping[str, Any]) -> tuple[Message, ...]:
    """Return the messages of one page of ``messages.list``, long texts cut."""
    return tuple(
        Message(
            text=cut(entry.text("messageText")),
            importance=importance_from_wire(entry.all.get("messageImportance")),
            at=time_from_wire(entry.all.get("time")) or _EPOCH,
            id=entry.text("id"),
        )
        for entry in Fields(page, "dataflow", "messages").objects("jobMessages")
    )


def scaling_from_json(page: Mapping[str, Any]) -> tuple[ScalingEvent, ...]:
    """Return the autoscaling events of one page of ``messages.list``."""
    return tuple(
        ScalingEvent(
            kind=(_name(entry.all.get("eventType")) or "type_unknown").lower(),
            at=time_from_wire(entry.all.get("time")) or _EPOCH,
            current_workers=whole_from_wire(entry.all.get("currentNumWorkers")),
            target_workers=whole_from_wire(entry.all.get("targetNumWorkers")),
            description=cut(_description(entry.all.get("description"))),
        )
        for entry in Fields(page, "dataflow", "messages").objects("autoscalingEvents")
    )


def worker_from_json(value: Mapping[str, Any]) -> Worker:
    """Return a worker VM from a Compute Engine instance.

    An instance without accelerators has no such field. One whose machine type is missing, or whose accelerators lack
    their type or number, is not legible: nothing follows from what it does not show.
    """
    instance = Fields(value, "compute", "instance")
    machine_type = last_segment(instance.text("machineType"))
    attached = _accelerators(value.get("guestAccelerators"))
    return Worker(
        name=instance.text("name"),
        status=_name(value.get("status")).lower(),
        machine_type=machine_type,
        zone=last_segment(instance.text("zone")),
        accelerators=attached or (),
        is_legible=bool(machine_type) and attached is not None,
    )


def _accelerators(said: object) -> tuple[tuple[str, int], ...] | None:
    """Return the accelerators of an instance by type, ``None`` where it is not told what they are."""
    if not isinstance(said, list | None):
        return None
    counts: dict[str, int] = {}
    for each in said or ():
        type_ = last_segment(_name(each.get("acceleratorType"))) if isinstance(each, dict) else ""
        number = whole_from_wire(each.get("acceleratorCount")) if type_ else None
        if number is None:
            return None
        counts[type_] = counts.get(type_, 0) + number
    return tuple(sorted(counts.items()))


def instances_from_json(page: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
    """Yield the instances of one page of ``instances.aggregatedList``."""
    items = Fields(page, "compute", "instances").object("items")
    for scope in items.all:
        yield from (instance.all for instance in items.object(scope).objects("instances"))


def unreachable_from_json(page: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the zones that one page of ``instances.aggregatedList`` could not ask."""
    return tuple(last_segment(scope) for scope in Fields(page, "compute", "instances").texts("unreachables"))


def last_segment(url: str) -> str:
    """Return the name at the end of a resource's path or URL."""
    return url.rpartition("/")[2]


def _description(value: object) -> str:
    """Return the text of a StructuredMessage, which older answers gave as a plain text."""
    return clean(str(value.get("messageText", "")) if isinstance(value, dict) else str(value or ""))


def whole_from_wire(value: object) -> int | None:
    """Return a whole number that stands as a number or as a text."""
    number = number_from_wire(value)
    return None if number is None else int(number)


def number_from_wire(value: object) -> float | None:
    """Return a number that stands as a number or, as 64-bit integers do in Google's JSON, as a text."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None
