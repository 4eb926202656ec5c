"""The sentences of the service, as its job messages have them.

Sources: job logs published 2020-2026, https://cloud.google.com/dataflow/docs/guides/common-errors and
https://cloud.google.com/dataflow/docs/gpu/troubleshoot-gpus, read 2026-11-29.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from airflow_accel_provider.emulator.compute.quotas import Shortage

POOL_HELP = (
    "Please refer to https://cloud.google.com/dataflow/docs/guides/common-errors#worker-pool-failure "
    "for help troubleshooting."
)
NO_LIVE_MIGRATION = "UNSUPPORTED_OPERATION: Instances with guest accelerators do not support live migration."


def pool_failure(*, zone: str, workers: int, instance: str, reason: str) -> str:
    """Say that no VM of a pool came up; ``reason`` begins with Compute Engine's error code."""
    code, _, text = reason.partition(": ")
    return (
        f"Startup of the worker pool in zone {zone} failed to bring up any of the desired {workers} workers. "
        f"{POOL_HELP} {code}: Instance '{instance}' creation failed: {text}"
    )


def out_of_stock(*, project: str, zone: str) -> str:
    """Say that a zone has none left."""
    return (
        f"ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS: The zone 'projects/{project}/zones/{zone}' does not have enough "
        "resources available to fulfill the request.  '(resource type:compute)'."
    )


def quota_exceeded(shortage: Shortage) -> str:
    """Say which quota leaves no room."""
    where = f"in region {shortage.region}" if shortage.region else "globally"
    return f"QUOTA_EXCEEDED: Quota '{shortage.metric}' exceeded. Limit: {shortage.limit:.1f} {where}."


def not_offered(*, project: str, zone: str, accelerator: str) -> str:
    """Say that a zone has no such accelerator at all."""
    resource = f"projects/{project}/zones/{zone}/acceleratorTypes/{accelerator}"
    return f"RESOURCE_NOT_FOUND: The resource '{resource}' was not found."


def host_too_large(*, cpus: int, memory_gb: float, accelerator: str, count: int) -> str:
    """Say that an N1 host has more vCPUs or memory than its accelerators allow."""
    return (
        f"UNSUPPORTED_OPERATION: '{cpus} vCpus with {memory_gb * 1024:.0f} MiB memory is an invalid configuration "
        f"for {count} count of '{accelerator}' in family 'n1'.'"
    )


def work_item_failed(*, step: str, worker: str, cause: str) -> str:
    """Say that one bundle was given up."""
    return (
        f"S01:{step} failed., The job failed because a work item has failed 4 times. Look in previous log entries for "
        "the cause of each one of the 4 failures. For more information, see "
        "https://cloud.google.com/dataflow/docs/guides/common-errors. The work item was attempted on these workers: "
        f"\n\n  {worker}\n      Root cause: {cause}"
    )
