"""What a request becomes on the wire: the argument list of a Beam Python launcher."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from airflow_accel_provider.core.accelerators import Accelerator, Cpu, Gpu

if TYPE_CHECKING:
    from airflow_accel_provider.core.placement import Placement
    from airflow_accel_provider.core.request import BeamRequest

DISK_SIZE_GB = 50
"""Boot disk of a worker with an accelerator, unless the user says otherwise: CUDA does not fit Dataflow's 25 GB.

Source: https://cloud.google.com/dataflow/docs/gpu/use-gpus, read 2026-11 ("50 GB or more").
"""

ONE_PROCESS = "no_use_multiple_sdk_containers"
"""The experiment that starts one Python process per worker instead of one per vCPU, so that a GPU has one user.

Source: https://cloud.google.com/dataflow/docs/gpu/use-gpus, read 2026-11.
"""

LABELS = ("label", "labels")
EXPERIMENTS = ("experiment", "experiments")
SERVICE_OPTIONS = ("dataflow_service_option", "dataflow_service_options")

# Beam's flags that say no. apache_beam.options.pipeline_options._FLAG_THAT_SETS_FALSE_VALUE, 2.77.
_FALSE_FLAGS = {"use_public_ips": "no_use_public_ips", "save_main_session": "no_save_main_session"}


def worker_accelerator(accelerator: Accelerator, *, driver_version: str | None = None, use_mps: bool = False) -> str:
    """Return the value of Dataflow's ``worker_accelerator``, its tokens in the order that the service documents.

    Raises :class:`ValueError` for CPUs, which ask for none.
    """
    if isinstance(accelerator, Cpu):
        raise ValueError("a placement on CPUs asks for no accelerator")  # noqa: TRY004 - a wrong value of a right type
    if not isinstance(accelerator, Gpu):
        return f"type:{accelerator.type};topology:{accelerator.topology}"
    driver = f"install-nvidia-driver:{driver_version}" if driver_version else "install-nvidia-driver"
    mps = ";use_nvidia_mps" if use_mps else ""
    return f"type:{accelerator.type};count:{accelerator.count};{driver}{mps}"


def beam_flags(
    request: BeamRequest,
    placement: Placement,
    *,
    project: str,
    job_name: str,
    labels: Mapping[str, str],
    endpoint: str | None = None,
) -> tuple[str, ...]:
    """Return the launcher's arguments, always in the same order.

    ``request`` is what :meth:`BeamRequest.for_candidate` returned, ``placement`` has its machine type, ``labels`` are
    those that tie the job to its task; they win over the user's.
    """
    own = {
        "runner": "DataflowRunner",
        "project": project,
        "region": placement.region,
        "worker_zone": placement.zone,
        "machine_type": placement.machine_type,
        "job_name": job_name,
        "labels": [f"{key}={value}" for key, value in {**merged_labels(request), **labels}.items()],
        "dataflow_service_options": [*_accelerator_options(request, placement), *merged_service_options(request)],
        "experiments": [*_process_experiments(request, placement), *merged_experiments(request)],
        "sdk_container_image": request.sdk_container_image,
        "disk_size_gb": _disk_size_gb(request, placement),
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
    merged = {*LABELS, *EXPERIMENTS, *SERVICE_OPTIONS}
    users = {**request.default_pipeline_options, **request.pipeline_options}
    rest = {name: value for name, value in users.items() if name not in merged}
    return tuple(flag for name, value in (*own.items(), *rest.items()) for flag in option_flags(name, value))


def option_flags(name: str, value: Any) -> tuple[str, ...]:
    """Return the arguments that say one option to a Beam Python pipeline.

    ``None`` says nothing; ``False`` says Beam's ``--no_…`` where there is one, else nothing; a list says its items
    one by one; a mapping becomes JSON; anything else goes as ``--name=value``, whatever its characters.
    """
    if value is None:
        return ()
    if value is True:
        return (f"--{name}",)
    if value is False:
        return (f"--{_FALSE_FLAGS[name]}",) if name in _FALSE_FLAGS else ()
    if isinstance(value, list | tuple):
        return tuple(f"--{name}={item}" for item in value)
    if isinstance(value, Mapping):
        return (f"--{name}={json.dumps(dict(value))}",)
    return (f"--{name}={value}",)


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


def _accelerator_options(request: BeamRequest, placement: Placement) -> tuple[str, ...]:
    if isinstance(placement.accelerator, Cpu):
        return ()
    value = worker_accelerator(placement.accelerator, driver_version=request.driver_version, use_mps=request.use_mps)
    return (f"worker_accelerator={value}",)


def _process_experiments(request: BeamRequest, placement: Placement) -> tuple[str, ...]:
    # Without an accelerator to share, one process per vCPU is what uses the machine.
    shares = isinstance(placement.accelerator, Cpu) or request.use_mps or request.sdk_processes == "per_vcpu"
    return () if shares or ONE_PROCESS in merged_experiments(request) else (ONE_PROCESS,)


def _disk_size_gb(request: BeamRequest, placement: Placement) -> int | None:
    if request.disk_size_gb is None and not isinstance(placement.accelerator, Cpu):
        return DISK_SIZE_GB
    return request.disk_size_gb


def _options_named(request: BeamRequest, names: Iterable[str]) -> list[Any]:
    """Return the values said under any of the names, the defaults' first."""
    both = (request.default_pipeline_options, request.pipeline_options)
    return [options[name] for options in both for name in names if options.get(name) is not None]


def _united(*values: Any) -> tuple[str, ...]:
    items = [item for value in values for item in ([value] if isinstance(value, str) else value)]
    return tuple(dict.fromkeys(items))


def _label_pairs(value: Any) -> dict[str, str]:
    """Read labels in any of Beam's forms: a mapping, its JSON, ``key=value``, or a list of these."""
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, str) and value.lstrip().startswith("{"):
        return _label_pairs(json.loads(value))
    if isinstance(value, str):
        key, _, said = value.partition("=")
        return {key: said}
    pairs: dict[str, str] = {}
    for item in value:
        pairs |= _label_pairs(item)
    return pairs
