"""What people know as parameters of other operators, and where an operator for Spark batches has it.

Sources: ``DataprocCreateBatchOperator`` of the Google provider 22.1; Dataproc API v1, Batch; both read 2026-11.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from airflow_accel_provider.core.problems import Problem, error

_EXECUTION = "environment_config.execution_config"
_IN_BATCH = {
    "service_account": f"{_EXECUTION}.service_account",
    "service_account_email": f"{_EXECUTION}.service_account",
    "network": f"{_EXECUTION}.network_uri",
    "subnetwork": f"{_EXECUTION}.subnetwork_uri",
    "kms_key": f"{_EXECUTION}.kms_key",
    "dataflow_kms_key": f"{_EXECUTION}.kms_key",
    "staging_bucket": f"{_EXECUTION}.staging_bucket",
    "py_file": "pyspark_batch.main_python_file_uri",
    "jar": "spark_batch.main_jar_file_uri",
    "job_class": "spark_batch.main_class",
}
_LINEAGE = "Give OpenLineage's properties in properties, as spark.openlineage.…"
_OTHERWISE = {
    "asynchronous": (
        "The task waits for its batch and holds no worker meanwhile, with deferrable=True; for a batch that somebody "
        "else started there is AcceleratorProofSensor with batch_id."
    ),
    "job_name": "A batch has an id, which begins with batch_id.",
    "num_retries_if_resource_is_not_ready": (
        "A batch whose network is not ready fails its task; retries is how often Airflow tries that again."
    ),
    "openlineage_inject_parent_job_info": _LINEAGE,
    "openlineage_inject_transport_info": _LINEAGE,
    "polling_interval_seconds": "Give poll_interval.",
    "result_retry": "How often a batch is looked at is poll_interval.",
    "retry": "Calls are repeated as needed, a creation under its request's id; retries is for the task as a whole.",
    "timeout": (
        "Calls have a time limit of their own; start_timeout bounds the wait for machines, ttl the batch and "
        "execution_timeout the task."
    ),
    "wait_until": "The task waits until its batch is done.",
}

ELSEWHERE: Mapping[str, str] = MappingProxyType(
    {**{name: f"It goes into batch, as {path}." for name, path in _IN_BATCH.items()}, **_OTHERWISE}
)
"""What to say instead, a sentence for each name."""


def misplaced(operator: str, names: Iterable[str]) -> tuple[Problem, ...]:
    """Return an error for each name that is said elsewhere; the others are not judged."""
    return tuple(
        error("parameter-unknown", f"{operator} has no parameter {name!r}. {ELSEWHERE[name]}", name)
        for name in names
        if name in ELSEWHERE
    )
