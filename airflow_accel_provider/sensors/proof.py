"""Waiting for the accelerator of a job that anybody started."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from airflow_accel_provider.core.waiting.checks import check_switch
from airflow_accel_provider.core.waiting.subjects import check_accelerator, check_batch_accelerator, check_job
from airflow_accel_provider.operators._settings import catalog
from airflow_accel_provider.sensors._base import IDENTITY_FIELDS, AcceleratorSensor

if TYPE_CHECKING:
    from airflow_accel_provider.core.problems import Problem
    from airflow_accel_provider.core.waiting.proof import ProofQuestion


class AcceleratorProofSensor(AcceleratorSensor):
    """Wait until a Dataflow job's accelerator is seen on a worker, or in use by a Spark batch, and return the proof.

    A job that ends before that, or that does not exist, fails the task at once.

    :param region: region of the job
    :param job_id: the job's id
    :param job_name: its exact name instead; of several jobs the active one is meant, else the newest
    :param batch_id: the whole id of a Spark batch instead
    :param accelerator: what to see, such as ``nvidia-l4``, ``nvidia-l4:2`` or ``tpu-v6e-slice:2x2``, of a batch ``l4``;
    any GPU or TPU when left out
    :param wait_for_job: wait also for the job itself to be there
    """

    template_fields: Sequence[str] = ("region", "job_id", "job_name", "batch_id", "accelerator", *IDENTITY_FIELDS)

    def __init__(
        self,
        *,
        region: str,
        job_id: str | None = None,
        job_name: str | None = None,
        batch_id: str | None = None,
        accelerator: str | None = None,
        wait_for_job: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.region = region
        self.job_id = job_id
        self.job_name = job_name
        self.batch_id = batch_id
        self.accelerator = accelerator
        self.wait_for_job = wait_for_job
        self.check()

    def problems(self) -> Sequence[Problem]:
        """Return what is wrong with the job and the accelerator."""
        known = catalog()
        names = {"job_id": self.job_id, "job_name": self.job_name, "batch_id": self.batch_id}
        check = check_batch_accelerator if self.batch_id else check_accelerator
        return (
            *check_job(names, self.region, known),
            *check(self.accelerator, known),
            *check_switch("wait_for_job", self.wait_for_job),
        )

    def question(self, started_at: datetime) -> ProofQuestion:
        """Return whether the accelerator is there."""
        from airflow_accel_provider.core.waiting.proof import ProofQuestion

        return ProofQuestion(
            region=self.region,
            job_id=self.job_id,
            job_name=self.job_name,
            batch_id=self.batch_id,
            accelerator=self.accelerator,
            awaited_since=started_at.isoformat() if self.wait_for_job else None,
        )
