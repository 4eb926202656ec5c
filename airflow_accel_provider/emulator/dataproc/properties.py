"""Which properties a runtime takes, and what they may be together. The wordings but the first are ours."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_accel_provider.emulator.dataproc import texts
from airflow_accel_provider.emulator.dataproc.tables import (
    CLASSES_SINCE,
    PROPERTIES,
    REQUIRED,
    SPARK_ACCELERATORS,
    UNSUPPORTED,
    Shape,
    Version,
    row_for,
)
from airflow_accel_provider.emulator.dataproc.wishes import (
    ACCELERATOR,
    CORES,
    DISK,
    INSTANCES,
    LONGEST_ALLOCATION,
    MEMORY,
    ROLES,
    megabytes,
    seconds,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from airflow_accel_provider.emulator.dataproc.tables import SparkAccelerator

OVERHEAD = "spark.executor.memoryOverhead"
INSTANCE_BOUNDS = (2, 2000)
LEAST_MEMORY_MB = 1024
CPU_CORES = (4, 8, 16)
PER_CORE_MB = (1024, 7424)
PREMIUM_PER_CORE_MB = (1024, 24576)
LEAST_DISK_GB = 250
PREMIUM_DISKS_GB = (375, 750, 1500, 3000, 6000, 9000)
"""Source of the numbers: https://cloud.google.com/dataproc-serverless/docs/concepts/properties, read 2026-11."""

_PREFIX = "spark.dataproc."
_COUNTS = (
    "spark.dynamicAllocation.minExecutors",
    "spark.dynamicAllocation.initialExecutors",
    "spark.dynamicAllocation.maxExecutors",
)


def property_problems(properties: Mapping[str, str], runtime: Version, *, is_pyspark: bool) -> Iterator[str]:
    """Yield what the service refuses."""
    strange = sorted(name for name, value in properties.items() if not _is_supported(name, value, runtime))
    if strange:
        yield texts.unsupported(strange)
    for name, value in properties.items():
        row = row_for(PROPERTIES, name)
        if row and row.values and value not in row.values:
            yield _invalid(name, value, f"must be one of {', '.join(row.values)}")
    yield from _count_problems(properties)
    yield from _provisioning_problems(properties)
    yield from _driver_problems(properties, is_pyspark=is_pyspark)
    accelerator = SPARK_ACCELERATORS.get(properties.get(ACCELERATOR, ""))
    if accelerator:
        yield from _gpu_problems(properties, accelerator, runtime)
    elif ACCELERATOR not in properties:
        yield from _role_problems("executor", properties, is_pyspark=is_pyspark)


def _is_supported(name: str, value: str, runtime: Version) -> bool:
    refused = row_for(UNSUPPORTED, name, value)
    if refused and refused.holds_in(runtime):
        return False
    if name == "spark.master":
        return not value.startswith("yarn")
    row = row_for(PROPERTIES, name)
    return row.holds_in(runtime) if row else not name.startswith(_PREFIX)


def _count_problems(properties: Mapping[str, str]) -> Iterator[str]:
    least, most = INSTANCE_BOUNDS
    for name in (INSTANCES, *_COUNTS):
        value = properties.get(name)
        if value is not None and not (value.isdecimal() and least <= int(value) <= most):
            yield _invalid(name, value, f"must be a number from {least} to {most}")


def _provisioning_problems(properties: Mapping[str, str]) -> Iterator[str]:
    for role in ROLES:
        name = f"spark.dataproc.{role}.provisioning.allocationTimeout"
        value = properties.get(name)
        if value is None:
            continue
        read = seconds(value)
        if read is None:
            yield _invalid(name, value, "must be a number of seconds that ends in 's'")
        elif not 0 < read <= LONGEST_ALLOCATION:
            yield _invalid(name, value, f"must be at most {LONGEST_ALLOCATION:g}s")


def _gpu_problems(properties: Mapping[str, str], accelerator: SparkAccelerator, runtime: Version) -> Iterator[str]:
    for row in REQUIRED:
        if row.holds_in(runtime) and not _is_met(properties, row.name, row.value, runtime):
            said = properties.get(row.name, "not set")
            yield f"Accelerators require property '{row.name}' to be '{row.value}', it is '{said}'"
    cores = properties.get(CORES, str(accelerator.default_cores))
    shape = accelerator.shapes.get(int(cores)) if cores.isdecimal() else None
    if shape is None:
        allowed = ", ".join(str(each) for each in accelerator.shapes)
        yield _invalid(CORES, cores, f"with accelerator type '{accelerator.name}' it must be one of {allowed}")
        return
    yield from _gpu_disk_problems(properties, accelerator, shape)
    yield from _gpu_memory_problems(properties, shape)


def _is_met(properties: Mapping[str, str], name: str, value: str, runtime: Version) -> bool:
    if name.endswith(".LANG"):
        # Any UTF-8 locale does; a runtime that is not told reads text as ASCII.
        return properties.get(name, "").upper().replace("-", "").endswith("UTF8")
    if runtime < CLASSES_SINCE and properties.get("dataproc.tier") == value:
        return properties.get(name, value) == value
    return properties.get(name) == value


def _gpu_disk_problems(properties: Mapping[str, str], accelerator: SparkAccelerator, shape: Shape) -> Iterator[str]:
    value = properties.get(DISK)
    if value is None:
        return
    size = megabytes(value)
    if size is None or size / 1024 not in shape.disks_gb:
        allowed = ", ".join(f"{each}g" for each in shape.disks_gb)
        yield _invalid(DISK, value, f"with accelerator type '{accelerator.name}' it must be {allowed}")


def _gpu_memory_problems(properties: Mapping[str, str], shape: Shape) -> Iterator[str]:
    if OVERHEAD in properties:
        yield f"Property '{OVERHEAD}' cannot be set with accelerators"
    value = properties.get(MEMORY)
    if value is None:
        return
    size = megabytes(value)
    if size is None:
        yield _invalid(MEMORY, value, "must be a size such as 9560m")
    elif size < LEAST_MEMORY_MB:
        yield f"Memory {size:.0f} is less than required memory {LEAST_MEMORY_MB}"
    elif size > shape.memory_mb:
        yield f"Memory {size:.0f} is more than maximum memory {shape.memory_mb}"


def _driver_problems(properties: Mapping[str, str], *, is_pyspark: bool) -> Iterator[str]:
    yield from _role_problems("driver", properties, is_pyspark=is_pyspark)


def _role_problems(role: str, properties: Mapping[str, str], *, is_pyspark: bool) -> Iterator[str]:
    """Yield what does not fit a driver, or an executor without GPUs."""
    name = f"spark.{role}.cores"
    cores = properties.get(name, str(CPU_CORES[0]))
    if not cores.isdecimal() or int(cores) not in CPU_CORES:
        yield _invalid(name, cores, f"must be one of {', '.join(str(each) for each in CPU_CORES)}")
        return
    yield from _memory_problems(role, properties, int(cores), is_pyspark=is_pyspark)
    yield from _disk_problems(role, properties)


def _memory_problems(role: str, properties: Mapping[str, str], cores: int, *, is_pyspark: bool) -> Iterator[str]:
    name = f"spark.{role}.memory"
    if name not in properties:
        return
    size, overhead = megabytes(properties[name]), megabytes(properties.get(f"spark.{role}.memoryOverhead", ""))
    if size is None:
        yield _invalid(name, properties[name], "must be a size such as 9600m")
        return
    is_premium = _tier(role, "compute", properties) == "premium"
    least, most = (each * cores for each in (PREMIUM_PER_CORE_MB if is_premium else PER_CORE_MB))
    total = size + (overhead if overhead is not None else size * (0.4 if is_pyspark else 0.1))
    if total < least:
        yield f"Memory {total:.0f} is less than required memory {least}"
    elif size + (overhead or 0) > most:
        yield f"Memory {size + (overhead or 0):.0f} is more than maximum memory {most}"


def _disk_problems(role: str, properties: Mapping[str, str]) -> Iterator[str]:
    name = f"spark.dataproc.{role}.disk.size"
    value = properties.get(name)
    if value is None:
        return
    size = megabytes(value)
    if _tier(role, "disk", properties) == "premium":
        if size is None or size / 1024 not in PREMIUM_DISKS_GB:
            allowed = ", ".join(f"{each}g" for each in PREMIUM_DISKS_GB)
            yield _invalid(name, value, f"in the premium tier it must be one of {allowed}")
    elif size is None or size / 1024 < LEAST_DISK_GB:
        yield _invalid(name, value, f"must be at least {LEAST_DISK_GB}g")


def _tier(role: str, kind: str, properties: Mapping[str, str]) -> str:
    by_class = {"compute": "compute.class", "disk": "storage.class"}[kind]
    names = (f"spark.dataproc.{role}.{kind}.tier", f"spark.dataproc.{role}.{by_class}", "dataproc.tier")
    said = next((properties[name] for name in names if name in properties), "standard")
    return "standard" if said == "standard" else "premium"


def _invalid(name: str, value: str, why: str) -> str:
    return f"Invalid value '{value}' for property '{name}': {why}"
