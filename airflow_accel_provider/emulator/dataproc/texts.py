"""What the service says, in its own words where they are known.

Failures of a job, of quota and of stock, the refusal of properties, and the end by ttl are as people posted them. How a
queue that came to its end is worded is published nowhere; that text is ours.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow_accel_provider.emulator.dataproc.batches import Batch

TTL_EXCEEDED = "Cancelling batch as ttl exceeded"
CANCEL_REQUESTED = "Batch cancellation requested"
NO_VERSION = (
    "No runtime version specified. Using the default runtime version. It is recommended to select a specific"
    " major.minor runtime version in production, as the default runtime version may change at any time."
)


def job_failed(batch: Batch, cause: str | None) -> str:
    """Say that the code of a batch failed: with its last words, where it left any."""
    said = f"Job failed with message [{cause}]. Additional details can be found at:" if cause else None
    intro = said or "Google Cloud Dataproc Agent reports job failure. If logs are available, they can be found at:"
    console = "https://console.cloud.google.com"
    folder = batch.output_uri.rpartition("/")[0]
    return "\n".join(
        (
            intro,
            f"{console}/dataproc/batches/{batch.location}/{batch.id}?project={batch.project}",
            f"gcloud dataproc batches wait '{batch.id}' --region '{batch.location}' --project '{batch.project}'",
            f"{console}/storage/browser/{folder.removeprefix('gs://')}/",
            f"{batch.output_uri}.*",
        )
    )


def several(problems: Sequence[str]) -> str:
    """Say everything that is wrong: a list, unless it is one thing."""
    if len(problems) == 1:
        return problems[0]
    return "\n".join(("Multiple validation errors:", *(f" - {problem}" for problem in problems)))


def quota_short(metric: str, *, needed: float, available: float) -> str:
    """Say that a quota leaves too little room."""
    return f"Insufficient '{metric}' quota. Requested {needed:.1f}, available {max(available, 0.0):.1f}."


def out_of_stock(*, project: str, zone: str) -> str:
    """Say that a zone has not enough of what a batch wants."""
    return (
        f"The zone 'projects/{project}/zones/{zone}' does not have enough resources available to fulfill the request."
        "  Try a different zone, or try again later."
    )


def not_offered(*, accelerator: str, region: str) -> str:
    """Say that no zone of a region has an accelerator."""
    return f"Accelerator type '{accelerator}' is not available in region '{region}'."


def allocation_timed_out(*, accelerator: str, region: str, seconds: float) -> str:
    """Say that a queued batch got no machines in time."""
    return (
        f"Batch failed: timed out waiting for resources. No capacity for accelerator '{accelerator}' became available"
        f" in region {region} within spark.dataproc.executor.provisioning.allocationTimeout of {seconds:.15g}s."
    )


def image_missing(image: str) -> str:
    """Say that a custom container image cannot be pulled."""
    return f"Failed to pull container image '{image}': not found, or access to it is denied."


def already_exists(name: str) -> str:
    """Say that there is a batch of a name."""
    return f"Already exists: Failed to create batch: Batch {name}"


def not_found(kind: str, name: str) -> str:
    """Say that there is no batch or operation of a name."""
    return f"Not found: {kind} {name}"


def unsupported(names: Sequence[str]) -> str:
    """Say which properties the service does not take."""
    return f"Attempted to set unsupported properties: [{', '.join(f'spark:{name}' for name in names)}]"
