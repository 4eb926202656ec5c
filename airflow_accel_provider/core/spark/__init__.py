"""Batches of Google's managed Spark on GPUs: what is asked, whether it can work, and how the service is told."""

from __future__ import annotations

from airflow_accel_provider.core.spark.bill import usage_row
from airflow_accel_provider.core.spark.body import batch_body
from airflow_accel_provider.core.spark.catalog import SparkCatalog, load_spark_catalog, spark_catalog
from airflow_accel_provider.core.spark.demands import is_queued, spark_demands
from airflow_accel_provider.core.spark.labels import owns_batch
from airflow_accel_provider.core.spark.planning import spark_plan
from airflow_accel_provider.core.spark.properties import spark_properties
from airflow_accel_provider.core.spark.request import SPARK_OVERRIDABLE, SparkRequest
from airflow_accel_provider.core.spark.validation import check_call, check_spark
from airflow_accel_provider.core.spark.waiting import check_waiting, within_budget

__all__ = [
    "SPARK_OVERRIDABLE",
    "SparkCatalog",
    "SparkRequest",
    "batch_body",
    "check_call",
    "check_spark",
    "check_waiting",
    "is_queued",
    "load_spark_catalog",
    "owns_batch",
    "spark_catalog",
    "spark_demands",
    "spark_plan",
    "spark_properties",
    "usage_row",
    "within_budget",
]
