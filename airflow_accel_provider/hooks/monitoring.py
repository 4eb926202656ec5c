"""How busy a job's GPUs are, as Cloud Monitoring has it.

Needs ``monitoring.timeSeries.list`` (in ``roles/monitoring.viewer``).
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING, Any

from airflow_accel_provider.exceptions import GoogleApiError
from airflow_accel_provider.hooks import _wire
from airflow_accel_provider.hooks._fields import Fields

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from datetime import datetime

    from airflow_accel_provider.hooks.session import GoogleSession

GPU_UTILIZATION = "dataflow.googleapis.com/job/gpu_utilization"
"""Percent of time in which a kernel ran on the GPU, of each minute; to be read up to four minutes later.

Source: https://cloud.google.com/monitoring/api/metrics_gcp_d_h (read 2026-11): gauge, INT64, unit %, BETA, resource
dataflow_job, metric label job_id.
"""

_NEVER_WRITTEN = "Cannot find metric"


@dataclass(frozen=True, slots=True, kw_only=True)
class Utilization:
    """How busy a job's GPUs were, in percent (0 to 100), over ``points`` measurements in ``series`` time series."""

    mean: float
    highest: float
    points: int
    newest_at: datetime
    series: int


def gpu_utilization(
    session: GoogleSession, *, job_id: str, region: str, since: datetime, now: datetime
) -> Utilization | None:
    """Return how busy the GPUs of a Dataflow job were after ``since`` and until ``now``.

    ``None`` means that nothing is known: no measurement is there yet, or the job has no GPU or is none. An idle GPU has
    measurements, of 0. Raises :class:`GoogleApiError` when the service can't be asked or refuses.
    """
    if since >= now:
        return None
    params = {
        "filter": _filter(job_id, region),
        "interval.startTime": _wire.time_to_wire(since),
        "interval.endTime": _wire.time_to_wire(now),
        "view": "FULL",
    }
    pages = session.pages("monitoring", f"projects/{session.project}/timeSeries", params=params)
    try:
        return utilization_from_series(
            series.all for page in pages for series in Fields(page, "monitoring", "timeSeries").objects("timeSeries")
        )
    except GoogleApiError as error:
        # So answers a project in which no GPU has ever been measured.
        if error.status == 404 and _NEVER_WRITTEN in error.message:
            return None
        raise


def utilization_from_series(series: Iterable[Mapping[str, Any]]) -> Utilization | None:
    """Return the utilisation that time series in Google's JSON tell of, or ``None`` where they have no point.

    Pages may cut one series in pieces; it counts once.
    """
    names: set[str] = set()
    points: list[tuple[datetime, float]] = []
    for one in series:
        found = list(_points(one))
        if found:
            names.add(repr((one.get("metric"), one.get("resource"))))
            points += found
    if not points:
        return None
    values = [value for _, value in points]
    return Utilization(
        mean=fmean(values),
        highest=max(values),
        points=len(points),
        newest_at=max(at for at, _ in points),
        series=len(names),
    )


def _points(series: Mapping[str, Any]) -> Iterator[tuple[datetime, float]]:
    for point in Fields(series, "monitoring", "timeSeries").objects("points"):
        at, value = _wire.time_from_wire(point.object("interval").all.get("endTime")), point.object("value").all
        number = _wire.number_from_wire(value.get("int64Value", value.get("doubleValue")))
        if at is not None and number is not None:
            yield at, number


def _filter(job_id: str, region: str) -> str:
    restrictions = {
        "metric.type": GPU_UTILIZATION,
        "resource.type": "dataflow_job",
        "resource.labels.region": region,
        "metric.labels.job_id": job_id,
    }
    return " AND ".join(f"{selector} = {_quoted(value)}" for selector, value in restrictions.items())


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
