"""What the service refuses at the door: each rule broken one at a time, and its valid neighbour taken."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from dataproc_batches import BUCKET, L4, QUEUED_L4, Client, fresh_id, pyspark

from airflow_accel_provider.core.spark import load_spark_catalog
from airflow_accel_provider.emulator.compute.tables import BUILT_IN
from airflow_accel_provider.emulator.dataproc.tables import PROPERTIES, RUNTIMES, SPARK_ACCELERATORS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from emulators import Emulator
    from google.auth.transport.requests import AuthorizedSession

ACCELERATOR = "spark.dataproc.executor.resource.accelerator.type"
DISK = "spark.dataproc.executor.disk.size"
TIMEOUT = "spark.dataproc.executor.provisioning.allocationTimeout"
A100 = {**L4, ACCELERATOR: "a100-40", "spark.executor.cores": "12"}
UTF8 = {"spark.dataproc.driverEnv.LANG": "C.UTF-8", "spark.executorEnv.LANG": "C.UTF-8"}
SQL = {"queryFileUri": f"gs://{BUCKET}/q.sql"}


@pytest.fixture
def client(emulator: Emulator, session: AuthorizedSession) -> Iterator[Client]:
    """Return bare calls of airflow@ in a world where nothing that is taken is executed."""
    emulator.enter("nowhere")
    client = Client(emulator=emulator, session=session)
    yield client
    client.clear()
    emulator.enter("plenty")


def without(properties: dict[str, str], name: str) -> dict[str, str]:
    """Return properties but for one."""
    return {key: value for key, value in properties.items() if key != name}


PROPERTIES_REFUSED: list[tuple[str, dict[str, str], str]] = [
    ("2.3", {**L4, "spark.dataproc.executor.colour": "red"}, "[spark:spark.dataproc.executor.colour]"),
    ("2.3", {**L4, "spark.yarn.am.memory": "3g"}, "unsupported properties: [spark:spark.yarn.am.memory]"),
    ("2.3", {**L4, "spark.shuffle.service.enabled": "true"}, "unsupported properties"),
    ("2.3", {"spark.master": "yarn"}, "unsupported properties: [spark:spark.master]"),
    ("3.0", {**QUEUED_L4, "spark.master": "local[2]"}, "unsupported properties: [spark:spark.master]"),
    ("3.0", {**QUEUED_L4, "spark.dataproc.scaling.version": "2"}, "spark.dataproc.scaling.version"),
    ("2.3", {**L4, TIMEOUT: "600s"}, "unsupported properties"),
    ("2.3", {**L4, "spark.dataproc.executor.provisioning.mode": "queue"}, "unsupported properties"),
    ("3.0", {**QUEUED_L4, "spark.dataproc.executor.provisioning.mode": "now"}, "must be one of queue, default"),
    ("3.0", {**QUEUED_L4, TIMEOUT: "600"}, "ends in 's'"),
    ("3.0", {**QUEUED_L4, TIMEOUT: "7201s"}, "at most 7200s"),
    (
        "2.3",
        without(L4, "spark.dataproc.executor.compute.tier"),
        "'spark.dataproc.executor.compute.tier' to be 'premium'",
    ),
    ("2.3", {**L4, "spark.dataproc.executor.disk.tier": "standard"}, "disk.tier' to be 'premium', it is 'standard'"),
    ("3.0", L4, "'spark.dataproc.executor.compute.class' to be 'performance'"),
    ("3.0", without(QUEUED_L4, "spark.dataproc.executor.storage.class"), "storage.class' to be 'performance'"),
    ("1.1", L4, "'spark.executorEnv.LANG' to be 'C.UTF-8'"),
    ("1.1", {**L4, **UTF8, "spark.executorEnv.LANG": "C"}, "it is 'C'"),
    ("2.3", {**L4, ACCELERATOR: "h100"}, "must be one of l4, a100-40, a100-80"),
    ("2.3", {**L4, "spark.executor.cores": "6"}, "must be one of 4, 8, 12, 16, 24, 48, 96"),
    ("2.3", {**A100, "spark.executor.cores": "4"}, "must be one of 12"),
    ("2.3", {**L4, DISK: "750g"}, "must be 375g"),
    ("2.3", {**L4, "spark.executor.cores": "24", DISK: "375g"}, "must be 750g"),
    ("2.3", {**A100, DISK: "500g"}, "375g, 750g, 1500g"),
    ("2.3", {**L4, "spark.executor.memory": "13385m"}, "Memory 13385 is more than maximum memory 13384"),
    ("2.3", {**L4, "spark.executor.memory": "512m"}, "Memory 512 is less than required memory 1024"),
    ("2.3", {**L4, "spark.executor.memoryOverhead": "1g"}, "memoryOverhead' cannot be set"),
    ("2.3", {**L4, "spark.executor.instances": "1"}, "from 2 to 2000"),
    ("2.3", {"spark.executor.instances": "2001"}, "from 2 to 2000"),
    ("2.3", {"spark.dynamicAllocation.maxExecutors": "1"}, "from 2 to 2000"),
    ("2.3", {"spark.executor.cores": "12"}, "must be one of 4, 8, 16"),
    ("2.3", {"spark.driver.cores": "2"}, "'spark.driver.cores'"),
    ("2.3", {"spark.driver.memory": "1g"}, "is less than required memory 4096"),
    ("2.3", {"spark.executor.memory": "40g"}, "is more than maximum memory 29696"),
    ("2.3", {"spark.dataproc.driver.disk.size": "249g"}, "at least 250g"),
    ("2.3", {"spark.dataproc.executor.disk.tier": "premium", DISK: "400g"}, "in the premium tier"),
    ("2.3", {"spark.executor.memory": "lots"}, "must be a size"),
]

PROPERTIES_TAKEN: list[tuple[str, dict[str, str]]] = [
    ("1.1", {**L4, **UTF8, "spark.shuffle.manager": "com.nvidia.spark.rapids.RapidsShuffleManager"}),
    ("2.3", {**L4, DISK: "375g", "spark.executor.memory": "13384m"}),
    ("2.3", {**L4, "spark.executor.cores": "24", DISK: "750g"}),
    ("2.3", {**A100, DISK: "9000g"}),
    ("2.3", {"spark:spark.executor.instances": "2", "spark.sql.shuffle.partitions": "8"}),
    (
        "2.3",
        {
            **without(without(L4, "spark.dataproc.executor.compute.tier"), "spark.dataproc.executor.disk.tier"),
            "dataproc.tier": "premium",
        },
    ),
    (
        "2.3",
        {"spark.executor.memory": "9600m", "spark.driver.memory": "9600m", "spark.dataproc.driver.disk.size": "250g"},
    ),
    ("3.0", {**QUEUED_L4, TIMEOUT: "7200s", "spark.dataproc.driver.provisioning.allocationTimeout": "1s"}),
    ("3.0", {**QUEUED_L4, "spark.dataproc.executor.provisioning.mode": "default"}),
]


@pytest.mark.parametrize(("version", "properties", "says"), PROPERTIES_REFUSED)
def test_a_property_that_cannot_be_is_refused(
    client: Client, version: str, properties: dict[str, str], says: str
) -> None:
    """A property that a runtime does not take, or a value that does not fit, is an invalid argument that names it."""
    batch_id = fresh_id()
    answer = client.post(pyspark(properties, version=version), batch_id)
    assert answer.status_code == 400
    assert answer.json()["error"]["status"] == "INVALID_ARGUMENT"
    assert says in answer.json()["error"]["message"]
    assert client.list(filter=f"batch_id={batch_id}") == []


@pytest.mark.parametrize(("version", "properties"), PROPERTIES_TAKEN)
def test_properties_that_fit_are_taken(client: Client, version: str, properties: dict[str, str]) -> None:
    """Documented properties within their bounds make a batch."""
    assert client.post(pyspark(properties, version=version)).status_code == 200


REQUESTS_REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"runtimeConfig": {"version": "2.3"}}, "Batch config is required"),
    ({**pyspark(), "sparkSqlBatch": SQL}, "oneof"),
    (pyspark() | {"pysparkBatch": {"args": ["x"]}}, "pysparkBatch.mainPythonFileUri is required"),
    (pyspark(main="job.txt"), "must end in .py"),
    ({"sparkBatch": {"args": ["x"]}}, "main_jar_file_uri and main_class"),
    ({"sparkBatch": {"mainClass": "A", "mainJarFileUri": "gs://b/a.jar"}}, "main_jar_file_uri and main_class"),
    ({"sparkSqlBatch": {"queryVariables": {"a": "b"}}}, "queryFileUri is required"),
    ({"sparkRBatch": {"mainRFileUri": "gs://b/a.R"}, "runtimeConfig": {"version": "3.0"}}, "SparkR is not supported"),
    (pyspark(version="9.9"), "Unsupported runtime version '9.9'"),
    (pyspark(version="2.3.39"), "Unsupported runtime version '2.3.39'"),
    (pyspark(labels={"Team": "ml"}), "label key 'Team'"),
    (pyspark(labels={"under_score": "ml"}), "label key 'under_score'"),
    (pyspark(labels={"team": "9lives"}), "label value '9lives'"),
    (pyspark(labels={f"k{number}": "v" for number in range(33)}), "No more than 32"),
    (pyspark(environmentConfig={"executionConfig": {"ttl": "599s"}}), "the minimum is 10 minutes"),
    (pyspark(environmentConfig={"executionConfig": {"ttl": "1209601s"}}), "the maximum 14 days"),
    (pyspark(environmentConfig={"executionConfig": {"idleTtl": "600s"}}), "idle_ttl"),
    (pyspark(environmentConfig={"executionConfig": {"networkUri": "n", "subnetworkUri": "s"}}), "subnetwork_uri"),
    (pyspark(environmentConfig={"executionConfig": {"stagingBucket": "gs://b"}}), "not a gs://"),
    (pyspark(environmentConfig={"executionConfig": {"zone": "us-central1-a"}}), 'Unknown name "zone"'),
    (pyspark(colour="red"), 'Unknown name "colour"'),
]


@pytest.mark.parametrize(("body", "says"), REQUESTS_REFUSED)
def test_a_batch_that_cannot_be_is_refused(client: Client, body: dict[str, Any], says: str) -> None:
    """Whatever else is wrong with a batch is an invalid argument that says what."""
    answer = client.post(body)
    assert answer.status_code == 400
    assert says in answer.json()["error"]["message"]


@pytest.mark.parametrize("batch_id", ["abc", "a" * 64, "Nightly", "night_ly", "a.b.c"])
def test_a_batch_id_that_cannot_be_is_refused(client: Client, batch_id: str) -> None:
    """A batch's id has 4 to 63 lower-case letters, digits and hyphens."""
    answer = client.post(pyspark(), batch_id)
    assert answer.status_code == 400
    assert f"'{batch_id}'" in answer.json()["error"]["message"]


@pytest.mark.parametrize("request_id", ["with blank", "a" * 41, "a/b"])
def test_a_request_id_that_cannot_be_is_refused(client: Client, request_id: str) -> None:
    """A request's id has up to 40 letters, digits, underscores and hyphens."""
    assert client.post(pyspark(), requestId=request_id).status_code == 400


def test_everything_that_is_wrong_is_said_at_once(client: Client) -> None:
    """Several mistakes make one answer."""
    answer = client.post(pyspark({"spark.driver.cores": "3"}, labels={"A": "b"}), "x")
    message = answer.json()["error"]["message"]
    assert message.startswith("Multiple validation errors:\n - ")
    assert message.count("\n - ") == 3


@pytest.mark.parametrize(
    "body",
    [
        {"sparkRBatch": {"mainRFileUri": "gs://b/a.R"}},
        {"pysparkNotebookBatch": {"notebookFileUri": "gs://b/a.ipynb"}},
    ],
)
def test_what_is_not_executed_here_is_said(client: Client, body: dict[str, Any]) -> None:
    """Batches in R and notebooks are valid and not executed by the emulator: 501, with what is."""
    answer = client.post(body)
    assert answer.status_code == 501
    assert "pysparkBatch, sparkBatch, sparkSqlBatch" in answer.json()["error"]["message"]


def test_both_tables_of_accelerators_agree() -> None:
    """The emulator and the package read the same runtimes, shapes and machines from Google's pages."""
    tables = load_spark_catalog()
    assert set(RUNTIMES) == set(tables.runtimes)
    assert {name: known.type for name, known in SPARK_ACCELERATORS.items()} == {
        name: known.compute_type for name, known in tables.accelerators.items()
    }
    ours = {
        (name, cores): (shape.gpus, shape.disks_gb, shape.memory_mb)
        for name, known in SPARK_ACCELERATORS.items()
        for cores, shape in known.shapes.items()
    }
    assert ours == {(each.type, each.cores): (each.gpus, each.disks_gb, each.memory_mb) for each in tables.executors}
    for known in SPARK_ACCELERATORS.values():
        for cores, shape in known.shapes.items():
            machine = BUILT_IN[shape.machine]
            assert (machine.cpus, machine.accelerator, machine.count) == (cores, known.type, shape.gpus)


def test_both_tables_of_properties_agree() -> None:
    """Every property of the service that the package knows is taken by the emulator, and the other way round."""
    tables = load_spark_catalog()
    known = {each.name for each in (*tables.properties.values(), *tables.prefixes) if not each.refused}
    assert {row.name for row in PROPERTIES} == {name for name in known if name.startswith("spark.dataproc.")}
