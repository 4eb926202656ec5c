"""What an HTTP status means when the service refused the call itself."""

from __future__ import annotations

from airflow_accel_provider.core.classification._rule import Meaning
from airflow_accel_provider.core.classification._signals import Signals
from airflow_accel_provider.core.failures import Failure, FailureKind, Scope

_SERVICE = FailureKind.SERVICE
_CONFIGURATION = FailureKind.CONFIGURATION

_REFUSALS: dict[int, Meaning] = {
    401: Meaning(
        kind=FailureKind.PERMISSION,
        scope=Scope.JOB,
        explanation="the service doesn't know the caller",
        advice="look at the connection's credentials",
    ),
    403: Meaning(
        kind=FailureKind.PERMISSION,
        scope=Scope.JOB,
        explanation="the service refused the caller",
        advice="grant the permission the message names, and see that the API is enabled",
    ),
    404: Meaning(
        kind=_CONFIGURATION,
        scope=Scope.JOB,
        explanation="the service doesn't know the project, region or template",
        advice="look at their spelling",
    ),
    408: Meaning(
        kind=_SERVICE,
        scope=Scope.NONE,
        explanation="the service did not answer in time",
        advice="try again; look first whether the job was made all the same",
    ),
    409: Meaning(
        kind=_CONFIGURATION,
        scope=Scope.JOB,
        explanation="a job of this name is already there",
        advice="look at that job first; then use another job_name or batch_id",
    ),
    429: Meaning(
        kind=_SERVICE,
        scope=Scope.NONE,
        explanation="too many requests a minute to the service's own API",
        advice="try again after 60 seconds (or what Retry-After says); the job itself is fine",
    ),
}
_REFUSED = Meaning(
    kind=_CONFIGURATION,
    scope=Scope.JOB,
    explanation="the service refused the job",
    advice="the message names the field or property; mend it, no other place will take the job as it is",
)
_TROUBLE = Meaning(
    kind=_SERVICE,
    scope=Scope.NONE,
    explanation="the service did not take the job",
    advice="try again in the same place; look first whether the job was made all the same",
)


def by_status(signals: Signals) -> Failure | None:
    """Return what the status of a refused call means, or ``None`` when the call went through."""
    status = signals.http_status or 0
    if status < 400 or signals.state is not None:
        return None
    refusal = _REFUSALS.get(status) or (_REFUSED if status < 500 else _TROUBLE)
    return Failure(
        kind=refusal.kind,
        scope=refusal.scope,
        explanation=f"{refusal.explanation} (HTTP {status})",
        advice=refusal.advice,
        region=signals.region,
        evidence="\n".join(message.text for message in signals.messages)[:2_000],
    )
