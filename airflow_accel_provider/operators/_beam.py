"""What the operators for Beam pipelines share: one pipeline, submitted in any of six ways, on Dataflow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from airflow_accel_provider.core.beam_options import Sdk
from airflow_accel_provider.core.failures import Failure
from airflow_accel_provider.core.identity import owns
from airflow_accel_provider.core.policy import Policy
from airflow_accel_provider.core.problems import Problem
from airflow_accel_provider.core.record import Attempt, PlannedPlace
from airflow_accel_provider.core.request import BeamRequest, Candidate, SdkProcesses
from airflow_accel_provider.core.validation import check_beam, is_templated, read_candidates, resolve
from airflow_accel_provider.core.ways import ways_of
from airflow_accel_provider.exceptions import AcceleratorConfigurationError, AcceleratorLaunchError
from airflow_accel_provider.operators._connections import hidden
from airflow_accel_provider.operators._job import AcceleratorJobOperator, with_job
from airflow_accel_provider.operators._settings import allowed_regions, catalog

if TYPE_CHECKING:
    from airflow_accel_provider.core.jobs import Job
    from airflow_accel_provider.hooks.session import GoogleSession
    from airflow_accel_provider.hooks.submission import Pipeline, Place

WaitUntil = Literal["done", "proven"]

# What may hold secrets, by parameter.
_OPTIONS = ("default_pipeline_options", "pipeline_options", "parameters")


class BeamPipelineOperator(AcceleratorJobOperator):
    """Run a Beam pipeline on Dataflow workers with accelerators.

    Exactly one of ``py_file``, ``py_module``, ``jar``, ``go_binary``, ``template`` and ``flex_template`` says what. In
    any option ``{region}``, ``{zone}`` and ``{accelerator}`` stand for the place that is tried. The parameters of
    :class:`~airflow_accel_provider.operators._face.AcceleratorOperator` come on top.

    :param job_name: readable beginning of the jobs' names; a hash is always added
    :param py_file: the pipeline as a Python file, local or ``gs://``
    :param py_module: the pipeline as a Python module
    :param jar: the pipeline as a jar, local or ``gs://``
    :param go_binary: the pipeline as a Go binary for the worker's platform, local or ``gs://``
    :param template: the pipeline as a classic template, ``gs://``
    :param flex_template: the pipeline as a Flex template, the ``gs://`` address of its container spec
    :param py_interpreter: the Python that runs the launcher; the worker's own when left out
    :param py_options: options of that interpreter
    :param py_requirements: packages of a virtual environment that is made for the launcher
    :param py_system_site_packages: whether that environment sees the interpreter's own packages
    :param job_class: the class to run of the jar; its main class when left out
    :param parameters: a template's own parameters
    :param sdk: what a template is written in, ``python``, ``java`` or ``go``, which decides how options are spelled
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
    :param reservation: ``any`` of Compute Engine that fits, or the one that is meant, by its name
    :param sdk_processes: ``one`` Python process a worker, or one ``per_vcpu``
    :param number_of_worker_harness_threads: threads of each worker
    :param beam_version: Beam version of the image, so that its minimum can be checked
    :param wait_until: succeed when the job is ``done``, or when its accelerator is ``proven`` and the job runs on
    :param drain_pipeline: when the task is killed, let a streaming job finish what it has taken in
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
        "jar",
        "go_binary",
        "template",
        "flex_template",
        "py_interpreter",
        "py_options",
        "py_requirements",
        "job_class",
        "parameters",
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
        "reservation",
    )
    template_fields_renderers: ClassVar[dict[str, str]] = {
        "fallback": "json",
        "parameters": "json",
        "pipeline_options": "json",
        "default_pipeline_options": "json",
        "labels": "json",
    }
    ui_color = "#e6f4ea"
    accelerators: ClassVar[Literal["gpu", "tpu"]]
    """What the first place has."""

    def __init__(
        self,
        *,
        placement: str,
        job_name: str | None = None,
        py_file: str | None = None,
        py_module: str | None = None,
        jar: str | None = None,
        go_binary: str | None = None,
        template: str | None = None,
        flex_template: str | None = None,
        py_interpreter: str | None = None,
        py_options: Sequence[str] = (),
        py_requirements: Sequence[str] | None = None,
        py_system_site_packages: bool = False,
        job_class: str | None = None,
        parameters: Mapping[str, Any] | None = None,
        sdk: Sdk | None = None,
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
        reservation: str | None = None,
        sdk_processes: SdkProcesses = "one",
        number_of_worker_harness_threads: int | None = None,
        beam_version: str | None = None,
        wait_until: WaitUntil = "done",
        drain_pipeline: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(placement=placement, **kwargs)
        self.job_name = job_name
        self.py_file = py_file
        self.py_module = py_module
        self.jar = jar
        self.go_binary = go_binary
        self.template = template
        self.flex_template = flex_template
        self.py_interpreter = py_interpreter
        self.py_options = py_options
        self.py_requirements = py_requirements
        self.py_system_site_packages = py_system_site_packages
        self.job_class = job_class
        self.parameters = parameters or {}
        self.sdk = sdk
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
        self.reservation = reservation
        self.sdk_processes = sdk_processes
        self.number_of_worker_harness_threads = number_of_worker_harness_threads
        self.beam_version = beam_version
        self.wait_until = wait_until
        self.drain_pipeline = drain_pipeline
        self._pipeline: Pipeline | None = None

    @property
    def name_prefix(self) -> str | None:
        """The readable beginning of the jobs' names."""
        return self.job_name

    @property
    def policy(self) -> Policy:
        """What the user decided beforehand, as the core reads it."""
        return replace(super().policy, wait_until=self.wait_until, drain=self.drain_pipeline)

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
                operator=self.accelerators,
                wait_until=self.wait_until,
                project=project,
                region=region,
                allowed_regions=allowed_regions(),
            ),
        )

    def missing(self, session: GoogleSession) -> Sequence[Problem]:
        """Return what the pipeline lacks here: its file, a template's spec and what that asks for, reservations."""
        from airflow_accel_provider.hooks.reservations import missing_reservations

        request = self._request()
        if len(ways_of(request)) != 1:
            return ()
        # A place that is wrong cannot be asked about; the pipeline itself still can.
        is_wrong = any(problem.is_error for problem in self.problems(session.project))
        candidates = () if is_wrong else self._candidates()
        return (
            *self._submitter().missing(session, [self._place(candidate) for candidate in candidates]),
            *missing_reservations(session, request, candidates, catalog=catalog()),
        )

    def secrets(self) -> Sequence[Mapping[str, Any]]:
        """Return the options and parameters of the operator and of every candidate."""
        own = [getattr(self, name) for name in _OPTIONS]
        candidates = [each for each in self.fallback if isinstance(each, Mapping)]
        return [said for said in (*own, *(each.get(name) for each in candidates for name in _OPTIONS)) if said]

    def plan(self, session: GoogleSession) -> tuple[PlannedPlace, ...]:
        """Return the plan over live quotas and reservations of all places, read at once."""
        from airflow_accel_provider.core.planning import plan, questions
        from airflow_accel_provider.hooks.supply import read_supply

        request, candidates, known = self._request(), self._candidates(), catalog()
        readings, reserved = read_supply(session, questions(request, candidates, catalog=known))
        return plan(request, candidates, catalog=known, readings=readings, reserved=reserved)

    def find(self, session: GoogleSession, attempt: Attempt) -> Attempt | None:
        """Return the attempt with the job of its name that carries our label."""
        job = self._job_of(session, attempt)
        return with_job(attempt, job) if job else None

    def submit(self, session: GoogleSession, attempt: Attempt, labels: Mapping[str, str]) -> Attempt | Failure:
        """Submit the pipeline in the attempt's place, once the service shows the job."""
        from airflow_accel_provider.hooks.submission import Submitting

        candidate = replace(self._candidates()[attempt.candidate], placement=attempt.placement)
        pipeline, place = self._submitter(), self._place(candidate)
        pipeline.prepare(session, place)
        submission = pipeline.submit(
            session,
            place,
            Submitting(
                job_name=attempt.job_name,
                labels=labels,
                find=partial(self._job_of, session, attempt),
                say=lambda line: self.log.info("launcher: %s", hidden(line)),
                hide=hidden,
                stopped=lambda: self._is_killed,
                seconds=self.policy.start_timeout.total_seconds(),
            ),
        )
        if submission.job:
            return with_job(attempt, submission.job)
        if submission.failure:
            return submission.failure
        if self._is_killed:
            return attempt
        # The attempt stays an intent: a job of its name that turns up late is found by the next try.
        text = f"The launcher of {self.task_id} made no job within start_timeout."
        raise AcceleratorLaunchError(text, submission.last_lines)

    def cancel(self, session: GoogleSession, attempt: Attempt) -> None:
        """Ask for the job's end, looking it up by name when its id is not known yet."""
        from airflow_accel_provider.hooks.ending import end

        job_id = attempt.job_id or getattr(self._job_of(session, attempt), "id", None)
        end(session, replace(attempt, job_id=job_id))

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

    def _submitter(self) -> Pipeline:
        """Return the pipeline in its way of being submitted, one for all places, so that it keeps what it prepared."""
        from airflow_accel_provider.hooks.submission import pipeline_of

        if self._pipeline is None:
            self._pipeline = pipeline_of(self._request())
        return self._pipeline

    def _place(self, candidate: Candidate) -> Place:
        from airflow_accel_provider.hooks.submission import Place

        return Place(request=self._request().for_candidate(candidate), placement=candidate.placement)

    def _candidates(self) -> tuple[Candidate, ...]:
        """Return the candidates with their machine types; they were checked before."""
        read, _ = read_candidates(self.placement, self.fallback, region=self.region)
        known = catalog()
        return tuple(resolve(candidate, known) for candidate in read if candidate)

    def _request(self) -> BeamRequest:
        # What only GPUs have, an operator for TPUs says in the candidates with GPUs.
        names = [spec.name for spec in fields(BeamRequest) if hasattr(self, spec.name)]
        return BeamRequest(**{name: getattr(self, name) for name in names})
