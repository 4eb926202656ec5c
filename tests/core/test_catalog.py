"""The catalogue's tables: whole, consistent, and each with a source and a date."""

from __future__ import annotations

from collections import Counter
from datetime import date

import pytest

from airflow_accel_provider.core.accelerators import Cpu, Gpu, Tpu, parse_accelerator
from airflow_accel_provider.core.catalog import load_catalog
from airflow_accel_provider.core.locations import is_zone, region_of
from airflow_accel_provider.core.placement import Placement
from airflow_accel_provider.core.problems import Problem
from airflow_accel_provider.core.request import BeamRequest, Candidate
from airflow_accel_provider.core.tables import rows_of
from airflow_accel_provider.core.validation import check_candidate

CATALOG = load_catalog()
TYPES = sorted(CATALOG.accelerators)
TPU_TYPES = sorted(CATALOG.tpu_types)

# Rows that were there on the day the tables were read; a table cut in half would fall far below.
ROWS = {
    "accelerators": 9,
    "tpu_types": 3,
    "tpu_slices": 7,
    "tpu_environment": 4,
    "machines": 65,
    "families": 25,
    "n1_hosts": 16,
    "names": 90,
    "quotas": 25,
    "zones": 12,
    "documented_zones": 3,
    "machine_zones": 1,
    "regions": 42,
    "prices": 480,
    "rates": 26,
    "spark_accelerators": 3,
    "spark_executors": 9,
    "spark_runtimes": 7,
    "spark_properties": 49,
    "spark_batch": 15,
}


def test_no_table_is_unknown_to_the_tests() -> None:
    """There are as many tables as the catalogue says it has, each named once."""
    assert sorted(table.name for table in CATALOG.tables) == sorted(ROWS)


@pytest.mark.parametrize("name", ROWS)
def test_table_is_whole_and_dated(name: str) -> None:
    """Each table has its rows, each under a key of its own, a source, and the day it was read."""
    table = next(table for table in CATALOG.tables if table.name == name)
    assert len(table.rows) >= ROWS[name]
    assert len({key for key, _ in rows_of(table)}) == len(table.rows)
    assert len(table.source) > 20
    assert date(2026, 1, 1) <= date.fromisoformat(table.date) <= date(2100, 1, 1)


@pytest.mark.parametrize(
    ("type_", "zones", "regions"),
    # Counts of zones and regions published in 2026-08.
    [
        ("nvidia-l4", 44, 18),
        ("nvidia-tesla-t4", 51, 23),
        ("nvidia-tesla-p4", 17, 7),
        ("nvidia-tesla-v100", 12, 5),
        ("nvidia-tesla-p100", 13, 7),
        ("nvidia-tesla-a100", 19, 10),
        ("nvidia-a100-80gb", 7, 5),
        ("nvidia-h100-80gb", 25, 16),
        ("nvidia-h100-mega-80gb", 24, 14),
        ("tpu-v5-lite-podslice", 27, 16),
        ("tpu-v6e-slice", 20, 12),
        ("tpu-v5p-slice", 11, 6),
    ],
)
def test_zones_are_all_there(type_: str, zones: int, regions: int) -> None:
    """Each accelerator has all the zones and regions that were published, all of regions the catalogue knows."""
    assert len(CATALOG.zones_of(type_)) >= zones
    assert len(CATALOG.regions_of(type_)) >= regions
    assert set(CATALOG.regions_of(type_)) <= set(CATALOG.regions)
    assert all(map(is_zone, CATALOG.zones_of(type_)))


# https://cloud.google.com/tpu/docs/regions-zones
@pytest.mark.parametrize(
    ("type_", "documented"),
    [
        ("tpu-v5-lite-podslice", {"us-central1-a", "us-south1-a", "us-west1-c", "us-west4-a"}),
        (
            "tpu-v6e-slice",
            {
                *("europe-west4-a", "us-central1-ai1", "us-central1-b", "us-east1-d", "us-east5-a", "us-east5-b"),
                "us-south1-ai1b",
            },
        ),
        ("tpu-v5p-slice", {"us-central1-a", "us-east5-a"}),
        ("nvidia-l4", set()),
    ],
)
def test_documented_zones_stand_apart(type_: str, documented: set[str]) -> None:
    """What Google's pages name, AI zones too, is told apart from what is published."""
    assert set(CATALOG.documented_zones_of(type_)) == documented


def test_regions_have_all_their_zones() -> None:
    """Each region has three zones or more, those of the two AI zones more than their letters."""
    assert all(len(zones) >= 3 for zones in CATALOG.regions.values())
    assert {"us-central1-ai1", "us-south1-ai1b"} <= {zone for zones in CATALOG.regions.values() for zone in zones}
    assert CATALOG.zones_in("us-central1") == (
        *("us-central1-a", "us-central1-ai1", "us-central1-b", "us-central1-c", "us-central1-f"),
    )


def test_a_documented_zone_counts_as_offered() -> None:
    """A zone that is documented and not published is a place like any other."""
    assert "us-central1-ai1" not in CATALOG.zones_of("tpu-v6e-slice")
    assert CATALOG.offered_instead(Placement.parse("tpu-v6e-slice:2x2 in us-central1-ai1")) == ()
    assert CATALOG.offered_instead(Placement.parse("tpu-v6e-slice:2x2 in us-central1-f"))


def test_a_machine_may_have_fewer_zones_than_its_accelerator() -> None:
    """Sixteen A100s are in eight of the A100's zones, and the nearest of them are named for another place."""
    assert len(CATALOG.zones_of("nvidia-tesla-a100", "a2-megagpu-16g")) == 8
    assert CATALOG.zones_of("nvidia-tesla-a100", "a2-highgpu-1g") == CATALOG.zones_of("nvidia-tesla-a100")
    placement = Placement.parse("nvidia-tesla-a100:16 on a2-megagpu-16g in us-east1")
    assert CATALOG.offered_instead(placement) == ("us-central1",)


# https://cloud.google.com/dataflow/docs/tpu/tpu-support: type, topology, machine, chips, vCPUs, GB, name, bounds.
@pytest.mark.parametrize(
    "row",
    [
        ("tpu-v5-lite-podslice", "1x1", "ct5lp-hightpu-1t", 1, 24, 48, "v5litepod-1", "1,1,1"),
        ("tpu-v5-lite-podslice", "2x2", "ct5lp-hightpu-4t", 4, 112, 192, "v5litepod-4", "2,2,1"),
        ("tpu-v5-lite-podslice", "2x4", "ct5lp-hightpu-8t", 8, 224, 384, "v5litepod-8", "2,4,1"),
        ("tpu-v6e-slice", "1x1", "ct6e-standard-1t", 1, 44, 176, "v6e-1", "1,1,1"),
        ("tpu-v6e-slice", "2x2", "ct6e-standard-4t", 4, 180, 720, "v6e-4", "2,2,1"),
        ("tpu-v6e-slice", "2x4", "ct6e-standard-8t", 8, 360, 1440, "v6e-8", "2,4,1"),
        ("tpu-v5p-slice", "2x2x1", "ct5p-hightpu-4t", 4, 208, 448, "v5p-8", "2,2,1"),
    ],
)
def test_tpu_slice(row: tuple[str, str, str, int, int, int, str, str]) -> None:
    """A TPU type and topology come with one machine type, its chips, vCPUs and memory, and a container environment."""
    type_, topology, machine, chips, vcpus, memory_gb, name, bounds = row
    found = CATALOG.tpu(type_, topology)
    assert found is not None
    assert (found.machine_type, found.chips, found.vcpus, found.memory_gb) == (machine, chips, vcpus, memory_gb)
    assert found.environment == {
        "TPU_ACCELERATOR_TYPE": name,
        "TPU_CHIPS_PER_HOST_BOUNDS": bounds,
        "TPU_SKIP_MDS_QUERY": "1",
        "TPU_HOST_BOUNDS": "1,1,1",
        "TPU_WORKER_HOSTNAMES": "localhost",
        "TPU_WORKER_ID": "0",
    }
    tpu = Tpu(type_, topology)
    assert CATALOG.machine_for(tpu) == CATALOG.default_machine(tpu) == machine
    carrier = CATALOG.machine(machine)
    assert carrier is not None
    assert CATALOG.carried_by(carrier) == tpu


def test_other_tpu_slices_do_not_exist() -> None:
    """A combination outside of the table is no slice and has no machine."""
    assert CATALOG.tpu("tpu-v6e-slice", "4x4") is None
    assert CATALOG.machine_for(Tpu("tpu-v5p-slice", "2x2")) is None
    assert [each.topology for each in CATALOG.tpus_of("tpu-v6e-slice")] == ["1x1", "2x2", "2x4"]
    assert CATALOG.tpus_of("tpu-v4-podslice") == ()


def test_compute_engine_has_its_own_names_for_tpus() -> None:
    """A VM shows ``ct6e`` where Dataflow says ``tpu-v6e-slice``; GPUs have one name."""
    names = [CATALOG.compute_name(type_) for type_ in ("tpu-v5-lite-podslice", "tpu-v5p-slice", "tpu-v6e-slice")]
    assert names == ["ct5lp", "ct5p", "ct6e"]
    assert CATALOG.compute_name("nvidia-l4") == "nvidia-l4"
    for each in CATALOG.tpu_slices.values():
        assert each.machine_type.startswith(f"{CATALOG.compute_name(each.type)}-")


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


@pytest.mark.parametrize(
    ("accelerator", "machine"),
    [
        ("nvidia-l4", "g2-standard-4"),
        ("nvidia-l4:2", "g2-standard-24"),
        ("nvidia-l4:4", "g2-standard-48"),
        ("nvidia-l4:8", "g2-standard-96"),
        ("nvidia-tesla-t4", "n1-standard-4"),
        ("nvidia-tesla-t4:2", "n1-standard-8"),
        ("nvidia-tesla-t4:4", "n1-standard-16"),
        ("nvidia-tesla-p4", "n1-standard-4"),
        ("nvidia-tesla-v100:8", "n1-standard-32"),
        ("nvidia-tesla-p100", "n1-standard-4"),
        ("nvidia-tesla-a100", "a2-highgpu-1g"),
        ("nvidia-tesla-a100:8", "a2-highgpu-8g"),
        ("nvidia-tesla-a100:16", "a2-megagpu-16g"),
        ("nvidia-a100-80gb:4", "a2-ultragpu-4g"),
        ("nvidia-h100-80gb:8", "a3-highgpu-8g"),
        ("nvidia-h100-mega-80gb:8", "a3-megagpu-8g"),
        ("nvidia-l4:3", None),
        ("nvidia-l5", None),
        ("cpu", None),
    ],
)
def test_default_machine_is_the_smallest_sensible_one(accelerator: str, machine: str | None) -> None:
    """The default is the smallest machine that carries the count with four vCPUs a GPU; CPUs have none."""
    assert CATALOG.default_machine(parse_accelerator(accelerator)) == machine


@pytest.mark.parametrize("type_", TYPES)
def test_no_smaller_machine_would_do(type_: str) -> None:
    """Every machine that carries the same count and is smaller than the default has too few vCPUs."""
    for count, name in CATALOG.accelerators[type_].default_machines.items():
        default = CATALOG.machines[name]
        assert default.vcpus >= 4 * count
        for other in CATALOG.machines_of(type_, count):
            assert other.vcpus >= default.vcpus or other.vcpus < 4 * count or not other.on_demand


def test_fewer_than_eight_h100_are_not_on_demand() -> None:
    """One, two or four H100 need a reservation, spot or flex-start; other GPUs can be had on demand in every count."""
    assert CATALOG.counts_of("nvidia-h100-80gb") == (1, 2, 4, 8)
    assert CATALOG.on_demand_counts("nvidia-h100-80gb") == (8,)
    for type_ in set(TYPES) - {"nvidia-h100-80gb"}:
        assert CATALOG.on_demand_counts(type_) == CATALOG.counts_of(type_)


def test_n1_limits_grow_with_the_count() -> None:
    """More GPUs never mean a smaller largest host."""
    for type_ in {limit.type for limit in CATALOG.host_limits}:
        limits = [CATALOG.host_limit(type_, count) for count in CATALOG.counts_of(type_)]
        sizes = [(limit.max_vcpus, limit.max_memory_gb) for limit in limits if limit]
        assert len(sizes) == len(CATALOG.counts_of(type_))
        assert sizes == sorted(sizes)


@pytest.mark.parametrize("zone", ["us-east1-c", "europe-west1-d", "europe-west1-b"])
def test_four_p100_have_smaller_hosts_in_some_zones(zone: str) -> None:
    """Three zones take four P100 on hosts of at most 64 vCPUs and 208 GB, the others on larger ones."""
    here, elsewhere = (CATALOG.host_limit("nvidia-tesla-p100", 4, each) for each in (zone, "us-central1-c"))
    assert here is not None
    assert elsewhere is not None
    assert (here.max_vcpus, here.max_memory_gb) == (64, 208)
    assert (elsewhere.max_vcpus, elsewhere.max_memory_gb) == (96, 624)


def test_machines_are_consistent() -> None:
    """A machine carries an accelerator or is an N1, and is on Dataflow when Dataflow takes what it carries."""
    for machine in CATALOG.machines.values():
        assert (machine.accelerator is not None) == (machine.count > 0) == (machine.family != "n1")
        taken = machine.accelerator in {None, *CATALOG.accelerators, *CATALOG.tpu_types}
        assert machine.on_dataflow == taken
        assert 0.85 <= machine.memory_gb / machine.vcpus <= 18
        assert (machine.family in CATALOG.cpu_families) == (machine.accelerator is None)
    families = Counter(machine.family for machine in CATALOG.machines.values())
    assert families == {
        "g2": 8,
        "a2": 9,
        "a3": 9,
        "a4": 1,
        "a4x": 2,
        "g4": 7,
        "n1": 22,
        "ct5lp": 3,
        "ct6e": 3,
        "ct5p": 1,
    }


def test_known_wrong_names_lead_to_right_ones() -> None:
    """A name that is known to be wrong is no accelerator, and what it leads to is one."""
    right = {*CATALOG.accelerators, *CATALOG.tpu_types}
    for name in CATALOG.names.values():
        assert name.name not in right
        assert name.meant in right


def test_every_accelerator_of_a_machine_is_known_by_some_name() -> None:
    """What a machine carries is taken by Dataflow, or the table of names says that it is not and what is nearest."""
    carried = {machine.accelerator for machine in CATALOG.machines.values()} - {None}
    assert carried - {*CATALOG.accelerators, *CATALOG.tpu_types} <= set(CATALOG.names)
    assert {CATALOG.compute_name(type_) for type_ in CATALOG.tpu_types} <= set(CATALOG.names)


@pytest.mark.parametrize("type_", [*TYPES, *TPU_TYPES])
def test_every_accelerator_has_a_quota(type_: str) -> None:
    """Each accelerator has a quota that Compute Engine or Cloud Quotas names, in GPUs or chips."""
    quota = CATALOG.quota_of(type_)
    assert quota is not None
    assert quota.metric or quota.quota_id
    assert quota.unit == ("chip" if type_ in CATALOG.tpu_types else "GPU")


@pytest.mark.parametrize(
    ("type_", "metric", "preemptible", "quota_id", "dimensions"),
    [
        ("nvidia-l4", "NVIDIA_L4_GPUS", "PREEMPTIBLE_NVIDIA_L4_GPUS", "NVIDIA-L4-GPUS-per-project-region", {}),
        ("nvidia-tesla-v100", "NVIDIA_V100_GPUS", "PREEMPTIBLE_NVIDIA_V100_GPUS", None, {}),
        (
            *("nvidia-a100-80gb", "NVIDIA_A100_80GB_GPUS", "PREEMPTIBLE_NVIDIA_A100_80GB_GPUS"),
            *("NVIDIA-A100-80GB-GPUS-per-project-region", {}),
        ),
        (
            *("nvidia-h100-80gb", None, "PREEMPTIBLE_NVIDIA_H100_GPUS"),
            *("GPUS-PER-GPU-FAMILY-per-project-region", {"gpu_family": "NVIDIA_H100"}),
        ),
        (
            *("nvidia-h100-mega-80gb", None, None),
            *("GPUS-PER-GPU-FAMILY-per-project-region", {"gpu_family": "NVIDIA_H100_MEGA"}),
        ),
        (
            *("tpu-v5-lite-podslice", "TPU_LITE_PODSLICE_V5", "PREEMPTIBLE_TPU_LITE_PODSLICE_V5"),
            *("TPU-LITE-PODSLICE-V5-per-project-region", {}),
        ),
        ("tpu-v6e-slice", None, None, "TPUS-PER-TPU-FAMILY-per-project-region", {"tpu_family": "CT6E"}),
        ("tpu-v5p-slice", None, None, "TPU-V5P-per-project-region", {}),
    ],
)
def test_quotas(
    type_: str, metric: str | None, preemptible: str | None, quota_id: str | None, dimensions: dict[str, str]
) -> None:
    """A type has the metrics that Compute Engine lists for it, or none, and its id in Cloud Quotas."""
    assert CATALOG.quota_metric(type_) == metric
    assert CATALOG.quota_metric(type_, preemptible=True) == preemptible
    quota = CATALOG.quota_of(type_)
    assert quota is not None
    assert (quota.quota_id, quota.dimensions) == (quota_id, dimensions)


def test_an_unknown_type_has_no_quota() -> None:
    """Nothing is said of the quota of a type that is not in the table."""
    assert CATALOG.quota_of("nvidia-l5") is None
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


def test_cpus_have_no_default_machine() -> None:
    """CPUs are left to the service's own default machine."""
    assert CATALOG.default_machine(Cpu()) is None


def errors_of(placement: Placement) -> list[Problem]:
    """Return the errors of a sound request in a place."""
    request = BeamRequest(py_file="gs://acme/score.py", pipeline_options={"temp_location": "gs://acme/tmp"})
    problems = check_candidate(request, Candidate(placement=placement), CATALOG)
    return [problem for problem in problems if problem.is_error]
