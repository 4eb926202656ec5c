"""Apache Beam pipelines on Dataflow, with GPUs."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from airflow_accel_provider.core.failures import Failure
from airflow_accel_provider.core.identity import owns
from airflow_accel_provider.core.options import beam_flags
from airflow_accel_provider.core.problems import Problem, error
from airflow_accel_provider.core.record import Attempt, Outcome, PlannedPlace
from airflow_accel_provider.core.request import BeamRequest, Candidate, SdkProcesses
from airflow_accel_provider.core.validation import check_beam, is_templated, read_candidates, resolve
from airflow_accel_provider.exceptions import AcceleratorConfigurationError, AcceleratorLaunchError
from airflow_accel_provider.operators._connections import hidden
from airflow_accel_provider.operators._job import AcceleratorJobOperator
from airflow_accel_provider.operators._settings import allowed_regions, catalog

if TYPE_CHECKING:
    from airflow_accel_provider.core.jobs import Job
    from airflow_accel_provider.hooks.session import GoogleSession


class BeamGpuPipelineOperator(AcceleratorJobOperator):
    """Run a Beam Python pipeline on Dataflow workers with GPUs.

    In any option ``{region}``, ``{zone}`` and ``{accelerator}`` stand for the place that is tried. The parameters of
    :class:`~airflow_accel_provider.operators._job.AcceleratorJobOperator` come on top.

    :param py_file: the pipeline file, local or ``gs://``
    :param py_module: the pipeline as a module, instead of a file
    :param py_interpreter: the Python that runs the launcher; the worker's own when left out
    :param py_options: options of that interpreter
    :param pipeline_options: Beam options by name, without dashes
    :param default_pipeline_options: the same, for values that ``pipeline_options`` may replace
    :param service_options: Dataflow service options; the accelerator's own is added
    :param experiments: Beam experiments
    :param sdk_container_image: the workers' container image
    :param num_workers: workers to start with; quota for these is needed
    :param max_num_workers: the most that autoscaling may ask for
    :param disk_size_gb: boot disk of each worker; 50 when left out
    :param service_account_email: the workers' service account
    :param network: the workers' network
    :param subnetwork: the workers' subnetwork, ``regions/R/subnetworks/S`` or its full URL
    :param use_public_ips: whether workers get public addresses
    :param dataflow_kms_key: the Cloud KMS key of the job's state
    :param labels: labels of the job
    :param driver_version: branch of the NVIDIA driver, such as ``535``
    :param use_mps: let several processes share a GPU by NVIDIA MPS
    :param sdk_processes: ``one`` Python process a worker, or one ``per_vcpu``
    :param number_of_worker_harness_threads: threads of each worker
    :param beam_version: Beam version of the image, so that its minimum can be checked
    """

    template_fields: Sequence[str] = (
        "placement",
        "fallback",
        "region",
        "project_id",
        "gcp_conn_id",
        "impersonation_chain",
        "quota_project_id",
        "job_name",
        "py_file",
        "py_module",
        "py_interpreter",
        "py_options",
        "pipeline_options",
        "default_pipeline_options",
        "service_options",
        "experiments",
        "sdk_container_image",
        "service_account_email",
        "network",
        "subnetwork",
        "dataflow_kms_key",
        "labels",
    )
    template_fields_renderers: ClassVar[dict[str, str]] = {
        "fallback": "json",
        "pipeline_options": "json",
        "default_pipeline_options": "json",
        "labels": "json",
    }
    ui_color = "#e6f4ea"

    def __init__(
        self,
        *,
        placement: str,
        py_file: str | None = None,
        py_module: str | None = None,
        py_interpreter: str | None = None,
        py_options: Sequence[str] = (),
        pipeline_options: Mapping[str, Any] | None = None,
        default_pipeline_options: Mapping[str, Any] | None = None,
        service_options: Sequence[str] = (),
        experiments: Sequence[str] = (),
        sdk_container_image: str | None = None,
        num_workers: int | None = None,
        max_num_workers: int | None = None,
        disk_size_gb: int | None = None,
        service_account_email: str | None = None,
        network: str | None = None,
        subnetwork: str | None = None,
        use_public_ips: bool | None = None,
        dataflow_kms_key: str | None = None,
        labels: Mapping[str, str] | None = None,
        driver_version: str | None = None,
        use_mps: bool = False,
        sdk_processes: SdkProcesses = "one",
        number_of_worker_harness_threads: int | None = None,
        beam_version: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(placement=placement, **kwargs)
        self.py_file = py_file
        self.py_module = py_module
        self.py_interpreter = py_interpreter
        self.py_options = py_options
        self.pipeline_options = pipeline_options or {}
        self.default_pipeline_options = default_pipeline_options or {}
        self.service_options = service_options
        self.experiments = experiments
        self.sdk_container_image = sdk_container_image
        self.num_workers = num_workers
        self.max_num_workers = max_num_workers
        self.disk_size_gb = disk_size_gb
        self.service_account_email = service_account_email
        self.network = network
        self.subnetwork = subnetwork
        self.use_public_ips = use_public_ips
        self.dataflow_kms_key = dataflow_kms_key
        self.labels = labels or {}
        self.driver_version = driver_version
        self.use_mps = use_mps
        self.sdk_processes = sdk_processes
        self.number_of_worker_harness_threads = number_of_worker_harness_threads
        self.beam_version = beam_version
        self.check()

    def problems(self, project: str | None) -> Sequence[Problem]:
        """Return what is wrong with the pipeline, its options, and every place it might run in."""
        # One of another type is told of with the other types.
        region = self.region if isinstance(self.region, str) or is_templated(self.region) else None
        candidates, problems = read_candidates(self.placement, self.fallback, region=region)
        return (
            *problems,
            *check_beam(
                self._request(),
                candidates,
                catalog=catalog(),
                project=project,
                region=region,
                allowed_regions=allowed_regions(),
            ),
        )

    def missing(self, session: GoogleSession) -> Sequence[Problem]:
        """Return a problem when the pipeline's file cannot be read from here."""
        from airflow_accel_provider.hooks.submission import why_unreadable

        reason = why_unreadable(session, self.py_file) if isinstance(self.py_file, str) else None
        return (error("py-file-missing", reason, "py_file"),) if reason else ()

    def secrets(self) -> Sequence[Mapping[str, Any]]:
        """Return the options of the operator and of every candidate."""
        candidates = [each for each in self.fallback if isinstance(each, Mapping)]
        said = [each.get("pipeline_options") for each in candidates]
        return [self.default_pipeline_options, self.pipeline_options, *(each for each in said if each)]

    def plan(self, session: GoogleSession) -> tuple[PlannedPlace, ...]:
        """Return the plan over live quotas of all regions, read at once."""
        from airflow_accel_provider.core.planning import plan, regions_to_read
        from airflow_accel_provider.hooks.quota import read_quotas

        candidates = self._candidates()
        readings = read_quotas(session, regions_to_read(candidates))
        return plan(self._request(), candidates, catalog=catalog(), readings=readings)

    def find(self, session: GoogleSession, attempt: Attempt) -> Attempt | None:
        """Return the attempt with the job of its name that carries our label."""
        job = self._job_of(session, attempt)
        return _with_job(attempt, job) if job else None

    def submit(self, session: GoogleSession, attempt: Attempt, labels: Mapping[str, str]) -> Attempt | Failure:
        """Run the launcher in the attempt's place until the service shows the job."""
        from airflow_accel_provider.core.classification import classify_launch
        from airflow_accel_provider.hooks.submission import PythonPipeline, submit

        flags = beam_flags(
            self._request().for_candidate(replace(self._candidates()[attempt.candidate], placement=attempt.placement)),
            attempt.placement,
            project=session.project,
            job_name=attempt.job_name,
            labels=labels,
            endpoint=session.endpoint("dataflow"),
        )
        pipeline = PythonPipeline(
            py_interpreter=self.py_interpreter or sys.executable,
            py_file=self.py_file,
            py_module=self.py_module,
            py_options=tuple(self.py_options),
        )
        submission = submit(
            session,
            pipeline,
            flags,
            find=partial(self._job_of, session, attempt),
            say=lambda line: self.log.info("launcher: %s", hidden(line)),
            stopped=lambda: self._is_killed,
            seconds=self.policy.start_timeout.total_seconds(),
        )
        last_lines = tuple(hidden(line) for line in submission.last_lines)
        if submission.job:
            return _with_job(attempt, submission.job)
        if submission.exit_code is not None:
            return classify_launch(submission.exit_code, last_lines)
        if self._is_killed:
            return attempt
        # The attempt stays an intent: a job of its name that turns up late is found by the next try.
        raise AcceleratorLaunchError(f"The launcher of {self.task_id} made no job within start_timeout.", last_lines)

    def cancel(self, session: GoogleSession, attempt: Attempt) -> None:
        """Ask for the job's cancellation, looking it up by name when its id is not known yet."""
        from airflow_accel_provider.hooks.dataflow import DataflowHook

        job_id = attempt.job_id or getattr(self._job_of(session, attempt), "id", None)
        if job_id:
            DataflowHook(session).cancel(job_id, attempt.placement.region)

    def _job_of(self, session: GoogleSession, attempt: Attempt) -> Job | None:
        from airflow_accel_provider.hooks.dataflow import DataflowHook

        owner = self._record.owner if self._record else ""
        jobs = DataflowHook(session).find(attempt.job_name, attempt.placement.region)
        ours = [job for job in jobs if owns(owner, dict(job.labels or ()))]
        if jobs and not ours:
            raise AcceleratorConfigurationError(
                f"Job {jobs[0].id} in {attempt.placement.region} has the name {attempt.job_name} and belongs to "
                "somebody else. It was left alone and nothing was started."
            )
        return ours[0] if ours else None

    def _candidates(self) -> tuple[Candidate, ...]:
        """Return the candidates with their machine types; they were checked before."""
        read, _ = read_candidates(self.placement, self.fallback, region=self.region)
        known = catalog()
        return tuple(resolve(candidate, known) for candidate in read if candidate)

    def _request(self) -> BeamRequest:
        return BeamRequest(**{spec.name: getattr(self, spec.name) for spec in fields(BeamRequest)})


def _with_job(attempt: Attempt, job: Job) -> Attempt:
    submitted_at = job.created_at or datetime.now(UTC)
    outcome = Outcome.SUBMITTED if attempt.outcome is Outcome.INTENT else attempt.outcome
    return replace(attempt, job_id=job.id, submitted_at=submitted_at, outcome=outcome)
