"""Resource hints and FlexRS: ways of choosing workers that do not go with a placement's accelerator."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from airflow_accel_provider.core.accelerators import Cpu, Tpu
from airflow_accel_provider.core.options import read_worker_accelerator
from airflow_accel_provider.core.problems import Problem, error, warning
from airflow_accel_provider.core.validation._extras import said_extras
from airflow_accel_provider.core.validation._templated import is_templated, texts_in

if TYPE_CHECKING:
    from airflow_accel_provider.core.placement import Placement
    from airflow_accel_provider.core.request import BeamRequest

# What Beam calls them: apache_beam.transforms.resources, 2.77.
_ACCELERATOR = ("accelerator", "beam:resources:accelerator:v1")
_SHAPES = (
    "min_ram",
    "minRam",
    "cpu_count",
    "cpuCount",
    "beam:resources:min_ram_bytes:v1",
    "beam:resources:cpu_count:v1",
)


def check_hints(request: BeamRequest, placement: Placement) -> Iterator[Problem]:
    """Yield what is wrong with the pipeline's resource hints.

    Source: https://cloud.google.com/dataflow/docs/guides/right-fitting, read 2026-11: any hint switches right fitting
    on, which goes neither with ``worker_accelerator`` nor with FlexRS, and has no TPUs.
    """
    options = _options(request)
    for name in ("resource_hint", "resource_hints"):
        where = f"pipeline_options.{name}"
        for _, text in texts_in(options.get(name), name):
            hint, _, value = text.partition("=")
            if is_templated(text):
                continue
            if hint in _ACCELERATOR and not isinstance(placement.accelerator, Cpu):
                message = "A hint for accelerators does not go with a placement's accelerator; leave it out."
                yield error("accelerator-hint", message, where)
            elif hint in _ACCELERATOR:
                yield from _check_hinted(value, request, where)
            elif hint in _SHAPES and not isinstance(placement.accelerator, Cpu):
                message = f"{hint} switches right fitting on, which may take another machine than the placement's."
                yield warning("right-fitting", message, where)


def check_flexrs(request: BeamRequest, placement: Placement) -> Iterator[Problem]:
    """Yield what does not go with FlexRS.

    Source: https://cloud.google.com/dataflow/docs/guides/flexrs, read 2026-11; ``SPEED_OPTIMIZED`` equals not using it.
    """
    where = "pipeline_options.flexrs_goal"
    if _options(request).get("flexrs_goal") != "COST_OPTIMIZED":
        return
    if not isinstance(placement.accelerator, Cpu):
        yield error("flexrs", "FlexRS has no accelerators; leave it out.", where)
        return
    if placement.zone:
        yield error("flexrs-zone", f"FlexRS chooses the zone; name the region {placement.region} alone.", where)
    if any("reservation" in item for _, item in said_extras(request)):
        yield error("flexrs-reservation", "FlexRS takes no reservations; leave out one of the two.", where)


def _check_hinted(value: str, request: BeamRequest, where: str) -> Iterator[Problem]:
    """Yield what is wrong with an accelerator that a hint asks for, beside a placement on CPUs."""
    hinted = read_worker_accelerator(value)
    if isinstance(hinted.accelerator, Tpu) or value.startswith("type:tpu-"):
        yield error("hint-tpu", "Right fitting has no TPUs; say the TPU in the placement.", where)
    for token in hinted.unknown:
        yield warning("accelerator-token", f"Dataflow's pages do not know {token} in an accelerator hint.", where)
    if hinted.machine_type:
        text = f"machine_type:{hinted.machine_type} in the hint makes the placement's machine type of no effect."
        yield warning("hint-machine", text, where)
    if _options(request).get("flexrs_goal") == "COST_OPTIMIZED":
        yield error("hint-flexrs", "FlexRS does not go with right fitting; leave out the hint or FlexRS.", where)
    streaming = _options(request).get("streaming") in (True, "true", "True")
    if streaming and "enable_streaming_rightfitting" not in {item for _, item in said_extras(request)}:
        text = "In a streaming job hints count only with experiments=['enable_streaming_rightfitting']."
        yield warning("hint-streaming", text, where)


def _options(request: BeamRequest) -> dict[str, Any]:
    return {**request.default_pipeline_options, **request.pipeline_options}
