"""What a job's phases leave behind: messages and events in its journal, events in the ledger, its next due time.

Nominal durations are in ``SECONDS``; the emulator's time scale divides them. Timestamps are real.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from airflow_accel_provider.emulator.ledger import rfc3339

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from airflow_accel_provider.emulator.compute.instances import Instance
    from airflow_accel_provider.emulator.dataflow.jobs import Job, Phase
    from airflow_accel_provider.emulator.dataflow.journal import Journal
    from airflow_accel_provider.emulator.state import Google

SECONDS: Mapping[str, float] = {
    "queued": 10,
    "launcher_boot": 60,
    "pending": 10,
    "worker_pool_setup": 10,
    "retry_of_startup": 60,
    "vm_provisioning": 30,
    "harness_boot": 60,
    "harness_boot_with_driver": 240,
    "retry_of_image_pull": 300,
    "no_worker_activity": 2700,
    "retry_of_work_item": 10,
    "notice_of_request": 5,
    "drain": 60,
    "worker_pool_teardown": 20,
    "lag_of_final_state": 5,
}
"""From published job logs; a driver takes minutes to install. 2026-11-29."""

POOL_NAME = "Worker pool"


class Chronicle:
    """Writes down what happens to jobs; what changes of a job itself is returned, not stored."""

    def __init__(self, google: Google, journal: Journal) -> None:
        self._google = google
        self._journal = journal

    def say(self, job: Job, importance: str, text: str) -> None:
        """Write a job message; ``importance`` is the last word of its name (``ERROR``)."""
        self._journal.say(job.id, importance, text, time=self.now())

    def scale(self, job: Job, event: str, *, current: int, target: int, text: str) -> None:
        """Write an autoscaling event."""
        self._journal.scale(job.id, event, current=current, target=target, pool=POOL_NAME, text=text, time=self.now())

    def event(self, kind: str, job: Job, **fields: Any) -> None:
        """Write an event into the ledger."""
        self._google.ledger.event(kind, job_id=job.id, name=job.name, location=job.location, **fields)

    def came_up(self, job: Job, vms: Iterable[Instance]) -> None:
        """Write down which VMs a job was given, and what is in them."""
        for vm in vms:
            carried = {"accelerator": vm.accelerator or "", "count": vm.count, "reservation": vm.reservation or ""}
            self.event("compute.instance.created", job, instance=vm.name, zone=vm.zone, **carried)

    def went(self, job: Job, vms: Iterable[Instance]) -> None:
        """Write down which VMs of a job are gone."""
        for vm in vms:
            self.event("compute.instance.deleted", job, instance=vm.name, zone=vm.zone)

    def in_state(self, job: Job, state: str) -> Job:
        """Return a job that is now in a state."""
        self.event("dataflow.job.state", job, state=state)
        return replace(job, state=state, state_time=self.now())

    def next(self, job: Job, phase: Phase, duration: str) -> Job:
        """Return a job that will be in a phase for a nominal duration."""
        return replace(job, phase=phase, due=self.clock() + self._google.scaled(SECONDS[duration]))

    def clock(self) -> float:
        """Return the time in seconds of the epoch."""
        return self._google.now().timestamp()

    def now(self) -> str:
        """Return the time as Google writes it."""
        return rfc3339(self._google.now())
