"""Waiting until the GPUs of a job are really used."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from airflow_accel_provider.core.waiting.checks import check_percent, check_seconds, check_switch
from airflow_accel_provider.core.waiting.subjects import check_job
from airflow_accel_provider.operators._settings import catalog
from airflow_accel_provider.sensors._base import IDENTITY_FIELDS, AcceleratorSensor

if TYPE_CHECKING:
    from airflow_accel_provider.core.problems import Problem
    from airflow_accel_provider.core.waiting.utilization import UtilizationQuestion


class AcceleratorUtilizationSensor(AcceleratorSensor):
    """Wait until the GPUs of a Dataflow job are used enough, and return the figures.

    No figure yet is not zero: the sensor goes on waiting. A job that ends without enough use, or that does not exist,
    fails the task.

    :param region: region of the job
    :param job_id: the job's id
    :param job_name: its exact name instead; of several jobs the active one is meant, else the newest
    :param threshold: percent of mean utilisation that is enough
    :param window: over which time before the newest figure there can be, in seconds or as a timedelta
    :param delay: how late figures may come, in seconds or as a timedelta
    :param wait_for_job: wait also for the job itself to be there
    """

    template_fields: Sequence[str] = ("region", "job_id", "job_name", *IDENTITY_FIELDS)

    def __init__(
        self,
        *,
        region: str,
        job_id: str | None = None,
        job_name: str | None = None,
        threshold: float = 10,
        window: float | timedelta = 300,
        delay: float | timedelta = 300,
        wait_for_job: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.region = region
        self.job_id = job_id
        self.job_name = job_name
        self.threshold = threshold
        self.window = window
        self.delay = delay
        self.wait_for_job = wait_for_job
        self.check()

    def problems(self) -> Sequence[Problem]:
        """Return what is wrong with the job and the threshold."""
        return (
            *check_job({"job_id": self.job_id, "job_name": self.job_name}, self.region, catalog()),
            *check_percent("threshold", self.threshold),
            *check_seconds("window", self.window, zero=False),
            *check_seconds("delay", self.delay, zero=True),
            *check_switch("wait_for_job", self.wait_for_job),
        )

    def question(self, started_at: datetime) -> UtilizationQuestion:
        """Return whether the GPUs are used."""
        from airflow_accel_provider.core.waiting.utilization import UtilizationQuestion

        return UtilizationQuestion(
            region=self.region,
            job_id=self.job_id,
            job_name=self.job_name,
            threshold=self.threshold,
            window=_seconds(self.window),
            delay=_seconds(self.delay),
            awaited_since=started_at.isoformat() if self.wait_for_job else None,
        )


def _seconds(value: float | timedelta) -> float:
    return value.total_seconds() if isinstance(value, timedelta) else value
