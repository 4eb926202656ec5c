"""TPU machines in Compute Engine: what VMs show, what they draw, and what worlds say of them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from google.api_core.client_options import ClientOptions
from google.cloud import compute_v1
from google.oauth2 import service_account

from airflow_accel_provider.emulator.compute.instances import Instance
from airflow_accel_provider.emulator.compute.quotas import Shortage, find_shortage
from airflow_accel_provider.emulator.compute.tables import ACCELERATORS, BUILT_IN
from airflow_accel_provider.emulator.worlds import PLENTY, WORLD_NAMES, Quota, load_world

if TYPE_CHECKING:
    from collections.abc import Iterator

    from emulators import Emulator

TPUS = {name for name, accelerator in ACCELERATORS.items() if accelerator.is_tpu}

VM = Instance(
    name="tpu-vm",
    project="acme-ml-prod",
    zone="us-east5-b",
    machine_type="ct6e-standard-4t",
    status="RUNNING",
    created="2026-11-29T00:00:00Z",
    accelerator="tpu-v6e-slice",
    count=4,
    service_account="pipeline@acme-ml-prod.iam.gserviceaccount.com",
)
V5E = replace(
    VM,
    name="v5e-vm",
    zone="us-west4-a",
    machine_type="ct5lp-hightpu-8t",
    accelerator="tpu-v5-lite-podslice",
    count=8,
)
V5P = replace(VM, zone="us-east5-a", machine_type="ct5p-hightpu-4t", accelerator="tpu-v5p-slice")
H100 = replace(VM, zone="us-east4-a", machine_type="a3-highgpu-8g", accelerator="nvidia-h100-80gb", count=8)


@pytest.fixture
def client(emulator: Emulator) -> dict[str, Any]:
    """Return what makes a client of google-cloud-compute talk to the emulator."""
    credentials = service_account.Credentials.from_service_account_file(str(emulator.keys["airflow"]))
    return {"credentials": credentials, "client_options": ClientOptions(api_endpoint=emulator.url)}


@pytest.fixture
def machines(emulator: Emulator) -> Iterator[list[Instance]]:
    """Return a list; what a test puts in by ``run`` is gone after it."""
    started: list[Instance] = []
    yield started
    emulator.google.dataflow.instances.remove(started)


def run(emulator: Emulator, machines: list[Instance], *vms: Instance) -> None:
    machines.extend(vms)
    emulator.google.dataflow.instances.put(vms)


@pytest.mark.parametrize(("vm", "accelerator"), [(VM, "ct6e"), (V5E, "ct5lp"), (V5P, "ct5p")])
def test_a_tpu_vm_shows_its_chips_under_computes_name(
    emulator: Emulator, client: dict[str, Any], machines: list[Instance], vm: Instance, accelerator: str
) -> None:
    """A VM with a TPU has a ct machine type, and as many accelerators of Compute Engine's own name as it has chips."""
    run(emulator, machines, vm)
    shown = compute_v1.InstancesClient(**client).get(project=emulator.project, zone=vm.zone, instance=vm.name)
    assert shown.machine_type.endswith(f"/zones/{vm.zone}/machineTypes/{vm.machine_type}")
    (attached,) = shown.guest_accelerators
    assert attached.accelerator_type.endswith(f"/zones/{vm.zone}/acceleratorTypes/{accelerator}")
    assert attached.accelerator_count == vm.count
    assert shown.scheduling.on_host_maintenance == "TERMINATE"


def test_a_tpu_that_is_missing_leaves_a_plain_machine(
    emulator: Emulator, client: dict[str, Any], machines: list[Instance]
) -> None:
    """Where the accelerator did not come up, neither the machine type nor an accelerator speaks of a TPU."""
    run(emulator, machines, replace(VM, shows_accelerator=False))
    shown = compute_v1.InstancesClient(**client).get(project=emulator.project, zone=VM.zone, instance=VM.name)
    assert shown.machine_type.endswith("/machineTypes/n1-standard-1")
    assert not shown.guest_accelerators


def test_v5e_chips_are_counted_by_the_region_and_are_no_gpus(
    emulator: Emulator, client: dict[str, Any], machines: list[Instance]
) -> None:
    """A v5e VM draws chips of its region's TPU quota, and nothing of the quota for GPUs in all regions."""
    run(emulator, machines, V5E)
    region = compute_v1.RegionsClient(**client).get(project=emulator.project, region="us-west4")
    chips = next(quota for quota in region.quotas if quota.metric == "TPU_LITE_PODSLICE_V5")
    assert (chips.limit, chips.usage) == (64, 8)
    project = compute_v1.ProjectsClient(**client).get(project=emulator.project)
    assert {quota.metric: quota.usage for quota in project.quotas}["GPUS_ALL_REGIONS"] == 0


@pytest.mark.parametrize(
    ("vm", "shortage"),
    [
        (VM, Shortage(metric="TPUS_PER_TPU_FAMILY", limit=0, region="us-east5")),
        (V5P, Shortage(metric="TPU_V5P", limit=0, region="us-east5")),
        (V5E, Shortage(metric="TPU_LITE_PODSLICE_V5", limit=0, region="us-west4")),
    ],
)
def test_a_new_project_is_short_of_tpu_quota(vm: Instance, shortage: Shortage) -> None:
    """Without a grant, the quota of the TPU's own family is named, with its region; with one, nothing is short."""
    assert find_shortage(vm, [], load_world("no-quota")) == shortage
    assert find_shortage(vm, [], load_world("plenty")) is None


def test_families_that_compute_does_not_list_are_enforced() -> None:
    """On-demand H100s are limited for each family and region, by what runs in that region."""
    world = load_world("plenty")
    running = [replace(H100, name=f"vm-{number}") for number in range(2)]
    short = Shortage(metric="GPUS_PER_GPU_FAMILY", limit=16, region="us-east4")
    assert find_shortage(H100, running[:1], world) is None
    assert find_shortage(H100, running, world) == short
    assert find_shortage(replace(H100, zone="us-central1-a"), running, world) is None
    mega = replace(H100, machine_type="a3-megagpu-8g", accelerator="nvidia-h100-mega-80gb")
    assert find_shortage(mega, running, world) is None


@pytest.mark.parametrize("quotas", [{}, {"TPUS_PER_TPU_FAMILY/CT6E": Quota(limit=-1)}])
def test_a_quota_that_was_never_set_grants_nothing(quotas: dict[str, Quota]) -> None:
    """A TPU family without a value, or with -1, has a limit of 0 when a VM is wanted."""
    world = replace(load_world("plenty"), cloud_quotas={"*": quotas})
    assert find_shortage(VM, [], world) == Shortage(metric="TPUS_PER_TPU_FAMILY", limit=0, region="us-east5")


def test_every_tpu_has_a_machine_of_its_own_in_each_of_its_sizes() -> None:
    """TPU types come built into machines whose names say the chips, and can be attached to no other."""
    sizes: dict[str, set[int]] = {}
    for machine in BUILT_IN.values():
        if machine.accelerator in TPUS:
            assert machine.name.endswith(f"-{machine.count}t")
            assert machine.name.startswith(ACCELERATORS[machine.accelerator].listed_as)
            sizes.setdefault(machine.accelerator, set()).add(machine.count)
    assert sizes == {"tpu-v5-lite-podslice": {1, 4, 8}, "tpu-v6e-slice": {1, 4, 8}, "tpu-v5p-slice": {4}}
    assert not any(ACCELERATORS[name].n1_hosts for name in TPUS)


@pytest.mark.parametrize("name", WORLD_NAMES)
def test_worlds_speak_of_tpus(name: str) -> None:
    """TPUs are out of stock exactly in the worlds whose names say so, and an L4 is there where only TPUs are not."""
    world = load_world(name)
    stock = {world.free(tpu, zone="us-east5-b") for tpu in TPUS}
    assert stock == ({0} if name in {"nowhere", "tpu-stockout", "reserved-tpu"} else {PLENTY})
    if name in {"tpu-stockout", "reserved-tpu"}:
        assert world.free("nvidia-l4", zone="us-central1-a") == PLENTY


def test_images_are_missing_where_a_world_or_their_tag_says_so() -> None:
    """An image tagged missing can be pulled in no world, and no image can in the world image-missing."""
    plenty, missing = load_world("plenty"), load_world("image-missing")
    assert plenty.has_image("europe-docker.pkg.dev/acme/beam/gpu:2.77.0")
    assert not plenty.has_image("europe-docker.pkg.dev/acme/beam/gpu:missing")
    assert not missing.has_image("europe-docker.pkg.dev/acme/beam/gpu:2.77.0")
