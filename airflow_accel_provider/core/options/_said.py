"""What a request says, whichever of its parameters and options says it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from airflow_accel_provider.core.accelerators import Cpu, Gpu
from airflow_accel_provider.core.options._accelerator import worker_accelerator
from airflow_accel_provider.core.reservations import ANY, AUTOMATIC

if TYPE_CHECKING:
    from airflow_accel_provider.core.placement import Placement
    from airflow_accel_provider.core.request import BeamRequest

DISK_SIZE_GB = 50
"""Boot disk of a worker with an accelerator, unless the user says otherwise: CUDA does not fit Dataflow's 25 GB.

Source: https://cloud.google.com/dataflow/docs/gpu/use-gpus and …/dataflow/docs/tpu/use-tpus, read 2026-11 ("50 GB").
"""

ONE_PROCESS = "no_use_multiple_sdk_containers"
"""The experiment that starts one Python process per worker instead of one per vCPU, so that a device has one user.

Source: https://cloud.google.com/dataflow/docs/gpu/use-gpus and …/dataflow/docs/tpu/use-tpus, read 2026-11.
"""

LABELS = ("label", "labels")
EXPERIMENTS = ("experiment", "experiments")
SERVICE_OPTIONS = ("dataflow_service_option", "dataflow_service_options")


def merged_labels(request: BeamRequest) -> dict[str, str]:
    """Return the user's labels from options and parameter; the parameter wins."""
    labels: dict[str, str] = {}
    for value in _options_named(request, LABELS):
        labels |= _label_pairs(value)
    return labels | _label_pairs(request.labels)


def merged_service_options(request: BeamRequest) -> tuple[str, ...]:
    """Return the user's Dataflow service options from parameter and options, each once."""
    return _united(request.service_options, *_options_named(request, SERVICE_OPTIONS))


def merged_experiments(request: BeamRequest) -> tuple[str, ...]:
    """Return the user's experiments from parameter and options, each once."""
    return _united(request.experiments, *_options_named(request, EXPERIMENTS))


def accelerator_options(request: BeamRequest, placement: Placement) -> tuple[str, ...]:
    """Return the service option that asks for the placement's accelerator, unless the user wrote it out."""
    written = (*merged_service_options(request), *merged_experiments(request))
    if isinstance(placement.accelerator, Cpu) or any("worker_accelerator=" in item for item in written):
        return ()
    value = worker_accelerator(placement.accelerator, driver_version=request.driver_version, use_mps=request.use_mps)
    return (f"worker_accelerator={value}",)


def reservation_options(request: BeamRequest) -> tuple[str, ...]:
    """Return the service option by which workers take any reservation that fits, where that is asked for.

    The one that names a single reservation is not published: users who have it give it as a service option.
    """
    written = (*merged_service_options(request), *merged_experiments(request))
    return (AUTOMATIC,) if request.reservation == ANY and AUTOMATIC not in written else ()


def process_experiments(request: BeamRequest, placement: Placement) -> tuple[str, ...]:
    """Return the experiment that gives a device to one Python process, where that is what the request means."""
    # Without an accelerator to share, one process per vCPU is what uses the machine.
    shares = (
        isinstance(placement.accelerator, Cpu)
        or (request.use_mps and isinstance(placement.accelerator, Gpu))
        or request.sdk_processes == "per_vcpu"
    )
    return () if shares or ONE_PROCESS in merged_experiments(request) else (ONE_PROCESS,)


def disk_size_gb(request: BeamRequest, placement: Placement) -> int | None:
    """Return the boot disk that the request asks for, or that an accelerator's image needs."""
    if request.disk_size_gb is None and not isinstance(placement.accelerator, Cpu):
        return DISK_SIZE_GB
    return request.disk_size_gb


def own_options(
    request: BeamRequest,
    placement: Placement,
    *,
    project: str,
    job_name: str,
    labels: Mapping[str, str],
    endpoint: str | None,
) -> dict[str, Any]:
    """Return what the parameters and the placement say, as Beam options with the names Beam's Python has for them.

    ``labels`` win over the user's. The experiment for one process is left to the SDK that has several.
    """
    return {
        "project": project,
        "region": placement.region,
        "worker_zone": placement.zone,
        "machine_type": placement.machine_type,
        "job_name": job_name,
        "labels": {**merged_labels(request), **labels},
        "dataflow_service_options": [
            *accelerator_options(request, placement),
            *reservation_options(request),
            *merged_service_options(request),
        ],
        "experiments": list(merged_experiments(request)),
        "sdk_container_image": request.sdk_container_image,
        "disk_size_gb": disk_size_gb(request, placement),
        "num_workers": request.num_workers,
        "max_num_workers": request.max_num_workers,
        "number_of_worker_harness_threads": request.number_of_worker_harness_threads,
        "service_account_email": request.service_account_email,
        "network": request.network,
        "subnetwork": request.subnetwork,
        "use_public_ips": request.use_public_ips,
        "dataflow_kms_key": request.dataflow_kms_key,
        "dataflow_endpoint": endpoint,
    }


def users_options(request: BeamRequest) -> dict[str, Any]:
    """Return the user's other options; ``pipeline_options`` win over ``default_pipeline_options``."""
    merged = {*LABELS, *EXPERIMENTS, *SERVICE_OPTIONS}
    said = {**request.default_pipeline_options, **request.pipeline_options}
    return {name: value for name, value in said.items() if name not in merged}


def plain_text(value: Any) -> str:
    """Return a value as Java, Go and the template launchers read it: truth values in lower case, containers as JSON."""
    if isinstance(value, bool):
        return str(value).lower()
    return json.dumps(value) if isinstance(value, Mapping | list | tuple) else str(value)


def _options_named(request: BeamRequest, names: Iterable[str]) -> list[Any]:
    """Return the values said under any of the names, the defaults' first."""
    both = (request.default_pipeline_options, request.pipeline_options)
    return [options[name] for options in both for name in names if options.get(name) is not None]


def _united(*values: Any) -> tuple[str, ...]:
    items = [item for value in values for item in ([value] if isinstance(value, str) else value)]
    return tuple(dict.fromkeys(items))


def _label_pairs(value: Any) -> dict[str, str]:
    """Read labels in any of Beam's forms: a mapping, its JSON, ``key=value``, or a list of these.

    What has none of these forms is read as a key, for the rules of keys to refuse. Raises :class:`ValueError` for
    broken JSON.
    """
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, list | tuple):
        return {key: said for item in value for key, said in _label_pairs(item).items()}
    text = str(value)
    if text.lstrip().startswith("{"):
        return _label_pairs(json.loads(text))
    key, _, said = text.partition("=")
    return {key: said}
