"""Reservations through Google's own clients, and who may take a place in one."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from google.api_core.client_options import ClientOptions
from google.api_core.exceptions import BadRequest, Conflict, MethodNotImplemented, NotFound
from google.cloud import compute_v1
from google.oauth2 import service_account
from googleapiclient import discovery

from airflow_accel_provider.emulator.compute.instances import Instance
from airflow_accel_provider.emulator.compute.quotas import draws, find_shortage, global_draws
from airflow_accel_provider.emulator.state import Google
from airflow_accel_provider.emulator.worlds import Reserved, load_world

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from emulators import Emulator

SCOPES = ["https://www.googleapis.com/auth/cloud-platform"]
ZONE = "us-east5-b"
NIGHT = f"projects/acme-ml-prod/zones/{ZONE}/reservations/tpu-night"

VM = Instance(
    name="reserved-vm",
    project="acme-ml-prod",
    zone=ZONE,
    machine_type="ct6e-standard-4t",
    status="RUNNING",
    created="2026-11-29T00:00:00Z",
    accelerator="tpu-v6e-slice",
    count=4,
    service_account="pipeline@acme-ml-prod.iam.gserviceaccount.com",
)
L4 = Reserved(
    name="l4-pool",
    zone="us-central1-a",
    machine_type="g2-standard-8",
    accelerator="nvidia-l4",
    accelerators_each=1,
    count=2,
)


@pytest.fixture
def reservations(emulator: Emulator) -> compute_v1.ReservationsClient:
    """Return Google's typed client."""
    credentials = service_account.Credentials.from_service_account_file(str(emulator.keys["airflow"]))
    return compute_v1.ReservationsClient(
        credentials=credentials, client_options=ClientOptions(api_endpoint=emulator.url)
    )


@pytest.fixture
def reserved_tpu(emulator: Emulator) -> Iterator[None]:
    """Let the emulator be in a world with a reservation while a test runs."""
    emulator.enter("reserved-tpu")
    yield
    emulator.enter("plenty")


@pytest.fixture
def google(tmp_path: Path) -> Iterator[Google]:
    """Return a state of its own, in a world without reservations."""
    state = Google(tmp_path)
    yield state
    state.database.close()


def of(name: str, *, machine: str = "g2-standard-8", count: int = 2, **fields: Any) -> compute_v1.Reservation:
    properties = compute_v1.AllocationSpecificSKUAllocationReservedInstanceProperties(machine_type=machine)
    specific = compute_v1.AllocationSpecificSKUReservation(count=count, instance_properties=properties)
    return compute_v1.Reservation(name=name, specific_reservation=specific, **fields)


def test_a_reservation_is_made_read_and_let_go(emulator: Emulator, reservations: compute_v1.ReservationsClient) -> None:
    """Google's typed client makes a reservation, finds it by name and in lists, and deletes it."""
    place = {"project": emulator.project, "zone": "us-central1-a"}
    wanted = of("l4-night", specific_reservation_required=True)
    reservations.insert(**place, reservation_resource=wanted).result(timeout=30)
    found = reservations.get(**place, reservation="l4-night")
    machine = found.specific_reservation.instance_properties
    assert (found.status, found.specific_reservation_required) == ("READY", True)
    assert (found.specific_reservation.count, found.specific_reservation.in_use_count) == (2, 0)
    assert machine.machine_type == "g2-standard-8"
    assert [(each.accelerator_type, each.accelerator_count) for each in machine.guest_accelerators] == [
        ("nvidia-l4", 1)
    ]
    assert [each.name for each in reservations.list(**place)] == ["l4-night"]
    everywhere = dict(reservations.aggregated_list(project=emulator.project))
    assert [each.name for each in everywhere["zones/us-central1-a"].reservations] == ["l4-night"]
    assert [scope for scope, each in everywhere.items() if each.reservations] == ["zones/us-central1-a"]
    reservations.delete(**place, reservation="l4-night").result(timeout=30)
    with pytest.raises(NotFound, match="reservations/l4-night"):
        reservations.get(**place, reservation="l4-night")


def test_an_operation_can_be_waited_for(emulator: Emulator) -> None:
    """google-api-python-client makes a reservation of attached GPUs and waits for its operation by name."""
    credentials = service_account.Credentials.from_service_account_file(str(emulator.keys["airflow"]), scopes=SCOPES)
    options = {"api_endpoint": f"{emulator.url}/compute/v1/"}
    service = discovery.build("compute", "v1", credentials=credentials, client_options=options, static_discovery=True)
    place = {"project": emulator.project, "zone": "us-central1-b"}
    gpu = {"acceleratorType": "nvidia-tesla-t4", "acceleratorCount": 1}
    machine = {"machineType": "n1-standard-8", "guestAccelerators": [gpu]}
    body = {"name": "t4-pool", "specificReservation": {"count": "3", "instanceProperties": machine}}
    operation = service.reservations().insert(**place, body=body).execute()
    waited = service.zoneOperations().wait(**place, operation=operation["name"]).execute()
    assert waited == service.zoneOperations().get(**place, operation=operation["name"]).execute() == operation
    assert (operation["status"], operation["user"]) == ("DONE", emulator.email("airflow"))
    found = service.reservations().get(**place, reservation="t4-pool").execute()
    assert found["specificReservation"]["instanceProperties"] == machine
    assert operation["targetLink"] == found["selfLink"]
    service.reservations().delete(**place, reservation="t4-pool").execute()


@pytest.mark.usefixtures("reserved_tpu")
def test_vms_that_carry_a_reservation_are_in_use(
    emulator: Emulator, reservations: compute_v1.ReservationsClient
) -> None:
    """A world's reservation counts the VMs that take a place in it, and each such VM names what it consumes."""
    place = {"project": emulator.project, "zone": ZONE}
    vm, running = replace(VM, reservation=NIGHT), emulator.google.dataflow.instances
    assert reservations.get(**place, reservation="tpu-night").specific_reservation.in_use_count == 0
    running.put([vm])
    try:
        used = reservations.get(**place, reservation="tpu-night").specific_reservation
        shown = compute_v1.InstancesClient(
            credentials=service_account.Credentials.from_service_account_file(str(emulator.keys["airflow"])),
            client_options=ClientOptions(api_endpoint=emulator.url),
        ).get(**place, instance=vm.name)
    finally:
        running.remove([vm])
    assert (used.count, used.in_use_count) == (2, 1)
    assert shown.resource_status.reservation_consumption_info.consumed_reservation == NIGHT


@pytest.mark.usefixtures("reserved_tpu")
def test_what_cannot_be_reserved_is_said_at_once(
    emulator: Emulator, reservations: compute_v1.ReservationsClient
) -> None:
    """A refusal names every wrong field; a taken name, a world's own reservation and unknown wishes are refused too."""
    place = {"project": emulator.project, "zone": ZONE}
    with pytest.raises(BadRequest) as caught:
        reservations.insert(**place, reservation_resource=of("Bad_Name", machine="ct6e-standard-2t", count=0))
    for part in ("'resource.name': 'Bad_Name'", "specificReservation.count", "machineType': 'ct6e-standard-2t'"):
        assert part in str(caught.value)
    with pytest.raises(BadRequest, match=f"no such machine type in zone {ZONE}"):
        reservations.insert(**place, reservation_resource=of("l4", machine="g2-standard-8"))
    with pytest.raises(Conflict, match="already exists"):
        reservations.insert(**place, reservation_resource=of("tpu-night", machine="ct6e-standard-4t"))
    with pytest.raises(BadRequest, match="part of the world reserved-tpu"):
        reservations.delete(**place, reservation="tpu-night")
    with pytest.raises(MethodNotImplemented, match="description"):
        reservations.insert(**place, reservation_resource=of("x", machine="ct6e-standard-4t", description="mine"))
    with pytest.raises(NotFound, match="reservations/other"):
        reservations.delete(**place, reservation="other")


def test_a_reservation_in_use_is_not_deleted(emulator: Emulator, reservations: compute_v1.ReservationsClient) -> None:
    """As long as a VM takes a place in it, a reservation cannot be let go."""
    place = {"project": emulator.project, "zone": ZONE}
    reservations.insert(**place, reservation_resource=of("busy", machine="ct6e-standard-4t")).result(timeout=30)
    vm = replace(VM, reservation=f"projects/{emulator.project}/zones/{ZONE}/reservations/busy")
    emulator.google.dataflow.instances.put([vm])
    with pytest.raises(BadRequest, match="already being used"):
        reservations.delete(**place, reservation="busy")
    emulator.google.dataflow.instances.remove([vm])
    reservations.delete(**place, reservation="busy").result(timeout=30)


def test_a_vm_takes_only_what_is_of_its_kind_open_and_free(google: Google) -> None:
    """Without naming one, a VM can take a place in an open reservation of its zone, machine and accelerators."""
    google.reservations.make(L4, created="2026-11-29T00:00:00Z")
    google.reservations.make(replace(L4, name="l4-mine", specific=True), created="2026-11-29T00:00:00Z")
    vm = replace(VM, zone=L4.zone, machine_type="g2-standard-8", accelerator="nvidia-l4", count=1)
    (usable,) = google.reservations.usable_by(vm)
    assert (usable.path, usable.free) == (f"projects/{google.project}/zones/us-central1-a/reservations/l4-pool", 2)
    for other in ({"zone": "us-central1-b"}, {"machine_type": "g2-standard-12"}, {"accelerator": None, "count": 0}):
        assert google.reservations.usable_by(replace(vm, **other)) == ()
    taken = [replace(vm, name=f"vm-{number}", reservation=usable.path) for number in range(2)]
    assert [each.free for each in google.reservations.usable_by(vm, existing=taken[:1])] == [1]
    assert google.reservations.usable_by(vm, existing=taken) == ()
    named = google.reservations.find(google.project, L4.zone, "l4-mine", existing=taken)
    assert named is not None
    assert (named.fits(vm), named.free) == (True, 2)
    assert google.reservations.find("another-project", L4.zone, "l4-mine") is None


def test_a_reserved_machine_needs_no_quota() -> None:
    """A VM in a reservation draws neither CPUs nor accelerators, and finds room where the quota for them is 0."""
    world = load_world("reserved-tpu")
    shortage = find_shortage(VM, [], world)
    assert shortage is not None
    assert shortage.metric == "TPUS_PER_TPU_FAMILY"
    reserved = replace(VM, reservation=NIGHT)
    assert find_shortage(reserved, [], world) is None
    assert set(draws(reserved)) == {"INSTANCES", "DISKS_TOTAL_GB", "IN_USE_ADDRESSES"}
    assert global_draws(reserved) == {}


def test_reservations_survive_a_restart(tmp_path: Path) -> None:
    """What was reserved by a call is there again when the emulator starts anew, in any world."""
    first = Google(tmp_path)
    first.reservations.make(L4, created="2026-11-29T00:00:00Z")
    first.database.close()
    second = Google(tmp_path, world="reserved-tpu")
    names = [each.reserved.name for each in second.reservations.list()]
    second.database.close()
    assert names == ["l4-pool", "tpu-night"]
