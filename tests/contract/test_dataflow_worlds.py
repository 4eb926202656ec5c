"""What becomes of a job in each world: states, messages in order, VMs, quotas and the ledger."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
from dataflow_jobs import L4, T4, Client, environment, until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from emulators import Emulator
    from google.auth.transport.requests import AuthorizedSession

G2: dict[str, Any] = {"machine": "g2-standard-8", "option": L4}
STARTUP = re.compile(
    r"Startup of the worker pool in zone (?P<zone>[a-z0-9-]+) failed to bring up any of the desired (?P<n>\d+) workers"
)


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


def _is_of(event: dict[str, Any], job: dict[str, Any]) -> bool:
    return bool(event["job_id"] == job["id"])


def _states(emulator: Emulator, job: dict[str, Any]) -> list[str]:
    return [event["state"] for event in emulator.events("dataflow.job.state") if _is_of(event, job)]


def _refusals(emulator: Emulator, job: dict[str, Any]) -> list[dict[str, Any]]:
    return [event for event in emulator.events("dataflow.workers.refused") if _is_of(event, job)]


def _zone(text: str) -> str:
    match = STARTUP.search(text)
    assert match is not None, text
    return match["zone"]


def test_in_plenty_vms_come_up_with_what_was_asked(client: Client, enter: Callable[[str], None]) -> None:
    """VMs come up with label, accelerator and zone, draw quota while they are there, and go with the job."""
    enter("plenty")
    before = client.quota("NVIDIA_L4_GPUS")["usage"]
    job = client.create(environment(**G2, workers=2))
    vms = until(lambda: client.vms(job), lambda found: len(found) == 2)
    vm = vms[0]
    assert re.fullmatch(r"job-[0-9a-f-]+-\d{8}-[a-z0-9]{4}-harness-[a-z0-9]{4}", vm["name"])
    assert vm["description"] == f"Created for Dataflow job: {job['id']}"
    assert vm["machineType"].endswith("/zones/us-central1-a/machineTypes/g2-standard-8")
    assert vm["guestAccelerators"][0]["acceleratorType"].endswith("/acceleratorTypes/nvidia-l4")
    assert vm["guestAccelerators"][0]["acceleratorCount"] == 1
    assert vm["scheduling"]["onHostMaintenance"] == "TERMINATE"
    assert client.quota("NVIDIA_L4_GPUS")["usage"] == before + 2
    assert client.get(job)["serviceResources"] == {"zones": ["us-central1-a"]}
    over = client.wait(job, "FAILED", "DONE")
    assert client.vms(job) == []
    assert client.quota("NVIDIA_L4_GPUS")["usage"] == before
    events = client.messages(job)["autoscalingEvents"]
    assert [(e["eventType"], e["currentNumWorkers"]) for e in events] == [
        ("TARGET_NUM_WORKERS_CHANGED", "0"),
        ("CURRENT_NUM_WORKERS_CHANGED", "2"),
        ("CURRENT_NUM_WORKERS_CHANGED", "0"),
    ]
    assert over["stageStates"][0]["executionStageState"] == over["currentState"]


def test_a_machine_without_accelerator_runs_too(client: Client, enter: Callable[[str], None]) -> None:
    """A job without a machine type gets the service's default, whatever accelerators are short of."""
    enter("nowhere")
    job = client.create(environment())
    vms = until(lambda: client.vms(job), bool)
    assert vms[0]["machineType"].endswith("/n1-standard-1")
    assert "guestAccelerators" not in vms[0]


def test_a_stockout_is_said_while_the_service_retries_and_then_fails_the_job(
    client: Client, emulator: Emulator, enter: Callable[[str], None]
) -> None:
    """Errors and actuation failures come while the job is RUNNING; its last word comes before it is FAILED."""
    enter("l4-stockout")
    job = client.create(environment(**G2))
    over = client.wait(job, "FAILED")
    times = {event["state"]: event["time"] for event in emulator.events("dataflow.job.state") if _is_of(event, job)}
    assert list(times) == ["JOB_STATE_RUNNING", "JOB_STATE_FAILED"]
    errors = client.messages(job, minimumImportance="JOB_MESSAGE_ERROR")["jobMessages"]
    assert [error["messageText"][:25] for error in errors[:4]] == ["Startup of the worker poo"] * 4
    assert all(times["JOB_STATE_RUNNING"] < error["time"] < over["currentStateTime"] for error in errors)
    last = errors[-1]["messageText"]
    assert last.startswith("Workflow failed. Causes: Startup of the worker pool")
    assert _zone(last) == "us-central1-a"
    assert "ZONE_RESOURCE_POOL_EXHAUSTED" in last
    assert "does not have enough resources available to fulfill the request" in last
    events = client.messages(job)["autoscalingEvents"]
    assert [event["eventType"] for event in events[1:]] == ["ACTUATION_FAILURE"] * 4
    assert {refusal["reason"] for refusal in _refusals(emulator, job)} == {"stockout"}
    assert "serviceResources" not in over
    assert not [event for event in emulator.events("compute.instance.created") if _is_of(event, job)]


def test_only_what_is_short_is_short(client: Client, enter: Callable[[str], None]) -> None:
    """Where L4 are out of stock, a T4 comes up."""
    enter("l4-stockout")
    job = client.create(environment(machine="n1-standard-8", option=T4))
    vms = until(lambda: client.vms(job), bool)
    assert vms[0]["guestAccelerators"][0]["acceleratorType"].endswith("/nvidia-tesla-t4")


def test_without_quota_the_global_one_is_named(
    client: Client, emulator: Emulator, enter: Callable[[str], None]
) -> None:
    """In a new project the quota of all regions is short."""
    enter("no-quota")
    job = client.create(environment(**G2))
    client.wait(job, "FAILED")
    last = client.texts(job, "ERROR")[-1]
    assert "QUOTA_EXCEEDED" in last
    assert "Quota 'GPUS_ALL_REGIONS' exceeded. Limit: 0.0 globally." in last
    assert {refusal["reason"] for refusal in _refusals(emulator, job)} == {"quota"}


def test_accelerators_may_be_missing_from_vms(client: Client, enter: Callable[[str], None]) -> None:
    """In gpu-missing VMs come up, draw quota, and have no accelerator."""
    enter("gpu-missing")
    job = client.create(environment(**G2))
    vms = until(lambda: client.vms(job), bool)
    assert "guestAccelerators" not in vms[0]
    assert vms[0]["machineType"].endswith("/g2-standard-8")
    assert client.quota("NVIDIA_L4_GPUS")["usage"] == 1


def test_first_no_stock_then_no_quota_then_both(
    client: Client, emulator: Emulator, enter: Callable[[str], None]
) -> None:
    """Each of three places has its own fate, and the ledger tells them apart."""
    enter("stockout-then-quota-then-stock")
    first = client.create(environment(**G2))
    second = client.create(environment(**G2), "europe-west4")
    third = client.create(environment(machine="n1-standard-8", option=T4))
    assert until(lambda: client.vms(third), bool)
    client.wait(first, "FAILED")
    client.wait(second, "FAILED")
    assert {refusal["reason"] for refusal in _refusals(emulator, first)} == {"stockout"}
    assert {refusal["reason"] for refusal in _refusals(emulator, second)} == {"quota"}
    expected = "Quota 'NVIDIA_L4_GPUS' exceeded. Limit: 1.0 in region europe-west4."
    assert expected in client.texts(second, "ERROR")[-1]


def test_what_runs_is_not_free_for_others(client: Client, emulator: Emulator, enter: Callable[[str], None]) -> None:
    """Quota that one job's VMs hold is missing for the next job until they are gone."""
    enter("plenty")
    limit = int(client.quota("NVIDIA_T4_GPUS")["limit"])
    env = environment(machine="n1-standard-1", option=T4, workers=limit)
    first = client.create(env)
    until(lambda: client.vms(first), lambda found: len(found) == limit)
    second = client.create(environment(machine="n1-standard-1", option=T4))
    client.wait(second, "FAILED")
    assert {refusal["reason"] for refusal in _refusals(emulator, second)} == {"quota"}
    client.cancel(first)
    client.wait(first, "CANCELLED")
    third = client.create(environment(machine="n1-standard-1", option=T4))
    assert until(lambda: client.vms(third), bool)


def test_some_workers_are_better_than_none(client: Client, enter: Callable[[str], None]) -> None:
    """Where quota allows for a part of the workers, the job starts with these and says what is short."""
    enter("plenty")
    limit = int(client.quota("NVIDIA_T4_GPUS")["limit"])
    job = client.create(environment(machine="n1-standard-1", option=T4, workers=limit + 1))
    assert len(until(lambda: client.vms(job), bool)) == limit
    events = client.messages(job)["autoscalingEvents"]
    failed = [event for event in events if event["eventType"] == "ACTUATION_FAILURE"]
    assert failed[0]["currentNumWorkers"] == str(limit)
    assert "NVIDIA_T4_GPUS" in failed[0]["description"]["messageText"]


def test_a_pinned_zone_is_kept(client: Client, enter: Callable[[str], None]) -> None:
    """A pinned zone is where VMs come up, and what a stockout names."""
    enter("plenty")
    job = client.create(environment(**G2, workerZone="us-central1-c"))
    assert until(lambda: client.vms(job), bool)[0]["zone"].endswith("/us-central1-c")
    enter("nowhere")
    refused = client.create(environment(**G2, workerZone="us-central1-b"))
    client.wait(refused, "FAILED")
    assert _zone(client.texts(refused, "ERROR")[-1]) == "us-central1-b"


@pytest.mark.parametrize(
    ("location", "fields", "words"),
    [
        (
            "us-central1",
            {"machine": "n1-standard-8", "option": L4},
            "requested accelerator type nvidia-l4;count:1 requires setting the worker machine type to g2-standard-4",
        ),
        (
            "us-central1",
            {"machine": "g2-standard-24", "option": L4},
            "rejected by the service because the requested accelerator type nvidia-l4;count:1 requires",
        ),
        (
            "us-central1",
            {"machine": "n2-standard-8", "option": T4},
            "requires setting the worker machine type to n1-standard-4",
        ),
        (
            "us-central1",
            {"machine": "g2-standard-5", "option": L4},
            "rejected by the service because the machine type g2-standard-5 does not exist",
        ),
        (
            "us-central1",
            {"machine": "n1-standard-8", "option": "worker_accelerator=type:nvidia-tesla-t4;count:3"},
            "cannot be attached 3 times",
        ),
        (
            "us-central1",
            {"machine": "g2-standard-8"},
            "Instances with guest accelerators do not support live migration",
        ),
        (
            "us-central1",
            {"machine": "n1-standard-64", "option": T4},
            "'64 vCpus with 245760 MiB memory is an invalid configuration for 1 count of 'nvidia-tesla-t4'",
        ),
        ("us-east5", G2, "zones/us-east5-a/acceleratorTypes/nvidia-l4' was not found"),
    ],
)
def test_what_cannot_be_is_admitted_and_then_fails(
    client: Client, enter: Callable[[str], None], location: str, fields: dict[str, Any], words: str
) -> None:
    """A machine that does not fit its accelerator or zone is no bad request: the job fails at once, without retries."""
    enter("plenty")
    job = client.create(environment(**fields), location)
    client.wait(job, "FAILED")
    last = client.texts(job, "ERROR")[-1]
    assert last.startswith("Workflow failed. Causes: ")
    assert words in last
    assert len(client.texts(job, "ERROR")) <= 2


def test_messages_are_filtered_and_come_in_pages(client: Client, enter: Callable[[str], None]) -> None:
    """Importance, time and pages narrow what is listed; times rise and ids are unique."""
    enter("nowhere")
    job = client.create(environment(**G2))
    client.wait(job, "FAILED")
    every = client.messages(job, pageSize=1000)["jobMessages"]
    assert [m["time"] for m in every] == sorted(m["time"] for m in every)
    assert len({m["id"] for m in every}) == len(every)
    assert "Worker configuration: g2-standard-8 in us-central1-a." in client.texts(job, "BASIC")
    basic = client.messages(job, minimumImportance="JOB_MESSAGE_BASIC", pageSize=1000)["jobMessages"]
    assert {m["messageImportance"] for m in basic} == {"JOB_MESSAGE_BASIC", "JOB_MESSAGE_ERROR"}
    assert client.messages(job, minimumImportance="5", pageSize=1000)["jobMessages"] == basic
    late = client.messages(job, startTime=every[-1]["time"])["jobMessages"]
    assert late == every[-1:]
    page = client.messages(job, pageSize=2)
    following = client.messages(job, pageSize=2, pageToken=page["nextPageToken"])
    assert page["jobMessages"] + following["jobMessages"] == every[:4]


def test_a_cancel_takes_a_moment_and_leaves_nothing(
    client: Client, emulator: Emulator, enter: Callable[[str], None]
) -> None:
    """A cancelled job says so at once as a request, then is CANCELLING, and its VMs are gone when it is CANCELLED."""
    enter("plenty")
    job = client.create(environment(**G2))
    until(lambda: client.vms(job), bool)
    answered = client.cancel(job).json()
    assert answered["requestedState"] == "JOB_STATE_CANCELLED"
    assert answered["currentState"] == "JOB_STATE_RUNNING"
    client.wait(job, "CANCELLED")
    assert client.vms(job) == []
    assert _states(emulator, job) == ["JOB_STATE_RUNNING", "JOB_STATE_CANCELLING", "JOB_STATE_CANCELLED"]
    requested = [event for event in emulator.events("dataflow.job.requested") if _is_of(event, job)]
    assert [event["principal"] for event in requested] == [emulator.email("airflow")]


def test_the_ledger_says_who_created_a_job(
    client: Client, pipeline_session: AuthorizedSession, emulator: Emulator, enter: Callable[[str], None]
) -> None:
    """Jobs of the two identities are told apart by the principal of their creation."""
    enter("nowhere")
    ours = client.create(environment(**G2), labels={"accel-owner": "abc"})
    theirs = Client(emulator=emulator, session=pipeline_session).create(environment(**G2))
    created = {event["job_id"]: event for event in emulator.events("dataflow.job.created")}
    assert created[ours["id"]]["principal"] == emulator.email("airflow")
    assert created[ours["id"]]["labels"] == {"accel-owner": "abc"}
    assert created[theirs["id"]]["principal"] == emulator.email("pipeline")
