"""Whether cores, memory, disks and numbers of executors fit the accelerator and the tiers.

Sources, read 2026-11: https://cloud.google.com/dataproc-serverless/docs/guides/gpus-serverless for executors with GPUs,
https://cloud.google.com/dataproc-serverless/docs/concepts/properties for drivers and all other executors.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from airflow_accel_provider.core.accelerators import Gpu
from airflow_accel_provider.core.problems import Problem, error, warning
from airflow_accel_provider.core.request import read_text
from airflow_accel_provider.core.spark.properties import CORES, DISK_SIZE, FEWEST_EXECUTORS, shape_of
from airflow_accel_provider.core.spark.sizes import megabytes
from airflow_accel_provider.core.spark.validation._words import either
from airflow_accel_provider.core.validation._templated import is_templated

if TYPE_CHECKING:
    from airflow_accel_provider.core.placement import Placement
    from airflow_accel_provider.core.spark.catalog import ExecutorShape, SparkCatalog
    from airflow_accel_provider.core.spark.request import SparkRequest

_MEMORY = "spark.executor.memory"
_OVERHEAD = "spark.executor.memoryOverhead"
_LEAST_MEMORY_MB = 1024
_CPU_CORES = (4, 8, 16)
_PER_CORE_MB = {"standard": (1024, 7424), "premium": (1024, 24576)}
_PREMIUM_DISKS_GB = (375, 750, 1500, 3000, 6000, 9000)
_LEAST_STANDARD_DISK_GB = 250
_MOST_EXECUTORS = 2000
_DYNAMIC = "spark.dynamicAllocation."
_DEFAULT_CEILING = 1000


def check_resources(request: SparkRequest, placement: Placement, tables: SparkCatalog) -> Iterator[Problem]:
    """Yield what does not fit in one place."""
    gpu = placement.accelerator
    properties = request.properties
    yield from _check_executors(request.executors)
    yield from _check_growth(request, has_gpus=isinstance(gpu, Gpu))
    yield from _check_role("driver", properties)
    if not isinstance(gpu, Gpu):
        yield from _check_cpu_cores(properties)
        yield from _check_role("executor", properties)
    elif gpu.type in tables.accelerators:
        yield from _check_cores(gpu, properties, tables)
        shape = shape_of(request, gpu, tables)
        if shape:
            yield from _check_disk(shape, properties)
            yield from _check_memory(shape, properties)
        yield from _check_untouchable(properties)


def _check_executors(executors: Any) -> Iterator[Problem]:
    count = read_text(executors)
    if not isinstance(count, int) and count is not None and not is_templated(count):
        yield error("executors-range", f"{count!r} is not a whole number of executors.", "executors")
    elif isinstance(count, int) and not FEWEST_EXECUTORS <= count <= _MOST_EXECUTORS:
        near = min(max(count, FEWEST_EXECUTORS), _MOST_EXECUTORS)
        text = f"A batch has {FEWEST_EXECUTORS} to {_MOST_EXECUTORS} executors, not {count}; the nearest is {near}."
        yield error("executors-range", text, "executors")


def _check_growth(request: SparkRequest, *, has_gpus: bool) -> Iterator[Problem]:
    properties = request.properties
    if _read({f"{_DYNAMIC}enabled": True, **properties}, f"{_DYNAMIC}enabled") is not True:
        return
    least, most = (_read(properties, f"{_DYNAMIC}{name}Executors") for name in ("min", "max"))
    first = read_text(request.executors) or FEWEST_EXECUTORS
    where = f"properties.{_DYNAMIC}maxExecutors"
    if f"{_DYNAMIC}maxExecutors" not in properties:
        if has_gpus:
            text = (
                f"The batch may grow to {_DEFAULT_CEILING} executors; bound it with {_DYNAMIC}maxExecutors, "
                f"or keep it at its size with {_DYNAMIC}enabled=false."
            )
            yield warning("growth-unbounded", text, where)
        return
    if isinstance(least, int) and isinstance(most, int) and least > most:
        yield error("growth-bounds", f"minExecutors={least} is more than maxExecutors={most}.", where)
    elif isinstance(most, int) and isinstance(first, int) and first > most:
        yield warning(
            "growth-bounds", f"The batch starts with {first} executors, more than maxExecutors={most}.", where
        )


def _check_cores(gpu: Gpu, properties: Mapping[str, Any], tables: SparkCatalog) -> Iterator[Problem]:
    cores = _read(properties, CORES)
    if not isinstance(cores, int):
        return
    shape = tables.shape(gpu.type, cores)
    known = [each.cores for each in tables.shapes_of(gpu.type)]
    if shape is None:
        near = min(known, key=lambda each: (abs(each - cores), -each))
        text = f"An executor with {gpu.type} has {either(known)} cores, not {cores}; the nearest is {near}."
        yield error("cores-invalid", text, f"properties.{CORES}")
    elif shape.gpus != gpu.count:
        fitting = [each.cores for each in tables.shapes_of(gpu.type, gpu.count)]
        for_it = f", or {either(fitting)} cores for {gpu}" if fitting else ""
        right = Gpu(gpu.type, shape.gpus)
        text = f"{cores} cores come with {shape.gpus} of {gpu.type}; write {right} in the placement{for_it}."
        yield error("cores-of-other-count", text, f"properties.{CORES}")


def _check_disk(shape: ExecutorShape, properties: Mapping[str, Any]) -> Iterator[Problem]:
    size = megabytes(properties.get(DISK_SIZE))
    if size is not None and size / 1024 not in shape.disks_gb:
        sizes = [f"{each}g" for each in shape.disks_gb]
        fixed = "is fixed at" if len(sizes) == 1 else "is"
        text = f"The disk of an executor with {shape.type} and {shape.cores} cores {fixed} {either(sizes)}."
        yield error("disk-size", text, f"properties.{DISK_SIZE}")


def _check_memory(shape: ExecutorShape, properties: Mapping[str, Any]) -> Iterator[Problem]:
    where = f"properties.{_MEMORY}"
    memory = megabytes(properties.get(_MEMORY))
    if memory is None:
        return
    total = memory + _off_heap(properties)
    host = f"An executor with {shape.type} and {shape.cores} cores"
    if memory < _LEAST_MEMORY_MB:
        text = f"{properties[_MEMORY]} does not do; the least is {_LEAST_MEMORY_MB}m."
        yield error("memory-too-small", text, where)
    elif total > shape.memory_mb:
        yield error("memory-too-large", f"{host} has up to {shape.memory_mb} MB in all, not {total:.15g}.", where)
    elif shape.disputed_above_mb and total > shape.disputed_above_mb:
        text = (
            f"{host} has up to {shape.memory_mb} MB by its page, but by that page's other rows "
            f"{shape.disputed_above_mb}; {total:.15g} MB may be refused."
        )
        yield warning("memory-disputed", text, where)


def _check_untouchable(properties: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield what the service sets itself for executors with GPUs."""
    if _OVERHEAD in properties:
        text = f"The service sets it for executors with GPUs, as what {_MEMORY} leaves; leave it out."
        yield error("overhead-set", text, f"properties.{_OVERHEAD}")
    if _MEMORY not in properties and any(name.startswith("spark.rapids.") for name in properties):
        text = f"Batches with a spark.rapids property and no {_MEMORY} were refused for lack of overhead; say it."
        yield warning("memory-unsaid", text, f"properties.{_MEMORY}")


def _check_cpu_cores(properties: Mapping[str, Any]) -> Iterator[Problem]:
    cores = _read(properties, CORES)
    if isinstance(cores, int) and cores not in _CPU_CORES:
        text = f"An executor without GPUs has {either(_CPU_CORES)} cores, not {cores}."
        yield error("cores-invalid", text, f"properties.{CORES}")


def _check_role(role: str, properties: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield what does not fit a driver, or an executor without GPUs."""
    yield from _check_cpu_memory(role, properties)
    name = f"spark.dataproc.{role}.disk.size"
    size = megabytes(properties.get(name))
    if size is None:
        return
    premium = _tier(role, "disk", properties) == "premium"
    if premium and size / 1024 not in _PREMIUM_DISKS_GB:
        sizes = [f"{each}g" for each in _PREMIUM_DISKS_GB]
        yield error("disk-size", f"A premium disk has {either(sizes)}.", f"properties.{name}")
    elif not premium and size / 1024 < _LEAST_STANDARD_DISK_GB:
        text = f"A disk has {_LEAST_STANDARD_DISK_GB}g or more, not {properties[name]}."
        yield error("disk-size", text, f"properties.{name}")


def _check_cpu_memory(role: str, properties: Mapping[str, Any]) -> Iterator[Problem]:
    name = f"spark.{role}.memory"
    memory = megabytes(properties.get(name))
    cores = _read(properties, f"spark.{role}.cores") or _CPU_CORES[0]
    if memory is None or not isinstance(cores, int) or cores not in _CPU_CORES:
        return
    said = megabytes(properties.get(f"spark.{role}.memoryOverhead"))
    total = memory + (said or 0) + (_off_heap(properties) if role == "executor" else 0)
    least, most = (each * cores for each in _PER_CORE_MB[_tier(role, "compute", properties)])
    if total > most:
        text = f"{total:.15g} MB are too much for {cores} cores, which have up to {most} MB with all overhead."
        yield error("memory-too-large", text, f"properties.{name}")
    # Without an overhead of the user's the service adds its own, up to 40 %.
    elif (total if said is not None else total * 1.4) < least:
        text = f"{total:.15g} MB are too little for {cores} cores, which have {least} MB or more with all overhead."
        yield error("memory-too-small", text, f"properties.{name}")


def _tier(role: str, kind: str, properties: Mapping[str, Any]) -> str:
    """Return ``premium`` or ``standard``; a runtime of classes calls the former ``performance``."""
    by_class = {"compute": "compute.class", "disk": "storage.class"}[kind]
    names = (f"spark.dataproc.{role}.{kind}.tier", f"spark.dataproc.{role}.{by_class}", "dataproc.tier")
    said = next((properties[name] for name in names if name in properties), "standard")
    # A tier that a template will fill in may be the higher one.
    return "standard" if said == "standard" else "premium"


def _off_heap(properties: Mapping[str, Any]) -> float:
    enabled = _read(properties, "spark.memory.offHeap.enabled") is True
    return (megabytes(properties.get("spark.memory.offHeap.size"), unit="b") or 0) if enabled else 0


def _read(properties: Mapping[str, Any], name: str) -> Any:
    return read_text(properties.get(name))
