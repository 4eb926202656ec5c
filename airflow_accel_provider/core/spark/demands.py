"""What a batch draws from the project's quotas.

Source: https://cloud.google.com/dataproc-serverless/quotas, read 2026-11; for batches that wait in a queue,
https://cloud.google.com/dataproc-serverless/docs/guides/dws-serverless.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_accel_provider.core.accelerators import Gpu
from airflow_accel_provider.core.failures import Resource
from airflow_accel_provider.core.quota import Demand
from airflow_accel_provider.core.request import read_text
from airflow_accel_provider.core.spark.properties import mode_property, runtime_of, shape_of, spark_properties
from airflow_accel_provider.core.spark.request import INSTANCES
from airflow_accel_provider.core.spark.sizes import megabytes

if TYPE_CHECKING:
    from airflow_accel_provider.core.placement import Placement
    from airflow_accel_provider.core.spark.catalog import SparkCatalog
    from airflow_accel_provider.core.spark.request import SparkRequest

_DRIVER_CORES = 4
_EXECUTOR_CORES = 4


def is_queued(request: SparkRequest, placement: Placement, tables: SparkCatalog) -> bool:
    """Tell whether a batch waits for its GPUs in a queue, rather than failing when there are none."""
    runtime = runtime_of(request, tables)
    if runtime is None or not runtime.provisioning or not isinstance(placement.accelerator, Gpu):
        return False
    said = spark_properties(request, placement, tables).get(mode_property("executor"))
    return (said or runtime.provisioning[0]) == "queue"


def spark_demands(request: SparkRequest, placement: Placement, tables: SparkCatalog) -> tuple[Demand, ...]:
    """Return what a checked request draws in one place: its GPUs first, since they are what runs out.

    A batch whose growth is not bounded has no ceiling. What the premium tier draws beside GPUs is not settled for
    executors with GPUs, so it only warns.
    """
    properties = spark_properties(request, placement, tables)
    floor, ceiling = _executors(properties)
    rows: list[Demand] = []

    def draw(metric: str, each: int, resource: Resource, *, fixed: int = 0, certain: bool = True) -> None:
        most = None if ceiling is None else ceiling * each + fixed
        rows.append(
            Demand(
                metric=metric,
                location=placement.region,
                floor=floor * each + fixed,
                ceiling=most,
                resource=resource,
                certain=certain,
            )
        )

    driver = _number(properties.get("spark.driver.cores"), _DRIVER_CORES)
    gpu = placement.accelerator
    if not isinstance(gpu, Gpu):
        cores = _number(properties.get("spark.executor.cores"), _EXECUTOR_CORES)
        draw("CPUS", cores, Resource.CPU, fixed=driver)
        return tuple(rows)
    known, shape = tables.accelerators[gpu.type], shape_of(request, gpu, tables)
    queued = is_queued(request, placement, tables)
    draw(known.queued_quota_metric if queued else known.quota_metric, gpu.count, Resource.ACCELERATOR)
    draw("CPUS", 0, Resource.CPU, fixed=driver, certain=False)
    if shape:
        disk = megabytes(properties.get("spark.dataproc.executor.disk.size", f"{shape.disks_gb[0]}g")) or 0
        draw("N2_CPUS", shape.cores, Resource.CPU, certain=False)
        draw("LOCAL_SSD_TOTAL_GB_PER_VM_FAMILY", int(disk // 1024), Resource.DISK, certain=False)
    return tuple(rows)


def _executors(properties: dict[str, str]) -> tuple[int, int | None]:
    """Return how many executors a batch starts with, and how many it may grow to."""
    floor = _number(properties.get(INSTANCES), 2)
    if properties.get("spark.dynamicAllocation.enabled", "true").lower() == "false":
        return floor, floor
    most = properties.get("spark.dynamicAllocation.maxExecutors")
    return floor, None if most is None else max(_number(most, floor), floor)


def _number(value: Any, default: int) -> int:
    read = read_text(value)
    return read if isinstance(read, int) else default
