"""Whether the parameters' values make sense, by themselves and together."""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING, Any

from airflow_accel_provider.core.accelerators import Cpu, Gpu
from airflow_accel_provider.core.identity import RESERVED_PREFIX
from airflow_accel_provider.core.options import (
    DISK_SIZE_GB,
    EXPERIMENTS,
    ONE_PROCESS,
    SERVICE_OPTIONS,
    merged_labels,
)
from airflow_accel_provider.core.problems import Problem, error, warning
from airflow_accel_provider.core.validation._templated import is_templated, texts_in

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from airflow_accel_provider.core.catalog import Catalog
    from airflow_accel_provider.core.placement import Placement
    from airflow_accel_provider.core.request import BeamRequest

_MODULE = re.compile(r"^[^\W\d]\w*(\.[^\W\d]\w*)*$")
_VERSION = re.compile(r"^(\d+)\.(\d+)(\.\d+)?([a-z.]\w*)?$")
# "5xx" is a literal that the service takes: the newest driver of the 500s. Google's vLLM notebook and Beam's example use it.
_DRIVER = re.compile(r"^(\d+(\.\d+)*|[1-9]xx)$")

# Dataflow's Job.labels: 64 a job, keys and values of 63. The task's own are those of identity.job_labels.
_MOST_LABELS = 64 - 7
_LABEL_LENGTH = 63


def check_pipeline(request: BeamRequest) -> Iterator[Problem]:
    """Yield what is wrong with the choice of the pipeline itself."""
    if request.py_file is not None and request.py_module is not None:
        yield error("pipeline-twice", "There are two pipelines, py_file and py_module; give one.", "py_file")
    elif request.py_file is None and request.py_module is None:
        yield error("pipeline-missing", "There is no pipeline; give py_file= or py_module=.", "py_file")
    if isinstance(request.py_file, str) and not is_templated(request.py_file) and not request.py_file.endswith(".py"):
        yield error("py-file", f"{request.py_file!r} is not a Python file; its name must end in .py.", "py_file")
    module = request.py_module
    if isinstance(module, str) and not is_templated(module) and not _MODULE.match(module):
        yield error("py-module", f"{module!r} is not a module such as acme.pipelines.score.", "py_module")


def check_values(request: BeamRequest, placement: Placement, catalog: Catalog) -> Iterator[Problem]:
    """Yield what is wrong with the values, as they are meant in one place."""
    yield from _check_workers(request)
    yield from _check_labels(request)
    yield from _check_account(request.service_account_email)
    yield from _check_processes(request)
    yield from _check_beam_version(request, placement, catalog)
    if isinstance(placement.accelerator, Cpu):
        yield from _check_extras(request, carries=False)
        return
    yield from _check_extras(request, carries=True)
    yield from _check_driver(request, placement, catalog)
    yield from _check_accelerated(request)


def _check_workers(request: BeamRequest) -> Iterator[Problem]:
    first, most = request.num_workers, request.max_num_workers
    if first is not None and most is not None and first > most:
        text = f"The job would start with {first} workers, more than max_num_workers={most}."
        yield error("workers-over-maximum", text, "num_workers")


def _check_account(email: Any) -> Iterator[Problem]:
    if isinstance(email, str) and not is_templated(email) and not re.match(r"^[^@\s]+@[^@\s]+\.[^@\s]+$", email):
        text = f"{email!r} is not an account such as worker@PROJECT.iam.gserviceaccount.com."
        yield error("service-account", text, "service_account_email")


def _check_labels(request: BeamRequest) -> Iterator[Problem]:
    try:
        labels = merged_labels(request)
    except ValueError:
        # Labels as JSON; a template will make it whole.
        texts = texts_in([request.default_pipeline_options, request.pipeline_options], "")
        if not any(is_templated(text) for _, text in texts):
            yield error("labels", "The text is not a JSON object of labels.", "pipeline_options.labels")
        return
    if len(labels) > _MOST_LABELS:
        text = f"There are {len(labels)}; {_MOST_LABELS} are left to you of the 64 that a job can have."
        yield error("too-many-labels", text, "labels")
    for key, value in labels.items():
        yield from _check_label(key, value)


def _check_label(key: Any, value: Any) -> Iterator[Problem]:
    where = f"labels.{key}"
    if not isinstance(key, str) or not is_templated(key):
        starts = isinstance(key, str) and key[:1] and unicodedata.category(key[0]) in ("Ll", "Lo")
        if not starts or not _is_label(key):
            yield error("label-key", f"{key!r} is not a label's key: {_LABEL_FORM}, starting with a letter.", where)
        elif key.startswith(RESERVED_PREFIX):
            text = f"Labels that start with {RESERVED_PREFIX} tie a job to its task; name it otherwise."
            yield error("label-reserved", text, where)
    if not is_templated(value) and not _is_label(str(value)):
        yield error("label-value", f"{value!r} is not a label's value: {_LABEL_FORM}.", where)


_LABEL_FORM = f"up to {_LABEL_LENGTH} lower-case letters, digits, '-' and '_'"


def _is_label(text: str) -> bool:
    return len(text) <= _LABEL_LENGTH and all(
        char in "-_" or unicodedata.category(char) in ("Ll", "Lo", "Nd", "Nl", "No") for char in text
    )


def _check_processes(request: BeamRequest) -> Iterator[Problem]:
    if request.sdk_processes not in ("one", "per_vcpu") and not is_templated(request.sdk_processes):
        text = f"{request.sdk_processes!r} does not do; it is 'one' or 'per_vcpu'."
        yield error("sdk-processes", text, "sdk_processes")
    elif request.use_mps and request.sdk_processes == "one":
        # https://cloud.google.com/dataflow/docs/gpu/use-nvidia-mps: not together with no_use_multiple_sdk_containers.
        text = "MPS is for several processes on one GPU; add sdk_processes='per_vcpu'."
        yield error("mps-with-one-process", text, "use_mps")
    wants_one = request.sdk_processes == "one" and not request.use_mps
    for where, experiment in _said(request, "experiments", EXPERIMENTS):
        if experiment == ONE_PROCESS and not wants_one:
            yield error("processes-contradicted", f"{ONE_PROCESS} contradicts sdk_processes='per_vcpu'.", where)
        if experiment == "use_multiple_sdk_containers" and wants_one:
            yield error("processes-contradicted", "Say it as sdk_processes='per_vcpu'.", where)


def _check_extras(request: BeamRequest, *, carries: bool) -> Iterator[Problem]:
    """Yield service options and experiments that ask for accelerators by another way than the placement."""
    lists = (*_said(request, "service_options", SERVICE_OPTIONS), *_said(request, "experiments", EXPERIMENTS))
    for where, item in lists:
        names = {part.partition("=")[0].strip() for part in item.split(",")}
        if "worker_accelerator" in names:
            yield error("accelerator-pinned", "worker_accelerator comes from the placement; leave it out here.", where)
        if carries and "enable_prime" in names:
            # https://cloud.google.com/dataflow/docs/gpu/use-gpus: Prime asks for GPUs by resource hints only.
            yield error("prime", "Dataflow Prime does not go with a placement's accelerator; leave it out.", where)
        if carries and any(name.startswith("disable_runner_v2") for name in names):
            yield error("runner-v2", "Accelerators need Runner v2; leave this out.", where)
        if names & {"worker_region", "worker_zone"}:
            yield error("option-pinned", "The location comes from the placement; leave it out here.", where)


def _check_accelerated(request: BeamRequest) -> Iterator[Problem]:
    options = {**request.default_pipeline_options, **request.pipeline_options}
    if options.get("flexrs_goal") == "COST_OPTIMIZED":
        text = "FlexRS has no accelerators; leave it out."  # https://cloud.google.com/dataflow/docs/guides/flexrs
        yield error("flexrs", text, "pipeline_options.flexrs_goal")
    for name in ("resource_hint", "resource_hints"):
        if any("accelerator=" in hint for _, hint in texts_in(options.get(name), name)):
            text = "A hint for accelerators does not go with a placement's accelerator; leave it out."
            yield error("accelerator-hint", text, f"pipeline_options.{name}")
    if request.sdk_container_image is None:
        text = "There is no container image, and Beam's own has no CUDA libraries; most pipelines need a custom one."
        yield warning("image-missing", text, "sdk_container_image")
    if request.disk_size_gb is not None and request.disk_size_gb < DISK_SIZE_GB:
        text = f"{request.disk_size_gb} GB may not hold an image with CUDA; {DISK_SIZE_GB} GB or more is advised."
        yield warning("small-disk", text, "disk_size_gb")


def _check_driver(request: BeamRequest, placement: Placement, catalog: Catalog) -> Iterator[Problem]:
    version = None if request.driver_version is None else str(request.driver_version)
    if version is None or is_templated(version):
        return
    if not _DRIVER.match(version):
        yield error("driver-version", f"{version!r} is not a driver branch such as 535 or 5xx.", "driver_version")
        return
    gpu = placement.accelerator
    known = catalog.accelerator(gpu.type) if isinstance(gpu, Gpu) else None
    newest = int(version.partition(".")[0].replace("xx", "99"))
    if known and known.minimum_driver and newest < known.minimum_driver:
        text = f"{known.type} needs driver {known.minimum_driver} or newer, not {version}."
        yield error("driver-too-old", text, "driver_version")


def _check_beam_version(request: BeamRequest, placement: Placement, catalog: Catalog) -> Iterator[Problem]:
    version = request.beam_version
    if version is None or is_templated(version):
        return
    if not _VERSION.match(version):
        yield error("beam-version", f"{version!r} is not a Beam release such as 2.77.0.", "beam_version")
        return
    gpu = placement.accelerator
    known = catalog.accelerator(gpu.type) if isinstance(gpu, Gpu) else None
    if known and known.minimum_beam and _release(version) < _release(known.minimum_beam):
        text = f"{known.type} needs Beam {known.minimum_beam} or newer, not {version}."
        yield error("beam-too-old", text, "beam_version")
    elif known and known.advised_beam and _release(version) < _release(known.advised_beam):
        text = f"For {known.type} Beam {known.advised_beam} or newer is advised; this is {version}."
        yield warning("beam-old", text, "beam_version")


def _release(version: str) -> tuple[int, int]:
    major, minor = version.split(".")[:2]
    return int(major), int(minor)


def _said(request: BeamRequest, parameter: str, names: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Yield every text said by a list parameter or by Beam's options of these names, and where it stands."""
    places: dict[str, Any] = {parameter: getattr(request, parameter)}
    for root in ("default_pipeline_options", "pipeline_options"):
        options: Mapping[str, Any] = getattr(request, root)
        places |= {f"{root}.{name}": options[name] for name in names if options.get(name) is not None}
    for where, value in places.items():
        for item in [value] if isinstance(value, str) else value:
            if isinstance(item, str) and not is_templated(item):
                yield where, item
