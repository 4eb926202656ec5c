"""Whether a batch says what to run, and says it as the service takes it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from airflow_accel_provider.core.problems import Problem, error, warning
from airflow_accel_provider.core.spark.catalog import Runtime, release
from airflow_accel_provider.core.spark.request import inside
from airflow_accel_provider.core.spark.validation._words import either
from airflow_accel_provider.core.validation._templated import is_templated

# Dataproc API v1, discovery document: which field each kind requires, and the ends its name must have.
_MAIN: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "pyspark_batch": ("main_python_file_uri", (".py",)),
    "spark_r_batch": ("main_r_file_uri", (".R", ".r")),
    "spark_sql_batch": ("query_file_uri", ()),
    "pyspark_notebook_batch": ("notebook_file_uri", (".ipynb",)),
}
_KINDS = ("pyspark_batch", "spark_batch", "spark_sql_batch", "spark_r_batch", "pyspark_notebook_batch")
_AUTHENTICATION = ("SERVICE_ACCOUNT", "END_USER_CREDENTIALS")
_EXECUTION = ("environment_config", "execution_config")
_HISTORY = ("environment_config", "peripherals_config", "spark_history_server_config")


def check_batch(batch: Mapping[str, Any] | None, runtime: Runtime | None) -> Iterator[Problem]:
    """Yield what is wrong with the batch itself; ``runtime`` is ``None`` where it cannot be known yet."""
    kinds = [kind for kind in _KINDS if kind in (batch or {})]
    if batch is None or not kinds:
        yield error("batch-missing", f"There is nothing to run; give batch= with {either(_KINDS)}.", "batch")
        return
    if len(kinds) > 1:
        yield error("batch-twice", f"There are {' and '.join(kinds)}; a batch runs one.", "batch")
    for kind in kinds:
        yield from _check_main(kind, batch[kind])
    execution = inside(batch, _EXECUTION)
    yield from _check_execution(execution if isinstance(execution, Mapping) else {})
    if runtime and release(runtime.version) >= (3, 0):
        yield from _check_newest(batch, runtime)


def _check_main(kind: str, value: Any) -> Iterator[Problem]:
    where = f"batch.{kind}"
    if is_templated(value):
        return
    if kind == "spark_batch":
        mains = [name for name in ("main_jar_file_uri", "main_class") if value.get(name)]
        if len(mains) != 1:
            text = (
                f"A Spark batch has a main_jar_file_uri or a main_class; this has {' and '.join(mains) or 'neither'}."
            )
            yield error("batch-main", text, where)
        return
    name, ends = _MAIN[kind]
    uri = value.get(name)
    if not uri:
        yield error("batch-main", f"There is no {name}, such as gs://BUCKET/jobs/main{(*ends, '.sql')[0]}.", where)
    elif ends and not is_templated(uri) and not uri.endswith(ends):
        yield error("batch-main", f"{uri!r} does not do; its name must end in {ends[0]}.", f"{where}.{name}")


def _check_execution(execution: Mapping[str, Any]) -> Iterator[Problem]:
    where = "batch.environment_config.execution_config"
    if execution.get("network_uri") and execution.get("subnetwork_uri"):
        text = "There are network_uri and subnetwork_uri; the service takes one of them."
        yield error("network-twice", text, f"{where}.network_uri")
    bucket = execution.get("staging_bucket")
    if bucket and not is_templated(bucket) and "/" in bucket:
        name = bucket.removeprefix("gs://").partition("/")[0]
        text = f"{bucket!r} is not a bucket's name; write {name!r}."
        yield error("staging-bucket", text, f"{where}.staging_bucket")
    word = inside(execution, ("authentication_config", "user_workload_authentication_type"))
    if word and not is_templated(word) and word not in _AUTHENTICATION:
        text = f"{word!r} does not do; it is {either(_AUTHENTICATION)}."
        yield error("authentication", text, f"{where}.authentication_config.user_workload_authentication_type")


def _check_newest(batch: Mapping[str, Any], runtime: Runtime) -> Iterator[Problem]:
    """Yield what runtimes from 3.0 on do without.

    Source: https://cloud.google.com/dataproc-serverless/docs/concepts/versions/dataproc-serverless-versions, read
    2026-11: no SparkR, no persistent history server, no staging bucket.
    """
    if "spark_r_batch" in batch:
        yield error("runtime-lacks", f"Runtime {runtime.version} has no SparkR; take 2.3.", "batch.spark_r_batch")
    if inside(batch, _HISTORY):
        text = f"Runtime {runtime.version} has no persistent history server; leave it out, or take 2.3."
        yield error("runtime-lacks", text, f"batch.{'.'.join(_HISTORY)}")
    if inside(batch, (*_EXECUTION, "staging_bucket")):
        text = f"Runtime {runtime.version} uses no staging bucket."
        yield warning("runtime-lacks", text, f"batch.{'.'.join(_EXECUTION)}.staging_bucket")
