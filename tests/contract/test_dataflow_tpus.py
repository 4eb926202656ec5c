"""TPU jobs in Dataflow: which triples are taken, what their VMs are, and how each refusal is said."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from dataflow_jobs import Client, environment, judged, until

from airflow_accel_provider.core.catalog import load_catalog
from airflow_accel_provider.emulator.dataflow.tpus import SLICES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from emulators import Emulator
    from google.auth.transport.requests import AuthorizedSession

V6E = "worker_accelerator=type:tpu-v6e-slice;topology:2x2"
ON_V6E: dict[str, Any] = {"machine": "ct6e-standard-4t", "option": V6E, "workerZone": "us-east5-b"}


@pytest.fixture
def client(emulator: Emulator, session: AuthorizedSession) -> Client:
    """Return bare calls of airflow@."""
    return Client(emulator=emulator, session=session)


@pytest.fixture
def enter(emulator: Emulator, client: Client) -> Iterator[Callable[[str], None]]:
    """Return what changes the world; afterwards all is plenty again, and no job is left."""
    yield emulator.enter
    client.clear()
    emulator.enter("plenty")


def _last(client: Client, job: dict[str, Any]) -> str:
    client.wait(job, "FAILED")
    return client.texts(job, "ERROR")[-1]


def test_the_triples_are_those_of_the_catalogue() -> None:
    """The service takes the types, topologies and machines that the catalogue offers for TPUs, and no others."""
    offered = {place: row.machine_type for place, row in load_catalog().tpu_slices.items()}
    here = {(kind, topology): machine for kind, slices in SLICES.items() for topology, machine in slices.items()}
    assert here == offered


@pytest.mark.parametrize("field", ["serviceOptions", "experiments"])
def test_a_tpu_comes_up(client: Client, enter: Callable[[str], None], field: str) -> None:
    """A TPU asked for as service option or as experiment is a VM with Compute Engine's own TPU name and its chips."""
    enter("plenty")
    env = environment(machine="ct6e-standard-4t", workerZone="us-east5-b", **{field: [V6E]})
    job = client.create(env, "us-east5")
    vm = until(lambda: client.vms(job), bool)[0]
    assert vm["machineType"].endswith("/us-east5-b/machineTypes/ct6e-standard-4t")
    accelerator = vm["guestAccelerators"][0]
    assert accelerator["acceleratorType"].endswith("/acceleratorTypes/ct6e")
    assert accelerator["acceleratorCount"] == 4
    assert client.get(job)["serviceResources"] == {"zones": ["us-east5-b"]}


@pytest.mark.parametrize(
    ("machine", "option", "words"),
    [
        (
            "ct6e-standard-1t",
            V6E,
            "accelerator type tpu-v6e-slice;topology:2x2 requires setting the worker machine type to ct6e-standard-4t.",
        ),
        (
            "g2-standard-8",
            V6E,
            "The workflow was automatically rejected by the service because it might trigger an identified bug:",
        ),
        ("ct6e-standard-4t", "worker_accelerator=type:tpu-v6e-slice;topology:4x4", "cannot be attached"),
        ("ct5p-hightpu-4t", "worker_accelerator=type:tpu-v5p-slice;topology:2x2", "with the topology 2x2"),
    ],
)
def test_a_wrong_triple_is_rejected(
    client: Client, enter: Callable[[str], None], machine: str, option: str, words: str
) -> None:
    """A topology on a machine that is not its own fails the job in Google's words."""
    enter("plenty")
    job = client.create(environment(machine=machine, option=option), "us-east5")
    last = _last(client, job)
    assert words in last
    assert (judged([last]).kind, judged([last]).scope) == ("configuration", "job")


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ("worker_accelerator=type:tpu-v6e-slice", "topology is missing"),
        ("worker_accelerator=type:tpu-v6e-slice;topology:two", "topology must be such as 2x2, not 'two'"),
        ("worker_accelerator=type:tpu-v6e-slice;topology:2x2;count:4", "unexpected 'count:4'"),
        (f"{V6E};install-nvidia-driver", "unexpected 'install-nvidia-driver'"),
        ("worker_accelerator=type:tpu-v7-slice;topology:2x2", "unknown accelerator type 'tpu-v7-slice'"),
        ("worker_accelerator=type:nvidia-l4;topology:2x2", "unexpected 'topology:2x2', count is missing"),
    ],
)
def test_what_is_no_tpu_request_is_refused(client: Client, option: str, words: str) -> None:
    """An option of a wrong form is a bad request, and names all that is wrong with it."""
    answer = client.post({"name": "wrong-tpu", "environment": environment(option=option)})
    assert answer.status_code == 400
    assert words in answer.json()["error"]["message"]


def test_a_tpu_machine_without_its_tpu_is_refused(client: Client, enter: Callable[[str], None]) -> None:
    """A TPU machine type alone is refused in the words for a missing option."""
    enter("plenty")
    job = client.create(environment(machine="ct6e-standard-4t", workerZone="us-east5-b"), "us-east5")
    last = _last(client, job)
    assert "Regional Managed Instance Groups do not support Cloud TPUs." in last
    assert (judged([last]).kind, judged([last]).scope) == ("configuration", "job")


def test_a_project_must_be_enrolled(client: Client, enter: Callable[[str], None]) -> None:
    """A project that Google has not enrolled is refused, whatever TPU it asks for."""
    enter("tpu-not-enrolled")
    job = client.create(environment(**ON_V6E), "us-east5")
    last = _last(client, job)
    assert "Managed Instance Groups do not support Cloud TPUs." in last
    assert "Regional" not in last
    assert (judged([last]).kind, judged([last]).scope) == ("configuration", "project")


def test_a_zone_without_tpus_has_no_such_machine(client: Client, enter: Callable[[str], None]) -> None:
    """In a zone that lists no TPU the machine type is not found."""
    enter("plenty")
    job = client.create(environment(**{**ON_V6E, "workerZone": "us-east1-b"}), "us-east1")
    last = _last(client, job)
    assert "zones/us-east1-b/machineTypes/ct6e-standard-4t' was not found" in last
    assert judged([last]).kind == "not_offered"


def test_tpus_are_out_of_stock_or_quota(client: Client, enter: Callable[[str], None]) -> None:
    """No stock and no quota are told apart, for TPUs as for GPUs."""
    enter("tpu-stockout")
    assert judged([_last(client, client.create(environment(**ON_V6E), "us-east5"))]).kind == "stockout"
    enter("no-quota")
    last = _last(client, client.create(environment(**ON_V6E), "us-east5"))
    assert "QUOTA_EXCEEDED" in last
    assert judged([last]).kind == "quota"


def test_a_tpu_may_be_missing(client: Client, enter: Callable[[str], None]) -> None:
    """Where accelerators are missing, a worker that was to have a TPU comes up on a machine without one."""
    enter("gpu-missing")
    job = client.create(environment(**ON_V6E), "us-east5")
    vm = until(lambda: client.vms(job), bool)[0]
    assert "guestAccelerators" not in vm
    assert "/machineTypes/ct" not in vm["machineType"]
