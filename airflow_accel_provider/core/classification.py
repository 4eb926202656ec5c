"""What an error means: one table of the service's words, read from top to bottom, first match wins.

Texts are those seen in job messages of 2020–2026 and on Google's troubleshooting pages; each row names its source.
User code can print anything, so its tracebacks are cut away before the service's rows are asked.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from airflow_accel_provider.core.failures import Failure, FailureKind, Resource, Scope
from airflow_accel_provider.core.jobs import Importance, JobState, Message

_EVIDENCE_LENGTH = 2_000
_TRACEBACK = re.compile(r"Traceback \(most recent call last\).*", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Signals:
    """What is known about an attempt when it must be judged."""

    messages: Sequence[Message] = ()
    state: JobState | None = None
    region: str | None = None
    workers_seen: bool = False
    accelerator_confirmed: bool = False
    start_timeout: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One row: the service's words and what they mean.

    Named groups of the pattern (``zone``, ``region``, ``metric``, ``limit``, ``machine``, ``workers``) are taken
    over and may stand in the explanation. ``example`` is a text that this row, and no earlier one, must catch.
    """

    code: str
    pattern: re.Pattern[str]
    kind: FailureKind
    scope: Scope
    explanation: str
    example: str
    source: str
    resource: Resource | None = None


def _rule(pattern: str, **row: object) -> Rule:
    return Rule(pattern=re.compile(pattern, re.DOTALL), **row)  # type: ignore[arg-type]  # a row is checked by its tests


_GPU_PAGE = "https://cloud.google.com/dataflow/docs/gpu/troubleshoot-gpus, read 2026-11"
_TPU_PAGE = "https://cloud.google.com/dataflow/docs/tpu/troubleshoot-tpus, read 2026-11"
_ERRORS_PAGE = "https://cloud.google.com/dataflow/docs/guides/common-errors, read 2026-11"
_LOGS = "job messages in public issues, 2020-2026"

RULES: tuple[Rule, ...] = (
    _rule(
        r"requested accelerator type \S+ requires setting the worker machine type to (?P<machine>[a-z0-9-]+)",
        code="wrong-machine",
        kind=FailureKind.CONFIGURATION,
        scope=Scope.JOB,
        explanation="this accelerator needs machine type {machine}",
        example=(
            "The workflow was automatically rejected by the service because it might trigger an identified bug:"
            " requested accelerator type tpu-v6e-slice;topology:2x2 requires setting the worker machine type to"
            " ct6e-standard-4t."
        ),
        source=_TPU_PAGE,
    ),
    _rule(
        r"workflow was automatically rejected by the service",
        code="rejected",
        kind=FailureKind.CONFIGURATION,
        scope=Scope.JOB,
        explanation="the service rejected the job's options",
        example="The workflow was automatically rejected by the service for the following reason: machine type.",
        source=_ERRORS_PAGE,
    ),
    _rule(
        r"do not support live migration",
        code="option-missing",
        kind=FailureKind.CONFIGURATION,
        scope=Scope.JOB,
        explanation="an accelerator machine was asked for without the accelerator (worker_accelerator)",
        example="UNSUPPORTED_OPERATION: Instances with guest accelerators do not support live migration.",
        source=_TPU_PAGE,
    ),
    _rule(
        r"invalid configuration for \d+ count of",
        code="host-shape",
        kind=FailureKind.CONFIGURATION,
        scope=Scope.JOB,
        explanation="the machine has more vCPUs or memory than this number of GPUs allows",
        example=(
            "[UNSUPPORTED_OPERATION] '96 vCpus with 368640 MiB memory is an invalid configuration for 1 count of"
            " 'nvidia-tesla-t4' in family 'n1'.'"
        ),
        source=_GPU_PAGE,
    ),
    _rule(
        r"Quota 'GPUS_ALL_REGIONS' exceeded\.\s+Limit: (?P<limit>[\d.]+)",
        code="quota-all-gpus",
        kind=FailureKind.QUOTA,
        scope=Scope.PROJECT,
        resource=Resource.ACCELERATOR,
        explanation="GPUS_ALL_REGIONS is used up (limit {limit})",
        example="QUOTA_EXCEEDED: Quota 'GPUS_ALL_REGIONS' exceeded.  Limit: 0.0 globally.",
        source=_LOGS,
    ),
    _rule(
        r"Quota '(?P<metric>[A-Z0-9_]*(?:GPUS|TPU)[A-Z0-9_]*)' exceeded\.\s+Limit: (?P<limit>[\d.]+)"
        r" in region (?P<region>[a-z0-9-]+)",
        code="quota-accelerator",
        kind=FailureKind.QUOTA,
        scope=Scope.REGION,
        resource=Resource.ACCELERATOR,
        explanation="{metric} is used up in {region} (limit {limit})",
        example="QUOTA_EXCEEDED: Quota 'NVIDIA_T4_GPUS' exceeded.  Limit: 32.0 in region us-central1.",
        source=_LOGS,
    ),
    _rule(
        r"Quota '(?P<metric>[A-Z0-9_]+)' exceeded\.\s+Limit: (?P<limit>[\d.]+) in region (?P<region>[a-z0-9-]+)",
        code="quota-region",
        kind=FailureKind.QUOTA,
        scope=Scope.REGION,
        explanation="{metric} is used up in {region} (limit {limit})",
        example="QUOTA_EXCEEDED: Quota 'CPUS' exceeded.  Limit: 24.0 in region us-west1.",
        source=_LOGS,
    ),
    _rule(
        r"ZONE_RESOURCE_POOL_EXHAUSTED|does not have enough resources available|STOCKOUT"
        r"|reason:?\s*resource_availability",
        code="stockout",
        kind=FailureKind.STOCKOUT,
        scope=Scope.ZONE,
        resource=Resource.ACCELERATOR,
        explanation="zone pool exhausted",
        example=(
            "Startup of the worker pool in zone us-central1-a failed to bring up any of the desired 1 workers."
            " ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS: The zone 'projects/p/zones/us-central1-a' does not have enough"
            " resources available to fulfill the request. (resource type:compute)"
        ),
        source=_LOGS,
    ),
    _rule(
        r"The resource '[^']*/zones/(?P<zone>[a-z0-9-]+)/(?:accelerator|machine)Types/[^']+' was not found",
        code="not-offered",
        kind=FailureKind.NOT_OFFERED,
        scope=Scope.ZONE,
        resource=Resource.ACCELERATOR,
        explanation="{zone} does not offer it",
        example=(
            "RESOURCE_NOT_FOUND: The resource 'projects/p/zones/us-east1-a/acceleratorTypes/nvidia-l4' was not found."
        ),
        source=_LOGS,
    ),
    _rule(
        r"Unable to pull container image|Image pull request failed|pull access denied|manifest for \S+ not found",
        code="image-pull",
        kind=FailureKind.IMAGE,
        scope=Scope.JOB,
        explanation="the workers cannot pull the container image",
        example="Error syncing pod: Unable to pull container image due to error: pull access denied",
        source=_ERRORS_PAGE,
    ),
    _rule(
        r"no worker activity has been seen in the last",
        code="stuck",
        kind=FailureKind.STOCKOUT,
        scope=Scope.ZONE,
        resource=Resource.ACCELERATOR,
        explanation="no worker ever came up; the service gave the job up as stuck",
        example="The job appears to be stuck because no worker activity has been seen in the last 25m.",
        source=_TPU_PAGE,
    ),
    _rule(
        r"[Pp]ipeline construction environment and pipeline runtime environment are not compatible|unknown opcode",
        code="python-version",
        kind=FailureKind.IMAGE,
        scope=Scope.JOB,
        explanation="the pipeline was built with another Python or Beam version than the workers run",
        example=(
            "RuntimeError: Pipeline construction environment and pipeline runtime environment are not compatible. If"
            " you use a custom container image, check that the Python interpreter minor version and the Apache Beam"
            " version in your image match the versions used at pipeline construction time."
        ),
        source="apache_beam.runners.worker.sdk_worker, 2.77; " + _GPU_PAGE,
    ),
)

USER_CODE = re.compile(
    r"Traceback \(most recent call last\)|work item (?:has )?failed 4 times|Error processing instruction"
)
_ZONE_WORDS = (
    re.compile(r"worker pool in zone (?P<zone>[a-z]+-[a-z]+\d+-[a-z0-9]+)"),
    re.compile(r"zones/(?P<zone>[a-z]+-[a-z]+\d+-[a-z0-9]+)"),
)
_HINT = re.compile(r"zonesAvailable\"?[:=]\s*\"?(?P<zones>[a-z0-9,\s-]+)")


def classify(signals: Signals) -> Failure | None:
    """Return what the signals mean, or ``None`` when nothing in them speaks of a failure.

    Once the accelerator was confirmed, shortages are no longer possible causes: whatever such words appear in the log
    came from user code.
    """
    if signals.state is JobState.CANCELLED:
        return Failure(kind=FailureKind.CANCELLED, scope=Scope.NONE, explanation="somebody cancelled the job")
    failed = signals.state is JobState.FAILED
    texts = [
        m.text.replace("\r\n", "\n") for m in signals.messages if m.importance in {Importance.WARNING, Importance.ERROR}
    ]
    if not signals.accelerator_confirmed:
        spoken = _by_rule("\n".join(_TRACEBACK.sub("", text) for text in texts), signals)
        # While the job lives, warnings about single workers are the service's own business once any of them is up.
        if spoken and (failed or not signals.workers_seen):
            return spoken
    if failed:
        return _ended(texts)
    if signals.start_timeout:
        return _too_late(signals)
    return None


def _by_rule(text: str, signals: Signals) -> Failure | None:
    for rule in RULES:
        match = rule.pattern.search(text)
        if match:
            return _failure(rule, match, text, signals)
    return None


def _failure(rule: Rule, match: re.Match[str], text: str, signals: Signals) -> Failure:
    said = {name: value for name, value in match.groupdict().items() if value}
    zones = (pattern.search(text) for pattern in _ZONE_WORDS)
    zone = next((found["zone"] for found in zones if found), None)
    hint = _HINT.search(text)
    return Failure(
        kind=rule.kind,
        scope=rule.scope,
        resource=rule.resource,
        zone=zone,
        region=said.get("region") or signals.region,
        metric=said.get("metric") or ("GPUS_ALL_REGIONS" if rule.code == "quota-all-gpus" else None),
        hint_zones=tuple(part.strip() for part in hint["zones"].split(",") if part.strip()) if hint else (),
        explanation=rule.explanation.format(**said) if said else rule.explanation,
        evidence=_around(text, match),
    )


def _ended(texts: Sequence[str]) -> Failure:
    """Judge a job that failed with no words of the service's that the table knows."""
    code = [text for text in texts if USER_CODE.search(text)]
    with_traceback = next((text for text in code if _TRACEBACK.search(text)), None)
    if code:
        return Failure(
            kind=FailureKind.USER_CODE,
            scope=Scope.JOB,
            explanation="the pipeline's own code raised",
            evidence=_tail(with_traceback or code[-1]),
        )
    last = texts[-1] if texts else ""
    said = "the job failed in words this release does not know" if last else "the job failed and said nothing"
    return Failure(kind=FailureKind.UNKNOWN, scope=Scope.JOB, explanation=said, evidence=_tail(last))


def _too_late(signals: Signals) -> Failure:
    return Failure(
        kind=FailureKind.STOCKOUT,
        scope=Scope.ZONE,
        resource=Resource.ACCELERATOR,
        region=signals.region,
        explanation="no worker came up within start_timeout",
    )


def _around(text: str, match: re.Match[str]) -> str:
    """Return the line the words stand in, so that evidence can be read and searched for."""
    start = text.rfind("\n", 0, match.start()) + 1
    end = text.find("\n", match.end())
    return text[start : end if end >= 0 else len(text)].strip()[:_EVIDENCE_LENGTH]


def _tail(text: str) -> str:
    """Return the last lines of a text: those of a traceback say what happened."""
    text = text.strip()
    if len(text) <= _EVIDENCE_LENGTH:
        return text
    cut = text[-_EVIDENCE_LENGTH:]
    _, newline, whole_lines = cut.partition("\n")
    return f"…\n{whole_lines}" if newline else cut


_REFUSALS: tuple[tuple[re.Pattern[str], FailureKind, str], ...] = (
    (
        re.compile(r"HttpForbiddenError|\bstatus'?: '?403\b|PERMISSION_DENIED|api_core\.exceptions\.\w+: 40[13]\b"),
        FailureKind.PERMISSION,
        "the service refused the caller",
    ),
    (
        re.compile(
            r"HttpBadRequestError|\bstatus'?: '?400\b|INVALID_ARGUMENT|api_core\.exceptions\.\w+: 4(?:00|04|12)\b"
        ),
        FailureKind.CONFIGURATION,
        "the service refused the job",
    ),
    (
        re.compile(r"Http\w*Error|\bstatus'?: '?(?:429|5\d\d)\b|api_core\.exceptions\.\w+: (?:429|5\d\d)\b"),
        FailureKind.SERVICE,
        "the service did not take the job",
    ),
)
"""How Google's clients word a refused call in a launcher's output: apitools, gRPC, and google.api_core.

The last is what Beam 2.77 submits jobs with; its exceptions print as ``….exceptions.Forbidden: 403 POST …``.
"""


def classify_launch(exit_code: int, last_lines: Sequence[str]) -> Failure:
    """Return what it means that a launcher ended and left no job.

    None of it speaks about places: nothing was asked of one yet.
    """
    text = "\n".join(last_lines)
    if exit_code == 0:
        said = "the launcher ended without making the job; does the pipeline pass its arguments on to PipelineOptions?"
        return Failure(kind=FailureKind.CONFIGURATION, scope=Scope.JOB, explanation=said, evidence=_tail(text))
    for pattern, kind, explanation in _REFUSALS:
        if pattern.search(text):
            return Failure(kind=kind, scope=Scope.JOB, explanation=explanation, evidence=_tail(text))
    said = f"the launcher ended with exit code {exit_code} before there was a job"
    return Failure(kind=FailureKind.USER_CODE, scope=Scope.JOB, explanation=said, evidence=_tail(text))
