"""Rows about quotas: a limit of the project, mostly for a region. Other zones of that region don't help."""

from __future__ import annotations

from airflow_accel_provider.core.classification._rule import REGION, Rule, row
from airflow_accel_provider.core.classification._sources import JOB_LOGS, SPARK_QUOTAS_PAGE
from airflow_accel_provider.core.failures import FailureKind, Resource, Scope

_QUOTA = FailureKind.QUOTA
_USED_UP = "{metric} is used up in {region}{room}"
# A metric (NVIDIA_L4_GPUS) or, in newer texts, a quota's id (NVIDIA-L4-GPUS-per-project-region).
_ACCELERATORS = r"[A-Z0-9_-]{0,60}(?:GPUS|GPU[_-]FAMILY|TPUS?)(?:[_-][A-Za-z0-9_-]{1,60})?"


def _said(metric: str, code: str | None = None) -> str:
    """Return a pattern for a quota's metric in Compute Engine's and in Dataproc's words.

    ``code`` is the metric as it may stand near ``QUOTA_EXCEEDED`` in a sentence of any language.
    """
    words = (
        rf"(?:Quota (?:limit )?|Insufficient )'(?P<metric>{metric})'(?: (?:has been )?exceeded| quota)"
        rf"(?:\.?\s+Limit: (?P<limit>\d+(?:\.\d+)?)(?: in region (?P<region>{REGION}))?)?"
        rf"(?:\.?\s+Requested [\d.]+, available (?P<left>\d+(?:\.\d+)?))?"
    )
    known = r"(?:Quota (?:limit )?|Insufficient )'"
    return rf"{words}|QUOTA_EXCEEDED\b(?!.{{0,160}}?{known}).{{0,160}}?\b(?P<code>{code})\b" if code else words


QUOTA_ROWS: tuple[Rule, ...] = (
    row(
        _said("GPUS_ALL_REGIONS", "GPUS_ALL_REGIONS"),
        code="quota-all-gpus",
        kind=_QUOTA,
        scope=Scope.PROJECT,
        resource=Resource.ACCELERATOR,
        explanation="GPUS_ALL_REGIONS is used up{room}",
        advice="it caps all GPUs of the project together: raise it; until then only a TPU or CPUs can run",
        example="QUOTA_EXCEEDED: Quota 'GPUS_ALL_REGIONS' exceeded.  Limit: 0.0 globally.",
        source=JOB_LOGS,
    ),
    row(
        _said(r"CPUS_ALL_REGIONS", "CPUS_ALL_REGIONS"),
        code="quota-all-cpus",
        kind=_QUOTA,
        scope=Scope.PROJECT,
        resource=Resource.CPU,
        explanation="CPUS_ALL_REGIONS is used up{room}",
        advice="it caps all vCPUs of the project together: raise it, or ask for fewer or smaller machines",
        example="Insufficient 'CPUS_ALL_REGIONS' quota. Requested 404.0, available 20.0.",
        source=SPARK_QUOTAS_PAGE,
    ),
    row(
        _said(_ACCELERATORS, _ACCELERATORS),
        code="quota-accelerator",
        kind=_QUOTA,
        scope=Scope.REGION,
        resource=Resource.ACCELERATOR,
        explanation=_USED_UP,
        advice="raise it there, or add a place in another region or another accelerator to fallback=",
        example="QUOTA_EXCEEDED: Quota 'NVIDIA_T4_GPUS' exceeded.  Limit: 32.0 in region us-central1.",
        source=JOB_LOGS,
    ),
    row(
        _said(r"[A-Z0-9_]{0,60}ADDRESSES[A-Z0-9_]{0,20}", "IN_USE_ADDRESSES"),
        code="quota-address",
        kind=_QUOTA,
        scope=Scope.REGION,
        resource=Resource.ADDRESS,
        explanation=_USED_UP,
        advice="set use_public_ips=False, ask for fewer workers, or raise it",
        example="Insufficient 'IN_USE_ADDRESSES' quota. Requested 3.0, available 2.0.",
        source=SPARK_QUOTAS_PAGE,
    ),
    row(
        _said(r"[A-Z0-9_]{0,60}(?:DISKS?|SSD)_[A-Z0-9_]{1,60}", r"[A-Z_]{0,30}(?:DISKS|SSD)_TOTAL_GB\w{0,40}"),
        code="quota-disk",
        kind=_QUOTA,
        scope=Scope.REGION,
        resource=Resource.DISK,
        explanation=_USED_UP,
        advice="ask for smaller disks or fewer workers, or raise it; another accelerator there seldom helps",
        example="Insufficient 'DISKS_TOTAL_GB' quota. Requested 4500.0, available 4076.0.",
        source=SPARK_QUOTAS_PAGE,
    ),
    row(
        _said(
            r"[A-Z0-9_]{0,60}CPUS[A-Z0-9_]{0,60}|[A-Z_]{0,30}INSTANCE[A-Z_]{1,40}", r"[A-Z0-9]{0,20}_?CPUS|INSTANCES"
        ),
        code="quota-cpu",
        kind=_QUOTA,
        scope=Scope.REGION,
        resource=Resource.CPU,
        explanation=_USED_UP,
        advice="ask for fewer or smaller machines, or raise it; another accelerator there seldom helps",
        example="QUOTA_EXCEEDED: Quota 'CPUS' exceeded.  Limit: 24.0 in region us-west1.",
        source=JOB_LOGS,
    ),
    row(
        r"Quota (?:limit )?'(?P<metric>[A-Z0-9_a-z-]{3,120})' (?:has been )?exceeded\.\s+"
        r"Limit: (?P<limit>\d+(?:\.\d+)?) globally",
        code="quota-project",
        kind=_QUOTA,
        scope=Scope.PROJECT,
        explanation="{metric} is used up in every region{room}",
        advice="raise it, or free what uses it",
        example="Quota 'NETWORKS' exceeded.  Limit: 5.0 globally.",
        source=JOB_LOGS,
    ),
    row(
        _said(r"[A-Za-z0-9_-]{3,120}"),
        code="quota-region",
        kind=_QUOTA,
        scope=Scope.REGION,
        explanation=_USED_UP,
        advice="raise it there, or add a place in another region to fallback=",
        example="Quota 'FIREWALLS' exceeded.  Limit: 100.0 in region us-west1.",
        source=JOB_LOGS,
    ),
    row(
        rf"insufficient quota\(s\) to execute this workflow(?: with \d+ instances in region (?P<region>{REGION}))?"
        r".{0,120}?\b\d+/0 CPUs",
        code="quota-summary-cpu",
        kind=_QUOTA,
        scope=Scope.REGION,
        resource=Resource.CPU,
        explanation="no vCPU is left in {region}",
        advice="ask for fewer or smaller machines, or raise CPUS; another accelerator there seldom helps",
        example=(
            "Workflow failed. Causes: Project acme has insufficient quota(s) to execute this workflow with 1 instances"
            " in region asia-northeast1. Quota summary (required/available): 1/236 instances, 4/0 CPUs, 430/3696 disk"
            " GB, 0/500 SSD disk GB, 1/5 in-use IP addresses."
        ),
        source="https://github.com/allenday/nanostream-dataflow/pull/79, 2019-02",
    ),
    row(
        rf"insufficient quota\(s\) to execute this workflow(?: with \d+ instances in region (?P<region>{REGION}))?",
        code="quota-summary",
        kind=_QUOTA,
        scope=Scope.REGION,
        explanation="a quota is used up in {region}; the message lists what is required and available",
        advice="raise what is short there, ask for less of it, or add a place in another region to fallback=",
        example=(
            "Workflow failed. Causes: Project acme has insufficient quota(s) to execute this workflow with 8 instances"
            " in region us-central1. Quota summary (required/available): 8/24 instances, 8/24 CPUs, 8/4 in-use IP"
            " addresses."
        ),
        source="https://github.com/allenday/nanostream-dataflow/pull/79, 2019-02",
    ),
    row(
        r"BatchOperationRequestsPerMinute|Quota exceeded for quota metric|[rR]ateLimitExceeded|RATE_LIMIT_EXCEEDED",
        code="api-rate",
        kind=FailureKind.SERVICE,
        scope=Scope.NONE,
        explanation="too many requests a minute to the service's own API",
        advice="try again after 60 seconds; the job itself is fine",
        example=(
            "RESOURCE_EXHAUSTED: Quota exceeded for quota metric 'Batch requests' and limit"
            " 'BatchOperationRequestsPerMinutePerProjectPerRegion' of service 'dataproc.googleapis.com'."
        ),
        source=SPARK_QUOTAS_PAGE,
    ),
    row(
        r"(?:\b|_)QUOTA_EXCEEDED\b",
        code="quota-unnamed",
        kind=_QUOTA,
        scope=Scope.REGION,
        explanation="a quota is used up in {region}; the message doesn't say which",
        advice="compare the region's quotas with what the job asks for",
        example="QUOTA_EXCEEDED: Instance 'x-harness-ww4n' creation failed: Quo",
        source=JOB_LOGS,
    ),
)
