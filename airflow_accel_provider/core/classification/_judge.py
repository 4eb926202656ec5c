"""From signals to a failure: who ended the job, what the service said, what was missing."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from airflow_accel_provider.core.classification._rule import Meaning, Rule
from airflow_accel_provider.core.classification._signals import Signals
from airflow_accel_provider.core.classification._status import by_status
from airflow_accel_provider.core.classification._table import RULES
from airflow_accel_provider.core.classification._texts import Heard, around, hear, hinted_zones, tail, zone_near
from airflow_accel_provider.core.failures import Failure, FailureKind, Resource, Scope
from airflow_accel_provider.core.jobs import Importance, JobState
from airflow_accel_provider.core.locations import region_of

SHORTAGES = frozenset({FailureKind.STOCKOUT, FailureKind.QUOTA, FailureKind.NOT_OFFERED, FailureKind.PREEMPTED})
"""What can no longer be the cause once user code ran on the accelerator."""

_DONE = frozenset({JobState.DONE, JobState.UPDATED, JobState.DRAINED})
_ELSEWHERE = "try another zone, region or accelerator"
# As users report it, Google's pages do not: "Cancelling batch as ttl exceeded".
_EXPIRED = re.compile(r"\bttl exceeded\b", re.IGNORECASE)


def classify(signals: Signals) -> Failure | None:
    """Return what the signals mean, or ``None`` when nothing in them speaks of a failure.

    Once the accelerator was confirmed, shortages are no longer possible causes: whatever such words appear in the log
    came from user code.
    """
    if signals.state is JobState.CANCELLED and any(_EXPIRED.search(message.text) for message in signals.messages):
        return _expired(signals)
    if signals.cancelled_by == "user" or (signals.state is JobState.CANCELLED and signals.cancelled_by is None):
        return _cancelled("somebody cancelled the job", "clear the task to run it again")
    if signals.state in _DONE:
        return _bare(signals)
    grave = (m for m in signals.messages if m.importance in {Importance.WARNING, Importance.ERROR})
    heard = tuple(hear(message.text) for message in grave)
    spoken = _spoken(heard, signals) or by_status(signals)
    return spoken or _raised(heard, signals) or _bare(signals) or _silent(heard, signals)


def _spoken(heard: Sequence[Heard], signals: Signals) -> Failure | None:
    """Return what the first row means that catches any message, unless the job goes on all the same."""
    at_work = not signals.has_failed and (signals.workers_seen or signals.accelerator_confirmed)
    # While the job lives, warnings about single workers are the service's own business once any of them is up, unless
    # they may say why no accelerator shows.
    if at_work and (signals.accelerator_confirmed or not signals.grace_passed):
        return None
    shortage_possible = not (at_work or _ran_user_code(heard, signals))
    for rule in RULES:
        meaning = _in_context(rule, signals)
        if meaning.kind in SHORTAGES and not shortage_possible:
            continue
        for message in heard if signals.has_failed or not rule.only_at_end else ():
            text = message.whole if rule.from_workers else message.service
            match = rule.pattern.search(text)
            if match:
                return _failure(meaning, match, text, signals)
    return None


def _ran_user_code(heard: Sequence[Heard], signals: Signals) -> bool:
    """Tell whether the pipeline's own code ran on workers, so that machines were not what the job lacked."""
    return signals.accelerator_confirmed or any(
        message.gave_up or (message.ran_user_code and signals.workers_seen) for message in heard
    )


def _in_context(rule: Rule, signals: Signals) -> Meaning:
    """Return what a row's words mean for this job."""
    if rule.when_started and (signals.workers_seen or signals.accelerator_confirmed):
        return rule.when_started
    if rule.when_reserved and signals.reservation_requested:
        return rule.when_reserved
    whole_region = rule.meaning.kind is FailureKind.STOCKOUT and signals.queues_for_accelerators
    return replace(rule.meaning, scope=Scope.REGION) if whole_region else rule.meaning


def _failure(meaning: Meaning, match: re.Match[str], text: str, signals: Signals) -> Failure:
    said = {name: value for name, value in match.groupdict().items() if value}
    zone = said.get("zone") or zone_near(text, match.start())
    region = said.get("region") or (region_of(zone) if zone else None) or signals.region
    metric = _metric(said.get("metric") or said.get("code"))
    blanks = {"metric": metric or "a quota", "region": region or "its region", "zone": zone or "the zone"}
    blanks |= {"machine": said.get("machine", ""), "policy": said.get("policy", ""), "room": _room(said)}
    return Failure(
        kind=meaning.kind,
        scope=meaning.scope,
        resource=meaning.resource,
        zone=zone,
        region=region,
        metric=metric,
        limit=float(said["limit"]) if "limit" in said else None,
        hint_zones=tuple(name for name in hinted_zones(text) if name != zone),
        explanation=meaning.explanation.format(**blanks),
        advice=meaning.advice.format(**blanks),
        evidence=around(text, match),
    )


def _metric(name: str | None) -> str | None:
    """Return a quota's metric, also from its id: ``NVIDIA-L4-GPUS-per-project-region`` is ``NVIDIA_L4_GPUS``."""
    return name.partition("-per-project")[0].replace("-", "_") if name else None


def _room(said: Mapping[str, str]) -> str:
    """Return what a text says of a quota's room, as an aside."""
    if "limit" in said:
        return f" (limit {said['limit']})"
    return f" ({said['left']} available)" if "left" in said else ""


def _bare(signals: Signals) -> Failure | None:
    """Return the failure of a job that runs, or ran, without its accelerator showing in time."""
    running = signals.workers_seen or (signals.service == "dataproc" and signals.state is JobState.RUNNING)
    if not (signals.grace_passed and running) or signals.accelerator_confirmed:
        return None
    spark = signals.service == "dataproc"
    return Failure(
        kind=FailureKind.ACCELERATOR_MISSING,
        scope=Scope.JOB,
        resource=Resource.ACCELERATOR,
        region=signals.region,
        explanation="executors run without a GPU" if spark else "workers run without the accelerator",
        advice=(
            "look at the accelerator properties; executors without a card are replaced forever (bound that with"
            " spark.executor.maxNumFailures), and on runtime 3.0 code that doesn't set"
            ' master("dataproc") runs on the driver alone'
            if spark
            else "look at the spelling of worker_accelerator and at the machine type; it is no matter of stock"
        ),
    )


def _raised(heard: Sequence[Heard], signals: Signals) -> Failure | None:
    """Return the failure of a job that failed by what its own code printed."""
    code = [message.whole for message in heard if message.ran_user_code]
    spark = signals.service == "dataproc"
    spark_ran = spark and signals.accelerator_confirmed
    program = "batch" if spark else "pipeline"
    if not signals.has_failed or not (code or spark_ran):
        return None
    said = next((text for text in code if "Traceback (most recent call last)" in text), None)
    last = code[-1] if code else heard[-1].whole if heard else ""
    return Failure(
        kind=FailureKind.USER_CODE,
        scope=Scope.JOB,
        region=signals.region,
        explanation=f"the {program}'s own code raised" if code else "the batch failed after it had used its GPU",
        advice="read the last lines of its output; no other place would change it",
        evidence=tail(said or last),
    )


def _silent(heard: Sequence[Heard], signals: Signals) -> Failure | None:
    """Judge a job about which nothing was said that the table knows."""
    late = signals.start_timeout and not (signals.workers_seen or signals.accelerator_confirmed)
    if signals.state is JobState.FAILED or (signals.state is None and signals.has_failed):
        return _unknown(heard[-1].whole if heard else "", signals)
    if late:
        return _too_late(signals)
    if signals.state is JobState.CANCELLED:
        return _cancelled("the operator cancelled the job", "the operator's log says why")
    return None


def _unknown(last: str, signals: Signals) -> Failure:
    said = "the job failed in words this release does not know" if last else "the job failed and said nothing"
    return Failure(
        kind=FailureKind.UNKNOWN,
        scope=Scope.JOB,
        region=signals.region,
        explanation=said,
        advice="read the job's own log",
        evidence=tail(last),
    )


def _too_late(signals: Signals) -> Failure:
    zonal = signals.service == "dataflow"
    return Failure(
        kind=FailureKind.STOCKOUT,
        scope=Scope.ZONE if zonal else Scope.REGION,
        resource=Resource.ACCELERATOR,
        region=signals.region,
        explanation="no worker came up within start_timeout",
        advice=f"{_ELSEWHERE}; a longer start_timeout waits longer for stock",
    )


def _expired(signals: Signals) -> Failure:
    """Return the failure of a Spark batch that the service ended because its time was over."""
    return Failure(
        kind=FailureKind.CONFIGURATION,
        scope=Scope.JOB,
        region=signals.region,
        explanation="the service ended it, its ttl was over",
        advice="give a longer ttl",
    )


def _cancelled(explanation: str, advice: str) -> Failure:
    return Failure(kind=FailureKind.CANCELLED, scope=Scope.NONE, explanation=explanation, advice=advice)
