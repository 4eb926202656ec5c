"""Batches really run, on local Spark: their output, files and errors are their own."""

from __future__ import annotations

import io
import json
import os
import sys
import tarfile
import zipfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from dataflow_jobs import until
from dataproc_batches import BUCKET, L4, QUEUED_L4, Client, fresh_id, open_bucket, pyspark
from emulators import running
from google.auth.transport.requests import AuthorizedSession
from google.cloud.dataproc_v1 import BatchControllerClient
from google.cloud.dataproc_v1.services.batch_controller.transports.rest import (
    BatchControllerRestInterceptor,
    BatchControllerRestTransport,
)
from google.oauth2 import service_account

from airflow_accel_provider.emulator.dataproc.endings import last_words
from airflow_accel_provider.emulator.dataproc.installation import SparkMissingError, find_spark
from airflow_accel_provider.emulator.dataproc.mirror import named_buckets

if TYPE_CHECKING:
    from collections.abc import Iterator

    from emulators import Emulator
    from google.cloud.storage import Bucket

SCRIPTS = Path(__file__).parent / "batches"
SCOPES = ["https://www.googleapis.com/auth/cloud-platform"]
CHAINED = """Traceback (most recent call last):
  File x
KeyError: 1

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File y
acme.errors.Lost: it
INFO bye
"""
ORDERS = "country,amount\nde,10\nfr,5\nde,7\n"

# The properties of the command on Google's page, https://cloud.google.com/dataproc-serverless/docs/guides/gpus-serverless.
ON_THE_PAGE = {
    **L4,
    "spark.dataproc.driverEnv.LANG": "C.UTF-8",
    "spark.executorEnv.LANG": "C.UTF-8",
    "spark.shuffle.manager": "com.nvidia.spark.rapids.RapidsShuffleManager",
}
WITH_MORE = {
    **L4,
    "spark.executor.cores": "24",
    "spark.dataproc.driverEnv.SHADE": "dark",
    "spark.executorEnv.COLOUR": "red",
    "spark.sql.shuffle.partitions": "7",
    "spark.acme.own": "a=b c\\d",
}


def _client(emulator: Emulator) -> Client:
    credentials = service_account.Credentials.from_service_account_file(str(emulator.keys["airflow"]), scopes=SCOPES)
    return Client(emulator=emulator, session=AuthorizedSession(credentials))


@pytest.fixture(scope="module")
def client(emulator: Emulator) -> Iterator[Client]:
    """Return bare calls of airflow@; batches that are left are cancelled."""
    client = _client(emulator)
    yield client
    client.clear()


@pytest.fixture(scope="module")
def bucket(emulator: Emulator) -> Bucket:
    """Return a bucket with every script, and with data."""
    bucket = open_bucket(emulator)
    _fill(bucket)
    return bucket


def _fill(bucket: Bucket) -> None:
    for script in SCRIPTS.glob("*.*"):
        name = script.name.replace(".txt", ".py")
        bucket.blob(f"code/{name}").upload_from_filename(str(script))
    bucket.blob("in/orders.csv").upload_from_string(ORDERS)
    bucket.blob("in/rate.txt").upload_from_string("1.5")
    bucket.blob("in/kit.tar.gz").upload_from_string(_archive())
    bucket.blob("out/totals/part-of-yesterday.json").upload_from_string("{}")


def _archive() -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        member = tarfile.TarInfo("packed.txt")
        member.size = 4
        archive.addfile(member, io.BytesIO(b"here"))
    return packed.getvalue()


@pytest.fixture(scope="module")
def started(client: Client, bucket: Bucket) -> dict[str, str]:
    """Start every batch that runs to its end, so that they share the machine, and return their names."""
    code, data = f"gs://{BUCKET}/code", f"gs://{BUCKET}/in"
    orders = pyspark(WITH_MORE, main="code/orders.py")
    orders["pysparkBatch"] |= {
        "args": [f"{data}/orders.csv", f"gs://{BUCKET}/out/totals"],
        "pythonFileUris": [f"{code}/prices.py"],
        "fileUris": [f"{data}/rate.txt"],
        "archiveUris": [f"{data}/kit.tar.gz#kit"],
    }
    report = {
        "sparkSqlBatch": {
            "queryFileUri": f"{code}/report.sql",
            "queryVariables": {"source": "in/orders.csv", "country": "de"},
        },
        "runtimeConfig": {"version": "2.3"},
    }
    by_class = {
        "sparkBatch": {
            "mainClass": "org.apache.spark.sql.hive.thriftserver.SparkSQLCLIDriver",
            "args": ["-e", "SELECT concat('SUM ', 20 + 22)"],
        },
        "runtimeConfig": {"version": "2.3"},
    }
    bodies = {
        "page": pyspark(ON_THE_PAGE, version="1.1", main="code/google_gpus_page.py"),
        "orders": orders,
        "failing": pyspark(QUEUED_L4, version="3.0", main="code/failing.py"),
        "report": report,
        "class": by_class,
        "nowhere": pyspark(main="code/not-there.py"),
    }
    return {name: client.create(body) for name, body in bodies.items()}


def _output(bucket: Bucket, batch: dict[str, Any]) -> str:
    uri: str = batch["runtimeInfo"]["outputUri"]
    name, _, path = uri.removeprefix("gs://").partition("/")
    return bucket.client.bucket(name).blob(f"{path}.000000000").download_as_text()


def test_googles_own_script_counts_its_gpus(client: Client, bucket: Bucket, started: dict[str, str]) -> None:
    """The script on Google's page about GPUs, as it stands there, finds five GPUs by nvidia-smi and plans its join."""
    batch = client.wait(started["page"])
    assert batch["state"] == "SUCCEEDED", _output(bucket, batch)
    said = _output(bucket, batch)
    assert "Total accelerators: 5\n" in said
    assert "SortMergeJoin [a#" in said
    assert "set aside: spark.shuffle.manager=com.nvidia.spark.rapids.RapidsShuffleManager" in said
    usage = batch["runtimeInfo"]["approximateUsage"]
    assert usage["acceleratorType"] == "L4"
    assert int(usage["milliAcceleratorSeconds"]) >= 5000


def test_a_batch_reads_and_writes_buckets_with_what_it_brought(
    client: Client, bucket: Bucket, started: dict[str, str]
) -> None:
    """Arguments, modules, files, archives, environments and properties arrive; two ranges are joined; output lands."""
    batch = client.wait(started["orders"])
    said = _output(bucket, batch)
    assert batch["state"] == "SUCCEEDED", said
    (line,) = [line for line in said.splitlines() if line.startswith("FACTS ")]
    assert json.loads(line.removeprefix("FACTS ")) == {
        "joined": 10_000_000,
        "with_tax": 120.0,
        "rate": "1.5",
        "packed": "here",
        "executors": [["red", 2], ["red", 2]],
        "driver": ["dark", ""],
        "partitions": "7",
        "own": "a=b c\\d",
    }
    written = {blob.name: blob for blob in bucket.list_blobs(prefix="out/totals/")}
    assert "out/totals/_SUCCESS" in written
    assert "out/totals/part-of-yesterday.json" not in written
    (part,) = [blob for name, blob in written.items() if name.endswith(".json")]
    rows = [json.loads(line) for line in part.download_as_text().splitlines()]
    assert sorted((row["country"], row["total"]) for row in rows) == [("de", 17), ("fr", 5)]
    assert not [name for name in written if name.endswith(".crc")]
    writes = client.emulator.calls("storage.objects.insert")
    assert {call["principal"] for call in writes if call["path"]["bucket"].startswith("dataproc-staging")} == {
        client.emulator.email("pipeline")
    }


def test_an_event_log_is_kept(client: Client, bucket: Bucket, started: dict[str, str]) -> None:
    """Spark's event log lies in the bucket of the batch's output."""
    batch = client.wait(started["orders"])
    staging = bucket.client.bucket(batch["runtimeInfo"]["outputUri"].removeprefix("gs://").partition("/")[0])
    (log,) = staging.list_blobs(prefix=f"{batch['uuid']}/spark-job-history/")
    assert log.size > 0


def test_an_error_in_user_code_is_the_batchs_message(client: Client, bucket: Bucket, started: dict[str, str]) -> None:
    """The exception stands in the state message with where to read on; the traceback is in the driver's output."""
    batch = client.wait(started["failing"])
    assert batch["state"] == "FAILED"
    first, *rest = batch["stateMessage"].splitlines()
    cause = "ZeroDivisionError: integer division or modulo by zero"
    assert first == f"Job failed with message [{cause}]. Additional details can be found at:"
    assert rest[-1] == f"{batch['runtimeInfo']['outputUri']}.*"
    assert 'failing.py", line 6, in <module>' in _output(bucket, batch)
    assert int(batch["runtimeInfo"]["approximateUsage"]["milliAcceleratorSecondsL4"]) >= 5000
    operation = client.get(batch["operation"])
    assert operation["error"] == {"code": 10, "message": batch["stateMessage"]}


def test_a_program_that_is_not_there_is_the_jobs_failure(client: Client, started: dict[str, str]) -> None:
    """A batch is taken without a look at its files, and fails on the one that is missing."""
    batch = client.wait(started["nowhere"])
    assert f"File not found: gs://{BUCKET}/code/not-there.py" in batch["stateMessage"]


def test_sql_runs_with_its_variables(client: Client, bucket: Bucket, started: dict[str, str]) -> None:
    """A Spark SQL batch runs its statements, with variables filled in, on files of a bucket."""
    batch = client.wait(started["report"])
    assert batch["state"] == "SUCCEEDED", _output(bucket, batch)
    assert "ROWS 3;" in _output(bucket, batch)
    text = "".join(blob.download_as_text() for blob in bucket.list_blobs(prefix="report/part-"))
    assert json.loads(text) == {"country": "de", "total": 17}


def test_a_class_of_a_jar_runs(client: Client, bucket: Bucket, started: dict[str, str]) -> None:
    """A Spark batch runs a class with its arguments."""
    batch = client.wait(started["class"])
    assert batch["state"] == "SUCCEEDED", _output(bucket, batch)
    assert "SUM 42" in _output(bucket, batch)


def test_the_stock_operator_runs_a_batch(
    client: Client, bucket: Bucket, emulator: Emulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Airflow's own DataprocCreateBatchOperator runs a batch here; all that differs is that its client speaks REST."""
    from airflow.providers.google.cloud.hooks.dataproc import DataprocHook
    from airflow.providers.google.cloud.operators.dataproc import DataprocCreateBatchOperator

    class Regions(BatchControllerRestInterceptor):
        """The hook names regions where REST has locations, which gRPC never minded."""

        def pre_create_batch(self, request: Any, metadata: Any) -> tuple[Any, Any]:
            request.parent = request.parent.replace("/regions/", "/locations/")
            return request, metadata

        def pre_get_batch(self, request: Any, metadata: Any) -> tuple[Any, Any]:
            request.name = request.name.replace("/regions/", "/locations/")
            return request, metadata

    def over_rest(hook: DataprocHook, region: str | None = None) -> BatchControllerClient:
        transport = BatchControllerRestTransport(
            host=emulator.url, credentials=hook.get_credentials(), url_scheme="http", interceptor=Regions()
        )
        return BatchControllerClient(transport=transport)

    monkeypatch.setattr(DataprocHook, "get_batch_client", over_rest)
    extra = {"keyfile_dict": emulator.keys["airflow"].read_text(), "project": emulator.project}
    connection = json.dumps({"conn_type": "google_cloud_platform", "extra": extra})
    monkeypatch.setenv("AIRFLOW_CONN_GOOGLE_CLOUD_DEFAULT", connection)
    batch_id = fresh_id("stock")
    operator = DataprocCreateBatchOperator(
        task_id="etl",
        region="us-central1",
        project_id=emulator.project,
        batch_id=batch_id,
        batch={
            "pyspark_batch": {"main_python_file_uri": f"gs://{BUCKET}/code/plain.py", "args": ["0", "stock"]},
            "runtime_config": {"version": "2.3", "properties": L4},
        },
    )
    pushed: dict[str, Any] = {}

    class TaskInstance:
        def xcom_push(self, key: str, value: Any) -> None:
            pushed[key] = value

    returned = operator.execute({"ti": TaskInstance()})
    assert returned["name"].endswith(f"/batches/{batch_id}")
    assert client.get(returned["name"])["state"] == "SUCCEEDED"
    assert "SAID 0 stock" in _output(bucket, client.get(returned["name"]))
    assert next(iter(pushed.values()))["batch_id"] == batch_id


def test_a_cancel_ends_what_runs(client: Client, bucket: Bucket) -> None:
    """A batch that is cancelled while its code runs is cancelled when nothing of it runs any more."""
    body = pyspark(main="code/plain.py")
    body["pysparkBatch"]["args"] = ["600"]
    name = client.create(body)
    uuid = client.wait(name, "RUNNING")["uuid"]
    until(lambda: _processes(f"{uuid}/scratch/plain.py"), bool)
    client.cancel(name)
    batch = client.wait(name)
    assert batch["state"] == "CANCELLED"
    assert not _processes(uuid)
    assert "buckets within reach: gs://dataproc-tests\n" in _output(bucket, batch)


@contextmanager
def _again(directory: Path) -> Iterator[Client]:
    with running(directory, time_scale=600.0) as emulator:
        yield _client(emulator)


def test_a_batch_that_ran_when_the_emulator_ended_runs_anew(tmp_path: Path) -> None:
    """Ending the emulator ends what runs; started again on the same state, it executes the batch from its beginning."""
    with _again(tmp_path) as first:
        _fill(open_bucket(first.emulator))
        body = pyspark(L4, main="code/plain.py")
        body["pysparkBatch"]["args"] = ["600"]
        name = first.create(body)
        uuid = first.wait(name, "RUNNING")["uuid"]
        until(lambda: _processes(f"{uuid}/scratch/plain.py"), bool)
    assert not _processes(uuid)
    with _again(tmp_path) as second:
        assert second.get(name)["state"] == "RUNNING"
        until(lambda: _processes(uuid), bool)
        second.cancel(name)
        second.wait(name)


def test_without_java_a_batch_fails_saying_so(
    client: Client, bucket: Bucket, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Where Spark cannot run, a batch fails with what is missing."""
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    batch = client.wait(client.create(pyspark(main="code/plain.py")))
    assert batch["state"] == "FAILED"
    assert batch["stateMessage"].startswith("Spark needs Java 17 or newer where the emulator runs")


def test_without_pyspark_it_is_said_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where PySpark is not installed, what is said names the extra that brings it."""
    monkeypatch.setattr(sys, "path", [])
    monkeypatch.setattr(sys, "meta_path", [])
    with pytest.raises(SparkMissingError, match=r"pip install 'airflow-provider-accel\[spark\]'"):
        find_spark()


@pytest.mark.parametrize(
    ("output", "words"),
    [
        ("Traceback (most recent call last):\n  File x\nValueError: bad row\nmore\n", "ValueError: bad row"),
        (
            CHAINED,
            "acme.errors.Lost: it",
        ),
        (
            'Exception in thread "main" org.apache.spark.SparkException: Job aborted\n\tat acme.Main\n',
            "org.apache.spark.SparkException: Job aborted",
        ),
        (
            "[TABLE_OR_VIEW_NOT_FOUND] The table `x` cannot be found.\n",
            "[TABLE_OR_VIEW_NOT_FOUND] The table `x` cannot be found.",
        ),
        ("Error: Failed to load class acme.Nothing.\n", "Error: Failed to load class acme.Nothing."),
        ("26/11/30 INFO SparkContext: all is well\n", ""),
    ],
)
def test_the_last_exception_is_a_batchs_last_word(output: str, words: str) -> None:
    """Of what Python, a JVM, SQL or the launcher left in the output, the last exception is told, in one line."""
    assert last_words(output) == words


def test_a_batch_reaches_the_buckets_that_it_names(tmp_path: Path) -> None:
    """A bucket is within reach when its name stands in the request, in a file, or in a file of a packed module."""
    code, packed = tmp_path / "main.py", tmp_path / "lib.zip"
    code.write_text("spark.read.csv('gs://in-code/x')")
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("lib/places.py", "BUCKET = 'in-module'")
    existing = ["in-code", "in-module", "in-request", "elsewhere"]
    assert named_buckets(existing, '{"args": ["in-request"]}', [code, packed]) == existing[:3]


def _processes(path: str) -> list[int]:
    """Return the processes with a path, or a part of one, in their commands."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            command = entry.read_bytes()
        except OSError:
            continue
        if path.encode() in command and int(entry.parent.name) != os.getpid():
            found.append(int(entry.parent.name))
    return found
