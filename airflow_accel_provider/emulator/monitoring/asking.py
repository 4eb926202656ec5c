"""What a call asks of time series: which, of when, aligned and put together how."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from airflow_accel_provider.emulator.monitoring.filters import invalid
from airflow_accel_provider.emulator.monitoring.series import Interval
from airflow_accel_provider.emulator.wire import GoogleError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow_accel_provider.emulator.wire import Call

LARGEST_PAGE = 100_000
_TIME = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d)")
_DURATION = re.compile(r"(\d{1,12}(?:\.\d{1,9})?)s")


@dataclass(frozen=True, slots=True, kw_only=True)
class Aggregation:
    """How series are brought to common times (``aligner`` and ``period``) and then into fewer (``reducer``)."""

    aligner: str
    period: timedelta
    reducer: str
    group_by: tuple[str, ...]


def read_interval(call: Call, visible_at: datetime) -> Interval:
    """Return the time a call asks for. Raises GoogleError 400 for none, or one that ends before it begins."""
    end = _moment(call, "interval.endTime")
    if end is None:
        raise invalid("interval.endTime", "", "The end time is required.")
    # Without a beginning it is the one moment of its end.
    start = _moment(call, "interval.startTime") or end - timedelta(microseconds=1)
    if start > end:
        said = call.first("interval.startTime") or ""
        raise invalid("interval.startTime", said, "The start time must not be later than the end time.")
    return Interval(start=start, end=end, visible_at=visible_at)


def read_aggregation(call: Call, *, aligners: Mapping[str, object], reducers: Mapping[str, object]) -> Aggregation:
    """Return how a call wants series aligned and reduced; ``ALIGN_NONE`` and ``REDUCE_NONE`` where it doesn't.

    Raises GoogleError 400 for what the service refuses, and 501 for what it has and the emulator has not.
    """
    if any(name.startswith("secondaryAggregation") for name in call.query):
        raise GoogleError(501, "The emulator does not have secondary aggregations.")
    aligner = call.first("aggregation.perSeriesAligner") or "ALIGN_NONE"
    reducer = call.first("aggregation.crossSeriesReducer") or "REDUCE_NONE"
    for name, word, known in (("perSeriesAligner", aligner, aligners), ("crossSeriesReducer", reducer, reducers)):
        if word not in known and not word.endswith("_NONE"):
            raise GoogleError(501, f"The emulator does not have {word} ({name}); it has {', '.join(known)}.")
    if aligner == "ALIGN_NONE" and reducer != "REDUCE_NONE":
        raise invalid("aggregation.perSeriesAligner", aligner, f"{reducer} needs series that are aligned.")
    group_by = tuple(
        re.sub(r"^(metric|resource)\.label\.", r"\1.labels.", field)
        for field in call.query.get("aggregation.groupByFields", ())
    )
    period = timedelta() if aligner == "ALIGN_NONE" else _period(call)
    return Aggregation(aligner=aligner, period=period, reducer=reducer, group_by=group_by)


def read_page_size(call: Call) -> int:
    """Return how many results a page may have. Raises GoogleError 400 for what is no such number."""
    text = call.first("pageSize") or "0"
    if not text.isdecimal():
        raise invalid("pageSize", text, "It must be a positive number.")
    return min(int(text) or LARGEST_PAGE, LARGEST_PAGE)


def _moment(call: Call, name: str) -> datetime | None:
    text = call.first(name)
    if not text:
        return None
    form = _TIME.fullmatch(text)
    try:
        if form:
            zone = "+00:00" if form[3] == "Z" else form[3]
            return datetime.fromisoformat(f"{form[1]}.{(form[2] or '0')[:6]:0<6}{zone}").astimezone(UTC)
    except ValueError:
        pass
    raise GoogleError(400, f"Invalid value at '{name}' (type.googleapis.com/google.protobuf.Timestamp), \"{text}\"")


def _period(call: Call) -> timedelta:
    name = "aggregation.alignmentPeriod"
    text = call.first(name) or ""
    form = _DURATION.fullmatch(text)
    if text and not form:
        raise GoogleError(400, f"Invalid value at '{name}' (type.googleapis.com/google.protobuf.Duration), \"{text}\"")
    seconds = float(form[1]) if form else 0.0
    if not 60 <= seconds <= 104 * 7 * 86_400:
        raise invalid(name, text, "The alignment period must be at least 60 seconds and at most 104 weeks.")
    return timedelta(seconds=seconds)
