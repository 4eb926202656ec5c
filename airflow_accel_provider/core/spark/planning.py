"""The plan of a batch: every candidate in the user's order, kept or put aside with a reason."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from airflow_accel_provider.core.accelerators import Gpu
from airflow_accel_provider.core.planning import not_offered
from airflow_accel_provider.core.quota import room_for
from airflow_accel_provider.core.record import PlannedPlace
from airflow_accel_provider.core.spark.catalog import spark_catalog
from airflow_accel_provider.core.spark.demands import spark_demands

if TYPE_CHECKING:
    from airflow_accel_provider.core.catalog import Catalog
    from airflow_accel_provider.core.placement import Placement
    from airflow_accel_provider.core.quota import Readings
    from airflow_accel_provider.core.request import Candidate
    from airflow_accel_provider.core.spark.request import SparkRequest


def spark_plan(
    request: SparkRequest, candidates: Sequence[Candidate], *, catalog: Catalog, readings: Readings
) -> tuple[PlannedPlace, ...]:
    """Return one row a candidate, over the quotas of their regions as they were read."""
    return tuple(_planned(request.for_candidate(each), each.placement, catalog, readings) for each in candidates)


def _planned(request: SparkRequest, placement: Placement, catalog: Catalog, readings: Readings) -> PlannedPlace:
    tables = spark_catalog(catalog)
    missing = not_offered(_in_computes_words(placement, catalog), catalog)
    if missing:
        return PlannedPlace(placement=placement, rejected=missing)
    room = room_for(spark_demands(request, placement, tables), readings)
    return PlannedPlace(placement=placement, rejected=room.shortage, warnings=room.warnings)


def _in_computes_words(placement: Placement, catalog: Catalog) -> Placement:
    gpu = placement.accelerator
    if not isinstance(gpu, Gpu):
        return placement
    return replace(placement, accelerator=replace(gpu, type=spark_catalog(catalog).accelerators[gpu.type].compute_type))
