"""The catalogue's tables: whole, consistent, and each with a source and a date."""

from __future__ import annotations

from collections import Counter
from datetime import date

import pytest

from airflow_accel_provider.core.accelerators import Cpu, Gpu
from airflow_accel_provider.core.catalog import load_catalog
from airflow_accel_provider.core.locations import region_of
from airflow_accel_provider.core.placement import Placement
from airflow_accel_provider.core.problems import Problem
from airflow_accel_provider.core.request import BeamRequest, Candidate
from airflow_accel_provider.core.validation import check_candidate

CATALOG = load_catalog()
TYPES = sorted(CATALOG.accelerators)


@pytest.mark.parametrize(
    ("name", "least"),
    [
        ("accelerators", 9),
        ("machines", 46),
        ("families", 25),
        ("n1_hosts", 16),
        ("names", 25),
        ("zones", 9),
        ("regions", 42),
    ],
)
def test_table_is_whole_and_dated(name: str, least: int) -> None:
    """Each table has its rows, a source, and the day it was read."""
    table = next(table for table in CATALOG.tables if table.name == name)
    assert len(table.rows) >= least
    assert len(table.source) > 20
    assert date(2026, 1, 1) <= date.fromisoformat(table.date) <= date(2100, 1, 1)


def test_no_table_is_unknown_to_the_tests() -> None:
    """There are as many tables as the catalogue says it has, each named once."""
    assert len(CATALOG.tables) == 7
    assert max(Counter(table.name for table in CATALOG.tables).values()) == 1


@pytest.mark.parametrize(
    ("type_", "zones", "regions"),
    # Counts of facts published in 2026-08; a table cut in half would fall below them.
    [("nvidia-l4", 44, 18), ("nvidia-tesla-t4", 51, 23), ("nvidia-tesla-a100", 19, 10)],
)
def test_zones_are_all_there(type_: str, zones: int, regions: int) -> None:
    """The common accelerators have all the zones and regions that were published."""
    assert len(CATALOG.zones_of(type_)) >= zones
    assert len(CATALOG.regions_of(type_)) >= regions


@pytest.mark.parametrize("type_", TYPES)
def test_accelerator_has_machines_zones_and_defaults(type_: str) -> None:
    """Each accelerator has counts, zones in known regions, and for every count a default machine that carries it."""
    counts = CATALOG.counts_of(type_)
    assert counts
    assert CATALOG.zones_of(type_)
    assert set(map(region_of, CATALOG.zones_of(type_))) <= set(CATALOG.regions)
    for count in counts:
        default = CATALOG.default_machine(Gpu(type_, count))
        assert default in CATALOG.machines
        assert errors_of(Placement(accelerator=Gpu(type_, count), machine_type=default, region="us-central1")) == []


@pytest.mark.parametrize("type_", TYPES)
def test_host_has_memory_for_its_accelerators(type_: str) -> None:
    """A default machine has at least nine tenths of its accelerators' own memory, so that a model passes through it."""
    known = CATALOG.accelerators[type_]
    for count, name in known.default_machines.items():
        assert CATALOG.machines[name].memory_gb >= 0.9 * known.memory_gb * count


def test_n1_limits_grow_with_the_count() -> None:
    """More GPUs never mean a smaller largest host."""
    for type_ in {limit.type for limit in CATALOG.host_limits}:
        limits = [CATALOG.host_limit(type_, count) for count in CATALOG.counts_of(type_)]
        sizes = [(limit.max_vcpus, limit.max_memory_gb) for limit in limits if limit]
        assert len(sizes) == len(CATALOG.counts_of(type_))
        assert sizes == sorted(sizes)


def test_machines_are_consistent() -> None:
    """A machine that carries an accelerator carries one that Dataflow takes, in a count; N1 machines carry none."""
    for machine in CATALOG.machines.values():
        assert (machine.accelerator in CATALOG.accelerators) == (machine.count > 0) == (machine.family != "n1")
        assert 0.85 <= machine.memory_gb / machine.vcpus <= 15
        assert (machine.family in CATALOG.cpu_families) == (machine.accelerator is None)


def test_known_wrong_names_lead_to_right_ones() -> None:
    """A name that is known to be wrong is no accelerator, and what it leads to is one."""
    for name in CATALOG.names.values():
        assert name.name not in CATALOG.accelerators
        assert name.meant in CATALOG.accelerators


def test_defaults_are_sensible() -> None:
    """One L4 gets a host with more memory than the GPU's own; a CPU and an unknown type get no default."""
    machine = CATALOG.machine(CATALOG.default_machine(Gpu("nvidia-l4")) or "")
    assert machine is not None
    assert machine.memory_gb > CATALOG.accelerators["nvidia-l4"].memory_gb
    assert CATALOG.default_machine(Cpu()) is None
    assert CATALOG.default_machine(Gpu("nvidia-l5")) is None


def test_quota_metrics() -> None:
    """A type has the metric that Compute Engine lists for it, or none."""
    assert CATALOG.quota_metric("nvidia-l4") == "NVIDIA_L4_GPUS"
    assert CATALOG.quota_metric("nvidia-tesla-a100") == "NVIDIA_A100_GPUS"
    assert CATALOG.quota_metric("nvidia-h100-80gb") is None
    assert CATALOG.quota_metric("nvidia-l5") is None


@pytest.mark.parametrize(
    ("region", "may_be"),
    [
        ("europe-west13", True),
        ("us-central2", True),
        ("us-central9", False),
        ("us-centrl1", False),
        ("europe-west99", False),
        ("mars-north1", False),
    ],
)
def test_new_regions_are_told_from_typos(region: str, may_be: bool) -> None:
    """An unknown region may be new when its area is known and its number is near those known."""
    assert CATALOG.may_be_new(region) is may_be


def errors_of(placement: Placement) -> list[Problem]:
    """Return the errors of a sound request in a place."""
    request = BeamRequest(py_file="gs://acme/score.py", pipeline_options={"temp_location": "gs://acme/tmp"})
    problems = check_candidate(request, Candidate(placement=placement), CATALOG)
    return [problem for problem in problems if problem.is_error]
