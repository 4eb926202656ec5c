"""Google's JSON and the core's values, both ways; the only place that knows Google's field names.

Missing fields are tolerated everywhere: views and service versions differ in what they carry. Sources: the discovery
documents dataflow v1b3 and compute v1, read 2026-11.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from airflow_accel_provider.core.jobs import Importance, Job, JobState, JobType, Message, ScalingEvent, Worker

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

JOB_ID_LABEL = "goog-dataflow-job-id"
"""The label by which a worker VM says whose it is."""

LONGEST_MESSAGE = 10_000
"""Characters kept of one job message; a traceback fits, a dumped data set doesn't."""

_STATE_PREFIX = "JOB_STATE_"
_TYPE_PREFIX = "JOB_TYPE_"
_MESSAGE_PREFIX = "JOB_MESSAGE_"
_TIME = re.compile(r"(\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d)(?:\.(\d+))?([Zz]|[+-]\d\d:\d\d)")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def state_from_wire(name: str | None) -> JobState:
    """Return the state that Google's name means; one that isn't known reads as unknown."""
    try:
        return JobState((name or "").removeprefix(_STATE_PREFIX).lower())
    except ValueError:
        return JobState.UNKNOWN


def state_to_wire(state: JobState) -> str:
    """Return Google's name of a state."""
    return _STATE_PREFIX + state.upper()


def type_from_wire(name: str | None) -> JobType:
    """Return the job type that Google's name means; one that isn't known reads as unknown."""
    try:
        return JobType((name or "").removeprefix(_TYPE_PREFIX).lower())
    except ValueError:
        return JobType.UNKNOWN


def importance_from_wire(name: str | None) -> Importance:
    """Return the importance that Google's name means; one that isn't known reads as the least."""
    try:
        return Importance((name or "").removeprefix(_MESSAGE_PREFIX).lower())
    except ValueError:
        return Importance.DEBUG


def importance_to_wire(importance: Importance) -> str:
    """Return Google's name of an importance."""
    return _MESSAGE_PREFIX + importance.upper()


def time_from_wire(text: str | None) -> datetime | None:
    """Return the moment an RFC 3339 text names, with any number of fraction digits, or ``None`` for no such text."""
    form = _TIME.fullmatch((text or "").strip())
    if not form:
        return None
    fraction = (form[2] or "")[:6].ljust(6, "0")
    zone = "+00:00" if form[3] in "Zz" else form[3]
    try:
        return datetime.fromisoformat(f"{form[1].upper()}.{fraction}{zone}").astimezone(UTC)
    except ValueError:
        return None


def time_to_wire(at: datetime) -> str:
    """Return a moment as RFC 3339 in UTC."""
    return at.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def job_from_json(value: Mapping[str, Any], *, full: bool = False) -> Job:
    """Return a job; of a ``full`` view missing labels mean none, of any other that they weren't shown."""
    labels = value.get("labels", {} if full else None)
    return Job(
        id=str(value.get("id", "")),
        name=str(value.get("name", "")),
        region=str(value.get("location", "")),
        state=state_from_wire(value.get("currentState")),
        labels=None if labels is None else tuple(sorted((str(key), str(text)) for key, text in labels.items())),
        zones=tuple(last_segment(zone) for zone in (value.get("serviceResources") or {}).get("zones", ())),
        created_at=time_from_wire(value.get("createTime")),
        state_at=time_from_wire(value.get("currentStateTime")),
        type=type_from_wire(value.get("type")),
    )


def messages_from_json(page: Mapping[str, Any]) -> tuple[Message, ...]:
    """Return the messages of one page of ``messages.list``, long texts cut."""
    return tuple(
        Message(
            text=_cut(str(entry.get("messageText", ""))),
            importance=importance_from_wire(entry.get("messageImportance")),
            at=time_from_wire(entry.get("time")) or _EPOCH,
            id=str(entry.get("id", "")),
        )
        for entry in page.get("jobMessages") or ()
    )


def scaling_from_json(page: Mapping[str, Any]) -> tuple[ScalingEvent, ...]:
    """Return the autoscaling events of one page of ``messages.list``."""
    return tuple(
        ScalingEvent(
            kind=str(entry.get("eventType", "type_unknown")).lower(),
            at=time_from_wire(entry.get("time")) or _EPOCH,
            current_workers=whole_from_wire(entry.get("currentNumWorkers")),
            target_workers=whole_from_wire(entry.get("targetNumWorkers")),
            description=_cut(_description(entry.get("description"))),
        )
        for entry in page.get("autoscalingEvents") or ()
    )


def worker_from_json(value: Mapping[str, Any]) -> Worker:
    """Return a worker VM from a Compute Engine instance."""
    counts: dict[str, int] = {}
    for attached in value.get("guestAccelerators") or ():
        type_ = last_segment(attached.get("acceleratorType", ""))
        counts[type_] = counts.get(type_, 0) + (whole_from_wire(attached.get("acceleratorCount")) or 0)
    return Worker(
        name=str(value.get("name", "")),
        status=str(value.get("status", "")).lower(),
        machine_type=last_segment(value.get("machineType", "")),
        zone=last_segment(value.get("zone", "")),
        accelerators=tuple(sorted(counts.items())),
    )


def instances_from_json(page: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
    """Yield the instances of one page of ``instances.aggregatedList``."""
    for scoped in (page.get("items") or {}).values():
        yield from scoped.get("instances") or ()


def unreachable_from_json(page: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the zones that one page of ``instances.aggregatedList`` could not ask."""
    return tuple(last_segment(scope) for scope in page.get("unreachables") or ())


def last_segment(url: str) -> str:
    """Return the name at the end of a resource's path or URL."""
    return str(url).rpartition("/")[2]


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST_MESSAGE else f"{text[: LONGEST_MESSAGE - 1]}…"


def _description(value: object) -> str:
    """Return the text of a StructuredMessage, which older answers gave as a plain text."""
    return str(value.get("messageText", "")) if isinstance(value, dict) else str(value or "")


def whole_from_wire(value: object) -> int | None:
    """Return a whole number that stands as a number or as a text."""
    number = number_from_wire(value)
    return None if number is None else int(number)


def number_from_wire(value: object) -> float | None:
    """Return a number that stands as a number or, as 64-bit integers do in Google's JSON, as a text."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        return float(value)
    except ValueError:
        return None
