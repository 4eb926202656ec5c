"""What all operators have in common before a task runs: their parameters, their checks, their connection."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from airflow.sdk import BaseOperator

from airflow_accel_provider.core.failures import DEFAULT_FALLBACK_ON, Failure, FailureKind
from airflow_accel_provider.core.policy import Policy
from airflow_accel_provider.core.problems import Problem, error
from airflow_accel_provider.core.record import Attempt, PlannedPlace, Record
from airflow_accel_provider.core.result import result
from airflow_accel_provider.core.validation import check_life
from airflow_accel_provider.exceptions import AcceleratorConfigurationError
from airflow_accel_provider.links import LINKS
from airflow_accel_provider.operators._connections import hide, named_connection
from airflow_accel_provider.operators._settings import default_deferrable
from airflow_accel_provider.operators._settings import poll_interval as default_poll_interval
from airflow_accel_provider.operators._verdict import judge, refuse

# Hooks are imported where a task runs: parsing a DAG does not need them, and pays for every import.
if TYPE_CHECKING:
    from airflow_accel_provider.core.deadline import Deadline
    from airflow_accel_provider.core.jobs import Service
    from airflow_accel_provider.hooks.session import GoogleSession

OnUnproven = Literal["warn", "fail"]


class AcceleratorOperator(BaseOperator):
    """One accelerated job: where it may run, as whom, and what each kind of job must know of itself.

    :param placement: where the job should run: ``ACCELERATOR[:COUNT or :TOPOLOGY] [on MACHINE_TYPE] [in REGION or
    ZONE]``
    :param fallback: further places in order, each a placement or a mapping of a ``placement`` and what differs there
    :param fallback_on: kinds of failure after which the next place is tried
    :param region: location for placements that name none
    :param project_id: project the job runs in; the connection's when left out
    :param gcp_conn_id: the Google Cloud connection
    :param impersonation_chain: service account to act as, or a list of accounts that leads to it
    :param quota_project_id: project that API calls are charged to
    :param deferrable: wait in the triggerer instead of on a worker
    :param poll_interval: seconds between two looks at the job; ``[accel] poll_interval`` (10) when left out
    :param start_timeout: how long a first worker may take, in seconds or as a timedelta
    :param cancel_timeout: how long a job that was asked to end may take, in seconds or as a timedelta
    :param on_unproven: what to do with a job that finished before its accelerator was seen: ``warn`` or ``fail``
    """

    operator_extra_links = LINKS
    service: ClassVar[Service] = "dataflow"
    """What runs the jobs."""
    listed_within: ClassVar[timedelta] = timedelta(seconds=45)
    """How long after its creation a job may be missing where it is looked up by its name."""

    def __init__(
        self,
        *,
        placement: str,
        fallback: Sequence[str | Mapping[str, Any]] = (),
        fallback_on: Sequence[str] = DEFAULT_FALLBACK_ON,
        region: str | None = None,
        project_id: str | None = None,
        gcp_conn_id: str = "google_cloud_default",
        impersonation_chain: str | Sequence[str] | None = None,
        quota_project_id: str | None = None,
        deferrable: bool | None = None,
        poll_interval: float | None = None,
        start_timeout: float | timedelta = 1800,
        cancel_timeout: float | timedelta = 300,
        on_unproven: OnUnproven = "warn",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.placement = placement
        self.fallback = fallback
        self.fallback_on = fallback_on
        self.region = region
        self.project_id = project_id
        self.gcp_conn_id = gcp_conn_id
        self.impersonation_chain = impersonation_chain
        self.quota_project_id = quota_project_id
        self.deferrable = default_deferrable() if deferrable is None else deferrable
        self.poll_interval = default_poll_interval() if poll_interval is None else poll_interval
        self.start_timeout = start_timeout
        self.cancel_timeout = cancel_timeout
        self.on_unproven = on_unproven
        self._session: GoogleSession | None = None
        self._record: Record | None = None
        self._deadline: Deadline | None = None

    # What a kind of job must say.

    @property
    @abstractmethod
    def name_prefix(self) -> str | None:
        """The readable beginning of the jobs' names, ``None`` for that of the DAG and the task."""

    @abstractmethod
    def problems(self, project: str | None) -> Sequence[Problem]:
        """Return all that is wrong, or worth a warning, as far as it is known; ``project`` is ``None`` until it is."""

    @abstractmethod
    def missing(self, session: GoogleSession) -> Sequence[Problem]:
        """Return what a new submission needs and cannot reach from here, such as the pipeline's file."""

    @abstractmethod
    def plan(self, session: GoogleSession) -> tuple[PlannedPlace, ...]:
        """Return the candidates in the user's order, each kept or put aside with a reason."""

    @abstractmethod
    def find(self, session: GoogleSession, attempt: Attempt) -> Attempt | None:
        """Return the attempt with the job of its name, or ``None`` when there is none. Refuses a stranger's job."""

    @abstractmethod
    def submit(self, session: GoogleSession, attempt: Attempt, labels: Mapping[str, str]) -> Attempt | Failure:
        """Submit the attempt; return it with its job, as it is when the task was killed meanwhile, or why it failed."""

    @abstractmethod
    def cancel(self, session: GoogleSession, attempt: Attempt) -> None:
        """Ask the service to end the attempt's job: to drain it where the attempt says so, else to cancel it."""

    @abstractmethod
    def secrets(self) -> Sequence[Mapping[str, Any]]:
        """Return the options, by name, of which those with the name of a secret must not be shown in any log."""

    def value(self, record: Record) -> dict[str, Any]:
        """Return what a task hands on in XCom."""
        return result(record)

    def check(self) -> None:
        """Raise one error that names all that is known to be wrong when a DAG is parsed; warn of the rest."""
        project = self.project_id if isinstance(self.project_id, str) else None
        judge(self, self._all_problems(project))

    def _usable_session(self) -> GoogleSession:
        """Return the session; where there can be none, the error names also all else that is wrong."""
        try:
            return self._connect()
        except AcceleratorConfigurationError as unusable:
            told = error("connection", str(unusable), "gcp_conn_id")
            refuse(self.task_id, (*self._all_problems(None), told))
            raise

    def _check_again(self, session: GoogleSession, *, submits: bool) -> None:
        """Raise one error that names all that is wrong now that everything is known; log the rest."""
        # What runs already needs none of what a new submission does.
        missing = self.missing(session) if submits else ()
        for problem in refuse(self.task_id, (*self._all_problems(session.project), *missing)):
            self.log.warning("%s", problem)

    def _all_problems(self, project: str | None) -> tuple[Problem, ...]:
        return (*check_life(vars(self)), *self.problems(project))

    def _connect(self) -> GoogleSession:
        from airflow_accel_provider.hooks.session import GoogleSession

        hide(self.secrets())
        self._session = GoogleSession.from_connection(
            named_connection(self.gcp_conn_id),
            impersonation_chain=self.impersonation_chain,
            project_id=self.project_id,
            quota_project_id=self.quota_project_id,
        )
        return self._session

    @property
    def policy(self) -> Policy:
        """What the user decided beforehand, as the core reads it."""
        return Policy(
            fallback_on=tuple(FailureKind(kind) for kind in self.fallback_on),
            on_unproven=self.on_unproven,
            start_timeout=as_timedelta(self.start_timeout),
            cancel_timeout=as_timedelta(self.cancel_timeout),
            deadline=self._deadline,
        )


def as_timedelta(value: float | timedelta) -> timedelta:
    """Return a duration that may be given in seconds."""
    return value if isinstance(value, timedelta) else timedelta(seconds=value)
