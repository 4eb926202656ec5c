"""Worlds say only what differs, and nothing that Google's clients could not read."""

from __future__ import annotations

import json
from importlib import resources

import pytest

from airflow_accel_provider.emulator.compute.tables import ACCELERATORS, BUILT_IN, ZONES, find_machine, machine_zones
from airflow_accel_provider.emulator.worlds import PLENTY, WORLD_NAMES, load_world


@pytest.mark.parametrize("name", WORLD_NAMES)
def test_every_world_speaks_of_known_things(name: str) -> None:
    """A world names only known accelerators and places, and metrics that Compute Engine's enum has."""
    documents = resources.files("googleapiclient") / "discovery_cache" / "documents"
    compute = json.loads((documents / "compute.v1.json").read_text())
    metrics = set(compute["schemas"]["Quota"]["properties"]["metric"]["enum"])
    world = load_world(name)
    places = {"*", *ZONES, *(zone for zones in ZONES.values() for zone in zones)}
    assert set(world.stock) <= {"*", *ACCELERATORS}
    assert {place for stocks in world.stock.values() for place in stocks} <= places
    assert set(world.region_quotas) <= {"*", *ZONES}
    assert {metric for quotas in world.region_quotas.values() for metric in quotas} <= metrics
    assert set(world.project_quotas) <= metrics
    families = {accelerator.cloud_quota for accelerator in ACCELERATORS.values()} | {"PREEMPTIBLE_TPU_V6E"}
    assert {key for quotas in world.cloud_quotas.values() for key in quotas} <= families
    assert set(world.cloud_quotas) <= {"*", *ZONES}


@pytest.mark.parametrize("name", WORLD_NAMES)
def test_every_world_reserves_machines_that_exist(name: str) -> None:
    """A world's reservation is of a machine that its zone has, with what is built into it, and not more than full."""
    for reserved in load_world(name).reservations:
        machine = find_machine(reserved.machine_type)
        assert machine is not None
        assert reserved.zone in machine_zones(machine)
        assert (reserved.accelerator, reserved.accelerators_each) == (machine.accelerator, machine.count)
        assert 0 <= reserved.in_use <= reserved.count


def test_the_most_specific_word_about_stock_wins() -> None:
    """What a world says of a region holds in its zones and nowhere else."""
    world = load_world("stockout-then-quota-then-stock")
    assert world.free("nvidia-l4", zone="us-central1-a") == 0
    assert world.free("nvidia-l4", zone="europe-west4-a") == PLENTY
    assert world.free("nvidia-tesla-t4", zone="us-central1-a") == PLENTY
    assert world.region_quota("europe-west4")["NVIDIA_L4_GPUS"].usage == 1
    assert world.region_quota("us-central1")["NVIDIA_L4_GPUS"].usage == 0


def test_an_unknown_world_is_answered_with_the_nearest_one() -> None:
    """A misspelt world is refused with the right spelling and all the worlds there are."""
    with pytest.raises(ValueError, match="Did you mean l4-stockout") as caught:
        load_world("l4-stokout")
    assert all(name in str(caught.value) for name in WORLD_NAMES)


def test_accelerators_are_offered_in_known_zones_and_on_known_machines() -> None:
    """Every accelerator has zones and either hosts to attach it to or machines that have it built in."""
    zones = {zone for names in ZONES.values() for zone in names}
    for accelerator in ACCELERATORS.values():
        assert accelerator.zones
        assert accelerator.zones <= zones
        is_built_in = any(machine.accelerator == accelerator.name for machine in BUILT_IN.values())
        assert is_built_in != bool(accelerator.n1_hosts)


@pytest.mark.parametrize(
    ("name", "cpus", "memory_gb"),
    [("n1-standard-4", 4, 15), ("n1-highmem-8", 8, 52), ("g2-standard-24", 24, 96), ("n1-custom-6-20480", 6, 20)],
)
def test_machines_have_the_size_that_their_name_says(name: str, cpus: int, memory_gb: float) -> None:
    """A machine type's vCPUs and memory follow from its name."""
    machine = find_machine(name)
    assert machine is not None
    assert (machine.cpus, machine.memory_gb) == (cpus, memory_gb)


@pytest.mark.parametrize("name", ["g2-standard-5", "n1-highmem-1", "n1-standard-3", "x9-standard-4", "nvidia-l4"])
def test_machines_that_do_not_exist_are_not_found(name: str) -> None:
    """There is no machine of a size or family that Compute Engine does not have."""
    assert find_machine(name) is None
