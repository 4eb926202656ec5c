"""How busy the GPUs of jobs are. The emulator has none, so it is the world that says it.

A job's workers measure from the moment their driver is installed until they are gone.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from airflow_accel_provider.emulator.dataflow.texts import WORKERS_READY
from airflow_accel_provider.emulator.monitoring.descriptors import GPU_MEMORY_UTILIZATION, GPU_UTILIZATION
from airflow_accel_provider.emulator.monitoring.series import Identity, Interval, Sample

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from airflow_accel_provider.emulator.monitoring.descriptors import MetricType
    from airflow_accel_provider.emulator.monitoring.history import History, Stay
    from airflow_accel_provider.emulator.state import Google

GPU_PREFIX = "nvidia-"

# No GPU is equally busy all the time; any five samples in a row have the world's own number as their mean.
_SWING = (1.0, 0.9, 1.1, 0.95, 1.05)
_MEMORY_SHARE = 0.6


def gpu_series(google: Google, history: History) -> Iterator[Identity]:
    """Yield both series of every job whose workers ever ran on a GPU."""
    jobs: dict[str, list[Stay]] = {}
    for stay in history.stays:
        if stay.accelerator.startswith(GPU_PREFIX) and "gpu_missing" not in history.world_at(stay.begun).flaws:
            jobs.setdefault(stay.job_id, []).append(stay)
    for job_id, stays in jobs.items():
        resource = {"project_id": google.project, "job_name": stays[0].job_name, "region": stays[0].location}
        for metric, share in ((GPU_UTILIZATION, 1.0), (GPU_MEMORY_UTILIZATION, _MEMORY_SHARE)):
            samples = _Samples(google=google, history=history, metric=metric, share=share, stays=stays)
            yield Identity(metric=metric, labels={"job_id": job_id}, resource=resource, samples=samples)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Samples:
    google: Google
    history: History
    metric: MetricType
    share: float
    stays: Sequence[Stay]

    def __call__(self, interval: Interval) -> Iterator[Sample]:
        google, stays = self.google, self.stays
        ready = _ready(google, stays[0].job_id)
        if ready is None:
            return
        period, delay = (timedelta(seconds=google.scaled(s)) for s in (self.metric.sample_period, self.metric.delay))
        gone = max(stay.ended or interval.visible_at for stay in stays)
        last = min(gone, interval.visible_at - delay, interval.end)
        # Whole periods since the workers were ready: the first sample covers the first of them.
        number = max(1, (interval.start - ready) // period)
        while (at := ready + number * period) <= last:
            if at in interval:
                yield Sample(at=at, value=self._busy(at, number))
            number += 1

    def _busy(self, at: datetime, number: int) -> float:
        utilization = self.history.world_at(at).gpu_utilization
        return min(100, round(utilization * self.share * _SWING[number % len(_SWING)]))


def _ready(google: Google, job_id: str) -> datetime | None:
    """Return when a job's workers were ready for work, or None where they never were."""
    said = google.dataflow.journal.messages(job_id)
    return next((datetime.fromisoformat(one["time"]) for one in said if one["messageText"] == WORKERS_READY), None)
