"""The batch as the service's REST API takes it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from airflow_accel_provider.core.spark.labels import spark_labels
from airflow_accel_provider.core.spark.properties import property_text, spark_properties
from airflow_accel_provider.core.spark.request import SparkRequest
from airflow_accel_provider.core.spark.sizes import duration

if TYPE_CHECKING:
    from airflow_accel_provider.core.placement import Placement
    from airflow_accel_provider.core.spark.catalog import SparkCatalog


def batch_body(
    request: SparkRequest, placement: Placement, tables: SparkCatalog, *, labels: Mapping[str, str]
) -> dict[str, Any]:
    """Return the body of ``batches.create`` for a checked request as it is meant in one place.

    ``labels`` are the job's own, which tie it to its task; they win over the user's.
    """
    batch = dict(request.batch or {})
    environment = dict(batch.get("environment_config") or {})
    execution = dict(environment.get("execution_config") or {})
    if request.ttl is not None:
        execution["ttl"] = request.ttl
    if execution:
        environment["execution_config"] = execution
    if environment:
        batch["environment_config"] = environment
    batch["runtime_config"] = {**(batch.get("runtime_config") or {}), **_runtime_config(request, placement, tables)}
    batch["labels"] = {**request.labels, **spark_labels(labels)}
    return _message("Batch", batch, tables)


def _runtime_config(request: SparkRequest, placement: Placement, tables: SparkCatalog) -> dict[str, Any]:
    config: dict[str, Any] = {
        "version": request.runtime_version or tables.default_runtime,
        "properties": spark_properties(request, placement, tables),
    }
    return {**config, "container_image": request.container_image} if request.container_image else config


def _message(name: str, value: Mapping[str, Any], tables: SparkCatalog) -> dict[str, Any]:
    kinds = tables.messages[name]
    return {_camel(key): _field(kinds[key], item, tables) for key, item in value.items() if item is not None}


def _field(kind: str, value: Any, tables: SparkCatalog) -> Any:
    if kind in tables.messages:
        return _message(kind, value, tables)
    if kind == "map":
        return {key: property_text(item) for key, item in value.items()}
    if kind == "list":
        return list(value)
    return duration(value) if kind == "duration" else value


def _camel(name: str) -> str:
    return re.sub(r"_([a-z])", lambda form: form[1].upper(), name)
