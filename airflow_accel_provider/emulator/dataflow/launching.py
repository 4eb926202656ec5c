"""How a template's launch goes: a VM for the launcher, the program that builds the job, then the job itself."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from airflow_accel_provider.emulator.compute.tables import find_machine
from airflow_accel_provider.emulator.dataflow import texts
from airflow_accel_provider.emulator.dataflow.admission import admit
from airflow_accel_provider.emulator.dataflow.capacity import OPERATION, shortage
from airflow_accel_provider.emulator.dataflow.jobs import Job, Phase
from airflow_accel_provider.emulator.dataflow.launches import Launch
from airflow_accel_provider.emulator.dataflow.reading import read_message
from airflow_accel_provider.emulator.dataflow.specs import read_json
from airflow_accel_provider.emulator.passing import NEVER
from airflow_accel_provider.emulator.wire import GoogleError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from airflow_accel_provider.emulator.compute.instances import Instance
    from airflow_accel_provider.emulator.dataflow import Dataflow
    from airflow_accel_provider.emulator.dataflow.lifecycle import Lifecycle


class Launching:
    """The phases of a launch; they end where the lifecycle of any job begins."""

    def __init__(self, dataflow: Dataflow, lifecycle: Lifecycle) -> None:
        self._dataflow = dataflow
        self._google = dataflow.google
        self._chronicle = dataflow.chronicle
        self._lifecycle = lifecycle
        self.phases: Mapping[Phase, Callable[[Job], Job]] = {
            Phase.QUEUED: self._start_vm,
            Phase.LAUNCHING: self._launch,
        }

    def queued(self, job: Job) -> Job:
        """Return a new job whose template is to be launched."""
        return self._chronicle.next(job, Phase.QUEUED, "queued")

    def _start_vm(self, job: Job) -> Job:
        launch = _launch_of(job)
        vm = self._dataflow.workers.launcher(job, machine_type=launch.machine_type, zone=launch.zone)
        status, reason = self._refusal(job, vm)
        if reason:
            self._chronicle.event("dataflow.launcher.refused", job, zone=vm.zone, reason=status, text=reason)
            text = texts.launcher_not_started(vm=vm.name, status=status, reason=reason)
            return self._lifecycle.give_up(job, text)
        self._dataflow.instances.put((vm,))
        self._chronicle.came_up(job, (vm,))
        return self._chronicle.next(job, Phase.LAUNCHING, "launcher_boot")

    def _refusal(self, job: Job, vm: Instance) -> tuple[str, str]:
        if find_machine(vm.machine_type) is None:
            wrong = f"Invalid value for field 'resource.machineType': '{vm.machine_type}'."
            return (
                "INVALID_ARGUMENT",
                f"Error: Message: {wrong} The referenced resource does not exist. HTTP Code: 400.",
            )
        if "launcher_out_of_stock" in self._google.world.flaws:
            where = f"The zone 'projects/{job.project}/zones/{vm.zone}'"
            text = f"{where} does not have enough resources available to fulfill the request.  Try a different zone, or"
            code, text = "ZONE_RESOURCE_POOL_EXHAUSTED", f"{text} try again later."
        elif refusal := shortage(vm, self._dataflow.workers.supply()):
            code, _, text = refusal.reason.partition(": ")
        else:
            return "", ""
        return "RESOURCE_EXHAUSTED", texts.launcher_shortage(operation=OPERATION, code=code, text=text)

    def _launch(self, job: Job) -> Job:
        launch = _launch_of(job)
        if launch.file is None or not self._google.world.has_image(launch.image):
            return self._silent(job, launch)
        outcome = self._dataflow.launchers.outcome(job.id)
        if outcome is None:
            # Its exit makes the job due again.
            self._dataflow.launchers.start(job)
            return replace(job, due=NEVER)
        self._keep_log(job, launch)
        if status := outcome.get("status", 1):
            self._chronicle.say(job, "ERROR", texts.launcher_failed(status))
            return self._lifecycle.give_up(job, texts.LAUNCHER_FAILED)
        return self._take_over(job, launch)

    def _silent(self, job: Job, launch: Launch) -> Job:
        self._chronicle.say(job, "ERROR", texts.image_unavailable(launch.image))
        account = self._dataflow.worker_email(job)
        result = f"{launch.staging}/operation_result"
        text = texts.launcher_silent(result=result, account=account, image=launch.image)
        return self._lifecycle.give_up(job, text)

    def _take_over(self, job: Job, launch: Launch) -> Job:
        """Let the job be the one that the program built."""
        try:
            built = read_message(read_json(self._google.buckets, launch.job_object), "Job")
        except GoogleError as error:
            return self._lifecycle.give_up(job, texts.job_file_unreadable(launch.job_object, error.message))
        labels = {**built.get("labels", {}), **job.request.get("labels", {})}
        request = {**built, "name": job.name, "labels": labels}
        try:
            admit(request, location=job.location)
        except GoogleError as error:
            return self._lifecycle.fail(job, error.message)
        self._lifecycle.remove_launcher(job)
        pending = self._chronicle.in_state(replace(job, request=request), "JOB_STATE_PENDING")
        return self._lifecycle.created(pending)

    def _keep_log(self, job: Job, launch: Launch) -> None:
        bucket, _, name = launch.staging.removeprefix("gs://").partition("/")
        buckets = self._google.buckets
        # A bucket that is not there is what the program failed on, and said.
        with suppress(GoogleError):
            buckets.bucket(bucket)
            content = buckets.contents.save(self._dataflow.launchers.log(job.id).read_bytes())
            buckets.put(bucket, f"{name}/console_logs", content, fields={"contentType": "text/plain"})


def _launch_of(job: Job) -> Launch:
    fields = dict(job.launch or {})
    return Launch(**{**fields, "flags": tuple(fields["flags"])})
