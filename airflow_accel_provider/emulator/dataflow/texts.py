"""The sentences of the service, as its job messages have them.

Sources: job logs published 2020-2026, https://cloud.google.com/dataflow/docs/guides/common-errors and
https://cloud.google.com/dataflow/docs/gpu/troubleshoot-gpus, …/dataflow/docs/tpu/troubleshoot-tpus and
…/dataflow/docs/guides/troubleshoot-templates, read 2026-11-29. What Compute Engine says of a full reservation, or
one of another shape, is from the Kubernetes cluster autoscaler, which looks for it.
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

WORKERS_READY = "All workers have finished the startup processes and began to receive work requests."


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


def machine_not_offered(*, project: str, zone: str, machine_type: str) -> str:
    """Say that a zone has no such machine type."""
    return (
        f"RESOURCE_NOT_FOUND: The resource 'projects/{project}/zones/{zone}/machineTypes/{machine_type}' was not found."
    )


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


def no_such_reservation(*, name: str) -> str:
    """Say that a zone has no reservation of a name."""
    affinity = '{  "consumeReservationType": "SPECIFIC_ALLOCATION",  "key": "compute.googleapis.com/reservation-name"}'
    return (
        f"INVALID_FIELD_VALUE: Invalid value for field 'resource.reservationAffinity': '{affinity}'. "
        f"Specified reservations [{name}] do not exist."
    )


def reservation_of_another_shape() -> str:
    """Say that a reservation holds other machines."""
    return "CONDITION_NOT_MET: No available resources in specified reservations."


def reservation_full(*, name: str) -> str:
    """Say that every machine of a reservation is in use."""
    return f"CONDITION_NOT_MET: Specified reservation {name} does not have available resources for the request."


def tpu_option_missing(*, project: str, operation: str) -> str:
    """Say that a TPU machine was asked for without its TPU."""
    return _no_managed_group(project, operation, "Regional Managed Instance Groups")


def tpu_not_enrolled(*, project: str, operation: str) -> str:
    """Say that the project may not use TPUs on Dataflow."""
    return _no_managed_group(project, operation, "Managed Instance Groups")


def _no_managed_group(project: str, operation: str, groups: str) -> str:
    template = f"projects/{project}/global/instanceTemplates/harness"
    return (
        f"One or more operations had an error: '{operation}': [INVALID_FIELD_VALUE] 'Invalid value for field "
        f"'resource.instanceTemplate': '{template}'. {groups} do not support Cloud TPUs.'."
    )


def image_unavailable(image: str) -> str:
    """Say that a container image cannot be pulled."""
    return (
        "Unable to pull container image due to error: Image pull request failed with error: "
        f"manifest for {image} not found: manifest unknown: Failed to fetch"
    )


STUCK = (
    "The Dataflow job appears to be stuck because no worker activity has been seen in the last 1h. Please check the "
    "worker logs. For more information, see https://cloud.google.com/dataflow/docs/guides/common-errors."
)


def launcher_not_started(*, vm: str, status: str, reason: str) -> str:
    """Say that the VM which was to launch a template did not come up."""
    return f"Failed to start the VM, {vm}, used for launching because of status code: {status}, reason: {reason}"


def launcher_shortage(*, operation: str, code: str, text: str) -> str:
    """Return the reason of a launcher that did not find room."""
    return f"One or more operations had an error: '{operation}': [{code}] '{text}'.."


def launcher_silent(*, result: str, account: str, image: str) -> str:
    """Say that a launcher never reported back, as it cannot when its image was never there."""
    return (
        f"Timeout in polling result file: {result}.\nService account: {account}\nImage URL: {image}\n"
        "Troubleshooting guide at https://cloud.google.com/dataflow/docs/guides/common-errors#timeout-polling"
    )


def launcher_failed(status: int) -> str:
    """Say how the program that was to build a template's job ended."""
    return f"Error: Template launch failed: exit status {status}"


LAUNCHER_FAILED = "Error occurred in the launcher container: Template launch failed. See console logs."


def job_file_unreadable(url: str, why: str) -> str:
    """Say that the program ended well and left no job."""
    return f"Failed to read the job file: {url} with error message: {why}."


def template_missing(url: str) -> str:
    """Say that there is no such template file."""
    return f"Unable to open template file: {url}."


def template_unreadable(url: str, why: str) -> str:
    """Say that a template file is not what it should be."""
    return f"Unable to parse template file '{url}': {why}."


def name_in_use(name: str) -> str:
    """Say that a job of the name is active."""
    return (
        f"The workflow could not be created. Causes: There is already an active job named {name}. "
        "If you want to submit a second job, try again by setting a different name."
    )
