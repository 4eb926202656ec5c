"""The operator for Spark batches: every parameter arrives, nothing runs twice, nobody else's batch is touched."""

from __future__ import annotations

import asyncio
import inspect
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from airflow.sdk.exceptions import TaskDeferred

from airflow_accel_provider.core.parameters import PARAMETERS
from airflow_accel_provider.exceptions import (
    AcceleratorCancelledError,
    AcceleratorConfigurationError,
    AcceleratorLaunchError,
    AcceleratorMissingError,
)
from airflow_accel_provider.hooks.spark import SparkHook
from airflow_accel_provider.operators._job import AcceleratorJobOperator
from airflow_accel_provider.operators.dataproc import DataprocGpuBatchOperator
from demo.waiting import wait_for
from tests.integration.batches import BUCKET, CREATE, L4, L4_ELSEWHERE, MAIN, etl, etl_run
from tests.integration.local_google import PROJECT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.integration.local_google import LocalGoogle
    from tests.integration.task_run import TaskRun

REGION = "us-central1"
GET = "dataproc.projects.locations.batches.get"
PIPELINE_ACCOUNT = f"pipeline@{PROJECT}.iam.gserviceaccount.com"
KEY = "projects/acme/locations/{region}/keyRings/r/cryptoKeys/k"
SUBNETWORK = f"projects/{PROJECT}/regions/{{region}}/subnetworks/spark"
EXECUTION: dict[str, Any] = {
    "service_account": PIPELINE_ACCOUNT,
    "subnetwork_uri": SUBNETWORK,
    "network_tags": ["spark"],
    "kms_key": KEY,
}
PYSPARK: dict[str, Any] = {
    "pyspark_batch": {"main_python_file_uri": MAIN, "args": ["{region}", "{accelerator}"]},
    "environment_config": {"execution_config": EXECUTION},
}


@pytest.fixture(autouse=True)
def _churning(google: LocalGoogle) -> Iterator[None]:
    """Let batches run without running anything, and end those that a test leaves."""
    google.emulator.set_world("executor-churn")
    yield
    google.heal()
    hook = SparkHook(google.session())
    for region in (REGION, "europe-west4"):
        for each in hook.list_active(region):
            if each.job:
                hook.cancel(each.job.id, region)


def begun(run: TaskRun) -> str:
    """Execute until the task waits, and return the batch's id."""
    with pytest.raises(TaskDeferred):
        run.execute()
    batch_id: str = run.xcom["dataproc_batch_id"]
    return batch_id


def batch_of(google: LocalGoogle, batch_id: str, region: str = REGION) -> dict[str, Any]:
    return google.session().request("dataproc", "GET", f"projects/{PROJECT}/locations/{region}/batches/{batch_id}")


def state_of(google: LocalGoogle, batch_id: str) -> str:
    return str(batch_of(google, batch_id)["state"])


@dataclass(frozen=True, kw_only=True)
class Arrived:
    """What one task with all parameters said left behind: its batch, the call that made it, trigger and record."""

    batch: dict[str, Any]
    call: dict[str, Any]
    trigger: dict[str, Any]

    @property
    def properties(self) -> dict[str, str]:
        """The batch's properties, as the service names them back."""
        said = self.batch["runtimeConfig"]["properties"]
        return {name.removeprefix("spark:"): text for name, text in said.items()}

    @property
    def execution(self) -> dict[str, Any]:
        """The batch's execution config."""
        found: dict[str, Any] = self.batch["environmentConfig"]["executionConfig"]
        return found

    @property
    def policy(self) -> dict[str, Any]:
        """What the trigger was told of waiting."""
        found: dict[str, Any] = self.trigger["policy"]
        return found


Seen = tuple[Any, "Callable[[Arrived], Any]", Any]
ACCELERATOR = "spark.dataproc.executor.resource.accelerator.type"
TIMEOUT = "spark.dataproc.{}.provisioning.allocationTimeout"

# Each row: what is said, where it shows, and how it shows there.
ROWS: dict[str, Seen] = {
    "placement": ("l4:2", lambda a: (a.properties[ACCELERATOR], a.properties["spark.executor.cores"]), ("l4", "24")),
    "region": (REGION, lambda a: a.call["path"]["location"], REGION),
    "fallback": ([L4_ELSEWHERE], lambda a: a.trigger["record"]["plan"][1]["placement"], L4_ELSEWHERE),
    "fallback_on": (["stockout"], lambda a: a.policy["fallback_on"], ["stockout"]),
    "on_unproven": ("fail", lambda a: a.policy["on_unproven"], "fail"),
    "start_timeout": (1234, lambda a: a.policy["start_timeout"], 1234),
    "cancel_timeout": (234, lambda a: a.policy["cancel_timeout"], 234),
    "proof_grace": (77, lambda a: a.policy["grace"], 77),
    "poll_interval": (0.75, lambda a: a.trigger["poll_interval"], 0.75),
    "deferrable": (True, lambda a: bool(a.trigger), True),
    "project_id": (PROJECT, lambda a: a.call["path"]["project"], PROJECT),
    "gcp_conn_id": ("accelerators", lambda a: a.trigger["gcp_conn_id"], "accelerators"),
    "impersonation_chain": (PIPELINE_ACCOUNT, lambda a: a.call["principal"], PIPELINE_ACCOUNT),
    "quota_project_id": ("acme-billing", lambda a: a.trigger["quota_project_id"], "acme-billing"),
    "batch": (
        PYSPARK,
        lambda a: (a.batch["pysparkBatch"], a.execution["subnetworkUri"], a.execution["kmsKey"]),
        (
            {"mainPythonFileUri": MAIN, "args": [REGION, "l4"]},
            SUBNETWORK.format(region=REGION),
            KEY.format(region=REGION),
        ),
    ),
    "batch_id": ("nightly-etl", lambda a: a.batch["name"].rpartition("/")[2].rpartition("-")[0], "nightly-etl"),
    "request_id": ("Nightly", lambda a: a.call["query"]["requestId"][0].partition("-")[0], "Nightly"),
    "runtime_version": ("3.0", lambda a: a.batch["runtimeConfig"]["version"].startswith("3.0"), True),
    "executors": (3, lambda a: a.properties["spark.executor.instances"], "3"),
    "properties": (
        {"spark.sql.shuffle.partitions": 7, "spark.dynamicAllocation.enabled": False},
        lambda a: (a.properties["spark.sql.shuffle.partitions"], a.properties["spark.dynamicAllocation.enabled"]),
        ("7", "false"),
    ),
    "container_image": (
        "us-docker.pkg.dev/acme-ml-prod/spark/gpu:1",
        lambda a: a.batch["runtimeConfig"]["containerImage"],
        "us-docker.pkg.dev/acme-ml-prod/spark/gpu:1",
    ),
    "ttl": (7200, lambda a: a.execution["ttl"], "7200s"),
    "provisioning": ("queue", lambda a: a.properties["spark.dataproc.executor.provisioning.mode"], "queue"),
    "allocation_timeout": (
        "900s",
        lambda a: [a.properties[TIMEOUT.format(role)] for role in ("driver", "executor")],
        ["900s", "900s"],
    ),
    "labels": ({"team": "vision"}, lambda a: a.batch["labels"]["team"], "vision"),
}
# Of no effect that the service shows: it has a test of its own, and one among those of the hooks.
ALONE = {"metadata"}


@pytest.fixture(scope="module")
def arrived(started_google: LocalGoogle) -> Arrived:
    """Return what one batch with all parameters said left behind."""
    with pytest.MonkeyPatch.context() as patch:
        # The default connection leads nowhere, and the one that is named has another project of its own.
        patch.setenv("AIRFLOW_CONN_GOOGLE_CLOUD_DEFAULT", '{"conn_type": "google_cloud_platform"}')
        patch.setenv("AIRFLOW_CONN_ACCELERATORS", started_google.connection(project="acme-other"))
        started_google.emulator.set_world("executor-churn")
        since = started_google.mark()
        run = etl_run(started_google, metadata=[("x-team", "ml")], **{name: row[0] for name, row in ROWS.items()})
        with pytest.raises(TaskDeferred) as deferred:
            run.execute()
        patch.setenv("AIRFLOW_CONN_GOOGLE_CLOUD_DEFAULT", started_google.connection())
        return Arrived(
            batch=batch_of(started_google, run.xcom["dataproc_batch_id"]),
            call=started_google.calls(CREATE, since=since)[0],
            trigger=deferred.value.trigger.serialize()[1],
        )


def test_no_parameter_is_forgotten() -> None:
    """Each accepted parameter has a row here, and is what a program may ask about too."""
    classes = [cls for cls in DataprocGpuBatchOperator.__mro__ if issubclass(cls, AcceleratorJobOperator)]
    names = {name for cls in classes for name in inspect.signature(cls.__init__).parameters}
    accepted = names - {"self", "args", "kwargs"}
    assert accepted == ROWS.keys() | ALONE == PARAMETERS["DataprocGpuBatchOperator"]


@pytest.mark.parametrize("name", ROWS)
def test_parameter_arrives(arrived: Arrived, name: str) -> None:
    """A parameter's value shows in the batch, its call, the trigger or the record."""
    _, seen, wanted = ROWS[name]
    assert seen(arrived) == wanted


def test_metadata_is_sent(google: LocalGoogle, monkeypatch: pytest.MonkeyPatch) -> None:
    """Metadata are headers of the creation alone."""
    sent: list[Any] = []
    monkeypatch.setattr(
        SparkHook,
        "create",
        lambda self, *said, create=SparkHook.create, **more: (
            sent.append(more["headers"]),
            create(self, *said, **more),
        )[1],
    )
    begun(etl_run(google, metadata=[("x-team", "ml")]))
    assert sent == [{"x-team": "ml"}]


KINDS: list[tuple[dict[str, Any], str, dict[str, Any]]] = [
    (
        {"spark_batch": {"main_class": "acme.Etl", "jar_file_uris": [f"gs://{BUCKET}/jobs/etl.py"], "args": ["a"]}},
        "sparkBatch",
        {"mainClass": "acme.Etl", "jarFileUris": [f"gs://{BUCKET}/jobs/etl.py"], "args": ["a"]},
    ),
    (
        {"spark_batch": {"main_jar_file_uri": "file:///opt/etl.jar"}},
        "sparkBatch",
        {"mainJarFileUri": "file:///opt/etl.jar"},
    ),
    (
        {"spark_sql_batch": {"query_file_uri": MAIN, "query_variables": {"day": "{{ ds }}"}}},
        "sparkSqlBatch",
        {"queryFileUri": MAIN, "queryVariables": {"day": "2026-03-02"}},
    ),
]


@pytest.mark.parametrize(("batch", "kind", "wanted"), KINDS)
def test_kinds_of_batches(google: LocalGoogle, batch: dict[str, Any], kind: str, wanted: dict[str, Any]) -> None:
    """Jars, classes and SQL files are submitted as PySpark programs are, with their templates filled."""
    assert batch_of(google, begun(etl_run(google, batch=batch)))[kind] == wanted


def test_googles_own_message_is_a_batch(google: LocalGoogle) -> None:
    """A batch can be given as the message of Google's client, as the stock operator takes it."""
    from google.cloud.dataproc_v1 import Batch

    message = Batch(
        {
            "pyspark_batch": {"main_python_file_uri": MAIN, "args": ["a"]},
            "environment_config": {"execution_config": {"network_tags": ["spark"], "ttl": "1200s"}},
        }
    )
    batch = batch_of(google, begun(etl_run(google, batch=message, ttl=None)))
    assert batch["pysparkBatch"] == {"mainPythonFileUri": MAIN, "args": ["a"]}
    assert batch["environmentConfig"]["executionConfig"]["networkTags"] == ["spark"]
    assert batch["environmentConfig"]["executionConfig"]["ttl"] == "1200s"


def test_each_place_has_its_own(google: LocalGoogle) -> None:
    """What a candidate says differently, deep inside the batch too, holds there alone; the rest is merged."""
    google.emulator.set_world("l4-stockout")
    differently = {
        "placement": "a100-40 in europe-west4",
        "ttl": "1800s",
        "properties": {"spark.executor.memory": "20g"},
        "labels": {"place": "second"},
        "batch": {"environment_config": {"execution_config": {"service_account": "b@x.iam.gserviceaccount.com"}}},
    }
    run = etl_run(google, batch=PYSPARK, fallback=[differently], deferrable=False, labels={"team": "ml"})
    made: list[dict[str, Any]] = []

    def watch() -> None:
        def there() -> list[Any]:
            return SparkHook(google.session()).list_active("europe-west4")  # type: ignore[return-value]

        (found,) = wait_for("the second batch", there, seconds=60)
        made.append(batch_of(google, found.job.id, "europe-west4"))
        SparkHook(google.session()).cancel(found.job.id, "europe-west4")

    watcher = threading.Thread(target=watch)
    watcher.start()
    with pytest.raises(AcceleratorCancelledError):
        run.run()
    watcher.join()
    (batch,) = made
    execution = batch["environmentConfig"]["executionConfig"]
    assert execution["serviceAccount"] == "b@x.iam.gserviceaccount.com"
    assert execution["subnetworkUri"] == SUBNETWORK.format(region="europe-west4")
    assert (execution["ttl"], execution["networkTags"]) == ("1800s", ["spark"])
    assert batch["runtimeConfig"]["properties"]["spark:spark.executor.memory"] == "20g"
    assert (batch["labels"]["place"], batch["labels"]["team"]) == ("second", "ml")
    assert batch["pysparkBatch"]["args"] == ["europe-west4", "a100-40"]


@pytest.mark.parametrize("action", [{"reset": "after"}, {"status": 503}, {"truncate": True}])
def test_lost_answer_makes_one_batch(google: LocalGoogle, action: dict[str, Any]) -> None:
    """When the answer to a creation is lost, the task goes on with the one batch there is."""
    since = google.mark()
    google.fail(CREATE, **action)
    batch_id = begun(etl_run(google))
    assert [event["batch_id"] for event in google.events("dataproc.batch.created", since=since)] == [batch_id]


def test_nobody_can_tell(google: LocalGoogle, monkeypatch: pytest.MonkeyPatch) -> None:
    """A creation that is never answered fails the task, and its next try repeats the same request."""
    monkeypatch.setattr("airflow_accel_provider.hooks.spark._CREATE_SECONDS", 0)
    since = google.mark()
    google.fail(CREATE, reset="before")
    run = etl_run(google)
    with pytest.raises(AcceleratorLaunchError, match="the next try"):
        run.execute()
    begun(run)
    first, second = google.calls(CREATE, since=since)
    assert first["query"] == second["query"]
    assert len(google.events("dataproc.batch.created", since=since)) == 1


def test_batch_of_a_lost_answer_is_found(google: LocalGoogle, monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch whose creation was never answered is found by its id and label."""
    monkeypatch.setattr("airflow_accel_provider.hooks.spark._CREATE_SECONDS", 0)
    google.fail(CREATE, reset="after")
    begun(etl_run(google))


def _forget(run: TaskRun, **changes: Any) -> None:
    """Make the record that of a worker which died before it wrote down that there is a batch."""
    record = run.record
    (attempt,) = record["attempts"]
    intent = {key: attempt[key] for key in ("n", "candidate", "round", "placement", "job_name", "intent_at")}
    run.set("accel_job", {**record, **changes, "attempts": [{**intent, "outcome": "intent"}]})


def test_strangers_batch_is_left_alone(google: LocalGoogle) -> None:
    """A batch of the id that somebody else owns is refused, goes on, and nothing is started."""
    run = etl_run(google)
    batch_id = begun(run)
    _forget(run, owner="e" * 32)
    since = google.mark()
    with pytest.raises(AcceleratorConfigurationError, match=f"Batch {batch_id} in {REGION} belongs to somebody else"):
        run.execute()
    assert not google.events("dataproc.batch.created", since=since)
    assert state_of(google, batch_id) in {"PENDING", "RUNNING"}


def test_next_try_attaches_to_the_batch(google: LocalGoogle) -> None:
    """A try that begins with a running batch waits for that one, be its id known or lost, and creates no other."""
    since = google.mark()
    run = etl_run(google)
    batch_id = begun(run)
    assert begun(run) == batch_id
    _forget(run)
    assert begun(run) == batch_id
    assert len(google.events("dataproc.batch.created", since=since)) == 1


def test_cleared_task_ends_its_old_batch_first(google: LocalGoogle) -> None:
    """A cleared task cancels the batch of its earlier life, sees it end, and only then starts a new one."""
    run = etl_run(google)
    old = begun(run)
    run.max_tries += 1
    since = google.mark()
    new = begun(run)
    assert new != old
    (created,) = google.events("dataproc.batch.created", since=since)
    ended = [
        event["seq"]
        for event in google.events("dataproc.batch.state", since=since)
        if (event["batch_id"], event["state"]) == (old, "CANCELLED")
    ]
    assert ended
    assert ended[0] < created["seq"]


def test_killed_task_cancels_its_batch(google: LocalGoogle) -> None:
    """A task that is killed on a worker cancels its own batch."""
    made: list[Any] = []
    run = etl_run(google, deferrable=False, proof_grace=600)
    make = run.make
    run.make = lambda: made.append(make()) or made[-1]

    def kill() -> None:
        batch_id = wait_for("the batch", lambda: run.xcom.get("dataproc_batch_id"), seconds=30)
        wait_for("it to run", lambda: state_of(google, batch_id) == "RUNNING", seconds=30)
        # The task instance asks the operator for its name, too; only the one that runs has a batch.
        for operator in made:
            operator.on_kill()

    killer = threading.Thread(target=kill)
    killer.start()
    with pytest.raises(AcceleratorCancelledError, match="was killed"):
        run.execute()
    killer.join()
    wait_for("its end", lambda: state_of(google, run.xcom["dataproc_batch_id"]) == "CANCELLED", seconds=30)
    assert run.record["killed"]


def test_killed_while_deferred(google: LocalGoogle) -> None:
    """The trigger of a task that is killed cancels the task's batch."""
    run = etl_run(google)
    with pytest.raises(TaskDeferred) as deferred:
        run.execute()
    asyncio.run(deferred.value.trigger.on_kill())
    batch_id = run.xcom["dataproc_batch_id"]
    wait_for("its end", lambda: state_of(google, batch_id) == "CANCELLED", seconds=30)


def test_cancel_while_pending_is_seen_to_its_end(google: LocalGoogle) -> None:
    """A batch that waits in a queue for longer than start_timeout is cancelled, its end seen, and the next tried."""
    google.emulator.set_world("nowhere")
    run = etl_run(
        google,
        runtime_version="3.0",
        allocation_timeout=7200,
        start_timeout=2,
        deferrable=False,
        fallback=["l4 in europe-west4"],
    )
    since = google.mark()
    with pytest.raises(
        Exception, match=r"(?s)No place could run etl\. Tried 2.*no worker came up within start_timeout"
    ):
        run.run()
    first, second = google.events("dataproc.batch.created", since=since)
    ended = [e["seq"] for e in google.events("dataproc.batch.state", since=since) if e["state"] == "CANCELLED"]
    assert first["seq"] < ended[0] < second["seq"] < ended[1]


# Each row: what is said wrongly, and what the error says of it.
AT_PARSE: list[tuple[dict[str, Any], str]] = [
    ({"placement": "nvidia-l4 in us-central1"}, r"placement: nvidia-l4 is not Spark's name for it; it is called l4"),
    ({"placement": "l4 in us-central1-a"}, r"no knob for a zone.*'l4 in us-central1'"),
    ({"placement": "l4 on g2-standard-4 in us-central1"}, r"takes no machine type"),
    ({"placement": "h100 in us-central1"}, r"not an accelerator that Spark batches take"),
    ({"placement": "tpu-v6e-slice:1x1 in us-central1"}, r"BeamTpuPipelineOperator"),
    ({"placement": "l4:3 in us-central1"}, r"the nearest is"),
    ({"batch": None}, r"There is nothing to run"),
    ({"batch": {}}, r"There is nothing to run"),
    ({"batch": {"pyspark_batch": {}}}, r"There is no main_python_file_uri"),
    (
        {"batch": {"pyspark_batch": {"main_python_file_uri": MAIN}, "spark_batch": {"main_class": "x"}}},
        r"a batch runs one",
    ),
    ({"batch": {"pyspark_batch": {"main_python_file": MAIN}}}, r"Did you mean main_python_file_uri\?"),
    ({"runtime_version": "7.0"}, r"runtime_version: .*7\.0"),
    ({"runtime_version": 2.3}, r"the text '2\.3'"),
    ({"ttl": 60}, r"10 minutes to 14 days\. The nearest is '600s'"),
    ({"ttl": "4h"}, r"give '14400s'"),
    ({"executors": 1}, r"executors|instances"),
    ({"labels": {"Team": "ml"}}, r"'Team' is not a label's key.*'team' would do"),
    ({"labels": {"accel-x": "y"}}, r"tie a job to its task"),
    ({"batch_id": "Nightly ETL"}, r"'nightly-etl' would do"),
    ({"request_id": "a b"}, r"request_id: 'a b' is not a request's id"),
    ({"metadata": "x"}, r"metadata: 'x' does not do"),
    ({"proof_grace": 0}, r"proof_grace"),
    ({"provisioning": "queue"}, r"Runtime 2\.3 has no queue"),
    ({"runtime_version": "3.0", "provisioning": "queued"}, r"Did you mean 'queue'\?"),
    ({"runtime_version": "3.0", "allocation_timeout": 9000}, r"up to 7200 seconds"),
    ({"properties": {ACCELERATOR: "a100-40"}}, r"accelerator\.type"),
    ({"properties": {"spark.executor.cores": "7"}}, r"spark\.executor\.cores"),
    ({"properties": {"spark.dataproc.executor.compute.tier": "standard"}}, r"spark\.dataproc\.executor\.compute\.tier"),
    ({"fallback": [{"placement": L4_ELSEWHERE, "batch_id": "x"}]}, r"batch_id is the same for all candidates"),
    ({"fallback": ["l4 in mars-north1"]}, r"no region mars-north1"),
    ({"region": "europe-west4"}, r"is not region='europe-west4'"),
]


@pytest.mark.parametrize(("said", "words"), AT_PARSE, ids=[str(row[0])[:60] for row in AT_PARSE])
def test_wrong_is_told_at_parse(said: dict[str, Any], words: str) -> None:
    """What cannot work is one error when the DAG is parsed, with the nearest right thing."""
    with pytest.raises(AcceleratorConfigurationError, match=words):
        etl(**said)


def test_everything_wrong_is_told_at_once() -> None:
    """All that is wrong is in one error."""
    with pytest.raises(AcceleratorConfigurationError, match="4 errors") as wrong:
        etl(placement="l5 in us-central1", ttl=1, batch_id="X", metadata=3)
    assert all(word in str(wrong.value) for word in ("placement", "ttl", "batch_id", "metadata"))


def test_missing_program_starts_nothing(google: LocalGoogle) -> None:
    """A program that is not in its bucket is told before anything is started."""
    since = google.mark()
    run = etl_run(google, batch={"pyspark_batch": {"main_python_file_uri": f"gs://{BUCKET}/jobs/etll.py"}})
    with pytest.raises(AcceleratorConfigurationError, match=r"There is no gs://acme-ml-spark/jobs/etll\.py"):
        run.execute()
    assert not google.calls(CREATE, since=since)


def test_links_and_id_are_there_at_once(google: LocalGoogle) -> None:
    """The batch's id and page are pushed when it is created."""
    run = etl_run(google)
    batch_id = begun(run)
    assert batch_id in run.xcom["_link_AcceleratorJobLink"]
    assert batch_id in run.xcom["_link_AcceleratorLogsLink"]


def test_executors_that_never_get_a_gpu(google: LocalGoogle) -> None:
    """Executors without a GPU are found out, and the batch cancelled, while it would run for ever."""
    run = etl_run(google)
    with pytest.raises(AcceleratorMissingError, match="executors run without l4"):
        run.run()
    assert batch_of(google, run.record["attempts"][0]["job_id"])["state"] == "CANCELLED"
    assert len(run.triggers) == 1
    assert L4 in run.triggers[0]["record"]["attempts"][0]["placement"]
