"""What this provider raises, all of it an AirflowException."""

from __future__ import annotations

from typing import Any

from airflow.sdk.exceptions import AirflowException, AirflowFailException

from airflow_accel_provider.core.failures import FailureKind

TRANSIENT_STATUSES = frozenset({0, 408, 429, 500, 502, 503, 504})
"""HTTP statuses after which the same question may have another answer; 0 stands for no answer at all."""

CREDENTIALS_REFUSED = "credentialsRefused"
"""The reason of an error where a connection lacks a permission to have a token."""

CREDENTIALS_UNUSABLE = "credentialsUnusable"
"""The reason of an error where a connection's credentials are of no use: a person must change them."""

_RATE_REASONS = frozenset({"rateLimitExceeded", "userRateLimitExceeded"})


class AcceleratorError(AirflowException):
    """Base of this provider's errors."""

    def serialize(self) -> tuple[str, tuple[Any, ...], dict[str, Any]]:
        """Return the class and its arguments, from which Airflow builds the error anew."""
        cls = type(self)
        return f"{cls.__module__}.{cls.__qualname__}", self.args, {}


class AcceleratorConfigurationError(AcceleratorError, AirflowFailException):
    """Something a person must set right: parameters, connection, credentials, what a job asks for.

    Airflow does not retry it, whatever the task's policy.
    """


class AcceleratorLaunchError(AcceleratorError):
    """The launcher did not submit a job; ``last_lines`` are the last it wrote."""

    def __init__(self, message: str, last_lines: tuple[str, ...] = ()) -> None:
        super().__init__(message, last_lines)
        self.message = message
        self.last_lines = last_lines

    def __str__(self) -> str:
        return "\n".join([self.message, *(f"  {line}" for line in self.last_lines)])


class GoogleApiError(AcceleratorError):
    """A Google API refused a call, or gave no usable answer.

    ``status`` is the HTTP status (0 when there was no answer), ``reason`` Google's word for it (``notFound``,
    ``rateLimitExceeded``, …), ``message`` its sentence, ``method`` the verb and the path. ``retry_after`` is how many
    seconds the service asks to wait, where it does; ``tried`` says how often it was asked, when that was not once.
    """

    def __init__(
        self, status: int, reason: str, message: str, service: str, method: str, *, retry_after: float | None = None
    ) -> None:
        super().__init__(status, reason, message, service, method)
        self.status = status
        self.reason = reason
        self.message = message
        self.service = service
        self.method = method
        self.retry_after = retry_after
        self.tried = ""

    def __str__(self) -> str:
        answer = str(self.status) if self.status else "no answer"
        return f"{self.service} {self.method}: {answer} ({self.reason}): {self.message}{self.tried}"

    @property
    def is_transient(self) -> bool:
        """Tell whether the same call may succeed a little later."""
        # Compute Engine answers 403 where the others answer 429.
        return self.status in TRANSIENT_STATUSES or (self.status == 403 and self.reason in _RATE_REASONS)

    @property
    def kind(self) -> FailureKind:
        """What it means for a task that it cannot ask Google."""
        if self.reason == CREDENTIALS_UNUSABLE:
            return FailureKind.CONFIGURATION
        is_refused = self.status in {401, 403} and not self.is_transient
        return FailureKind.PERMISSION if is_refused else FailureKind.SERVICE


class AcceleratorJobError(AcceleratorError):
    """A task whose search or job ended without success; the message is the report a person reads."""


class AcceleratorStockoutError(AcceleratorJobError):
    """No place had the accelerator."""


class AcceleratorNotOfferedError(AcceleratorStockoutError):
    """No place that was tried offers the accelerator."""


class AcceleratorPreemptedError(AcceleratorStockoutError):
    """The machines were taken away, and no place was left."""


class AcceleratorQuotaError(AcceleratorJobError):
    """No place had quota left."""


class AcceleratorMissingError(AcceleratorJobError):
    """Workers ran, but the accelerator was not there or was never seen."""


class AcceleratorPermissionError(AcceleratorJobError):
    """A call was refused for lack of a permission."""


class AcceleratorPipelineError(AcceleratorJobError):
    """The pipeline's own code or image failed."""


class AcceleratorImageError(AcceleratorPipelineError):
    """The workers cannot pull or start the container image."""


class AcceleratorCancelledError(AcceleratorJobError):
    """Somebody cancelled the job."""


class AcceleratorKilledError(AcceleratorCancelledError):
    """The task was killed on its worker, and its job was asked to end."""


class AcceleratorSupersededError(AcceleratorKilledError):
    """Another try of the task has begun while this one's worker was taken for dead; the job is left to that try."""


class AcceleratorTimeoutError(AcceleratorJobError):
    """The task's ``execution_timeout`` has passed, and its job was ended."""


class AcceleratorServiceError(AcceleratorJobError):
    """The service failed the job or did not answer."""


class AcceleratorUnknownError(AcceleratorServiceError):
    """The job failed, and nobody knows the words that say why."""


_BY_KIND: dict[FailureKind, type[AcceleratorJobError | AcceleratorConfigurationError]] = {
    FailureKind.STOCKOUT: AcceleratorStockoutError,
    FailureKind.NOT_OFFERED: AcceleratorNotOfferedError,
    FailureKind.PREEMPTED: AcceleratorPreemptedError,
    FailureKind.QUOTA: AcceleratorQuotaError,
    FailureKind.ACCELERATOR_MISSING: AcceleratorMissingError,
    FailureKind.PERMISSION: AcceleratorPermissionError,
    FailureKind.USER_CODE: AcceleratorPipelineError,
    FailureKind.IMAGE: AcceleratorImageError,
    FailureKind.CONFIGURATION: AcceleratorConfigurationError,
    FailureKind.CANCELLED: AcceleratorCancelledError,
    FailureKind.TIMEOUT: AcceleratorTimeoutError,
    FailureKind.SERVICE: AcceleratorServiceError,
    FailureKind.UNKNOWN: AcceleratorUnknownError,
}


def job_error(kind: FailureKind, message: str) -> AcceleratorJobError | AcceleratorConfigurationError:
    """Return the exception that a failure of this kind is raised as, in both modes."""
    return _BY_KIND[kind](message)


class AcceleratorWarning(UserWarning):
    """What a person should know about a task that may run nevertheless."""
