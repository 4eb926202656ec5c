"""Brings series to common times, and several of them into one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from statistics import fmean
from typing import TYPE_CHECKING

from airflow_accel_provider.emulator.monitoring.series import Interval, Sample, Series

if TYPE_CHECKING:
    from datetime import datetime

    from airflow_accel_provider.emulator.monitoring.asking import Aggregation

Together = Callable[[Sequence[float]], float]

ALIGNERS: Mapping[str, Together] = {
    # Values come with the newest first.
    "ALIGN_NEXT_OLDER": lambda values: values[0],
    "ALIGN_MIN": min,
    "ALIGN_MAX": max,
    "ALIGN_MEAN": fmean,
    "ALIGN_COUNT": len,
    "ALIGN_SUM": sum,
}
REDUCERS: Mapping[str, Together] = {
    "REDUCE_MEAN": fmean,
    "REDUCE_MIN": min,
    "REDUCE_MAX": max,
    "REDUCE_SUM": sum,
    "REDUCE_COUNT": len,
}
_VALUE_TYPES: Mapping[str, str] = {"MEAN": "DOUBLE", "COUNT": "INT64"}


def aggregate(series: Iterable[Series], asked: Aggregation, interval: Interval) -> list[Series]:
    """Return the series as they are wished; those that have no sample are left out."""
    found = [one for one in series if one.samples]
    if asked.aligner in ALIGNERS:
        found = [_aligned(one, asked, interval) for one in found]
    if asked.reducer in REDUCERS:
        return _reduced(found, asked)
    return found


def _aligned(series: Series, asked: Aggregation, interval: Interval) -> Series:
    """Return a series with one sample for each period that has any, at the period's end; the last ends the interval."""
    periods: dict[datetime, list[float]] = {}
    for sample in series.samples:
        at = interval.end - asked.period * ((interval.end - sample.at) // asked.period)
        periods.setdefault(at, []).append(sample.value)
    samples = tuple(Sample(at=at, value=ALIGNERS[asked.aligner](values)) for at, values in periods.items())
    return replace(series, samples=samples, value_type=_value_type(asked.aligner, series.value_type))


def _reduced(series: Iterable[Series], asked: Aggregation) -> list[Series]:
    groups: dict[tuple[tuple[str, str], ...], list[Series]] = {}
    for one in series:
        kept = tuple((field, one.labels[field]) for field in asked.group_by if field in one.labels)
        groups.setdefault(kept, []).append(one)
    return [_one(dict(kept), members, asked.reducer) for kept, members in groups.items()]


def _one(labels: Mapping[str, str], members: Sequence[Series], reducer: str) -> Series:
    times: dict[datetime, list[float]] = {}
    for member in members:
        for sample in member.samples:
            times.setdefault(sample.at, []).append(sample.value)
    samples = tuple(Sample(at=at, value=REDUCERS[reducer](times[at])) for at in sorted(times, reverse=True))
    first = members[0]
    return replace(first, labels=labels, samples=samples, value_type=_value_type(reducer, first.value_type))


def _value_type(operation: str, before: str) -> str:
    return _VALUE_TYPES.get(operation.rpartition("_")[2], before)
