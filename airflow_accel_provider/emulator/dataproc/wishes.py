"""What a batch asks for: its runtime, machines and patience, read from an admitted request."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from airflow_accel_provider.emulator.dataproc.tables import (
    CLASSES_SINCE,
    DEFAULT_RUNTIME,
    SPARK_ACCELERATORS,
    Version,
    version_of,
)

KINDS = ("pysparkBatch", "sparkBatch", "sparkSqlBatch", "sparkRBatch", "pysparkNotebookBatch")
ACCELERATOR = "spark.dataproc.executor.resource.accelerator.type"
INSTANCES = "spark.executor.instances"
CORES = "spark.executor.cores"
MEMORY = "spark.executor.memory"
DISK = "spark.dataproc.executor.disk.size"
ROLES = ("driver", "executor")

DEFAULT_TTL = 4 * 3600.0
TTL_SINCE: Version = (2, 1)
"""Batches of older runtimes may run for ever. Source: Dataproc API v1, ExecutionConfig.ttl."""

DEFAULT_ALLOCATION, LONGEST_ALLOCATION = 3600.0, 7200.0
"""Seconds. https://cloud.google.com/dataproc-serverless/docs/guides/dws-serverless, read 2026-11."""

_DEFAULT_CORES, _DEFAULT_INSTANCES, _DEFAULT_DISK_GB = 4, 2, 400
_SIZE = re.compile(r"([0-9]+)\s*(?:(k|m|g|t)b?)?", re.IGNORECASE)
_MB = {"k": 1 / 1024, "m": 1.0, "g": 1024.0, "t": 1024.0**2}


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """The machines of a batch. ``gpus`` is per executor, ``allocation_timeout`` and ``ttl`` are Google's seconds.

    ``queued`` is whether it waits for machines that are not in stock; ``ttl`` is None where it may run for ever.
    """

    runtime: Version
    accelerator: str | None
    executors: int
    cores: int
    gpus: int
    disk_gb: int
    driver_cores: int
    premium_compute: bool
    premium_disk: bool
    queued: bool
    allocation_timeout: float
    ttl: float | None

    @property
    def names_types(self) -> bool:
        """Tell whether usage is told in a field for each accelerator type, as newer runtimes do."""
        return self.runtime >= CLASSES_SINCE


def properties_of(request: Mapping[str, Any]) -> dict[str, str]:
    """Return the properties of a request; the service overlooks the prefix that it shows them with."""
    given = request.get("runtimeConfig", {}).get("properties", {})
    return {name.removeprefix("spark:"): str(value) for name, value in given.items()}


def runtime_of(request: Mapping[str, Any]) -> str:
    """Return the runtime a request names, else the default."""
    return str(request.get("runtimeConfig", {}).get("version") or DEFAULT_RUNTIME)


def execution_of(request: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a request's ExecutionConfig."""
    found: Mapping[str, Any] = request.get("environmentConfig", {}).get("executionConfig", {})
    return found


def megabytes(text: str) -> float | None:
    """Return a size as Spark writes it (``9600m``, ``10g``, and a bare number in MB) in MB, or None."""
    form = _SIZE.fullmatch(text.strip())
    return int(form[1]) * _MB[(form[2] or "m").lower()] if form else None


def seconds(text: str) -> float | None:
    """Return a duration such as ``3600s`` in seconds, or None."""
    form = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)s", text.strip())
    return float(form[1]) if form else None


def read_wish(request: Mapping[str, Any]) -> Wish:
    """Return what an admitted request asks for, with the service's defaults."""
    properties, runtime = properties_of(request), version_of(runtime_of(request))
    accelerator = properties.get(ACCELERATOR)
    known = SPARK_ACCELERATORS[accelerator] if accelerator else None
    cores = int(properties.get(CORES, known.default_cores if known else _DEFAULT_CORES))
    shape = known.shapes[cores] if known else None
    disk = megabytes(properties.get(DISK, "")) or 1024 * (shape.disks_gb[0] if shape else _DEFAULT_DISK_GB)
    return Wish(
        runtime=runtime,
        accelerator=accelerator,
        executors=int(properties.get(INSTANCES, _DEFAULT_INSTANCES)),
        cores=cores,
        gpus=shape.gpus if shape else 0,
        disk_gb=int(disk // 1024),
        driver_cores=int(properties.get("spark.driver.cores", _DEFAULT_CORES)),
        premium_compute=_is_premium(properties, "compute.tier", "compute.class"),
        premium_disk=_is_premium(properties, "disk.tier", "storage.class"),
        queued=bool(accelerator) and runtime >= CLASSES_SINCE and _mode(properties) == "queue",
        allocation_timeout=_allocation(properties),
        ttl=_ttl(execution_of(request), runtime),
    )


def _is_premium(properties: Mapping[str, str], *names: str) -> bool:
    said = [properties.get(f"spark.dataproc.executor.{name}") for name in names] + [properties.get("dataproc.tier")]
    return next(filter(None, said), "standard") in {"premium", "performance"}


def _mode(properties: Mapping[str, str]) -> str:
    return properties.get("spark.dataproc.executor.provisioning.mode", "queue")


def _allocation(properties: Mapping[str, str]) -> float:
    said = properties.get("spark.dataproc.executor.provisioning.allocationTimeout", "")
    return seconds(said) or DEFAULT_ALLOCATION


def _ttl(execution: Mapping[str, Any], runtime: Version) -> float | None:
    return seconds(str(execution.get("ttl", ""))) or (DEFAULT_TTL if runtime >= TTL_SINCE else None)
