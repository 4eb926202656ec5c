"""The properties of a batch: what the placement and the runtime ask for, and the user's on top."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_accel_provider.core.accelerators import Gpu
from airflow_accel_provider.core.request import read_text
from airflow_accel_provider.core.spark.catalog import ExecutorShape, Runtime, SparkCatalog, is_release
from airflow_accel_provider.core.spark.request import INSTANCES, SparkRequest
from airflow_accel_provider.core.spark.sizes import duration

if TYPE_CHECKING:
    from airflow_accel_provider.core.placement import Placement

ACCELERATOR = "spark.dataproc.executor.resource.accelerator.type"
CORES = "spark.executor.cores"
DISK_SIZE = "spark.dataproc.executor.disk.size"
ROLES = ("driver", "executor")
FEWEST_EXECUTORS = 2
"""https://cloud.google.com/dataproc-serverless/docs/guides/gpus-serverless, read 2026-11."""


def mode_property(role: str) -> str:
    """Return the property that says how a role's machines are asked for."""
    return f"spark.dataproc.{role}.provisioning.mode"


def timeout_property(role: str) -> str:
    """Return the property that says how long a role's machines are waited for."""
    return f"spark.dataproc.{role}.provisioning.allocationTimeout"


def spark_properties(request: SparkRequest, placement: Placement, tables: SparkCatalog) -> dict[str, str]:
    """Return the properties of a batch in one place, as texts.

    ``request`` is as it is meant there (:meth:`SparkRequest.for_candidate`). The user's properties win; where that
    cannot work, or contradicts a parameter, validation says so.
    """
    own = {name: property_text(value) for name, value in request.properties.items()}
    return {**derived_properties(request, placement, tables), **own}


def derived_properties(request: SparkRequest, placement: Placement, tables: SparkCatalog) -> dict[str, str]:
    """Return the properties that follow from the placement, the runtime and the parameters."""
    properties: dict[str, str] = {}
    gpu = placement.accelerator
    if isinstance(gpu, Gpu):
        runtime = runtime_of(request, tables)
        shape = shape_of(request, gpu, tables)
        properties |= {**(runtime.gpu_properties if runtime else {}), ACCELERATOR: gpu.type}
        properties[INSTANCES] = str(FEWEST_EXECUTORS)
        properties |= _shape_properties(shape) if shape else {}
    if request.executors is not None:
        properties[INSTANCES] = str(request.executors)
    for role in ROLES:
        if request.provisioning is not None:
            properties[mode_property(role)] = request.provisioning
        if request.allocation_timeout is not None:
            properties[timeout_property(role)] = str(duration(request.allocation_timeout))
    return properties


def runtime_of(request: SparkRequest, tables: SparkCatalog) -> Runtime | None:
    """Return the runtime whose rules hold for a request, or ``None`` when its version cannot be read."""
    version: Any = request.runtime_version or tables.default_runtime
    return tables.rules_of(version) if isinstance(version, str) and is_release(version) else None


def shape_of(request: SparkRequest, gpu: Gpu, tables: SparkCatalog) -> ExecutorShape | None:
    """Return the executor that the user's cores describe, else the smallest that carries the GPUs; ``None`` if none."""
    if CORES in request.properties:
        cores = read_text(request.properties[CORES])
        return tables.shape(gpu.type, cores) if isinstance(cores, int) else None
    return next(iter(tables.shapes_of(gpu.type, gpu.count)), None)


def property_text(value: Any) -> str:
    """Return a property's value as the text that the service takes."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _shape_properties(shape: ExecutorShape) -> dict[str, str]:
    properties = {CORES: str(shape.cores)}
    # Where the size is fixed the service sets it; where there is a choice, its page calls the property required.
    if len(shape.disks_gb) > 1:
        properties[DISK_SIZE] = f"{shape.disks_gb[0]}g"
    return properties
