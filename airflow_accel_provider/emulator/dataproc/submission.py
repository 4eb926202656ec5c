"""From a batch to what ``spark-submit`` is told: its own properties, but for those that cannot hold here."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airflow_accel_provider.emulator.dataproc.tables import SET_ASIDE, row_for

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

THREADS = min(4, max(2, os.cpu_count() or 2))
"""How many tasks run at a time, whatever the number of executors."""

DRIVER_MEMORY = "2g"
QUICK_START = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
"""What makes a JVM that lives for a minute on two cores twice as quick."""

DRIVER_ENVIRONMENT = "spark.dataproc.driverEnv."
EXECUTOR_PATH = "spark.executorEnv.PATH"
SQL_DRIVER = "org.apache.spark.sql.hive.thriftserver.SparkSQLCLIDriver"
NO_JAR = "spark-internal"

_VIEW = "spark.hadoop.fs.viewfs"


@dataclass(frozen=True, slots=True, kw_only=True)
class Files:
    """Where what a batch names lies on this machine. ``main`` is its program or query, None for a class of a jar.

    Archives are not among it: they lie unpacked in the working directory.
    """

    main: Path | None
    python: Sequence[Path] = ()
    jars: Sequence[Path] = ()
    files: Sequence[Path] = ()


def set_aside(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the properties that are not passed on, each with why."""
    rows = {name: row_for(SET_ASIDE, name, value) for name, value in properties.items()}
    return {name: row.why for name, row in rows.items() if row}


def driver_environment(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the environment variables that a batch gives its driver."""
    return {
        name.removeprefix(DRIVER_ENVIRONMENT): value
        for name, value in properties.items()
        if name.startswith(DRIVER_ENVIRONMENT)
    }


def spark_properties(
    properties: Mapping[str, str], *, name: str, buckets: Mapping[str, Path], tools: Path, events: Path
) -> dict[str, str]:
    """Return the properties that Spark is started with.

    ``buckets`` are mounted as ``gs://``; ``tools`` is found first by what executors start.
    """
    aside = set_aside(properties)
    own = {key: value for key, value in properties.items() if key not in aside}
    path = own.get(EXECUTOR_PATH, os.environ.get("PATH", os.defpath))
    return {
        "spark.app.name": name,
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": events.as_uri(),
        "spark.eventLog.rolling.enabled": "false",
        "spark.ui.enabled": "false",
        "spark.driver.defaultJavaOptions": QUICK_START,
        # A catalogue of Hive's would be a database in the working directory.
        "spark.sql.catalogImplementation": "in-memory",
        # The service's runtimes commit as Hadoop always did; newer Sparks have a way of their own for gs://.
        "spark.hadoop.mapreduce.outputcommitter.factory.scheme.gs": (
            "org.apache.hadoop.mapreduce.lib.output.FileOutputCommitterFactory"
        ),
        **own,
        "spark.master": f"local[{THREADS}]",
        "spark.driver.memory": DRIVER_MEMORY,
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        EXECUTOR_PATH: f"{tools}{os.pathsep}{path}",
        **_mounts(buckets),
    }


def spark_arguments(request: Mapping[str, Any], files: Files) -> list[str]:
    """Return the arguments of ``spark-submit`` after its properties: what to run, with what, and its own arguments."""
    options = [*_list("--py-files", files.python), *_list("--jars", files.jars), *_list("--files", files.files)]
    if "sparkSqlBatch" in request:
        variables = request["sparkSqlBatch"].get("queryVariables", {})
        given = [piece for name, value in variables.items() for piece in ("--hivevar", f"{name}={value}")]
        return [*options, "--class", SQL_DRIVER, NO_JAR, "-f", str(files.main), *given]
    if "sparkBatch" in request:
        batch = request["sparkBatch"]
        by_class = ["--class", batch["mainClass"]] if batch.get("mainClass") else []
        return [*options, *by_class, str(files.main or NO_JAR), *batch.get("args", [])]
    return [*options, str(files.main), *request["pysparkBatch"].get("args", [])]


def _list(flag: str, paths: Sequence[Path]) -> list[str]:
    return [flag, ",".join(str(path) for path in paths)] if paths else []


def _mounts(buckets: Mapping[str, Path]) -> dict[str, str]:
    mounts = {f"{_VIEW}.mounttable.{bucket}.linkFallback": path.as_uri() for bucket, path in buckets.items()}
    return {
        "spark.hadoop.fs.gs.impl": "org.apache.hadoop.fs.viewfs.ViewFileSystemOverloadScheme",
        **mounts,
    }
