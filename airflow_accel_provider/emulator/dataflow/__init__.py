"""Dataflow: takes jobs, gives them machines if the world has any, and runs them for real.

Events in the ledger, each with ``job_id``, ``name`` and ``location``: ``dataflow.job.created`` (``principal``,
``labels``), ``dataflow.job.returned`` (an active job answered in place of a new one), ``dataflow.job.state``
(``state``), ``dataflow.job.requested`` (``state``, ``principal``), ``dataflow.workers.refused`` and
``dataflow.launcher.refused`` (``zone``, ``reason``, ``text``), ``compute.instance.created`` and
``compute.instance.deleted`` (``instance``, ``zone``; the former also the ``accelerator``, ``count`` and ``reservation``
it was given).
"""

from __future__ import annotations

import logging
import random
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

from airflow_accel_provider.emulator.compute.instances import Instances
from airflow_accel_provider.emulator.dataflow import texts
from airflow_accel_provider.emulator.dataflow.admission import admit
from airflow_accel_provider.emulator.dataflow.chronicle import Chronicle
from airflow_accel_provider.emulator.dataflow.commands import launcher_command, worker_command
from airflow_accel_provider.emulator.dataflow.executions import Executions, Surroundings
from airflow_accel_provider.emulator.dataflow.jobs import Job, Jobs, Phase
from airflow_accel_provider.emulator.dataflow.journal import Journal
from airflow_accel_provider.emulator.dataflow.launching import Launching
from airflow_accel_provider.emulator.dataflow.lifecycle import Lifecycle
from airflow_accel_provider.emulator.dataflow.templates import Templates
from airflow_accel_provider.emulator.dataflow.workers import Workers
from airflow_accel_provider.emulator.ledger import rfc3339
from airflow_accel_provider.emulator.passing import Passing
from airflow_accel_provider.emulator.wire import GoogleError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from airflow_accel_provider.emulator.dataflow.launches import Launch
    from airflow_accel_provider.emulator.state import Google

log = logging.getLogger(__name__)

DRAINABLE = frozenset({"JOB_STATE_RUNNING", "JOB_STATE_DRAINING"})

WORKER_ACCOUNT = "pipeline"
"""Whose key a worker gets when its job names no known service account."""


class Dataflow:
    """The service: its stores, and the thread that lets time pass for jobs between ``start`` and ``stop``."""

    def __init__(self, google: Google) -> None:
        self.google = google
        self.jobs = Jobs(google.database)
        self.journal = Journal(google.database)
        self.instances = Instances(google.database)
        self.templates = Templates(google.database)
        self.chronicle = Chronicle(google, self.journal)
        self.workers = Workers(self)
        self.executions = self._executions("jobs", worker_command)
        self.launchers = self._executions("launches", launcher_command)
        self._lifecycle = Lifecycle(self)
        self._launching = Launching(self, self._lifecycle)
        self._phases = {**self._lifecycle.phases, **self._launching.phases}
        self._passing = Passing("dataflow", self.jobs, step=self._step, broken=self._lifecycle.broken, now=google.now)
        self._changed = self._passing.changed

    def start(self) -> None:
        """Let time pass. Jobs that were executing when an earlier emulator ended are executed anew."""
        self._passing.start()

    def stop(self) -> None:
        """Let time stand still and end what executes; jobs stay as they are."""
        self._passing.stop(self._end_executions)

    def create(
        self, request: Mapping[str, Any], *, project: str, location: str, principal: str, is_new: bool = False
    ) -> Job:
        """Take a new job, or return the active one of the same name unless the job must be new.

        Raises GoogleError: 400 for what is wrong with the request, 409 for a ``clientRequestId`` that was used before,
        and for a name in use where the job must be new.
        """
        admit(request, location=location)
        name, request_id = request["name"], request.get("clientRequestId")
        with self._changed:
            namesakes = self.jobs.list(project, location=location, name=name)
            if request_id and any(job.client_request_id == request_id for job in namesakes):
                message = f"The workflow could not be created: a job named {name} with client request id {request_id}"
                raise GoogleError(409, f"{message} was submitted before.")
            if is_new:
                _check_name(name, namesakes)
            for namesake in namesakes:
                if not namesake.is_over:
                    self.chronicle.event("dataflow.job.returned", namesake, principal=principal)
                    return namesake
            job = self._new_job(request, project, location, principal)
            return self._add(self._lifecycle.created(job))

    def launch(
        self,
        request: Mapping[str, Any],
        prepare: Callable[[str], Launch],
        *,
        project: str,
        location: str,
        principal: str,
    ) -> Job:
        """Take a job that a template's program is to build; ``prepare`` returns how, given the job's id.

        Raises GoogleError 409 where a job of the name is active.
        """
        with self._changed:
            namesakes = self.jobs.list(project, location=location, name=request["name"])
            _check_name(request["name"], namesakes)
            job = self._new_job(request, project, location, principal)
            launch = asdict(prepare(job.id))
            return self._add(self._launching.queued(replace(job, state="JOB_STATE_QUEUED", launch=launch)))

    def request_state(self, job: Job, state: str | None, *, principal: str) -> Job:
        """Do what ``requestedState`` asks for: cancel, or drain a streaming job that runs.

        Raises GoogleError 400 for any other state and for a job that is over.
        """
        with self._changed:
            current = self.jobs.get(job.id) or job
            _check_request(current, state or "no state")
            if current.requested_state in {state, "JOB_STATE_CANCELLED"}:
                return current
            asked = self._lifecycle.noticing(current, str(state))
            self.jobs.save(asked)
            self.chronicle.event("dataflow.job.requested", asked, state=state, principal=principal)
            self._changed.notify_all()
        return asked

    def relabel(self, job: Job, labels: Mapping[str, str]) -> Job:
        """Give a job other labels."""
        with self._changed:
            current = self.jobs.get(job.id) or job
            changed = replace(current, request={**current.request, "labels": dict(labels)})
            self.jobs.save(changed)
        return changed

    def worker_email(self, job: Job) -> str:
        """Return the service account that a job's workers run as."""
        wanted = str(job.request["environment"].get("serviceAccountEmail", ""))
        known = self.google.identities.accounts
        return wanted if wanted in known else self.google.identities.email(WORKER_ACCOUNT)

    def stop_processes(self, job: Job) -> None:
        """Ask what runs for a job to end."""
        self.executions.stop(job.id)
        self.launchers.stop(job.id)

    def has_processes(self, job: Job) -> bool:
        """Tell whether anything still runs for a job."""
        return self.executions.is_running(job.id) or self.launchers.is_running(job.id)

    def _executions(self, folder: str, command: Callable[[Job, Path], Sequence[str]]) -> Executions[Job]:
        directory = self.google.directory / folder
        return Executions(directory, command=command, surroundings=self._surroundings, on_exit=self._wake_job)

    def _add(self, job: Job) -> Job:
        self.jobs.add(job)
        labels = dict(job.request.get("labels", {}))
        self.chronicle.event("dataflow.job.created", job, principal=job.principal, labels=labels)
        self._changed.notify_all()
        return job

    def _surroundings(self, job: Job) -> Surroundings:
        account = self.google.identities.accounts[self.worker_email(job)]
        return Surroundings(key_file=account.key_file, url=self.google.url, project=job.project)

    def _new_job(self, request: Mapping[str, Any], project: str, location: str, principal: str) -> Job:
        now = self.google.now()
        # As the real ones: Pacific time and a number.
        stamp = now.astimezone(ZoneInfo("America/Los_Angeles")).strftime("%Y-%m-%d_%H_%M_%S")
        return Job(
            id=f"{stamp}-{random.randrange(10**18, 10**19)}",  # noqa: S311 - an id, not a secret
            project=project,
            location=location,
            name=request["name"],
            principal=principal,
            request=request,
            created=rfc3339(now),
            state="JOB_STATE_PENDING",
            state_time=rfc3339(now),
        )

    def _wake_job(self, job_id: str) -> None:
        self._passing.wake(lambda: self.jobs.get(job_id))

    def _end_executions(self) -> None:
        self.executions.close()
        self.launchers.close()

    def _step(self, job: Job) -> Job:
        return self._phases[job.phase](job)


def _check_name(name: str, namesakes: Iterable[Job]) -> None:
    if any(not job.is_over for job in namesakes):
        raise GoogleError(409, texts.name_in_use(name))


def _check_request(job: Job, state: str) -> None:
    wrong = "Workflow modification failed. Causes: "
    kind = "streaming" if job.is_streaming else "batch"
    possible = {"JOB_STATE_CANCELLED", "JOB_STATE_DRAINED"} if job.is_streaming else {"JOB_STATE_CANCELLED"}
    if state not in possible:
        raise GoogleError(400, f"{wrong}A {kind} job cannot be brought to {state}.")
    if job.is_over or job.phase == Phase.ENDING:
        raise GoogleError(400, f"{wrong}Job {job.id} is already in terminal state {job.ending or job.state}.")
    if state == "JOB_STATE_DRAINED" and (job.state not in DRAINABLE or job.phase == Phase.STOPPING):
        raise GoogleError(400, f"{wrong}Job {job.id} is in state {job.state}; only a running job can be drained.")
