"""A failure and the step it asks for: one table over kind, scope and resource."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

from airflow_accel_provider.core.classification._judge import classify
from airflow_accel_provider.core.classification._signals import Signals
from airflow_accel_provider.core.failures import Failure, FailureKind, Resource, Scope
from airflow_accel_provider.core.jobs import Service


class NextStep(StrEnum):
    """What is worth trying first."""

    SAME_PLACE = "same_place"
    OTHER_ZONE = "other_zone"
    OTHER_REGION = "other_region"
    OTHER_ACCELERATOR = "other_accelerator"
    STOP = "stop"


class _Step(NamedTuple):
    """One row; ``None`` fits everything."""

    next: NextStep
    kind: FailureKind
    scope: Scope | None = None
    resource: Resource | None = None
    service: Service | None = None

    def fits(self, failure: Failure, service: Service) -> bool:
        """Tell whether the row speaks about the failure."""
        return (
            self.kind is failure.kind
            and self.scope in {None, failure.scope}
            and self.resource in {None, failure.resource}
            and self.service in {None, service}
        )


_STEPS: tuple[_Step, ...] = (
    # Another accelerator changes nothing for a launcher, and a second try may land in another zone by itself.
    _Step(NextStep.SAME_PLACE, FailureKind.STOCKOUT, resource=Resource.LAUNCHER),
    # A Spark batch can't choose its zone before runtime 3.0: the service may take another one next time.
    _Step(NextStep.SAME_PLACE, FailureKind.STOCKOUT, Scope.ZONE, service="dataproc"),
    _Step(NextStep.OTHER_ZONE, FailureKind.STOCKOUT, Scope.ZONE),
    _Step(NextStep.OTHER_REGION, FailureKind.STOCKOUT),
    # GPUS_ALL_REGIONS stops GPUs everywhere; a TPU or CPUs may still run.
    _Step(NextStep.OTHER_ACCELERATOR, FailureKind.QUOTA, Scope.PROJECT, Resource.ACCELERATOR),
    _Step(NextStep.STOP, FailureKind.QUOTA, Scope.PROJECT),
    _Step(NextStep.OTHER_REGION, FailureKind.QUOTA),
    _Step(NextStep.OTHER_ZONE, FailureKind.NOT_OFFERED, Scope.ZONE),
    _Step(NextStep.OTHER_REGION, FailureKind.NOT_OFFERED),
    _Step(NextStep.SAME_PLACE, FailureKind.PREEMPTED),
    _Step(NextStep.SAME_PLACE, FailureKind.SERVICE),
)


def next_step(failure: Failure, service: Service = "dataflow") -> NextStep:
    """Return what is worth trying first after a failure; kinds that no place mends stop."""
    return next((step.next for step in _STEPS if step.fits(failure, service)), NextStep.STOP)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What signals mean and what to do next; ``failure`` is ``None`` when nothing in them speaks of one."""

    failure: Failure | None
    next: NextStep

    def to_json(self) -> dict[str, Any]:
        """Return the verdict as plain JSON; every name is always there, what is not known is ``None``."""
        failure = self.failure
        if failure is None:
            return _ANSWER | {"next": str(self.next), "explanation": "nothing here speaks of a failure"}
        known = {name: value for name, value in failure.to_json().items() if name in _ANSWER}
        return _ANSWER | known | {"next": str(self.next), "explanation": _in_full(failure)}


_ANSWER: dict[str, Any] = {
    "kind": None,
    "scope": str(Scope.NONE),
    "next": None,
    "zone": None,
    "region": None,
    "metric": None,
    "hint_zones": [],
    "resource": None,
    "explanation": "",
}


def judge(signals: Signals) -> Verdict:
    """Return what the signals mean and what to do next; a job without a failure is left where it is."""
    failure = classify(signals)
    if failure:
        return Verdict(failure=failure, next=next_step(failure, signals.service))
    ended = signals.state is not None and signals.state.is_terminal
    return Verdict(failure=None, next=NextStep.STOP if ended else NextStep.SAME_PLACE)


def _in_full(failure: Failure) -> str:
    """Return what happened, where, and what to do."""
    # What fills a region is not about the zone that was tried.
    zone = failure.zone if failure.scope is not Scope.REGION else None
    where = f" in {zone}" if zone and zone not in failure.explanation else ""
    return f"{failure.explanation}{where}: {failure.advice}" if failure.advice else f"{failure.explanation}{where}"
