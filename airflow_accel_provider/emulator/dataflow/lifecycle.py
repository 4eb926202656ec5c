"""How a job lives: one function a phase, each taking the job to its next one and saying what the service says then.

Nominal durations are in ``SECONDS``; the emulator's time scale divides them. Timestamps are real.
"""

from __future__ import annotations

import random
import string
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from airflow_accel_provider.emulator.compute.instances import Instance
from airflow_accel_provider.emulator.dataflow import texts
from airflow_accel_provider.emulator.dataflow.admission import find_rejection
from airflow_accel_provider.emulator.dataflow.capacity import Grant, Refusal, allocate, choose_zone
from airflow_accel_provider.emulator.dataflow.jobs import NEVER, Job, Phase
from airflow_accel_provider.emulator.ledger import rfc3339

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from airflow_accel_provider.emulator.dataflow import Dataflow

SECONDS: Mapping[str, float] = {
    "pending": 10,
    "worker_pool_setup": 10,
    "retry_of_startup": 60,
    "vm_provisioning": 30,
    "harness_boot": 60,
    "harness_boot_with_driver": 240,
    "retry_of_work_item": 10,
    "notice_of_cancel": 5,
    "worker_pool_teardown": 20,
    "lag_of_final_state": 5,
}
"""From published job logs; a driver takes minutes to install. 2026-11-29."""

STARTUP_TRIES = 4
WORK_ITEM_TRIES = 4

POOL_NAME = "Worker pool"


class Lifecycle:
    """The phases. Call ``step`` with a job that is due; it returns the job as it is then, already stored."""

    def __init__(self, dataflow: Dataflow) -> None:
        self._dataflow = dataflow
        self._google = dataflow.google
        self._phases: Mapping[Phase, Callable[[Job], Job]] = {
            Phase.CREATED: self._begin,
            Phase.ALLOCATING: self._allocate,
            Phase.PROVISIONING: self._provision,
            Phase.BOOTING: self._boot,
            Phase.EXECUTING: self._execute,
            Phase.FAILING: self._retry_work,
            Phase.NOTICED: self._cancel,
            Phase.STOPPING: self._finish_stopping,
            Phase.ENDING: self._end,
        }

    def step(self, job: Job) -> Job:
        """Take a job out of its phase into the next."""
        after = self._phases[job.phase](job)
        self._dataflow.jobs.save(after)
        return after

    def created(self, job: Job) -> Job:
        """Return a new job in its first phase."""
        return self._next(job, Phase.CREATED, "pending")

    def noticing_cancel(self, job: Job) -> Job:
        """Return a job whose cancel was requested; the service takes a moment to act on it."""
        return replace(self._next(job, Phase.NOTICED, "notice_of_cancel"), requested_state="JOB_STATE_CANCELLED")

    def broken(self, job: Job, error: Exception) -> Job:
        """Return a job that the emulator itself failed on."""
        self._dataflow.executions.stop(job.id)
        self._say(job, "ERROR", f"Workflow failed. Causes: Internal error of the emulator: {error!r}")
        over = self._in_state(job, "JOB_STATE_FAILED")
        self._dataflow.instances.remove(self._vms(job))
        return replace(over, phase=Phase.OVER, due=NEVER)

    def _begin(self, job: Job) -> Job:
        rejection = find_rejection(job.demand)
        if rejection:
            return self._fail(job, rejection)
        demand = job.demand
        zone = choose_zone(demand, self._existing(job), self._google.world)
        pool = job.request["environment"].get("workerPools", [{}])[0]
        most = pool.get("autoscalingSettings", {}).get("maxNumWorkers") or 1000
        self._say(
            job,
            "DETAILED",
            f"Autoscaling is enabled for job {job.id}. The number of workers will be between 1 and {most}.",
        )
        self._say(job, "BASIC", f"Worker configuration: {demand.machine_type} in {zone}.")
        self._say(job, "DETAILED", "Fusing adjacent ParDo, Read, Write, and Flatten operations")
        self._say(job, "DEBUG", "Starting worker pool setup.")
        self._say(job, "BASIC", f"Starting {demand.workers} workers in {zone}...")
        self._scale(job, "TARGET_NUM_WORKERS_CHANGED", current=0, target=demand.workers, text="Starting workers.")
        running = replace(self._in_state(job, "JOB_STATE_RUNNING"), zone=zone, started=self._now())
        return self._next(running, Phase.ALLOCATING, "worker_pool_setup")

    def _allocate(self, job: Job) -> Job:
        wanted = self._wanted(job)
        answer = allocate(wanted, self._existing(job), self._google.world)
        if isinstance(answer, Refusal):
            return self._refused(job, answer, wanted[0].name)
        return self._granted(job, answer)

    def _refused(self, job: Job, refusal: Refusal, instance: str) -> Job:
        zone = job.zone or ""
        text = texts.pool_failure(zone=zone, workers=job.demand.workers, instance=instance, reason=refusal.reason)
        wanted = job.demand.workers
        self._scale(job, "ACTUATION_FAILURE", current=0, target=wanted, text=text)
        self._say(job, "ERROR", text)
        self._event("dataflow.workers.refused", job, zone=zone, reason=refusal.kind, text=refusal.reason)
        tries = job.tries + 1
        if tries < STARTUP_TRIES and refusal.retriable:
            return replace(self._next(job, Phase.ALLOCATING, "retry_of_startup"), tries=tries)
        return self._fail(job, text)

    def _granted(self, job: Job, grant: Grant) -> Job:
        self._dataflow.instances.put(grant.instances)
        for vm in grant.instances:
            carried = {"accelerator": vm.accelerator or "", "count": vm.count}
            self._event("compute.instance.created", job, instance=vm.name, zone=vm.zone, **carried)
        if grant.short:
            wanted = job.demand.workers
            self._scale(job, "ACTUATION_FAILURE", current=len(grant.instances), target=wanted, text=grant.short)
        return replace(self._next(job, Phase.PROVISIONING, "vm_provisioning"), has_workers=True, tries=0)

    def _provision(self, job: Job) -> Job:
        vms = self._vms(job)
        self._dataflow.instances.put(replace(vm, status="RUNNING") for vm in vms)
        raised = (
            f"Autoscaling: Raised the number of workers to {len(vms)} based on the rate of progress in the currently "
            "running stage(s)."
        )
        self._say(job, "DETAILED", raised)
        self._scale(job, "CURRENT_NUM_WORKERS_CHANGED", current=len(vms), target=len(vms), text=raised)
        self._say(job, "DETAILED", "Workers have started successfully.")
        boot = "harness_boot_with_driver" if job.demand.accelerator else "harness_boot"
        return self._next(job, Phase.BOOTING, boot)

    def _boot(self, job: Job) -> Job:
        text = "All workers have finished the startup processes and began to receive work requests."
        self._say(job, "DETAILED", text)
        return replace(job, phase=Phase.EXECUTING, due=self._clock())

    def _execute(self, job: Job) -> Job:
        outcome = self._dataflow.executions.outcome(job.id)
        if outcome is None:
            # Its exit makes the job due again; a job that found no free slot is due when one is.
            self._dataflow.executions.start(job)
            return replace(job, due=NEVER)
        done = replace(job, outcome=outcome)
        if not outcome.get("error"):
            self._say(done, "DETAILED", "Cleaning up.")
            return self._stop(done, "JOB_STATE_DONE")
        if outcome["is_work_item"]:
            return self._retry_work(done)
        self._say(done, "ERROR", outcome["error"])
        return self._fail(done, outcome["cause"])

    def _retry_work(self, job: Job) -> Job:
        outcome = job.outcome or {}
        self._say(job, "ERROR", outcome["error"])
        if job.tries + 1 < WORK_ITEM_TRIES:
            return replace(self._next(job, Phase.FAILING, "retry_of_work_item"), tries=job.tries + 1)
        worker = next((vm.name for vm in self._vms(job)), "")
        return self._fail(job, texts.work_item_failed(step=outcome["step"], worker=worker, cause=outcome["cause"]))

    def _cancel(self, job: Job) -> Job:
        self._say(job, "BASIC", f"Cancel request is committed for workflow job: {job.id}.")
        return self._stop(self._in_state(job, "JOB_STATE_CANCELLING"), "JOB_STATE_CANCELLED")

    def _fail(self, job: Job, cause: str) -> Job:
        self._say(job, "ERROR", f"Workflow failed. Causes: {cause}")
        return self._stop(job, "JOB_STATE_FAILED")

    def _stop(self, job: Job, ending: str) -> Job:
        self._dataflow.executions.stop(job.id)
        vms = self._vms(job)
        if not vms:
            return replace(self._next(job, Phase.ENDING, "lag_of_final_state"), ending=ending)
        self._dataflow.instances.put(replace(vm, status="STOPPING") for vm in vms)
        self._say(job, "DEBUG", "Starting worker pool teardown.")
        self._say(job, "BASIC", "Stopping worker pool...")
        return replace(self._next(job, Phase.STOPPING, "worker_pool_teardown"), ending=ending)

    def _finish_stopping(self, job: Job) -> Job:
        vms = self._vms(job)
        self._dataflow.instances.remove(vms)
        for vm in vms:
            self._event("compute.instance.deleted", job, instance=vm.name, zone=vm.zone)
        resized = f"Autoscaling: Resized worker pool from {len(vms)} to 0."
        self._say(job, "DETAILED", resized)
        self._scale(job, "CURRENT_NUM_WORKERS_CHANGED", current=0, target=0, text=resized)
        self._say(job, "BASIC", "Worker pool stopped.")
        return self._next(job, Phase.ENDING, "lag_of_final_state")

    def _end(self, job: Job) -> Job:
        if self._dataflow.executions.is_running(job.id):
            # Nothing of the job may still be writing when its state says that it is over.
            return replace(job, due=NEVER)
        over = self._in_state(job, job.ending or "JOB_STATE_FAILED")
        return replace(over, phase=Phase.OVER, due=NEVER)

    def _wanted(self, job: Job) -> tuple[Instance, ...]:
        demand = job.demand
        stamp = self._google.now().strftime("%m%d%H%M")
        group = _letters()
        return tuple(
            Instance(
                name=f"{job.name[:26].rstrip('-')}-{stamp}-{group}-harness-{_letters()}",
                project=job.project,
                zone=job.zone or "",
                machine_type=demand.machine_type,
                status="PROVISIONING",
                created=self._now(),
                accelerator=demand.accelerator.type if demand.accelerator else None,
                count=demand.accelerator.count if demand.accelerator else 0,
                disk_gb=demand.disk_gb,
                public_ip=demand.public_ip,
                description=f"Created for Dataflow job: {job.id}",
                service_account=self._dataflow.worker_email(job),
                labels={"goog-dataflow-job-id": job.id},
            )
            for _ in range(demand.workers)
        )

    def _existing(self, job: Job) -> tuple[Instance, ...]:
        return self._dataflow.instances.list(job.project)

    def _vms(self, job: Job) -> tuple[Instance, ...]:
        return tuple(vm for vm in self._existing(job) if vm.labels.get("goog-dataflow-job-id") == job.id)

    def _in_state(self, job: Job, state: str) -> Job:
        self._event("dataflow.job.state", job, state=state)
        return replace(job, state=state, state_time=self._now())

    def _next(self, job: Job, phase: Phase, duration: str) -> Job:
        return replace(job, phase=phase, due=self._clock() + self._google.scaled(SECONDS[duration]))

    def _clock(self) -> float:
        return self._google.now().timestamp()

    def _now(self) -> str:
        return rfc3339(self._google.now())

    def _say(self, job: Job, importance: str, text: str) -> None:
        self._dataflow.journal.say(job.id, importance, text, time=self._now())

    def _scale(self, job: Job, event: str, *, current: int, target: int, text: str) -> None:
        self._dataflow.journal.scale(
            job.id, event, current=current, target=target, pool=POOL_NAME, text=text, time=self._now()
        )

    def _event(self, kind: str, job: Job, **fields: Any) -> None:
        self._google.ledger.event(kind, job_id=job.id, name=job.name, location=job.location, **fields)


def _letters() -> str:
    return "".join(random.choices(string.ascii_lowercase + string.digits, k=4))  # noqa: S311 - a name, not a secret
