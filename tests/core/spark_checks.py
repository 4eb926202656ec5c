"""A sound batch, and what is said about it when something is changed."""

from __future__ import annotations

from datetime import date
from typing import Any

from airflow_accel_provider.core.catalog import load_catalog
from airflow_accel_provider.core.problems import Problem
from airflow_accel_provider.core.spark import SparkRequest, check_spark, load_spark_catalog
from airflow_accel_provider.core.validation import read_candidates

CATALOG = load_catalog()
TABLES = load_spark_catalog()
# A day on which no runtime with a known end had reached it.
QUIET_DAY = date(2025, 6, 1)
PYSPARK: dict[str, Any] = {"pyspark_batch": {"main_python_file_uri": "gs://acme-ml/jobs/etl.py"}}
BOUNDED = {"spark.dynamicAllocation.enabled": "false"}


def check(*places: Any, region: str | None = None, today: date = QUIET_DAY, **parameters: Any) -> tuple[Problem, ...]:
    """Return the problems of a sound, quiet batch with some parameters said differently, in some places."""
    names = ("project", "project_required", "allowed_regions")
    settings = {name: parameters.pop(name) for name in names if name in parameters}
    properties = parameters.pop("properties", {})
    if isinstance(properties, dict):
        properties = {**BOUNDED, **properties}
    request = SparkRequest(**{"batch": PYSPARK, "ttl": 3600, **parameters, "properties": properties})
    first, *further = places or ("l4 in us-central1",)
    candidates, problems = read_candidates(first, further, region=region)
    found = check_spark(request, candidates, catalog=CATALOG, tables=TABLES, today=today, region=region, **settings)
    return (*problems, *found)


def told(problems: tuple[Problem, ...]) -> list[str]:
    """Return the code of each problem, a warning's with a question mark before it."""
    return [problem.code if problem.is_error else f"?{problem.code}" for problem in problems]
