"""What the catalogue says of the accelerators of managed Spark, as JSON and for a person."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import TYPE_CHECKING, Any

from airflow_accel_provider.cli._offers import sources, zone_row
from airflow_accel_provider.cli._tables import aligned
from airflow_accel_provider.core.locations import region_of

if TYPE_CHECKING:
    from airflow_accel_provider.core.catalog import Catalog
    from airflow_accel_provider.core.spark.catalog import ExecutorShape, Runtime, SparkCatalog

_ABOUT = ("spark_accelerators", "spark_executors", "spark_runtimes", "zones")


def spark_overview(
    spark: SparkCatalog, catalog: Catalog, *, accelerator: str | None = None, region: str | None = None
) -> list[dict[str, Any]]:
    """Return one row an accelerator of Spark batches that is offered (in the region, where one is given)."""
    rows = (_summary(type_, spark, catalog, region) for type_ in spark.accelerators if accelerator in (None, type_))
    return [row for row in rows if row["regions"]]


def spark_overview_text(rows: list[dict[str, Any]]) -> str:
    """Return the rows as a table; there is no machine type to name, and the service chooses the zone."""
    lines = [("OF SPARK BATCHES", "GPUS", "CORES OF AN EXECUTOR", "QUOTA", "REGIONS")]
    for row in rows:
        gpus, cores = (" ".join(map(str, row[name])) for name in ("gpus", "cores"))
        lines.append((row["accelerator"], gpus, cores, row["quota"], str(len(row["regions"]))))
    return aligned(lines)


def explain_spark(type_: str, spark: SparkCatalog, catalog: Catalog, *, region: str | None = None) -> dict[str, Any]:
    """Return everything the catalogue says of one accelerator type of Spark batches."""
    known = spark.accelerators[type_]
    zones = [zone for zone in catalog.zones_of(known.compute_type) if region in (None, region_of(zone))]
    return {
        "accelerator": type_,
        "kind": "spark",
        "compute_type": known.compute_type,
        "executors": [_executor(each) for each in spark.shapes_of(type_)],
        "runtimes": [_runtime(each) for each in spark.runtimes.values()],
        "quotas": [
            {"drawn": "at once", "metric": known.quota_metric},
            {"drawn": "queued", "metric": known.queued_quota_metric},
        ],
        "regions": sorted({region_of(zone) for zone in zones}),
        "zones": zones,
        "sources": sources(catalog, _ABOUT),
    }


def explain_spark_text(said: Mapping[str, Any]) -> str:
    """Return an explanation for a person to read."""
    return "\n".join(_paragraphs(said))


def _summary(type_: str, spark: SparkCatalog, catalog: Catalog, region: str | None) -> dict[str, Any]:
    known, shapes = spark.accelerators[type_], spark.shapes_of(type_)
    regions = catalog.regions_of(known.compute_type)
    return {
        "accelerator": type_,
        "compute_type": known.compute_type,
        "gpus": sorted({each.gpus for each in shapes}),
        "cores": [each.cores for each in shapes],
        "quota": known.quota_metric,
        "regions": [each for each in regions if region in (None, each)],
    }


def _executor(shape: ExecutorShape) -> dict[str, Any]:
    return {
        "cores": shape.cores,
        "gpus": shape.gpus,
        "disks_gb": list(shape.disks_gb),
        "memory_mb": shape.memory_mb,
        "disputed_above_mb": shape.disputed_above_mb,
    }


def _runtime(runtime: Runtime) -> dict[str, Any]:
    return {
        "version": runtime.version,
        "lts": runtime.lts,
        "support_ends": runtime.support_ends and runtime.support_ends.isoformat(),
        "usable_until": runtime.usable_until and runtime.usable_until.isoformat(),
        "provisioning": list(runtime.provisioning),
        "gpu_properties": dict(runtime.gpu_properties),
    }


def _paragraphs(said: Mapping[str, Any]) -> Iterator[str]:
    yield f"{said['accelerator']}: GPU of Spark batches, {said['compute_type']} to Compute Engine"
    yield "\nExecutors, with the most memory, overhead and all included"
    yield aligned([_executor_row(each) for each in said["executors"]], indent="  ")
    yield "\nRuntimes, and what happens there when no GPU is in stock"
    yield aligned([_runtime_row(each) for each in said["runtimes"]], indent="  ")
    for needed, runtimes in groupby(said["runtimes"], lambda each: each["gpu_properties"]):
        yield f"\nProperties that GPUs need on {', '.join(each['version'] for each in runtimes)}"
        yield "\n".join(f"  {name}={value}" for name, value in needed.items()) or "  none"
    yield "\nQuotas, by whether a batch wants its GPUs at once or waits for them in a queue"
    yield aligned([(each["drawn"], each["metric"]) for each in said["quotas"]], indent="  ")
    zones = said["zones"]
    yield f"\nPublished in {len(zones)} zones, of which the service chooses; that is not being in stock"
    yield aligned([zone_row(region, those) for region, those in groupby(zones, region_of)] or [("none",)], indent="  ")
    yield "\nSources"
    yield aligned([(each["table"], each["date"], each["source"]) for each in said["sources"]], indent="  ")


def _executor_row(shape: Mapping[str, Any]) -> tuple[str, ...]:
    disks = " or ".join(map(str, shape["disks_gb"]))
    disputed = shape["disputed_above_mb"]
    doubt = f"disputed above {disputed} MB" if disputed else ""
    gpus = f"{shape['gpus']} GPU{'' if shape['gpus'] == 1 else 's'}"
    return f"{shape['cores']} cores", gpus, f"up to {shape['memory_mb']} MB", f"disk of {disks} GB", doubt


def _runtime_row(runtime: Mapping[str, Any]) -> tuple[str, ...]:
    ends = f"supported to {runtime['support_ends']}, usable to {runtime['usable_until']}"
    modes = " or ".join(runtime["provisioning"])
    lts = "long-term" if runtime["lts"] else ""
    return (
        runtime["version"],
        lts,
        ends if runtime["support_ends"] else "no longer supported",
        f"provisioning {modes}" if modes else "fails",
    )
