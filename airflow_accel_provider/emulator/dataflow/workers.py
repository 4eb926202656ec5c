"""The VMs of jobs: which ones are wanted, which ones there are, and what they could take."""

from __future__ import annotations

import random
import string
from typing import TYPE_CHECKING

from airflow_accel_provider.emulator.compute.instances import Instance
from airflow_accel_provider.emulator.dataflow.capacity import Supply
from airflow_accel_provider.emulator.ledger import rfc3339

if TYPE_CHECKING:
    from airflow_accel_provider.emulator.dataflow import Dataflow
    from airflow_accel_provider.emulator.dataflow.jobs import Job

JOB_LABEL = "goog-dataflow-job-id"
DEFAULT_LAUNCHER = "n1-standard-1"
"""https://cloud.google.com/dataflow/docs/guides/templates/configuring-flex-templates, read 2026-11-29."""


class Workers:
    """Asks the stores; changes nothing."""

    def __init__(self, dataflow: Dataflow) -> None:
        self._dataflow = dataflow
        self._google = dataflow.google

    def wanted(self, job: Job, *, zone: str) -> tuple[Instance, ...]:
        """Return the VMs that a job's pool would have in a zone, all alike."""
        demand = job.demand
        stamp = self._google.now().strftime("%m%d%H%M")
        group = _letters()
        return tuple(
            Instance(
                name=f"{job.name[:26].rstrip('-')}-{stamp}-{group}-harness-{_letters()}",
                project=job.project,
                zone=zone,
                machine_type=demand.machine_type,
                status="PROVISIONING",
                created=self._now(),
                accelerator=demand.accelerator.type if demand.accelerator else None,
                count=demand.accelerator.count if demand.accelerator else 0,
                disk_gb=demand.disk_gb,
                public_ip=demand.public_ip,
                description=f"Created for Dataflow job: {job.id}",
                service_account=self._dataflow.worker_email(job),
                labels={JOB_LABEL: job.id},
            )
            for _ in range(demand.workers)
        )

    def launcher(self, job: Job, *, machine_type: str, zone: str) -> Instance:
        """Return the VM that would launch a job's template. It bears no job's label: it is no worker."""
        return Instance(
            name=launcher_name(job),
            project=job.project,
            zone=zone,
            machine_type=machine_type,
            status="RUNNING",
            created=self._now(),
            service_account=self._dataflow.worker_email(job),
        )

    def supply(self) -> Supply:
        """Return what VMs can be taken from."""
        return Supply(
            world=self._google.world,
            reservations=self._google.reservations,
            existing=self._google.machines(),
        )

    def of(self, job: Job) -> tuple[Instance, ...]:
        """Return the worker VMs of a job that there are."""
        return tuple(vm for vm in self._dataflow.instances.list(job.project) if vm.labels.get(JOB_LABEL) == job.id)

    def launcher_of(self, job: Job) -> tuple[Instance, ...]:
        """Return a job's launcher VM, if there is one."""
        name = launcher_name(job)
        return tuple(vm for vm in self._dataflow.instances.list(job.project) if vm.name == name)

    def _now(self) -> str:
        return rfc3339(self._google.now())


def launcher_name(job: Job) -> str:
    """Return the name of the VM that launches a job's template: the digits of the job's id."""
    return "launcher-" + "".join(filter(str.isdigit, job.id))


def _letters() -> str:
    return "".join(random.choices(string.ascii_lowercase + string.digits, k=4))  # noqa: S311 - a name, not a secret
