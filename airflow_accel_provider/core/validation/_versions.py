"""The oldest Beam, driver and CUDA that what is asked for needs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from airflow_accel_provider.core.accelerators import Gpu
from airflow_accel_provider.core.problems import Problem, error, warning
from airflow_accel_provider.core.validation._extras import said_extras
from airflow_accel_provider.core.validation._templated import is_templated

if TYPE_CHECKING:
    from airflow_accel_provider.core.catalog import AcceleratorType, Catalog
    from airflow_accel_provider.core.placement import Placement
    from airflow_accel_provider.core.request import BeamRequest

_VERSION = re.compile(r"^(\d+)\.(\d+)(\.\d+)?([a-z.]\w*)?$")
# "5xx" is a literal that the service takes: the newest driver of the 500s. Google's vLLM notebook and Beam's use it.
_DRIVER = re.compile(r"^(\d+(\.\d+)*|[1-9]xx)$")
_CUDA = re.compile(r"cuda[:_-]?v?(\d{1,2})\.(\d)", re.IGNORECASE)

_CUDA_MINIMUMS = {"nvidia-l4": (12, 0)}
"""Source: https://cloud.google.com/dataflow/docs/gpu/use-l4-gpus, read 2026-11."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Minimum:
    """The oldest Beam that has something, for those who ask for it."""

    what: str
    beam: str
    source: str
    is_asked: Callable[[BeamRequest], bool]


def _has_hints(request: BeamRequest) -> bool:
    options = {**request.default_pipeline_options, **request.pipeline_options}
    return bool(options.get("resource_hint") or options.get("resource_hints"))


def _uses_reservations(request: BeamRequest) -> bool:
    return any(item == "automatically_use_created_reservation" for _, item in said_extras(request))


MINIMUMS: tuple[Minimum, ...] = (
    Minimum(
        what="automatically_use_created_reservation",
        beam="2.29",
        source="https://cloud.google.com/dataflow/docs/guides/reservations",
        is_asked=_uses_reservations,
    ),
    Minimum(
        what="sdk_container_image",
        beam="2.30",
        source="https://cloud.google.com/dataflow/docs/gpu/use-gpus",
        is_asked=lambda request: request.sdk_container_image is not None,
    ),
    Minimum(
        what="A resource hint",
        beam="2.31",
        source="https://cloud.google.com/dataflow/docs/guides/right-fitting",
        is_asked=_has_hints,
    ),
)
"""Besides those of the accelerators, which are in the catalogue. Read 2026-11."""


def check_beam_version(request: BeamRequest, placement: Placement, catalog: Catalog) -> Iterator[Problem]:
    """Yield why the Beam version is too old, where one is said."""
    version = request.beam_version
    if version is None or is_templated(version):
        return
    if not _VERSION.match(version):
        yield error("beam-version", f"{version!r} is not a Beam release such as 2.77.0.", "beam_version")
        return
    for minimum in MINIMUMS:
        if _release(version) < _release(minimum.beam) and minimum.is_asked(request):
            text = f"{minimum.what} needs Beam {minimum.beam} or newer, not {version}."
            yield error("beam-too-old", text, "beam_version")
    known = _known(placement, catalog)
    if known and known.minimum_beam and _release(version) < _release(known.minimum_beam):
        text = f"{known.type} needs Beam {known.minimum_beam} or newer, not {version}."
        yield error("beam-too-old", text, "beam_version")
    elif known and known.advised_beam and _release(version) < _release(known.advised_beam):
        text = f"For {known.type} Beam {known.advised_beam} or newer is advised; this is {version}."
        yield warning("beam-old", text, "beam_version")


def check_driver(request: BeamRequest, placement: Placement, catalog: Catalog) -> Iterator[Problem]:
    """Yield what is wrong with the driver's version, and with the CUDA version that the image's name tells."""
    known = _known(placement, catalog)
    image = request.sdk_container_image
    cuda = _CUDA.search(image) if isinstance(image, str) else None
    needed = _CUDA_MINIMUMS.get(known.type) if known else None
    if known and cuda and needed and (int(cuda[1]), int(cuda[2])) < needed:
        text = f"{known.type} needs CUDA {needed[0]}.{needed[1]} or newer; the image's name says {cuda[1]}.{cuda[2]}."
        yield warning("cuda-too-old", text, "sdk_container_image")
    version = None if request.driver_version is None else str(request.driver_version)
    if version is None or is_templated(version):
        return
    if not _DRIVER.match(version):
        yield error("driver-version", f"{version!r} is not a driver branch such as 535 or 5xx.", "driver_version")
    elif known and known.minimum_driver and int(version.partition(".")[0].replace("x", "9")) < known.minimum_driver:
        text = f"{known.type} needs driver {known.minimum_driver} or newer, not {version}."
        yield error("driver-too-old", text, "driver_version")


def _known(placement: Placement, catalog: Catalog) -> AcceleratorType | None:
    gpu = placement.accelerator
    return catalog.accelerator(gpu.type) if isinstance(gpu, Gpu) else None


def _release(version: str) -> tuple[int, int]:
    major, minor = version.split(".")[:2]
    return int(major), int(minor)
