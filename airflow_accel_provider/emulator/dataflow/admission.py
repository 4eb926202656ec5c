"""What the service refuses at the door, before there is a job.

The door (HTTP 400) checks what Beam's own validators check as well, for Beam skips them where its endpoint is local.
"""

from __future__ import annotations

import difflib
import re
import unicodedata
from collections.abc import Iterator, Mapping
from typing import Any

from airflow_accel_provider.emulator.compute.tables import ACCELERATORS, ZONES
from airflow_accel_provider.emulator.dataflow.demand import (
    ACCELERATOR_OPTION,
    ANY_RESERVATION,
    STREAMING,
    AcceleratorRequest,
    ReservationName,
    accelerator_values,
    first_pool,
    names_reservation,
    reservation_values,
)
from airflow_accel_provider.emulator.wire import GoogleError

SERVICE_OPTIONS = frozenset(
    {
        ACCELERATOR_OPTION,
        ANY_RESERVATION,
        "block_project_ssh_keys",
        "enable_confidential_compute",
        "enable_dynamic_thread_scaling",
        "enable_google_cloud_heap_sampling",
        "enable_google_cloud_profiler",
        "enable_image_streaming",
        "enable_lineage",
        "enable_preflight_validation",
        "enable_prime",
        "enable_secure_boot",
        "enable_streaming_engine_resource_based_billing",
        "graph_validate_only",
        "max_workflow_runtime_walltime_seconds",
        "min_num_workers",
        "parallel_replace_job_name_prefix",
        "sdf_checkpoint_after_duration",
        "sdf_checkpoint_after_output_bytes",
        "streaming_mode_at_least_once",
        "streaming_mode_exactly_once",
        "worker_utilization_hint",
    }
)
"""https://cloud.google.com/dataflow/docs/reference/service-options, from memory of the page, 2026-11-29."""

UNREACHABLE_REGION = (
    "The workflow could not be created, since it was sent to an invalid or unreachable region. "
    "Please resubmit with a valid region."
)
JOB_TYPES = ("JOB_TYPE_BATCH", STREAMING)
JOB_NAME = re.compile(r"[a-z]([-a-z0-9]{0,1022}[a-z0-9])?")
"""From the discovery document, ``Job.name``."""
MOST_LABELS = 64
MOST_WORKERS = 1000

_BUCKET = re.compile(r"[a-z0-9][a-z0-9._-]{1,220}[a-z0-9]")
_SUBNETWORK = re.compile(r"(?:.*/)?regions/(?P<region>[^/]+)/subnetworks/[^/]+")


def require_region(region: str) -> None:
    """Raise GoogleError 400 unless Dataflow runs in the region."""
    if region not in ZONES:
        raise GoogleError(400, f"{UNREACHABLE_REGION} Region: {region}.{_near(region, ZONES)}")


def admit(request: Mapping[str, Any], *, location: str) -> None:
    """Raise GoogleError 400 with everything that is wrong with a request to create a job."""
    require_region(location)
    problems = list(_problems(request, location))
    if problems:
        raise GoogleError(400, "The workflow could not be created. Causes: " + "; ".join(problems))


def require_launchable(*, name: str, labels: Mapping[str, str], environment: Mapping[str, Any], location: str) -> None:
    """Raise GoogleError 400 with everything that is wrong with a template's launch, as far as that can be told yet."""
    require_region(location)
    problems = [*_name_problems(name), *_label_problems(labels), *_place_problems(environment, location)]
    for field in ("tempLocation", "stagingLocation"):
        problems += _url_problems(field, environment.get(field) or "gs://default")
    if problems:
        raise GoogleError(400, "The template could not be launched. Causes: " + "; ".join(problems))


def _problems(request: Mapping[str, Any], location: str) -> Iterator[str]:
    yield from _name_problems(request.get("name", ""))
    environment = request.get("environment", {})
    if request.get("type") not in JOB_TYPES:
        yield f"jobs of type {request.get('type')} cannot run; {' and '.join(JOB_TYPES)} can"
    yield from _path_problems(environment)
    yield from _place_problems(environment, location)
    yield from _label_problems(request.get("labels", {}))
    yield from _option_problems(environment)
    yield from _pool_problems(environment)


def _path_problems(environment: Mapping[str, Any]) -> Iterator[str]:
    prefix = environment.get("tempStoragePrefix", "")
    if not _BUCKET.fullmatch(prefix.removeprefix("storage.googleapis.com/").partition("/")[0]):
        yield f"the temp location {prefix!r} names no Cloud Storage bucket"
    options = environment.get("sdkPipelineOptions", {}).get("options", {})
    for key in ("temp_location", "staging_location", "pipelineUrl"):
        url = options.get(key)
        if url is not None or key == "pipelineUrl":
            yield from _url_problems(key, url)


def _url_problems(name: str, url: object) -> Iterator[str]:
    scheme, _, path = str(url).partition("gs://")
    if url is None or scheme or not _BUCKET.fullmatch(path.partition("/")[0]):
        yield f"{name} must be a Cloud Storage path (gs://BUCKET/PATH), not {url!r}"


def _name_problems(name: str) -> Iterator[str]:
    if not JOB_NAME.fullmatch(name):
        yield f"the job name {name!r} does not match {JOB_NAME.pattern}"


def _place_problems(environment: Mapping[str, Any], location: str) -> Iterator[str]:
    region, zone = environment.get("workerRegion"), environment.get("workerZone")
    old_zone = first_pool(environment).get("zone")
    if region and zone:
        yield f"worker_region ({region}) and worker_zone ({zone}) are mutually exclusive"
    if zone and old_zone:
        yield f"worker_zone ({zone}) and zone ({old_zone}) are mutually exclusive"
    if region and region not in ZONES:
        yield f"there is no worker region {region!r}.{_near(region, ZONES)}"
    home = region if region and region in ZONES else location
    for pinned in filter(None, (zone, old_zone)):
        if pinned not in ZONES[home]:
            yield f"the worker zone {pinned!r} is not in region {home} ({', '.join(ZONES[home])})"
    subnetwork = first_pool(environment).get("subnetwork", "")
    match = _SUBNETWORK.fullmatch(subnetwork)
    if subnetwork and not match:
        yield f"the subnetwork {subnetwork!r} is not of the form regions/REGION/subnetworks/NAME"
    elif match and match["region"] != home:
        yield f"the subnetwork {subnetwork!r} is not in region {home}"


def _label_problems(labels: Mapping[str, str]) -> Iterator[str]:
    if len(labels) > MOST_LABELS:
        yield f"{len(labels)} labels, at most {MOST_LABELS} are allowed"
    for key, value in labels.items():
        if not (0 < len(key) <= 63 and _is_label_text(key) and unicodedata.category(key[0]) in {"Ll", "Lo"}):
            yield f"the label key {key!r} is not valid"
        if not (len(value) <= 63 and _is_label_text(value)):
            yield f"the value {value!r} of label {key!r} is not valid"


def _is_label_text(text: str) -> bool:
    # [\p{Ll}\p{Lo}\p{N}_-]*, as the discovery document has it.
    return all(letter in "_-" or unicodedata.category(letter) in {"Ll", "Lo", "Nd", "Nl", "No"} for letter in text)


def _option_problems(environment: Mapping[str, Any]) -> Iterator[str]:
    for option in environment.get("serviceOptions", ()):
        key = option.partition("=")[0]
        if key not in SERVICE_OPTIONS and not names_reservation(option):
            yield f"unknown service option {option!r}.{_near(key, SERVICE_OPTIONS)}"
    yield from _accelerator_problems(environment)
    yield from _reservation_problems(environment)


def _accelerator_problems(environment: Mapping[str, Any]) -> Iterator[str]:
    values = accelerator_values(environment)
    if len(values) > 1:
        yield f"more than one {ACCELERATOR_OPTION}: {', '.join(values)}"
    if values and "enable_prime" in environment.get("serviceOptions", ()):
        yield f"{ACCELERATOR_OPTION} cannot be combined with enable_prime"
    for value in values:
        try:
            wanted = AcceleratorRequest.parse(value)
        except ValueError as error:
            yield str(error)
        else:
            if wanted.type not in ACCELERATORS:
                yield f"unknown accelerator type {wanted.type!r}.{_near(wanted.type, ACCELERATORS)}"


def _reservation_problems(environment: Mapping[str, Any]) -> Iterator[str]:
    values = reservation_values(environment)
    if len(values) > 1:
        yield f"more than one reservation: {', '.join(values)}"
    for value in values:
        try:
            ReservationName.parse(value)
        except ValueError as error:
            yield str(error)


def _pool_problems(environment: Mapping[str, Any]) -> Iterator[str]:
    pool = first_pool(environment)
    workers, most = pool.get("numWorkers", 0), pool.get("autoscalingSettings", {}).get("maxNumWorkers", 0)
    for name, number in (("num_workers", workers), ("max_num_workers", most)):
        if not 0 <= number <= MOST_WORKERS:
            yield f"{name} must be between 1 and {MOST_WORKERS}, not {number}"
    if most and workers > most:
        yield f"num_workers ({workers}) must not exceed max_num_workers ({most})"


def _near(word: str, known: object) -> str:
    near = (
        difflib.get_close_matches(word, sorted(map(str, known)), n=1) if isinstance(known, Mapping | frozenset) else []
    )
    return f" Did you mean {near[0]!r}?" if near else ""
