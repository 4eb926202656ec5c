"""Template files: the specification of a Flex Template, and what of a launch departs from it.

Source of the words: answers of flexTemplates.launch published in issues of terraform-provider-google and
DataflowTemplates, read 2026-11-30.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from airflow_accel_provider.emulator.dataflow import texts
from airflow_accel_provider.emulator.dataflow.reading import read_message
from airflow_accel_provider.emulator.shapes import form_problems
from airflow_accel_provider.emulator.wire import GoogleError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from airflow_accel_provider.emulator.storage import Buckets

PIPELINE_OPTIONS = frozenset(
    {
        "autoscaling_algorithm",
        "cloud_build_machine_type",
        "create_from_snapshot",
        "dataflow_kms_key",
        "dataflow_service_options",
        "default_sdk_harness_log_level",
        "disk_size_gb",
        "enable_streaming_engine",
        "experiments",
        "extra_packages",
        "flexrs_goal",
        "gcp_oauth_scopes",
        "impersonate_service_account",
        "job_name",
        "labels",
        "machine_type",
        "max_num_workers",
        "min_cpu_platform",
        "network",
        "num_workers",
        "number_of_worker_harness_threads",
        "pickle_library",
        "prebuild_sdk_container_engine",
        "region",
        "requirements_file",
        "resource_hints",
        "save_main_session",
        "sdk_container_image",
        "sdk_harness_container_image_overrides",
        "sdk_location",
        "service_account_email",
        "setup_file",
        "staging_location",
        "subnetwork",
        "temp_location",
        "template_location",
        "transform_name_mapping",
        "use_public_ips",
        "no_use_public_ips",
        "worker_disk_type",
        "worker_machine_type",
        "worker_region",
        "worker_zone",
        "zone",
    }
)
"""What a launch may give beside the template's own parameters; ``streaming`` is known to be refused.

https://cloud.google.com/dataflow/docs/reference/pipeline-options, read 2026-11-29.
"""

_CAPITAL = re.compile(r"(?<=[a-z0-9])([A-Z])")


def read_json(buckets: Buckets, url: str) -> dict[str, Any]:
    """Return the JSON object in a file of Cloud Storage.

    Raises GoogleError: 404 when it cannot be opened, 400 when it is something else.
    """
    scheme, _, path = url.partition("gs://")
    bucket, _, name = path.partition("/")
    if scheme or not bucket or not name:
        raise GoogleError(400, f"The template file {url!r} is not a Cloud Storage path (gs://BUCKET/OBJECT).")
    try:
        content = buckets.read(bucket, name)
    except GoogleError as error:
        raise GoogleError(404, texts.template_missing(url)) from error
    try:
        value = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise GoogleError(400, texts.template_unreadable(url, str(error))) from None
    if not isinstance(value, dict):
        raise GoogleError(400, texts.template_unreadable(url, "it is not a JSON object"))
    return value


def read_spec(buckets: Buckets, url: str) -> dict[str, Any]:
    """Return a Flex Template's specification.

    Raises GoogleError as ``read_json`` does, and 400 for one that names no image or language.
    """
    spec = read_json(buckets, url)
    problems = form_problems("ContainerSpec", spec)
    if problems:
        raise GoogleError(400, texts.template_unreadable(url, "; ".join(problems)))
    if not spec.get("sdkInfo", {}).get("language"):
        raise GoogleError(400, "No SDK language information is provided.")
    if not spec.get("image"):
        raise GoogleError(400, texts.template_unreadable(url, "it names no image"))
    return read_message(spec, "ContainerSpec")


def check_parameters(spec: Mapping[str, Any], parameters: Mapping[str, str]) -> None:
    """Raise GoogleError 400 with every parameter that is missing, unknown or not of its form."""
    violations = [f"{name}: {what}" for name, what in _violations(spec, parameters)]
    if violations:
        raise GoogleError(400, "The template parameters are invalid. Details: \n" + "\n".join(violations))


def _violations(spec: Mapping[str, Any], parameters: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    if "metadata" not in spec:
        return
    known = {entry["name"]: entry for entry in spec["metadata"].get("parameters", ())}
    for name, entry in known.items():
        if name not in parameters and not entry.get("isOptional"):
            yield name, "Missing required parameter"
    for name, value in parameters.items():
        if name not in known and _CAPITAL.sub(r"_\1", name).lower() not in PIPELINE_OPTIONS:
            yield name, "Unrecognized parameter"
        for pattern in known.get(name, {}).get("regexes", ()):
            if not re.fullmatch(pattern, value):
                yield name, f"Parameter didn't match regex '{pattern}'"
