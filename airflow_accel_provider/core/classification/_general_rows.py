"""Rows of bare codes: they are asked last, when no sentence around them said more."""

from __future__ import annotations

from airflow_accel_provider.core.classification._rule import REGION, Rule, row
from airflow_accel_provider.core.classification._sources import (
    ERRORS_PAGE,
    JOB_LOGS,
    SPARK_QUOTAS_PAGE,
    TEMPLATES_PAGE,
)
from airflow_accel_provider.core.failures import FailureKind, Resource, Scope

_METRICS = "Compute Engine API v1, discovery document, Quota.metric, 2026-11"

GENERAL_ROWS: tuple[Rule, ...] = (
    row(
        r"\bPERMISSION_DENIED\b|\bUNAUTHENTICATED\b|[Pp]ermission [\"'][\w.]{3,100}[\"'] denied|lacks IAM permission|"
        r"cannot act as service account|does not have access to act as|Required '[\w.]{3,100}' permission",
        code="permission",
        kind=FailureKind.PERMISSION,
        scope=Scope.JOB,
        explanation="an identity lacks a permission",
        advice="grant what the message names to the account it names (roles/dataflow.worker, roles/dataproc.worker, …)",
        example='Permission "artifactregistry.repositories.get" denied on resource "projects/acme".',
        source=TEMPLATES_PAGE,
        only_at_end=True,
    ),
    row(
        r"\bINVALID_ARGUMENT\b|\bINVALID_FIELD_VALUE\b|\bFAILED_PRECONDITION\b|\bUNSUPPORTED_OPERATION\b|"
        r"\b(?:RESOURCE_)?NOT_FOUND\b",
        code="invalid-argument",
        kind=FailureKind.CONFIGURATION,
        scope=Scope.JOB,
        explanation="the service refused what the job asked for",
        advice="the message names the field or property; mend it, no other place will take the job as it is",
        example="INVALID_ARGUMENT: Attempted to set unsupported properties: [spark:spark.master]",
        source=JOB_LOGS,
        only_at_end=True,
    ),
    row(
        r"\bRESOURCE_EXHAUSTED\b",
        code="exhausted",
        kind=FailureKind.SERVICE,
        scope=Scope.NONE,
        explanation="ambiguous: a limit of the service was met, the message doesn't say which",
        advice="try again after a minute; if it comes again, compare the region's quotas with what the job asks for",
        example="RESOURCE_EXHAUSTED: Too many requests, please try again in 60 seconds.",
        source=SPARK_QUOTAS_PAGE,
        only_at_end=True,
        ambiguous=True,
    ),
    row(
        r"\bInternal Issue \(|\bUNAVAILABLE\b|\bDEADLINE_EXCEEDED\b|[Uu]nknown Error|\bINTERNAL\b:",
        code="service-trouble",
        kind=FailureKind.SERVICE,
        scope=Scope.NONE,
        explanation="the service had trouble of its own",
        advice="try again in the same place after some minutes; then give Google's support the number in the message",
        example="Workflow failed. Causes: Internal Issue (ff80c197c8903cfc): 82159483:17",
        source=ERRORS_PAGE,
        only_at_end=True,
    ),
    row(
        r"\b(?P<metric>GPUS_ALL_REGIONS)\b",
        code="metric-named-project",
        kind=FailureKind.QUOTA,
        scope=Scope.PROJECT,
        resource=Resource.ACCELERATOR,
        explanation="ambiguous: the message names the quota {metric} in words this release does not know",
        advice="it caps all GPUs of the project together: look at its limit and usage",
        example="プロジェクトの割り当て「GPUS_ALL_REGIONS」を超えました。",
        source=_METRICS,
        only_at_end=True,
        ambiguous=True,
    ),
    row(
        r"\b(?P<metric>(?:PREEMPTIBLE_)?NVIDIA_[A-Z0-9_]{1,40}_GPUS|GPUS_PER_GPU_FAMILY|"
        rf"TPUS_PER_TPU_FAMILY|TPU_LITE_PODSLICE_V5)\b(?:.{{0,120}}?\b(?P<region>{REGION})\b(?!-))?",
        code="metric-named",
        kind=FailureKind.QUOTA,
        scope=Scope.REGION,
        resource=Resource.ACCELERATOR,
        explanation="ambiguous: the message names the quota {metric} in words this release does not know",
        advice="look at that quota's limit and usage in {region}",
        example="割り当て「NVIDIA_L4_GPUS」を超えました（リージョン us-central1）。",
        source=_METRICS,
        only_at_end=True,
        ambiguous=True,
    ),
)
