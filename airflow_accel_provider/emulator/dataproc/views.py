"""Batches and their operations as the service shows them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_accel_provider.emulator.dataproc import texts
from airflow_accel_provider.emulator.dataproc.tables import RUNTIMES
from airflow_accel_provider.emulator.dataproc.usage import SNAPSHOT_SECONDS, approximate, snapshot
from airflow_accel_provider.emulator.dataproc.wishes import CORES, INSTANCES, KINDS, properties_of, runtime_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow_accel_provider.emulator.dataproc.batches import Batch
    from airflow_accel_provider.emulator.state import Google

_TYPES = "type.googleapis.com/google.cloud.dataproc.v1"


def batch_json(batch: Batch, google: Google) -> dict[str, Any]:
    """Return a batch as ``batches.get`` answers it."""
    kind = next(kind for kind in KINDS if kind in batch.request)
    shown = {
        "name": batch.name,
        "uuid": batch.uuid,
        "createTime": batch.created,
        kind: batch.request[kind],
        "runtimeInfo": _runtime_info(batch, google),
        "state": batch.state,
        "stateMessage": batch.message,
        "stateTime": batch.state_time,
        "creator": batch.principal,
        "labels": _labels(batch),
        "runtimeConfig": _runtime_config(batch),
        "environmentConfig": _environment(batch),
        "operation": batch.operation_name,
        "stateHistory": [dict(state) for state in batch.history],
    }
    return {name: value for name, value in shown.items() if value not in ("", [], None)}


def operation_json(batch: Batch, google: Google) -> dict[str, Any]:
    """Return the operation of a batch's creation, which is done when the batch is over."""
    metadata = {
        "@type": f"{_TYPES}.BatchOperationMetadata",
        "batch": batch.name,
        "batchUuid": batch.uuid,
        "createTime": batch.created,
        "operationType": "BATCH",
        "description": "Batch",
        "labels": _labels(batch),
    }
    if not batch.request.get("runtimeConfig", {}).get("version"):
        metadata["warnings"] = [texts.NO_VERSION]
    operation: dict[str, Any] = {"name": batch.operation_name, "metadata": metadata}
    if not batch.is_over:
        return operation
    metadata["doneTime"] = batch.state_time
    if batch.state == "SUCCEEDED":
        return {**operation, "done": True, "response": {"@type": f"{_TYPES}.Batch", **batch_json(batch, google)}}
    error = {"code": batch.code, "message": batch.message or f"Batch was {batch.state}"}
    return {**operation, "done": True, "error": error}


def _labels(batch: Batch) -> dict[str, str]:
    """Return the user's labels and the service's own."""
    return {
        **batch.request.get("labels", {}),
        "goog-dataproc-batch-id": batch.id,
        "goog-dataproc-batch-uuid": batch.uuid,
        "goog-dataproc-drz-resource-uuid": f"batch-{batch.uuid}",
        "goog-dataproc-location": batch.location,
    }


def _runtime_config(batch: Batch) -> dict[str, Any]:
    wish = batch.wish
    filled = {
        "spark.app.name": batch.name,
        "spark.driver.cores": str(wish.driver_cores),
        CORES: str(wish.cores),
        INSTANCES: str(wish.executors),
        **properties_of(batch.request),
    }
    given: Mapping[str, Any] = batch.request.get("runtimeConfig", {})
    # As the service shows them, with a prefix that nobody wrote.
    properties = {f"spark:{name}": value for name, value in filled.items()}
    return {**given, "version": RUNTIMES[runtime_of(batch.request)], "properties": properties}


def _environment(batch: Batch) -> dict[str, Any]:
    given = batch.request.get("environmentConfig", {})
    execution = dict(given.get("executionConfig", {}))
    if batch.wish.ttl is not None:
        execution.setdefault("ttl", f"{batch.wish.ttl:g}s")
    peripherals = {"sparkHistoryServerConfig": {}, **given.get("peripheralsConfig", {})}
    return {**given, "executionConfig": execution, "peripheralsConfig": peripherals}


def _runtime_info(batch: Batch, google: Google) -> dict[str, Any]:
    info: dict[str, Any] = {"endpoints": {}}
    if batch.started:
        info["outputUri"] = batch.output_uri
    current = snapshot(batch, now=google.now(), interval=google.scaled(SNAPSHOT_SECONDS))
    if current:
        info["currentUsage"] = current
    total = approximate(batch)
    return {**info, "approximateUsage": total} if total else info
