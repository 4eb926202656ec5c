"""The tables of managed Spark: whole, consistent, and each with a source and a date."""

from __future__ import annotations

from collections import Counter
from datetime import date

import pytest

from airflow_accel_provider.core.catalog import load_catalog
from airflow_accel_provider.core.spark import load_spark_catalog
from airflow_accel_provider.core.spark.catalog import release

TABLES = load_spark_catalog()
CATALOG = load_catalog()


@pytest.mark.parametrize(
    ("name", "least"), [("accelerators", 3), ("executors", 9), ("runtimes", 7), ("properties", 49), ("batch", 15)]
)
def test_table_is_whole_and_dated(name: str, least: int) -> None:
    """Each table has its rows, a source, and the day it was read."""
    table = TABLES.tables[name]
    assert len(table.rows) >= least
    assert "https://" in table.source or "discovery document" in table.source
    assert date(2026, 1, 1) <= date.fromisoformat(table.date) <= date(2100, 1, 1)


def test_no_table_is_unknown_to_the_tests() -> None:
    """There are five tables, and no row of any says what another already says."""
    assert set(TABLES.tables) == {"accelerators", "executors", "runtimes", "properties", "batch"}
    keys = {"accelerators": ("type",), "executors": ("type", "cores"), "runtimes": ("version",), "batch": ("message",)}
    for name, table in TABLES.tables.items():
        counted = Counter(tuple(row[key] for key in keys.get(name, ("name",))) for row in table.rows)
        assert max(counted.values()) == 1


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
