"""Whether the parameters' values make sense, by themselves and together."""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING, Any

from airflow_accel_provider.core.accelerators import Cpu, Tpu
from airflow_accel_provider.core.identity import RESERVED_PREFIX
from airflow_accel_provider.core.options import DISK_SIZE_GB, EXPERIMENTS, ONE_PROCESS, merged_labels
from airflow_accel_provider.core.problems import Problem, error, warning
from airflow_accel_provider.core.validation._extras import check_extras, said
from airflow_accel_provider.core.validation._hints import check_flexrs, check_hints
from airflow_accel_provider.core.validation._templated import is_templated, texts_in
from airflow_accel_provider.core.validation._versions import check_beam_version, check_driver

if TYPE_CHECKING:
    from collections.abc import Iterator

    from airflow_accel_provider.core.catalog import Catalog
    from airflow_accel_provider.core.placement import Placement
    from airflow_accel_provider.core.request import BeamRequest

# Dataflow's Job.labels: 64 a job, keys and values of 63. The task's own are those of identity.job_labels.
_MOST_LABELS = 64 - 7
_LABEL_LENGTH = 63
# [HOST[:PORT]/]PATH[:TAG][@DIGEST], as in https://github.com/distribution/reference, whose paths are in lower case.
_IMAGE = re.compile(
    r"^(?:[A-Za-z0-9.-]+(?::\d+)?/)?[a-z0-9]+(?:[._/-]+[a-z0-9]+)*(?::[\w.-]{1,128})?(?:@sha256:[0-9a-f]{64})?$",
    re.ASCII,
)


def check_values(request: BeamRequest, placement: Placement, catalog: Catalog) -> Iterator[Problem]:
    """Yield what is wrong with the values, as they are meant in one place."""
    yield from _check_workers(request)
    yield from _check_labels(request)
    yield from _check_account(request.service_account_email)
    yield from _check_image(request.sdk_container_image)
    yield from _check_processes(request)
    yield from check_beam_version(request, placement, catalog)
    yield from check_extras(request, placement)
    yield from check_flexrs(request, placement)
    yield from check_hints(request, placement)
    if not isinstance(placement.accelerator, Cpu):
        yield from check_driver(request, placement, catalog)
        yield from _check_accelerated(request, placement)


def _check_workers(request: BeamRequest) -> Iterator[Problem]:
    first, most = request.num_workers, request.max_num_workers
    if first is not None and most is not None and first > most:
        text = f"The job would start with {first} workers, more than max_num_workers={most}."
        yield error("workers-over-maximum", text, "num_workers")


def _check_account(email: Any) -> Iterator[Problem]:
    if isinstance(email, str) and not is_templated(email) and not re.match(r"^[^@\s:/]+@[^@\s:/]+\.[^@\s:/]+$", email):
        text = f"{email!r} is not an account such as worker@PROJECT.iam.gserviceaccount.com."
        yield error("service-account", text, "service_account_email")


def _check_image(image: Any) -> Iterator[Problem]:
    if isinstance(image, str) and not is_templated(image) and not _IMAGE.match(image):
        text = f"{image!r} is not a container image such as us-docker.pkg.dev/PROJECT/REPOSITORY/NAME:TAG."
        yield error("image-form", text, "sdk_container_image")


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
    starts = isinstance(key, str) and key[:1] and unicodedata.category(key[0]) in ("Ll", "Lo")
    if isinstance(key, str) and is_templated(key):
        yield error("label-key", f"{key!r} stays as it is, since Airflow fills no template in a key.", where)
    elif not starts or not _is_label(key):
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
    for where, experiment in said(request, "experiments", EXPERIMENTS):
        if experiment == ONE_PROCESS and not wants_one:
            yield error("processes-contradicted", f"{ONE_PROCESS} contradicts sdk_processes='per_vcpu'.", where)
        if experiment == "use_multiple_sdk_containers" and wants_one:
            yield error("processes-contradicted", "Say it as sdk_processes='per_vcpu'.", where)


def _check_accelerated(request: BeamRequest, placement: Placement) -> Iterator[Problem]:
    if request.sdk_container_image is None:
        libraries = "TPU" if isinstance(placement.accelerator, Tpu) else "CUDA"
        text = f"There is no container image, and Beam's own has no {libraries} libraries; most pipelines need another."
        yield warning("image-missing", text, "sdk_container_image")
    if request.disk_size_gb is not None and request.disk_size_gb < DISK_SIZE_GB:
        text = f"{request.disk_size_gb} GB may not hold an accelerator's image; {DISK_SIZE_GB} GB or more is advised."
        yield warning("small-disk", text, "disk_size_gb")
