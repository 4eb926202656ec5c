"""Spark batches as the service's API shows them: identity, states, machines, usage, lists and cancels."""

from __future__ import annotations

import uuid
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

import google.auth
import pytest
from dataflow_jobs import T4, until
from dataflow_jobs import Client as DataflowClient
from dataflow_jobs import environment as dataflow_environment
from dataproc_batches import L4, QUEUED_L4, Client, fresh_id, open_bucket, pyspark
from emulators import running
from google.api_core import exceptions
from google.api_core.client_options import ClientOptions
from google.cloud import dataproc_v1
from google.cloud.dataproc_v1.services.batch_controller.transports import BatchControllerRestTransport
from googleapiclient import discovery

from airflow_accel_provider.emulator.dataproc.capacity import Refusal, allocate
from airflow_accel_provider.emulator.worlds import load_world

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from emulators import Emulator
    from google.auth.transport.requests import AuthorizedSession

DEFAULT = {
    "spark.dataproc.driver.provisioning.mode": "default",
    "spark.dataproc.executor.provisioning.mode": "default",
}
PATIENT = {"spark.dataproc.executor.provisioning.allocationTimeout": "7200s"}
HURRIED = {"spark.dataproc.executor.provisioning.allocationTimeout": "60s"}


@pytest.fixture
def client(emulator: Emulator, session: AuthorizedSession) -> Iterator[Client]:
    """Return bare calls of airflow@; batches that are left are cancelled, and the world is that of plenty again."""
    client = Client(emulator=emulator, session=session)
    yield client
    client.clear()
    emulator.enter("plenty")


@pytest.fixture
def churning(client: Client) -> str:
    """Return a batch that runs until it is cancelled, for its executors never get their GPUs."""
    client.emulator.enter("executor-churn")
    name = client.create(pyspark(L4))
    client.wait(name, "RUNNING")
    return name


def _typed(emulator: Emulator) -> dataproc_v1.BatchControllerClient:
    credentials, _ = google.auth.default(scopes=["https://www.googleapis.com/auth/cloud-platform"])
    transport = BatchControllerRestTransport(host=emulator.url, credentials=credentials, url_scheme="http")
    return dataproc_v1.BatchControllerClient(transport=transport)


def test_a_batch_is_what_was_asked_for_and_what_the_service_adds(client: Client) -> None:
    """A batch shows its request, its defaults, its creator and the labels of user and service."""
    batch_id = fresh_id()
    body = pyspark(L4, labels={"team": "ml"}, environmentConfig={"executionConfig": {"networkTags": ["spark"]}})
    operation = client.post(body, batch_id).json()
    assert operation["name"].startswith(f"projects/{client.emulator.project}/regions/us-central1/operations/")
    assert not operation.get("done")
    batch = client.get(operation["metadata"]["batch"])
    assert batch["name"].endswith(f"/locations/us-central1/batches/{batch_id}")
    assert uuid.UUID(batch["uuid"])
    assert batch["operation"] == operation["name"]
    assert batch["creator"] == client.emulator.email("airflow")
    assert batch["labels"]["team"] == "ml"
    assert batch["labels"]["goog-dataproc-batch-id"] == batch_id
    assert batch["pysparkBatch"] == body["pysparkBatch"]
    assert batch["runtimeConfig"]["version"].startswith("2.3.")
    assert batch["runtimeConfig"]["properties"]["spark:spark.executor.instances"] == "5"
    assert batch["environmentConfig"]["executionConfig"] == {"networkTags": ["spark"], "ttl": "14400s"}


def test_a_request_id_makes_one_batch(client: Client) -> None:
    """A repeated request id answers the first operation, whatever else is said; a batch id in use is refused."""
    batch_id, request_id = fresh_id(), uuid.uuid4().hex
    first = client.post(pyspark(), batch_id, requestId=request_id).json()
    again = client.post(pyspark(L4), fresh_id(), requestId=request_id).json()
    assert again["name"] == first["name"]
    taken = client.post(pyspark(), batch_id)
    assert taken.status_code == 409
    assert taken.json()["error"]["status"] == "ALREADY_EXISTS"
    assert f"batches/{batch_id}" in taken.json()["error"]["message"]


def test_a_batch_without_an_id_gets_one(client: Client) -> None:
    """The service makes up an id where none is given."""
    answer = client.session.post(client.url(), json=pyspark(), timeout=30).json()
    assert uuid.UUID(answer["metadata"]["batch"].rpartition("/")[2])


def test_the_typed_client_creates_reads_lists_cancels_and_deletes(
    client: Client, emulator: Emulator, google_environment: None
) -> None:
    """google-cloud-dataproc over REST works with batches and with the operation that makes one."""
    emulator.enter("executor-churn")
    typed = _typed(emulator)
    parent = f"projects/{emulator.project}/locations/us-central1"
    batch = dataproc_v1.Batch(
        pyspark_batch=dataproc_v1.PySparkBatch(main_python_file_uri="gs://b/main.py"),
        runtime_config=dataproc_v1.RuntimeConfig(version="2.3", properties=L4),
        environment_config={"execution_config": {"ttl": {"seconds": 7200}}},
    )
    batch_id = fresh_id()
    operation = typed.create_batch(request={"parent": parent, "batch": batch, "batch_id": batch_id})
    assert operation.metadata.batch == f"{parent}/batches/{batch_id}"
    name = operation.metadata.batch
    found = until(lambda: typed.get_batch(name=name), lambda found: found.state.name == "RUNNING")
    assert found.environment_config.execution_config.ttl.seconds == 7200
    assert [each.name for each in typed.list_batches(request={"parent": parent, "filter": f"batch_id={batch_id}"})] == [
        name
    ]
    with pytest.raises(exceptions.BadRequest, match="RUNNING"):
        typed.delete_batch(name=name)
    # Its future cannot cancel over REST (google-api-core builds a request without a body), so the client itself does.
    typed.cancel_operation({"name": operation.operation.name})
    ended = until(lambda: typed.get_batch(name=name), lambda found: found.state.name == "CANCELLED")
    assert [each.state.name for each in ended.state_history] == ["PENDING", "RUNNING", "CANCELLING"]
    with pytest.raises(exceptions.GoogleAPICallError):
        operation.result(timeout=60)
    typed.delete_batch(name=name)
    with pytest.raises(exceptions.NotFound, match=batch_id):
        typed.get_batch(name=name)


def test_the_discovery_client_reads_operations(client: Client, emulator: Emulator, google_environment: None) -> None:
    """google-api-python-client finds a batch's operation among those of its region, and the batch in it."""
    name = client.create(pyspark(version="1.1", properties=L4_WITH_LANG))
    api = discovery.build(
        "dataproc",
        "v1",
        client_options=ClientOptions(api_endpoint=emulator.url),
        cache_discovery=False,
        static_discovery=True,
    )
    operations = api.projects().regions().operations()
    listed = operations.list(name=f"projects/{emulator.project}/regions/us-central1/operations", pageSize=1).execute()
    assert [each["metadata"]["batch"] for each in listed["operations"]] == [name]
    operation = listed["operations"][0]["name"]
    assert operations.get(name=operation).execute()["metadata"]["operationType"] == "BATCH"
    operations.cancel(name=operation).execute()
    assert client.wait(name)["state"] == "CANCELLED"
    batches = api.projects().locations().batches()
    parent = f"projects/{emulator.project}/locations/us-central1"
    assert batches.list(parent=parent, pageSize=1, orderBy="create_time desc").execute()["batches"][0]["name"] == name
    assert batches.delete(name=name).execute() == {}


L4_WITH_LANG = {**L4, "spark.dataproc.driverEnv.LANG": "C.UTF-8", "spark.executorEnv.LANG": "C.UTF-8"}


def test_lists_are_filtered_and_paged(client: Client) -> None:
    """Filters know ids, states, times and labels, joined by AND and OR; pages follow each other, newest first."""
    team = fresh_id("t")
    names = [client.create(pyspark(labels={"team": team, "number": f"n{number}"})) for number in range(3)]
    first = client.get(names[0])

    def found(text: str) -> set[int]:
        page = client.list(filter=f"labels.team = {team} AND {text}", pageSize="1000")
        return {names.index(batch["name"]) for batch in page}

    assert found(f'batch_uuid = "{first["uuid"]}"') == {0}
    assert found(f"batch_id != {names[0].rpartition('/')[2]}") == {1, 2}
    assert found("labels.number=n0 OR labels.number=n2") == {0, 2}
    assert found(f'create_time <= "{first["createTime"]}"') == {0}
    assert found("labels.number:* AND state != GONE") == {0, 1, 2}
    page = client.session.get(
        client.url(), params={"filter": f"labels.team={team}", "pageSize": 2, "orderBy": "create_time desc"}, timeout=30
    ).json()
    assert [batch["name"] for batch in page["batches"]] == [names[2], names[1]]
    rest = client.list(filter=f"labels.team={team}", pageSize="2", pageToken=page["nextPageToken"])
    assert [batch["name"] for batch in rest] == [names[0]]
    assert client.list(location="europe-west4", filter=f"labels.team={team}") == []


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ({"filter": "colour = red"}, "colour"),
        ({"filter": "state"}, "not a comparison"),
        ({"filter": "create_time > yesterday"}, "RFC 3339"),
        ({"filter": "state > RUNNING"}, "'>'"),
        ({"orderBy": "name"}, "create_time desc"),
        ({"pageToken": "x"}, "pageToken"),
    ],
)
def test_a_list_that_cannot_be_read_is_refused(client: Client, query: dict[str, str], says: str) -> None:
    """A filter, an order or a page token that the service does not know is named."""
    answer = client.session.get(client.url(), params=query, timeout=30)
    assert answer.status_code == 400
    assert says in answer.json()["error"]["message"]


def test_other_projects_and_regions_are_refused(client: Client) -> None:
    """A batch of another project is forbidden, one of a region that does not exist is not found."""
    other = client.url().replace(client.emulator.project, "somebody-else")
    assert client.session.get(other, timeout=30).status_code == 403
    assert client.post(pyspark(), location="mars-north1").status_code == 404
    assert client.session.get(f"{client.url()}/nothing-here", timeout=30).status_code == 404
    assert (
        client.session.get(
            f"{client.root}/projects/{client.emulator.project}/regions/us-central1/operations/none"
        ).status_code
        == 404
    )


def test_usage_tells_of_gpus_by_type_from_3_0_on(client: Client) -> None:
    """Snapshots of older runtimes give a type with one number, those of newer ones a number for each type."""
    client.emulator.enter("gpu-missing")
    old = client.create(pyspark(L4, main="sleep.py"))
    client.wait(old, "RUNNING", "FAILED")
    client.emulator.enter("executor-churn")
    new = client.create(pyspark(QUEUED_L4, version="3.0"))
    shown = until(lambda: client.get(new), lambda batch: "currentUsage" in batch["runtimeInfo"])
    usage = shown["runtimeInfo"]["currentUsage"]
    assert usage["milliAcceleratorL4"] == "0"
    assert "acceleratorType" not in usage
    assert datetime.fromisoformat(usage["snapshotTime"]) > datetime.fromisoformat(shown["stateTime"])
    newer = until(
        lambda: client.get(new)["runtimeInfo"]["currentUsage"]["snapshotTime"],
        lambda moment: moment > usage["snapshotTime"],
    )
    assert newer
    ended = client.wait(old)
    assert ended["runtimeInfo"]["approximateUsage"]["acceleratorType"] == "L4"
    assert ended["runtimeInfo"]["approximateUsage"]["milliAcceleratorSeconds"] == "0"


def test_executors_that_are_replaced_for_ever_use_nothing(client: Client, churning: str) -> None:
    """A batch whose executors find no GPU runs on, and its snapshots show none in use."""
    shown = until(lambda: client.get(churning), lambda batch: "currentUsage" in batch["runtimeInfo"])
    assert shown["state"] == "RUNNING"
    assert shown["runtimeInfo"]["currentUsage"]["milliAccelerator"] == "0"


def test_machines_take_of_the_projects_quota_and_are_not_seen(client: Client, churning: str) -> None:
    """A running batch draws GPUs, N2 vCPUs and local SSD by its tiers; it gives them back; no VM of it is listed."""
    assert client.quota("NVIDIA_L4_GPUS") == 5
    assert client.quota("N2_CPUS") == 5 * 4
    assert client.quota("LOCAL_SSD_TOTAL_GB") == 5 * 375
    url = f"{client.emulator.url}/compute/v1/projects/{client.emulator.project}/zones/us-central1-a/instances"
    assert client.session.get(url, timeout=30).json().get("items") is None
    client.cancel(churning)
    client.wait(churning)
    assert client.quota("NVIDIA_L4_GPUS") == client.quota("N2_CPUS") == client.quota("LOCAL_SSD_TOTAL_GB") == 0


def test_queued_batches_draw_preemptible_quota(client: Client) -> None:
    """A batch that may wait in the queue draws the preemptible quota of its GPUs, one that may not the other."""
    client.emulator.enter("executor-churn")
    queued, on_demand = (
        client.create(pyspark(QUEUED_L4, version="3.0")),
        client.create(pyspark({**QUEUED_L4, **DEFAULT}, version="3.0")),
    )
    client.wait(queued, "RUNNING")
    client.wait(on_demand, "RUNNING")
    assert client.quota("PREEMPTIBLE_NVIDIA_L4_GPUS") == client.quota("NVIDIA_L4_GPUS") == 5


def test_dataflow_and_spark_share_what_there_is(client: Client, session: AuthorizedSession, churning: str) -> None:
    """A Dataflow job looks for stock and quota among the machines of Spark batches and of other jobs alike."""
    google = client.emulator.google
    held = [vm for vm in google.machines() if vm.accelerator == "nvidia-l4"]
    assert len(held) == 5
    jobs = DataflowClient(emulator=client.emulator, session=session)
    job = jobs.create(dataflow_environment(machine="n1-standard-4", option=T4))
    until(lambda: jobs.quota("NVIDIA_T4_GPUS")["usage"], lambda usage: usage == 1)
    assert len(google.machines()) == len(held) + 2
    jobs.cancel(job)
    jobs.wait(job, "CANCELLED")


def test_without_stock_a_batch_below_3_0_fails(client: Client) -> None:
    """A stockout ends a batch that cannot queue, in the words of Compute Engine, and its operation is unavailable."""
    client.emulator.enter("l4-stockout")
    name = client.create(pyspark(L4))
    batch = client.wait(name)
    assert batch["state"] == "FAILED"
    assert "does not have enough resources available to fulfill the request" in batch["stateMessage"]
    assert list(client.states(name)) == ["PENDING", "FAILED"]
    operation = client.get(batch["operation"])
    assert operation["done"]
    assert operation["error"] == {"code": 14, "message": batch["stateMessage"]}


def test_without_stock_a_batch_on_3_0_waits_and_then_gives_up(client: Client) -> None:
    """A queued batch stays pending until its allocation timeout, and then fails saying so."""
    client.emulator.enter("l4-stockout")
    name = client.create(pyspark({**QUEUED_L4, **HURRIED}, version="3.0"))
    assert client.get(name)["state"] == "PENDING"
    batch = client.wait(name)
    assert batch["state"] == "FAILED"
    assert "allocationTimeout of 60s" in batch["stateMessage"]


def test_a_queued_batch_starts_when_there_is_stock(client: Client) -> None:
    """What a queued batch waits for may come."""
    client.emulator.enter("l4-stockout")
    mark = client.emulator.mark()
    name = client.create(pyspark({**QUEUED_L4, **PATIENT}, version="3.0"))
    until(lambda: client.emulator.events("dataproc.machines.refused", since=mark), bool)
    client.emulator.enter("executor-churn")
    assert client.wait(name, "RUNNING")["name"] == name


def test_a_batch_on_3_0_may_lie_in_several_zones(client: Client) -> None:
    """Stock that is spread over a region's zones does for a batch from 3.0 on, and not for an older one."""
    stock = {"nvidia-l4": {"us-central1-a": 3, "us-central1-b": 2, "*": 0}}
    world = replace(load_world("plenty"), stock=stock)
    batches = client.emulator.google.dataproc.batches
    old, new = client.create(pyspark(L4)), client.create(pyspark(QUEUED_L4, version="3.0"))
    found = [batches.get(client.emulator.project, "us-central1", name.rpartition("/")[2]) for name in (old, new)]
    kept, spread = (allocate(batch, (), world) for batch in found if batch)
    assert isinstance(kept, Refusal)
    assert kept.kind == "stockout"
    assert not isinstance(spread, Refusal)
    assert [vm.zone for vm in spread if vm.accelerator] == ["us-central1-a"] * 3 + ["us-central1-b"] * 2


def test_asked_to_fail_fast_a_batch_on_3_0_does(client: Client) -> None:
    """In the mode ``default`` a stockout fails a batch of any runtime."""
    client.emulator.enter("nowhere")
    batch = client.wait(client.create(pyspark({**QUEUED_L4, **DEFAULT}, version="3.0")))
    assert "does not have enough resources" in batch["stateMessage"]


@pytest.mark.parametrize(
    ("version", "properties", "metric"),
    [("2.3", L4, "NVIDIA_L4_GPUS"), ("3.0", QUEUED_L4, "PREEMPTIBLE_NVIDIA_L4_GPUS")],
)
def test_without_quota_a_batch_fails(client: Client, version: str, properties: dict[str, str], metric: str) -> None:
    """The quotas that are short are named with what was wanted and what is left; the metric is that of the mode."""
    client.emulator.enter("no-quota")
    batch = client.wait(client.create(pyspark(properties, version=version)))
    assert batch["state"] == "FAILED"
    assert f"Insufficient '{metric}' quota. Requested 5.0, available 0.0." in batch["stateMessage"]
    assert "Insufficient 'GPUS_ALL_REGIONS' quota" in batch["stateMessage"]


def test_a_region_without_the_accelerator_is_said(client: Client) -> None:
    """A batch in a region that never has its accelerator fails, whatever the stock elsewhere."""
    batch = client.wait(client.create(pyspark(L4), location="africa-south1"))
    assert "'l4' is not available in region 'africa-south1'" in batch["stateMessage"]


def test_an_image_that_cannot_be_pulled_fails_the_batch(client: Client) -> None:
    """A custom image that is not there ends a batch before it runs."""
    body = pyspark()
    body["runtimeConfig"]["containerImage"] = "us-docker.pkg.dev/acme/spark/gpu:missing"
    assert "gpu:missing" in client.wait(client.create(body))["stateMessage"]


def test_a_pending_batch_can_be_cancelled(client: Client) -> None:
    """A cancel reaches a batch that waits for machines; a second one, and one after the end, change nothing."""
    client.emulator.enter("l4-stockout")
    name = client.create(pyspark({**QUEUED_L4, **PATIENT}, version="3.0"))
    assert client.cancel(name).json() == {}
    assert client.cancel(name).json() == {}
    batch = client.wait(name)
    assert list(client.states(name)) == ["PENDING", "CANCELLING", "CANCELLED"]
    assert client.get(batch["operation"])["error"]["code"] == 1
    assert client.cancel(name).json() == {}
    assert client.get(name)["stateTime"] == batch["stateTime"]


def test_a_batch_is_cancelled_when_its_ttl_is_over(client: Client) -> None:
    """The ttl counts from the creation; past it a batch is cancelled, and its history says why."""
    client.emulator.enter("executor-churn")
    name = client.create(pyspark(L4, environmentConfig={"executionConfig": {"ttl": "600s"}}))
    batch = client.wait(name)
    assert batch["state"] == "CANCELLED"
    reasons = [entry.get("stateMessage") for entry in batch["stateHistory"] if entry["state"] == "CANCELLING"]
    assert reasons == ["Cancelling batch as ttl exceeded"]


def test_only_what_is_over_can_be_deleted(client: Client, churning: str) -> None:
    """A running batch cannot be deleted; one that is over can, its id is free again, and its operation stays."""
    refused = client.delete(churning)
    assert refused.status_code == 400
    assert refused.json()["error"]["status"] == "FAILED_PRECONDITION"
    client.cancel(churning)
    operation = client.wait(churning)["operation"]
    assert client.delete(churning).json() == {}
    assert client.session.get(f"{client.root}/{churning}", timeout=30).status_code == 404
    assert client.get(operation)["done"]
    batch_id = churning.rpartition("/")[2]
    assert client.post(pyspark(L4), batch_id).status_code == 200


def test_the_ledger_tells_whose_batch_it_is(client: Client, pipeline_session: AuthorizedSession) -> None:
    """The principal of a creation and of a cancel is on record, with the labels and every state."""
    mark = client.emulator.mark()
    other = Client(emulator=client.emulator, session=pipeline_session)
    client.emulator.enter("executor-churn")
    name = other.create(pyspark(L4, labels={"accel-owner": "abc"}))
    client.wait(name, "RUNNING")
    client.cancel(name)
    client.wait(name)
    (created,) = client.emulator.events("dataproc.batch.created", since=mark)
    assert created["principal"] == client.emulator.email("pipeline")
    assert created["labels"] == {"accel-owner": "abc"}
    (asked,) = client.emulator.events("dataproc.batch.requested", since=mark)
    assert asked["principal"] == client.emulator.email("airflow")
    states = [event["state"] for event in client.emulator.events("dataproc.batch.state", since=mark)]
    assert states == ["RUNNING", "CANCELLING", "CANCELLED"]


def test_batches_outlive_the_emulator(tmp_path: Path) -> None:
    """A batch goes on, under the same uuid and operation, when the emulator starts again from its state."""
    from google.auth.transport.requests import AuthorizedSession
    from google.oauth2 import service_account

    def client_of(emulator: Emulator) -> Client:
        scopes = ["https://www.googleapis.com/auth/cloud-platform"]
        key = str(emulator.keys["airflow"])
        credentials = service_account.Credentials.from_service_account_file(key, scopes=scopes)
        return Client(emulator=emulator, session=AuthorizedSession(credentials))

    with running(tmp_path, time_scale=600.0, world="executor-churn") as first:
        client = client_of(first)
        name = client.create(pyspark(L4))
        before = client.wait(name, "RUNNING")
    with running(tmp_path, time_scale=600.0, world="executor-churn") as second:
        client = client_of(second)
        after: dict[str, Any] = client.get(name)
        assert (after["uuid"], after["operation"], after["state"]) == (before["uuid"], before["operation"], "RUNNING")
        assert client.quota("NVIDIA_L4_GPUS") == 5
        client.cancel(name)
        assert client.wait(name)["state"] == "CANCELLED"


def test_a_staging_bucket_that_is_not_there_is_said(client: Client) -> None:
    """Output goes to the staging bucket that is given, which must exist, or to one that the service makes."""
    refused = client.post(pyspark(environmentConfig={"executionConfig": {"stagingBucket": "nobody-has-it"}}))
    assert refused.status_code == 404
    open_bucket(client.emulator, "my-staging")
    client.emulator.enter("executor-churn")
    name = client.create(pyspark(L4, environmentConfig={"executionConfig": {"stagingBucket": "my-staging"}}))
    assert client.wait(name, "RUNNING")["runtimeInfo"]["outputUri"].startswith(
        "gs://my-staging/google-cloud-dataproc-metainfo/"
    )
    other = client.create(pyspark(L4))
    assert client.wait(other, "RUNNING")["runtimeInfo"]["outputUri"].startswith("gs://dataproc-staging-us-central1-")
