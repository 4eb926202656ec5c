"""The tables of managed Spark are consistent, and an overlay's rows count in them."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest

from airflow_accel_provider.core.catalog import CatalogError, load_catalog
from airflow_accel_provider.core.checking import check_request
from airflow_accel_provider.core.spark import load_spark_catalog, spark_catalog
from airflow_accel_provider.core.spark.catalog import release

TABLES = load_spark_catalog()
CATALOG = load_catalog()


@pytest.mark.parametrize("type_", sorted(TABLES.accelerators))
def test_accelerator_is_one_of_compute_engines(type_: str) -> None:
    """Each accelerator has zones under Compute Engine's name, that one's quota, and executors in order of size."""
    known = TABLES.accelerators[type_]
    shapes = TABLES.shapes_of(type_)
    assert CATALOG.zones_of(known.compute_type)
    assert known.quota_metric == CATALOG.quota_metric(known.compute_type)
    assert known.queued_quota_metric == f"PREEMPTIBLE_{known.quota_metric}"
    assert [shape.cores for shape in shapes] == sorted(shape.cores for shape in shapes)
    assert [shape.gpus for shape in shapes] == sorted(shape.gpus for shape in shapes)
    assert shapes[0].gpus == 1


def test_undisputed_memory_of_l4_is_even() -> None:
    """An L4 executor has 3346 MB a core in every row, the disputed one's undisputed part included."""
    for shape in TABLES.shapes_of("l4"):
        assert (shape.disputed_above_mb or shape.memory_mb) == 3346 * shape.cores
    assert [shape.cores for shape in TABLES.executors if shape.disputed_above_mb] == [24]


def test_runtimes_are_consistent() -> None:
    """Support ends before use does, and what GPUs need changes with the versions as the pages say."""
    for version, runtime in TABLES.runtimes.items():
        assert (runtime.support_ends is None) == (runtime.usable_until is None)
        assert (
            runtime.support_ends is None or runtime.usable_until is None or runtime.support_ends < runtime.usable_until
        )
        needs = set(runtime.gpu_properties)
        assert ("spark.executorEnv.LANG" in needs) == (release(version) < (2, 2))
        assert ("spark.dataproc.executor.compute.tier" in needs) == (release(version) < (3, 0))
        assert ("spark.dataproc.executor.compute.class" in needs) == (release(version) >= (3, 0))
        assert bool(runtime.provisioning) == (release(version) >= (3, 0))


def test_default_runtime_is_the_newest_long_term_one() -> None:
    """Without a version of the user's the newest long-term runtime is taken, and it is a supported one."""
    chosen = TABLES.runtimes[TABLES.default_runtime]
    assert chosen.lts
    assert chosen.support_ends == max(each.support_ends for each in TABLES.runtimes.values() if each.support_ends)


def test_what_gpus_need_is_known_as_a_property() -> None:
    """Every property a runtime asks for, and every other name a property has, is known in that runtime."""
    for version, runtime in TABLES.runtimes.items():
        for name in runtime.gpu_properties:
            known = TABLES.property_named(name)
            if known is None:
                assert name == "spark.executorEnv.LANG"
                continue
            assert known.since is None or release(version) >= release(known.since)
            assert known.before is None or release(version) < release(known.before)
    for known in TABLES.properties.values():
        assert known.instead is None or known.instead in TABLES.properties


def test_no_property_is_shadowed_by_a_prefix() -> None:
    """No name in the table starts like a whole group of properties that the table has too."""
    starts = tuple(each.name for each in TABLES.prefixes)
    assert [name for name in TABLES.properties if name.startswith(starts)] == []


def test_messages_lead_to_messages() -> None:
    """Each field of a batch is a plain kind or a message of the table, and every message is reached from the batch."""
    kinds = {kind for fields in TABLES.messages.values() for kind in fields.values()}
    assert kinds - set(TABLES.messages) == {"text", "list", "map", "duration"}
    assert set(TABLES.messages) - kinds == {"Batch"}


def test_versions_are_numbers() -> None:
    """A version is two numbers; rules of an unknown one are those of the next older, if there is any."""
    assert release("2.10") > release("2.9")
    with pytest.raises(ValueError, match="not a version such as"):
        release("2.3.39")
    rules = {version: TABLES.rules_of(version) for version in ("2.9", "9.0", "0.1")}
    assert {version: known and known.version for version, known in rules.items()} == {
        "2.9": "2.3",
        "9.0": "3.0",
        "0.1": None,
    }


def overlay(**tables: Any) -> dict[str, Any]:
    """Return an overlay of the given rows, of one source and day."""
    return {
        name: {"source": "acme's account team", "date": "2027-01-31", "rows": rows} for name, rows in tables.items()
    }


H100 = overlay(
    spark_accelerators=[
        {
            "type": "h100",
            "compute_type": "nvidia-h100-80gb",
            "quota_metric": "NVIDIA_H100_GPUS",
            "queued_quota_metric": "PREEMPTIBLE_NVIDIA_H100_GPUS",
        }
    ],
    spark_executors=[{"type": "h100", "cores": 24, "gpus": 1, "disks_gb": [750], "memory_mb": 200000}],
)


def test_an_overlay_adds_an_accelerator() -> None:
    """A new GPU type with an executor is taken in batches as if it had been packaged."""
    request = {
        "operator": "DataprocGpuBatchOperator",
        "placement": "h100 in us-central1",
        "project_id": "acme-ml",
        "batch": {"pyspark_batch": {"main_python_file_uri": "gs://acme-ml/etl.py"}},
    }
    merged = CATALOG.merged(H100)
    by_catalog = {
        name: {
            each.code
            for each in check_request(request, catalog=catalog, today=date(2027, 2, 1)).problems
            if each.is_error
        }
        for name, catalog in (("packaged", CATALOG), ("merged", merged))
    }
    assert by_catalog == {"packaged": {"unknown-accelerator"}, "merged": set()}
    assert spark_catalog(merged).shapes_of("l4") == TABLES.shapes_of("l4")


def test_an_overlay_overrides_columns() -> None:
    """A row of a known key changes the columns that it names, a null takes back what an optional one said."""
    merged = spark_catalog(
        CATALOG.merged(
            overlay(
                spark_executors=[{"type": "l4", "cores": 24, "memory_mb": 80304, "disputed_above_mb": None}],
                spark_runtimes=[{"version": "2.3", "support_ends": "2028-01-31"}],
                spark_properties=[{"name": "spark.driver.cores", "choices": [4, 8, 16, 32]}],
            )
        )
    )
    before, after = TABLES.shape("l4", 24), merged.shape("l4", 24)
    assert before is not None
    assert after is not None
    assert (after.memory_mb, after.disputed_above_mb, after.disks_gb) == (80304, None, before.disks_gb)
    assert merged.runtimes["2.3"].support_ends == date(2028, 1, 31)
    assert merged.runtimes["2.3"].usable_until == TABLES.runtimes["2.3"].usable_until
    assert merged.properties["spark.driver.cores"].choices == (4, 8, 16, 32)
    assert merged.properties["spark.driver.cores"].kind == "number"


def test_a_new_runtime_needs_little() -> None:
    """A runtime is new with its version, its kind, its modes and what GPUs need there; the rest is unknown."""
    row = {"version": "3.1", "lts": True, "provisioning": ["queue"], "gpu_properties": {}}
    merged = spark_catalog(CATALOG.merged(overlay(spark_runtimes=[row])))
    assert merged.default_runtime == "3.1"
    assert merged.runtimes["3.1"].support_ends is None


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (overlay(spark_accelerator=[]), "there is no table spark_accelerator; did you mean spark_accelerators?"),
        (overlay(spark_executors=[{"type": "l4", "core": 4}]), "has no column core; did you mean cores?"),
        (overlay(spark_executors=[{"type": "l4", "cores": 4, "disks_gb": 375}]), "disks_gb is a list of whole numbers"),
        (overlay(spark_executors=[{"type": "h100", "cores": 4}]), "the new row h100 4 lacks gpus, disks_gb, memory_mb"),
        (overlay(spark_runtimes=[{"version": "2.3.1"}]), "version is a version such as 2.3, not '2.3.1'"),
        (overlay(spark_runtimes=[{"version": "2.3", "support_ends": "soon"}]), "support_ends is a day such as"),
        (overlay(spark_properties=[{"name": "a", "kind": "int"}]), "kind is text, word, number, ratio, size, flag or"),
        ({"spark_accelerators": H100["spark_accelerators"]}, "h100 is on no executor in the table spark_executors"),
        ({"spark_executors": H100["spark_executors"]}, "h100 is not in the table spark_accelerators"),
        (overlay(spark_batch=[{"message": "Batch", "fields": {"labels": "dict"}}]), "labels of Batch is dict, neither"),
    ],
)
def test_a_faulty_overlay_says_what_is_wrong(value: Any, said: str) -> None:
    """Faults in rows for Spark are named when the overlay is read, like those in any other table."""
    with pytest.raises(CatalogError) as caught:
        CATALOG.merged(value)
    assert said in str(caught.value)
