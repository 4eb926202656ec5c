"""How a template's program is run: its file, its flags, and where it leaves the job it builds.

As the launcher in Google's images for Python templates does it. A disk size in the environment does not reach the
workers there either: it has no flag here.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_FLAGS: Mapping[str, str] = {
    "autoscalingAlgorithm": "autoscaling_algorithm",
    "flexrsGoal": "flexrs_goal",
    "kmsKeyName": "dataflow_kms_key",
    "machineType": "machine_type",
    "maxWorkers": "max_num_workers",
    "network": "network",
    "numWorkers": "num_workers",
    "sdkContainerImage": "sdk_container_image",
    "serviceAccountEmail": "service_account_email",
    "subnetwork": "subnetwork",
    "workerRegion": "worker_region",
    "workerZone": "worker_zone",
    "zone": "zone",
}
_WORDS: Mapping[str, str] = {
    "AUTOSCALING_ALGORITHM_BASIC": "THROUGHPUT_BASED",
    "AUTOSCALING_ALGORITHM_NONE": "NONE",
    "FLEXRS_COST_OPTIMIZED": "COST_OPTIMIZED",
    "FLEXRS_SPEED_OPTIMIZED": "SPEED_OPTIMIZED",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """One launch. ``file`` is the program that stands for ``image``, None where nothing does."""

    image: str
    file: str | None
    flags: tuple[str, ...]
    staging: str
    machine_type: str
    zone: str

    @property
    def job_object(self) -> str:
        """Return where the program leaves the job."""
        return f"{self.staging}/job_object"


def default_bucket(location: str, project_number: int) -> str:
    """Return the name of the bucket that the service makes for a region where none is given."""
    return f"dataflow-staging-{location}-{project_number}"


def folders(environment: Mapping[str, Any], *, bucket: str) -> tuple[str, str]:
    """Return the folders for staged and for temporary files, in the service's own bucket where none is given."""
    default = f"gs://{bucket}"
    temp = environment.get("tempLocation") or f"{default}/temp"
    staging = environment.get("stagingLocation") or f"{environment.get('tempLocation') or default}/staging"
    return staging.rstrip("/"), temp.rstrip("/")


def flags_of(
    *,
    project: str,
    location: str,
    job_name: str,
    endpoint: str,
    staging: str,
    temp: str,
    job_object: str,
    environment: Mapping[str, Any],
    parameters: Mapping[str, str],
) -> tuple[str, ...]:
    """Return the command-line flags of a launch; the parameters come last, so that they win."""
    return (
        "--runner=DataflowRunner",
        f"--project={project}",
        f"--region={location}",
        f"--job_name={job_name}",
        f"--template_location={job_object}",
        f"--staging_location={staging}",
        f"--temp_location={temp}",
        f"--dataflow_endpoint={endpoint}",
        *_environment_flags(environment),
        *(f"--{name}={value}" for name, value in parameters.items()),
    )


def _environment_flags(environment: Mapping[str, Any]) -> Iterator[str]:
    for field, flag in _FLAGS.items():
        value = environment.get(field)
        if value and not str(value).endswith(("_UNSPECIFIED", "_UNKNOWN")):
            yield f"--{flag}={_WORDS.get(value, value)}"
    addresses = environment.get("ipConfiguration")
    if addresses in {"WORKER_IP_PRIVATE", "WORKER_IP_PUBLIC"}:
        yield "--use_public_ips" if addresses == "WORKER_IP_PUBLIC" else "--no_use_public_ips"
    if environment.get("enableStreamingEngine"):
        yield "--enable_streaming_engine"
    if labels := environment.get("additionalUserLabels"):
        yield f"--labels={json.dumps(labels)}"
    for experiment in environment.get("additionalExperiments", ()):
        yield f"--experiments={experiment}"
    for option in environment.get("additionalPipelineOptions", ()):
        yield f"--{option.removeprefix('--')}"
