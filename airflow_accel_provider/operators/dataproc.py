"""Batches of Google's managed Spark with GPUs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, ClassVar

from airflow_accel_provider.core.elsewhere import ELSEWHERE, misplaced
from airflow_accel_provider.core.result import result
from airflow_accel_provider.core.validation import is_templated, read_candidates
from airflow_accel_provider.exceptions import AcceleratorConfigurationError, AcceleratorLaunchError, GoogleApiError
from airflow_accel_provider.links import AcceleratorJobLink, AcceleratorLogsLink
from airflow_accel_provider.operators._connections import hidden
from airflow_accel_provider.operators._face import as_timedelta
from airflow_accel_provider.operators._job import AcceleratorJobOperator, with_job
from airflow_accel_provider.operators._settings import allowed_regions, catalog

if TYPE_CHECKING:
    from airflow_accel_provider.core.failures import Failure
    from airflow_accel_provider.core.jobs import Service
    from airflow_accel_provider.core.policy import Policy
    from airflow_accel_provider.core.problems import Problem
    from airflow_accel_provider.core.record import Attempt, PlannedPlace, Record
    from airflow_accel_provider.core.request import Candidate
    from airflow_accel_provider.core.spark import SparkRequest
    from airflow_accel_provider.hooks.session import GoogleSession

__all__ = ["DataprocGpuBatchOperator"]

_CONFLICT = 409
_TOO_MANY = 429
# A batch that was there is there until somebody deletes it; the service does not forget for a while.
_LOST_AFTER = timedelta(seconds=30)


class DataprocGpuBatchOperator(AcceleratorJobOperator):
    """Run a PySpark, Spark or Spark SQL batch on executors with GPUs, on Google's managed Spark.

    ``batch`` is what ``DataprocCreateBatchOperator`` takes, without the properties that ask for GPUs: those follow from
    ``placement``, such as ``l4 in us-central1`` (with the GPUs of one executor: ``l4:2 in us-central1``), and from
    ``runtime_version``. In any text ``{region}`` and ``{accelerator}`` stand for the place that is tried. The
    parameters of :class:`~airflow_accel_provider.operators._face.AcceleratorOperator` come on top.

    :param batch: the batch, a mapping or a ``Batch`` message
    :param batch_id: readable beginning of the batches' ids; a hash is always added
    :param request_id: readable beginning of the ids of the requests that create them; a hash is always added
    :param metadata: further headers of those requests, as pairs
    :param runtime_version: the runtime, such as ``2.3``; the newest long-term one when left out
    :param executors: executors to start with; 2, the fewest there can be, when left out
    :param properties: Spark properties, on top of those that follow from the place
    :param container_image: the image of driver and executors
    :param ttl: how long the batch may live, in seconds, as a timedelta or a text such as ``3600s``
    :param provisioning: from runtime 3.0 on, ``queue`` for GPUs that are out of stock or fail by ``default``
    :param allocation_timeout: how long to queue; when left out, a little less than ``start_timeout``
    :param labels: labels of the batch
    :param proof_grace: how long a running batch may have no GPU before it is cancelled, in seconds or as a timedelta
    """

    template_fields: Sequence[str] = (
        "placement",
        "fallback",
        "region",
        "project_id",
        "gcp_conn_id",
        "impersonation_chain",
        "quota_project_id",
        "batch",
        "batch_id",
        "request_id",
        "runtime_version",
        "executors",
        "properties",
        "container_image",
        "ttl",
        "provisioning",
        "allocation_timeout",
        "labels",
    )
    template_fields_renderers: ClassVar[dict[str, str]] = {
        "fallback": "json",
        "batch": "json",
        "properties": "json",
        "labels": "json",
    }
    # Nobody sees a batch's VMs, and its page has its metrics.
    operator_extra_links = (AcceleratorJobLink(), AcceleratorLogsLink())
    ui_color = "#e8f0fe"
    service: ClassVar[Service] = "dataproc"
    # A batch is looked up by its id, under which it is there at once.
    listed_within: ClassVar[timedelta] = timedelta()

    def __init__(
        self,
        *,
        placement: str,
        batch: Mapping[str, Any] | Any = None,
        batch_id: str | None = None,
        request_id: str | None = None,
        metadata: Sequence[tuple[str, str]] = (),
        runtime_version: str | None = None,
        executors: int | None = None,
        properties: Mapping[str, Any] | None = None,
        container_image: str | None = None,
        ttl: float | timedelta | str | None = None,
        provisioning: str | None = None,
        allocation_timeout: float | timedelta | str | None = None,
        labels: Mapping[str, str] | None = None,
        proof_grace: float | timedelta = 300,
        **kwargs: Any,
    ) -> None:
        # Airflow would say of them only that they are invalid.
        self._misplaced = misplaced(type(self).__name__, kwargs)
        super().__init__(placement=placement, **{name: kwargs[name] for name in kwargs if name not in ELSEWHERE})
        self.batch = _plain(batch)
        self.batch_id = batch_id
        self.request_id = request_id
        self.metadata = metadata
        self.runtime_version = runtime_version
        self.executors = executors
        self.properties = properties or {}
        self.container_image = container_image
        self.ttl = ttl
        self.provisioning = provisioning
        self.allocation_timeout = allocation_timeout
        self.labels = labels or {}
        self.proof_grace = proof_grace
        self.check()

    @property
    def name_prefix(self) -> str | None:
        """The readable beginning of the batches' ids."""
        return self.batch_id

    @property
    def policy(self) -> Policy:
        """What the user decided beforehand, as the core reads it."""
        return replace(super().policy, grace=as_timedelta(self.proof_grace), lost_after=_LOST_AFTER)

    def problems(self, project: str | None) -> Sequence[Problem]:
        """Return what is wrong with the batch, its properties, and every place it might run in."""
        from airflow_accel_provider.core.spark import check_call, check_spark, check_waiting, spark_catalog

        # One of another type is told of with the other types.
        region = self.region if isinstance(self.region, str) or is_templated(self.region) else None
        candidates, unread = read_candidates(self.placement, self.fallback, region=region)
        request, known = self._request(), catalog()
        found = (
            *self._misplaced,
            *unread,
            *check_spark(
                request,
                candidates,
                catalog=known,
                tables=spark_catalog(known),
                today=datetime.now(UTC).date(),
                project=project,
                region=region,
                allowed_regions=allowed_regions(),
            ),
            *check_call(vars(self)),
        )
        if any(problem.is_error for problem in found):
            return found
        return (*found, *check_waiting(request, candidates, spark_catalog(known), self.start_timeout))

    def missing(self, session: GoogleSession) -> Sequence[Problem]:
        """Return which file to run, of any place, is not where it should be."""
        if any(problem.is_error for problem in self.problems(session.project)):
            # What is wrong already cannot be looked up.
            return ()
        from airflow_accel_provider.hooks.spark_files import missing_files

        request = self._request()
        mains = [request.for_candidate(each).main_file for each in self._candidates()]
        return missing_files(session, [main for main in mains if main])

    def secrets(self) -> Sequence[Mapping[str, Any]]:
        """Return the batch and the properties of the operator and of every candidate."""
        candidates = [each for each in self.fallback if isinstance(each, Mapping)]
        said = [(each.get("batch"), each.get("properties")) for each in candidates]
        everything = [self.batch, self.properties, *(value for pair in said for value in pair)]
        return [value for value in everything if isinstance(value, Mapping)]

    def plan(self, session: GoogleSession) -> tuple[PlannedPlace, ...]:
        """Return the plan over live quotas of all regions, read at once."""
        from airflow_accel_provider.core.spark import spark_plan
        from airflow_accel_provider.hooks.quota import read_quotas

        candidates = self._candidates()
        readings = read_quotas(session, list(dict.fromkeys(each.placement.region for each in candidates)))
        return spark_plan(self._request(), candidates, catalog=catalog(), readings=readings)

    def find(self, session: GoogleSession, attempt: Attempt) -> Attempt | None:
        """Return the attempt with the batch of its id when that carries our label."""
        from airflow_accel_provider.core.spark import owns_batch
        from airflow_accel_provider.hooks.spark import SparkHook

        job = SparkHook(session).get(attempt.job_name, attempt.placement.region).job
        if job is None:
            return None
        if not owns_batch(self._record.owner if self._record else "", dict(job.labels or ())):
            raise AcceleratorConfigurationError(
                f"Batch {job.id} in {attempt.placement.region} belongs to somebody else. It was left alone and nothing "
                "was started."
            )
        return with_job(attempt, job)

    def submit(self, session: GoogleSession, attempt: Attempt, labels: Mapping[str, str]) -> Attempt | Failure:
        """Create the batch in the attempt's place."""
        from airflow_accel_provider.hooks.spark import SparkHook

        if self.batch_id:
            self.log.info("batch_id=%s is the beginning of the batch's id: %s", self.batch_id, attempt.job_name)
        try:
            job = SparkHook(session).create(
                attempt.job_name,
                attempt.placement.region,
                self._body(attempt, labels),
                request_id=self._request_id(attempt),
                headers=dict(self.metadata),
            )
        except GoogleApiError as refused:
            return self._refused(session, attempt, refused)
        return with_job(attempt, job)

    def cancel(self, session: GoogleSession, attempt: Attempt) -> None:
        """Ask for the batch's end, looking it up when nobody knows whether it was made."""
        from airflow_accel_provider.hooks.services import end

        known = attempt if attempt.job_id else self.find(session, attempt)
        if known:
            end(session, self.service, known)

    def value(self, record: Record) -> dict[str, Any]:
        """Return the XCom value, with what the batch used and about what that cost."""
        from airflow_accel_provider.core.spark import usage_row

        usage = usage_row(record.attempts[-1].spent, catalog().rates)
        self.log.info("usage gpu_seconds=%(gpu_seconds)s usd=%(price_low)s..%(price_high)s", usage)
        return {**result(record), "usage": usage}

    def _request_id(self, attempt: Attempt) -> str:
        from airflow_accel_provider.core.identity import request_id

        record = self._record
        owner, life = (record.owner, record.life) if record else ("", 0)
        return request_id(self.request_id, owner=owner, life=life, attempt=attempt.n)

    def _body(self, attempt: Attempt, labels: Mapping[str, str]) -> dict[str, Any]:
        from airflow_accel_provider.core.spark import batch_body, spark_catalog, within_budget

        tables = spark_catalog(catalog())
        meant = self._request().for_candidate(self._candidates()[attempt.candidate])
        meant = within_budget(meant, attempt.placement, tables, self.policy.start_timeout)
        return batch_body(meant, attempt.placement, tables, labels=labels)

    def _refused(self, session: GoogleSession, attempt: Attempt, refused: GoogleApiError) -> Attempt | Failure:
        """Return the batch that was made all the same, or why there is none; raise where nobody can tell."""
        from airflow_accel_provider.hooks.spark import refusal

        # Whatever the last request was answered, an earlier one whose answer was lost may have made the batch.
        found = self.find(session, attempt)
        if found:
            return found
        if refused.status == _CONFLICT or (refused.is_transient and refused.status != _TOO_MANY):
            # The attempt stays an intent, and the next try repeats its request.
            raise AcceleratorLaunchError(
                f"Nobody can tell whether batch {attempt.job_name} was made; the next try sees. {hidden(str(refused))}"
            )
        return refusal(refused, attempt.placement.region, hidden)

    def _candidates(self) -> tuple[Candidate, ...]:
        """Return the candidates; they were checked before."""
        read, _ = read_candidates(self.placement, self.fallback, region=self.region)
        return tuple(candidate for candidate in read if candidate)

    def _request(self) -> SparkRequest:
        from airflow_accel_provider.core.spark import SparkRequest

        return SparkRequest(**{spec.name: getattr(self, spec.name) for spec in fields(SparkRequest)})


def _plain(batch: Any) -> Any:
    """Return a batch as plain data; a message of Google's own client is read without importing that."""
    to_dict = getattr(type(batch), "to_dict", None)
    if to_dict is None:
        return batch
    return to_dict(batch, use_integers_for_enums=False, always_print_fields_with_no_presence=False)
