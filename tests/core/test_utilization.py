"""What Cloud Monitoring's JSON says of a job's GPUs."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from airflow_accel_provider.hooks.monitoring import Utilization, utilization_from_series


def point(minute: int, **value: Any) -> dict[str, Any]:
    """Return a point of a gauge."""
    at = f"2026-11-30T10:{minute:02}:00Z"
    return {"interval": {"startTime": at, "endTime": at}, "value": value}


def series(*points: dict[str, Any], job_id: str = "j1") -> dict[str, Any]:
    """Return one time series of a job."""
    return {
        "metric": {"type": "dataflow.googleapis.com/job/gpu_utilization", "labels": {"job_id": job_id}},
        "resource": {"type": "dataflow_job", "labels": {"region": "us-central1"}},
        "points": list(points),
    }


def at(minute: int) -> datetime:
    """Return a moment of the same hour."""
    return datetime(2026, 11, 30, 10, minute, tzinfo=UTC)


def test_points_become_a_mean_a_peak_and_a_time() -> None:
    """All points count, whatever their order, whether the service wrote whole numbers or not."""
    found = utilization_from_series([series(point(7, int64Value="90"), point(6, doubleValue=30.0))])

    assert found == Utilization(mean=60.0, highest=90.0, points=2, newest_at=at(7), series=1)


def test_a_series_cut_by_a_page_counts_once() -> None:
    """Pieces of one series are one series; another job's is another."""
    pieces = [series(point(7, int64Value="4")), series(point(6, int64Value="2")), series(point(8), job_id="j2")]

    assert utilization_from_series(pieces) == Utilization(mean=3.0, highest=4.0, points=2, newest_at=at(7), series=1)
    whole = utilization_from_series([*pieces, series(point(9, int64Value="0"), job_id="j2")])
    assert whole is not None
    assert (whole.series, whole.newest_at) == (2, at(9))


def test_an_idle_gpu_is_zero() -> None:
    """A measured zero is a measurement."""
    assert utilization_from_series([series(point(7, int64Value="0"))]) == Utilization(
        mean=0.0, highest=0.0, points=1, newest_at=at(7), series=1
    )


@pytest.mark.parametrize(
    "answer",
    [
        [],
        [series()],
        [{"metric": {}, "resource": {}}],
        [series({"interval": {"endTime": "soon"}, "value": {"int64Value": "5"}})],
        [series({"value": {"int64Value": "5"}})],
        [series(point(7, stringValue="busy"))],
    ],
)
def test_no_point_is_no_zero(answer: list[dict[str, Any]]) -> None:
    """Without a readable point nothing is known."""
    assert utilization_from_series(answer) is None
