"""Bodies of template launches: classic templates and Flex templates.

Neither environment has a field for an accelerator, so it rides in ``additionalExperiments``.
Source: https://cloud.google.com/dataflow/docs/reference/service-options and the Dataflow API v1b3, read 2026-11.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from airflow_accel_provider.core.beam_options import Sdk, load_options
from airflow_accel_provider.core.options._said import (
    accelerator_options,
    disk_size_gb,
    merged_experiments,
    merged_labels,
    merged_service_options,
    plain_text,
    process_experiments,
    reservation_options,
    users_options,
)

if TYPE_CHECKING:
    from airflow_accel_provider.core.placement import Placement
    from airflow_accel_provider.core.request import BeamRequest

_FIELDS = {"temp_location": "tempLocation", "enable_streaming_engine": "enableStreamingEngine"}
_FLEX_FIELDS = {**_FIELDS, "staging_location": "stagingLocation"}


def classic_template_launch(
    request: BeamRequest,
    placement: Placement,
    *,
    job_name: str,
    labels: Mapping[str, str],
    sdk: Sdk = "java",
) -> dict[str, Any]:
    """Return the ``LaunchTemplateParameters`` of a classic template.

    What the environment has no field for goes into ``additionalPipelineOptions``, as ``name=value`` with the names of
    the template's SDK.
    """
    environment, rest = _environment(request, placement, labels, _FIELDS, sdk)
    rest = {
        "sdk_container_image": request.sdk_container_image,
        "number_of_worker_harness_threads": request.number_of_worker_harness_threads,
        **rest,
    }
    environment["diskSizeGb"] = disk_size_gb(request, placement)
    environment["additionalPipelineOptions"] = [f"{name}={text}" for name, text in _texts(rest, sdk).items()]
    return {"jobName": job_name, "parameters": _texts(request.parameters, None), "environment": _said(environment)}


def flex_template_launch(
    request: BeamRequest,
    placement: Placement,
    *,
    container_spec_gcs_path: str,
    job_name: str,
    labels: Mapping[str, str],
    sdk: Sdk = "python",
) -> dict[str, Any]:
    """Return the ``LaunchFlexTemplateRequest`` of a Flex template.

    What the environment has no field for becomes a parameter, which the launcher hands to the pipeline. So does the
    disk's size: as ``diskSizeGb`` it has been seen not to reach the workers. The request's own ``parameters`` win.
    """
    environment, rest = _environment(request, placement, labels, _FLEX_FIELDS, sdk)
    environment["sdkContainerImage"] = request.sdk_container_image
    rest = {
        "disk_size_gb": disk_size_gb(request, placement),
        "number_of_worker_harness_threads": request.number_of_worker_harness_threads,
        **rest,
    }
    parameter = {
        "jobName": job_name,
        "containerSpecGcsPath": container_spec_gcs_path,
        "parameters": {**_texts(rest, sdk), **_texts(request.parameters, None)},
        "environment": _said(environment),
    }
    return {"launchParameter": parameter}


def _environment(
    request: BeamRequest, placement: Placement, labels: Mapping[str, str], fields: Mapping[str, str], sdk: Sdk
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the environment's fields that both kinds have, and the user's options that have no field."""
    users = users_options(request)
    experiments = [
        *accelerator_options(request, placement),
        *reservation_options(request),
        *merged_service_options(request),
        *(process_experiments(request, placement) if sdk == "python" else ()),
        *merged_experiments(request),
    ]
    addresses = {True: "WORKER_IP_PUBLIC", False: "WORKER_IP_PRIVATE"}
    environment = {
        "machineType": placement.machine_type,
        # Either of the two, never both.
        "workerZone": placement.zone,
        "workerRegion": None if placement.zone else placement.region,
        "additionalExperiments": experiments,
        "additionalUserLabels": {**merged_labels(request), **labels},
        "numWorkers": request.num_workers,
        "maxWorkers": request.max_num_workers,
        "serviceAccountEmail": request.service_account_email,
        "network": request.network,
        "subnetwork": request.subnetwork,
        "kmsKeyName": request.dataflow_kms_key,
        "ipConfiguration": None if request.use_public_ips is None else addresses[request.use_public_ips],
        **{field: users.pop(name) for name, field in fields.items() if name in users},
    }
    return environment, users


def _texts(options: Mapping[str, Any], sdk: Sdk | None) -> dict[str, str]:
    """Return options as the texts that a template takes, by the names of its SDK where one is given."""
    table = load_options(sdk) if sdk else None
    return {
        (table and table.name_of(name)) or name: _text(value) for name, value in options.items() if value is not None
    }


def _text(value: Any) -> str:
    return ",".join(map(plain_text, value)) if isinstance(value, list | tuple) else plain_text(value)


def _said(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None and value != []}
