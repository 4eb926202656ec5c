"""Cloud Monitoring v3: time series and the descriptors of their metrics."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from airflow_accel_provider.emulator.ledger import rfc3339
from airflow_accel_provider.emulator.monitoring.alignment import ALIGNERS, REDUCERS, aggregate
from airflow_accel_provider.emulator.monitoring.asking import read_aggregation, read_interval, read_page_size
from airflow_accel_provider.emulator.monitoring.descriptors import METRIC_TYPES, RESOURCE_LABELS, MetricType
from airflow_accel_provider.emulator.monitoring.filters import Filter, invalid, parse_filter
from airflow_accel_provider.emulator.monitoring.gpus import gpu_series
from airflow_accel_provider.emulator.monitoring.history import History
from airflow_accel_provider.emulator.monitoring.quotas import quota_series
from airflow_accel_provider.emulator.monitoring.series import Interval, Series
from airflow_accel_provider.emulator.wire import Call, GoogleError, Method

if TYPE_CHECKING:
    from collections.abc import Iterator

_NO_COMBINATION = (
    "The supplied filter does not specify a valid combination of metric and monitored resource descriptors. "
    "The query will not return any time series."
)


def list_time_series(call: Call) -> dict[str, Any]:
    """Answer ``timeSeries.list``: the series of one metric type that a filter passes, each with its newest point first.

    A page goes on at the moment its first one was read at, so that what came since moves nothing.
    """
    _check_project(call, "monitoring.timeSeries.list")
    wanted = parse_filter(call.first("filter") or "")
    metric = _metric_of(wanted, call.first("filter") or "")
    asked = read_aggregation(call, aligners=ALIGNERS, reducers=REDUCERS)
    if call.first("orderBy"):
        raise invalid("orderBy", call.first("orderBy") or "", "It must be left blank.")
    seen_at, start = _token(call)
    interval = read_interval(call, seen_at)
    series = aggregate(_series(call, metric, wanted, interval), asked, interval)
    is_headers = call.first("view") == "HEADERS"
    shown, rest = (
        _headers(series, start, read_page_size(call)) if is_headers else _points(series, start, read_page_size(call))
    )
    body: dict[str, Any] = {"timeSeries": shown, "unit": metric.unit} if shown else {}
    return {**body, "nextPageToken": f"{rfc3339(seen_at)}/{rest}"} if rest else body


def list_metric_descriptors(call: Call) -> dict[str, Any]:
    """Answer ``metricDescriptors.list``: the metric types there are that a filter passes."""
    _check_project(call, "monitoring.metricDescriptors.list")
    wanted = parse_filter(call.first("filter") or "")
    found = [
        metric.to_json(call.google.project)
        for metric in METRIC_TYPES.values()
        if wanted.passes({"metric.type": metric.type, "resource.type": metric.resource_type})
    ]
    return {"metricDescriptors": found} if found else {}


def _check_project(call: Call, permission: str) -> None:
    if call.path["project"] not in {call.google.project, str(call.google.project_number)}:
        raise GoogleError(403, f"Permission {permission} denied (or the resource may not exist).")


def _metric_of(wanted: Filter, text: str) -> MetricType:
    if len(wanted.metric_types) != 1:
        raise invalid("filter", text, 'must specify a restriction on "metric.type" in the filter, to one type.')
    (name,) = wanted.metric_types
    metric = METRIC_TYPES.get(name)
    named = [selector.rpartition(".") for selector in sorted(wanted.selectors) if ".labels." in selector]
    unknown = [key for kind, _, key in named if kind == "metric.labels" and metric and key not in metric.labels]
    if metric is None or unknown:
        labels = "".join(f' label = "{key}"' for key in unknown)
        raise GoogleError(
            404,
            f'Cannot find metric(s) that match type = "{name}"{labels}. If a metric was created recently, it could '
            "take up to 10 minutes to become available. Please try again soon.",
        )
    has = RESOURCE_LABELS[metric.resource_type]
    if any(kind == "resource.labels" and key not in has for kind, _, key in named):
        raise GoogleError(400, _NO_COMBINATION)
    return metric


def _series(call: Call, metric: MetricType, wanted: Filter, interval: Interval) -> Iterator[Series]:
    google = call.google
    history = History(google)
    sources = {"dataflow_job": gpu_series, "consumer_quota": quota_series}
    for identity in sources[metric.resource_type](google, history):
        if identity.metric is metric and wanted.passes(identity.fields()):
            labels = {name: value for name, value in identity.fields().items() if ".labels." in name}
            newest_first = sorted(identity.samples(interval), key=lambda sample: sample.at, reverse=True)
            yield Series(metric=metric, labels=labels, samples=tuple(newest_first))


def _headers(series: list[Series], start: int, size: int) -> tuple[list[dict[str, Any]], int]:
    page = [one.to_json(()) for one in series[start : start + size]]
    return page, start + size if start + size < len(series) else 0


def _points(series: list[Series], start: int, size: int) -> tuple[list[dict[str, Any]], int]:
    page: list[dict[str, Any]] = []
    number, end = 0, start + size
    for one in series:
        cut = one.samples[max(start - number, 0) : max(end - number, 0)]
        number += len(one.samples)
        if cut:
            page.append(one.to_json(cut))
    return page, end if end < number else 0


def _token(call: Call) -> tuple[datetime, int]:
    text = call.first("pageToken")
    if not text:
        return call.google.now(), 0
    moment, _, start = text.partition("/")
    try:
        return datetime.fromisoformat(moment), int(start)
    except ValueError:
        raise invalid("pageToken", text, "It is none that was given.") from None


_PROJECT = "/v3/projects/{project}"

METHODS = (
    Method(
        id="monitoring.projects.timeSeries.list",
        verb="GET",
        path=f"{_PROJECT}/timeSeries",
        handler=list_time_series,
    ),
    Method(
        id="monitoring.projects.metricDescriptors.list",
        verb="GET",
        path=f"{_PROJECT}/metricDescriptors",
        handler=list_metric_descriptors,
    ),
)
