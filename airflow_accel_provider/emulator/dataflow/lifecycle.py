"""How a job lives: one function a phase, each taking the job to its next one and saying what the service says then."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from airflow_accel_provider.emulator.dataflow import texts
from airflow_accel_provider.emulator.dataflow.capacity import Grant, Refusal, allocate, choose_zone
from airflow_accel_provider.emulator.dataflow.demand import images
from airflow_accel_provider.emulator.dataflow.jobs import Job, Phase
from airflow_accel_provider.emulator.dataflow.rejection import find_rejection
from airflow_accel_provider.emulator.passing import NEVER

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from airflow_accel_provider.emulator.dataflow import Dataflow

STARTUP_TRIES = 4
IMAGE_TRIES = 4
WORK_ITEM_TRIES = 4

OWN_IMAGES = "gcr.io/cloud-dataflow/"
"""What the names of Google's own worker images begin with: they can always be pulled."""


class Lifecycle:
    """The phases from a job's creation to its end, without those of a template's launch."""

    def __init__(self, dataflow: Dataflow) -> None:
        self._dataflow = dataflow
        self._google = dataflow.google
        self._chronicle = dataflow.chronicle
        self._workers = dataflow.workers
        self.phases: Mapping[Phase, Callable[[Job], Job]] = {
            Phase.CREATED: self._begin,
            Phase.ALLOCATING: self._allocate,
            Phase.PROVISIONING: self._provision,
            Phase.BOOTING: self._boot,
            Phase.PULLING: self._pull,
            Phase.EXECUTING: self._execute,
            Phase.FAILING: self._retry_work,
            Phase.NOTICED: self._act_on_request,
            Phase.DRAINING: self._finish_draining,
            Phase.STOPPING: self._finish_stopping,
            Phase.ENDING: self._end,
        }

    def created(self, job: Job) -> Job:
        """Return a new job in its first phase."""
        return self._chronicle.next(job, Phase.CREATED, "pending")

    def noticing(self, job: Job, requested: str) -> Job:
        """Return a job that was requested to end; the service takes a moment to act on it."""
        return replace(self._chronicle.next(job, Phase.NOTICED, "notice_of_request"), requested_state=requested)

    def fail(self, job: Job, cause: str) -> Job:
        """Return a job that fails, with its last word said."""
        return self.give_up(job, f"Workflow failed. Causes: {cause}")

    def give_up(self, job: Job, last_word: str) -> Job:
        """Return a job that fails and says exactly this."""
        self._chronicle.say(job, "ERROR", last_word)
        return self._stop(job, "JOB_STATE_FAILED")

    def broken(self, job: Job, error: Exception) -> Job:
        """Return a job that the emulator itself failed on."""
        self._dataflow.stop_processes(job)
        self._chronicle.say(job, "ERROR", f"Workflow failed. Causes: Internal error of the emulator: {error!r}")
        over = self._chronicle.in_state(job, "JOB_STATE_FAILED")
        self._dataflow.instances.remove((*self._workers.of(job), *self._workers.launcher_of(job)))
        return replace(over, phase=Phase.OVER, due=NEVER)

    def _begin(self, job: Job) -> Job:
        rejection = find_rejection(job.demand)
        if rejection:
            return self.fail(job, rejection)
        demand, chronicle = job.demand, self._chronicle
        vm = self._workers.wanted(job, zone="")[0]
        zone = choose_zone(demand, vm, self._workers.supply())
        pool = job.request["environment"].get("workerPools", [{}])[0]
        most = pool.get("autoscalingSettings", {}).get("maxNumWorkers") or 1000
        chronicle.say(
            job,
            "DETAILED",
            f"Autoscaling is enabled for job {job.id}. The number of workers will be between 1 and {most}.",
        )
        chronicle.say(job, "BASIC", f"Worker configuration: {demand.machine_type} in {zone}.")
        chronicle.say(job, "DETAILED", "Fusing adjacent ParDo, Read, Write, and Flatten operations")
        chronicle.say(job, "DEBUG", "Starting worker pool setup.")
        chronicle.say(job, "BASIC", f"Starting {demand.workers} workers in {zone}...")
        chronicle.scale(job, "TARGET_NUM_WORKERS_CHANGED", current=0, target=demand.workers, text="Starting workers.")
        running = replace(chronicle.in_state(job, "JOB_STATE_RUNNING"), zone=zone, started=chronicle.now())
        return chronicle.next(running, Phase.ALLOCATING, "worker_pool_setup")

    def _allocate(self, job: Job) -> Job:
        wanted = self._workers.wanted(job, zone=job.zone or "")
        answer = allocate(wanted, job.demand, self._workers.supply())
        if isinstance(answer, Refusal):
            return self._refused(job, answer, wanted[0].name)
        return self._granted(job, answer)

    def _refused(self, job: Job, refusal: Refusal, instance: str) -> Job:
        zone, workers = job.zone or "", job.demand.workers
        text = texts.pool_failure(zone=zone, workers=workers, instance=instance, reason=refusal.reason)
        text = refusal.reason if refusal.is_whole else text
        self._chronicle.scale(job, "ACTUATION_FAILURE", current=0, target=workers, text=text)
        self._chronicle.say(job, "ERROR", text)
        self._chronicle.event("dataflow.workers.refused", job, zone=zone, reason=refusal.kind, text=refusal.reason)
        tries = job.tries + 1
        if tries < STARTUP_TRIES and refusal.retriable:
            return replace(self._chronicle.next(job, Phase.ALLOCATING, "retry_of_startup"), tries=tries)
        return self.fail(job, text)

    def _granted(self, job: Job, grant: Grant) -> Job:
        self._dataflow.instances.put(grant.instances)
        self._chronicle.came_up(job, grant.instances)
        if grant.short:
            up, wanted = len(grant.instances), job.demand.workers
            self._chronicle.scale(job, "ACTUATION_FAILURE", current=up, target=wanted, text=grant.short)
        return replace(self._chronicle.next(job, Phase.PROVISIONING, "vm_provisioning"), has_workers=True, tries=0)

    def _provision(self, job: Job) -> Job:
        vms = self._workers.of(job)
        self._dataflow.instances.put(replace(vm, status="RUNNING") for vm in vms)
        raised = (
            f"Autoscaling: Raised the number of workers to {len(vms)} based on the rate of progress in the currently "
            "running stage(s)."
        )
        self._chronicle.say(job, "DETAILED", raised)
        self._chronicle.scale(job, "CURRENT_NUM_WORKERS_CHANGED", current=len(vms), target=len(vms), text=raised)
        self._chronicle.say(job, "DETAILED", "Workers have started successfully.")
        boot = "harness_boot_with_driver" if job.demand.accelerator else "harness_boot"
        return self._chronicle.next(job, Phase.BOOTING, boot)

    def _boot(self, job: Job) -> Job:
        if self._missing_image(job):
            return replace(job, phase=Phase.PULLING, due=self._chronicle.clock())
        self._chronicle.say(job, "DETAILED", texts.WORKERS_READY)
        return replace(job, phase=Phase.EXECUTING, due=self._chronicle.clock())

    def _missing_image(self, job: Job) -> str | None:
        own = (image for image in images(job.request["environment"]) if image and not image.startswith(OWN_IMAGES))
        return next((image for image in own if not self._google.world.has_image(image)), None)

    def _pull(self, job: Job) -> Job:
        """Try to pull an image once more; a streaming job tries for ever, a batch job is given up as stuck."""
        image = self._missing_image(job)
        if image is None:
            return replace(job, phase=Phase.BOOTING, due=self._chronicle.clock(), tries=0)
        if job.tries >= IMAGE_TRIES and not job.is_streaming:
            return self.fail(job, texts.STUCK)
        self._chronicle.say(job, "ERROR", texts.image_unavailable(image))
        tries = job.tries + 1
        wait = "no_worker_activity" if tries == IMAGE_TRIES and not job.is_streaming else "retry_of_image_pull"
        return replace(self._chronicle.next(job, Phase.PULLING, wait), tries=tries)

    def _execute(self, job: Job) -> Job:
        if job.is_streaming:
            # It runs until it is told to end; nothing is executed, for the runner here knows bounded inputs alone.
            return replace(job, due=NEVER)
        outcome = self._dataflow.executions.outcome(job.id)
        if outcome is None:
            # Its exit makes the job due again; a job that found no free slot is due when one is.
            self._dataflow.executions.start(job)
            return replace(job, due=NEVER)
        done = replace(job, outcome=outcome)
        if not outcome.get("error"):
            self._chronicle.say(done, "DETAILED", "Cleaning up.")
            return self._stop(done, "JOB_STATE_DONE")
        if outcome["is_work_item"]:
            return self._retry_work(done)
        self._chronicle.say(done, "ERROR", outcome["error"])
        return self.fail(done, outcome["cause"])

    def _retry_work(self, job: Job) -> Job:
        outcome = job.outcome or {}
        self._chronicle.say(job, "ERROR", outcome["error"])
        if job.tries + 1 < WORK_ITEM_TRIES:
            return replace(self._chronicle.next(job, Phase.FAILING, "retry_of_work_item"), tries=job.tries + 1)
        worker = next((vm.name for vm in self._workers.of(job)), "")
        return self.fail(job, texts.work_item_failed(step=outcome["step"], worker=worker, cause=outcome["cause"]))

    def _act_on_request(self, job: Job) -> Job:
        if job.requested_state == "JOB_STATE_DRAINED":
            self._chronicle.say(job, "BASIC", f"Drain request is committed for workflow job: {job.id}.")
            return self._chronicle.next(self._chronicle.in_state(job, "JOB_STATE_DRAINING"), Phase.DRAINING, "drain")
        self._chronicle.say(job, "BASIC", f"Cancel request is committed for workflow job: {job.id}.")
        # From the queue the way is straight: nothing of the job runs yet.
        is_queued = job.state == "JOB_STATE_QUEUED"
        leaving = job if is_queued else self._chronicle.in_state(job, "JOB_STATE_CANCELLING")
        return self._stop(leaving, "JOB_STATE_CANCELLED")

    def _finish_draining(self, job: Job) -> Job:
        return self._stop(job, "JOB_STATE_DRAINED")

    def _stop(self, job: Job, ending: str) -> Job:
        self._dataflow.stop_processes(job)
        self.remove_launcher(job)
        vms = self._workers.of(job)
        if not vms:
            return replace(self._chronicle.next(job, Phase.ENDING, "lag_of_final_state"), ending=ending)
        self._dataflow.instances.put(replace(vm, status="STOPPING") for vm in vms)
        self._chronicle.say(job, "DEBUG", "Starting worker pool teardown.")
        self._chronicle.say(job, "BASIC", "Stopping worker pool...")
        return replace(self._chronicle.next(job, Phase.STOPPING, "worker_pool_teardown"), ending=ending)

    def remove_launcher(self, job: Job) -> None:
        """Let a job's launcher VM go, if it has one."""
        launcher = self._workers.launcher_of(job)
        self._dataflow.instances.remove(launcher)
        self._chronicle.went(job, launcher)

    def _finish_stopping(self, job: Job) -> Job:
        vms = self._workers.of(job)
        self._dataflow.instances.remove(vms)
        self._chronicle.went(job, vms)
        resized = f"Autoscaling: Resized worker pool from {len(vms)} to 0."
        self._chronicle.say(job, "DETAILED", resized)
        self._chronicle.scale(job, "CURRENT_NUM_WORKERS_CHANGED", current=0, target=0, text=resized)
        self._chronicle.say(job, "BASIC", "Worker pool stopped.")
        return self._chronicle.next(job, Phase.ENDING, "lag_of_final_state")

    def _end(self, job: Job) -> Job:
        if self._dataflow.has_processes(job):
            # Nothing of the job may still be writing when its state says that it is over.
            return replace(job, due=NEVER)
        over = self._chronicle.in_state(job, job.ending or "JOB_STATE_FAILED")
        return replace(over, phase=Phase.OVER, due=NEVER)
