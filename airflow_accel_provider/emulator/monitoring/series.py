"""Time series: whose they are, and what was measured when."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airflow_accel_provider.emulator.ledger import rfc3339

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from datetime import datetime

    from airflow_accel_provider.emulator.monitoring.descriptors import MetricType


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One measurement."""

    at: datetime
    value: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """A time that is asked for, without its beginning and with its end; ``visible_at`` is when it is looked at."""

    start: datetime
    end: datetime
    visible_at: datetime

    def __contains__(self, moment: object) -> bool:
        return self.start < moment <= self.end  # type: ignore[operator]


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """What tells one series from every other; ``samples`` measures it, oldest first, where somebody wants to know."""

    metric: MetricType
    labels: Mapping[str, str]
    resource: Mapping[str, str]
    samples: Callable[[Interval], Iterable[Sample]]

    def fields(self) -> dict[str, str]:
        """Return everything a filter may ask about, by its selector."""
        return {
            "metric.type": self.metric.type,
            "resource.type": self.metric.resource_type,
            "project": self.resource["project_id"],
            **{f"metric.labels.{key}": value for key, value in self.labels.items()},
            **{f"resource.labels.{key}": value for key, value in self.resource.items()},
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """A measured series: its labels by selector (``metric.labels.job_id``) and its samples, the newest first."""

    metric: MetricType
    labels: Mapping[str, str]
    samples: tuple[Sample, ...]
    value_type: str = "INT64"

    def to_json(self, samples: Iterable[Sample]) -> dict[str, Any]:
        """Return the series as the API shows it, with some of its samples."""
        body: dict[str, Any] = {
            "metric": {"type": self.metric.type, **_labels(self.labels, "metric.labels.")},
            "resource": {"type": self.metric.resource_type, **_labels(self.labels, "resource.labels.")},
            "metricKind": "GAUGE",
            "valueType": self.value_type,
        }
        points = [self._point(sample) for sample in samples]
        return {**body, "points": points} if points else body

    def _point(self, sample: Sample) -> dict[str, Any]:
        at = rfc3339(sample.at)
        is_whole = self.value_type == "INT64"
        value: dict[str, Any] = (
            {"int64Value": str(round(sample.value))} if is_whole else {"doubleValue": float(sample.value)}
        )
        return {"interval": {"startTime": at, "endTime": at}, "value": value}


def _labels(labels: Mapping[str, str], prefix: str) -> dict[str, Any]:
    found = {key.removeprefix(prefix): value for key, value in labels.items() if key.startswith(prefix)}
    return {"labels": found} if found else {}
