"""Refuses a batch at the door, with everything that is wrong with it, before anything is started."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from airflow_accel_provider.emulator.compute.tables import ZONES
from airflow_accel_provider.emulator.dataproc import texts
from airflow_accel_provider.emulator.dataproc.properties import property_problems
from airflow_accel_provider.emulator.dataproc.tables import CLASSES_SINCE, RUNTIMES, version_of
from airflow_accel_provider.emulator.dataproc.wishes import KINDS, execution_of, properties_of, runtime_of, seconds
from airflow_accel_provider.emulator.wire import GoogleError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

BATCH_ID = re.compile(r"[a-z0-9-]{4,63}")
REQUEST_ID = re.compile(r"[A-Za-z0-9_-]{1,40}")
LABEL = re.compile(r"[a-z]([a-z0-9-]{0,61}[a-z0-9])?")
MOST_LABELS = 32
TTL = (600, 14 * 24 * 3600)
"""Dataproc API v1, discovery document: batches.create, Batch.labels, ExecutionConfig.ttl."""

MAIN: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "pysparkBatch": ("mainPythonFileUri", (".py",)),
    "sparkRBatch": ("mainRFileUri", (".R", ".r")),
    "sparkSqlBatch": ("queryFileUri", ()),
    "pysparkNotebookBatch": ("notebookFileUri", (".ipynb",)),
}
NOT_EXECUTED = ("sparkRBatch", "pysparkNotebookBatch")


class FailedPreconditionError(GoogleError):
    """A 400 that speaks of the state of things rather than of the request."""

    def body(self) -> dict[str, Any]:
        """Return the error as Google writes it."""
        body = super().body()
        body["error"]["status"] = "FAILED_PRECONDITION"
        return body


def admit(request: Mapping[str, Any], *, location: str, batch_id: str, request_id: str) -> None:
    """Raise GoogleError 400 for a batch that the service takes in no state of the world, naming all that is wrong."""
    require_region(location)
    problems = [
        *_id_problems(batch_id, request_id),
        *_kind_problems(request),
        *_label_problems(request.get("labels", {})),
        *_execution_problems(execution_of(request)),
        *_runtime_problems(request),
    ]
    if problems:
        raise GoogleError(400, texts.several(problems))
    _refuse_what_is_not_executed(request)


def require_region(location: str) -> None:
    """Raise GoogleError 404 for a region that does not exist."""
    if location not in ZONES:
        raise GoogleError(404, f"Location '{location}' is not found or access is unauthorized.")


def _id_problems(batch_id: str, request_id: str) -> Iterator[str]:
    if not BATCH_ID.fullmatch(batch_id):
        yield f"Invalid batch id '{batch_id}'. It must be 4-63 characters. Valid characters are /[a-z][0-9]-/"
    if request_id and not REQUEST_ID.fullmatch(request_id):
        yield (
            f"Invalid request id '{request_id}'. It must contain only letters, numbers, underscores and hyphens,"
            " and at most 40 of them"
        )


def _kind_problems(request: Mapping[str, Any]) -> Iterator[str]:
    kinds = [kind for kind in KINDS if request.get(kind) is not None]
    if not kinds:
        yield "Batch config is required"
    elif len(kinds) > 1:
        yield f"Invalid value at 'batch' (oneof), oneof field 'batch_config' is already set. Cannot set '{kinds[1]}'"
    for kind in kinds:
        yield from _main_problems(kind, request[kind])


def _main_problems(kind: str, batch: Mapping[str, Any]) -> Iterator[str]:
    if kind == "sparkBatch":
        mains = [name for name in ("mainJarFileUri", "mainClass") if batch.get(name)]
        if len(mains) != 1:
            yield "Exactly one of main_jar_file_uri and main_class is required"
        return
    field, ends = MAIN[kind]
    uri = batch.get(field, "")
    if not uri:
        yield f"{kind}.{field} is required"
    elif ends and not uri.endswith(ends):
        yield f"Invalid {kind}.{field} '{uri}': the file must end in {' or '.join(ends)}"


def _label_problems(labels: Mapping[str, str]) -> Iterator[str]:
    if len(labels) > MOST_LABELS:
        yield f"No more than {MOST_LABELS} labels can be associated with a batch, there are {len(labels)}"
    for key, value in labels.items():
        if not LABEL.fullmatch(key):
            yield f"Invalid label key '{key}': it must contain 1 to 63 characters, and conform to RFC 1035"
        if value and not LABEL.fullmatch(value):
            yield f"Invalid label value '{value}': it must contain 1 to 63 characters, and conform to RFC 1035"


def _execution_problems(execution: Mapping[str, Any]) -> Iterator[str]:
    if execution.get("networkUri") and execution.get("subnetworkUri"):
        yield "Only one of network_uri and subnetwork_uri can be set"
    if "idleTtl" in execution:
        yield "idle_ttl cannot be set on a batch workload"
    bucket = execution.get("stagingBucket", "")
    if "/" in bucket:
        yield f"Invalid staging bucket '{bucket}': a Cloud Storage bucket name is required, not a gs://... URI"
    if "ttl" in execution:
        ttl = seconds(execution["ttl"])
        if ttl is None or not TTL[0] <= ttl <= TTL[1]:
            bounds = f"the minimum is 10 minutes ({TTL[0]}s), the maximum 14 days ({TTL[1]}s)"
            yield f"Invalid ttl '{execution['ttl']}': {bounds}"


def _runtime_problems(request: Mapping[str, Any]) -> Iterator[str]:
    runtime = runtime_of(request)
    if runtime not in RUNTIMES:
        yield f"Unsupported runtime version '{runtime}'. Supported versions: {', '.join(RUNTIMES)}"
        return
    version = version_of(runtime)
    if version >= CLASSES_SINCE and "sparkRBatch" in request:
        yield f"SparkR is not supported in runtime version {runtime}"
    is_pyspark = "pysparkBatch" in request or "pysparkNotebookBatch" in request
    yield from property_problems(properties_of(request), version, is_pyspark=is_pyspark)


def _refuse_what_is_not_executed(request: Mapping[str, Any]) -> None:
    for kind in NOT_EXECUTED:
        if kind in request:
            raise GoogleError(501, f"The emulator does not execute a {kind}; it does {', '.join(KINDS[:3])}.")
