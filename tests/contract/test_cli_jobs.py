"""``accel jobs`` and ``accel reap`` over a Google that lives and an Airflow that remembers."""

from __future__ import annotations

import io
import json
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest
from airflow_fake import PASSWORD, TOKEN, FakeAirflow, TaskInstance
from connections import google_session
from dataflow_jobs import L4, Client, environment, until
from emulators import Emulator, running

from airflow_accel_provider.cli import main
from airflow_accel_provider.core.identity import job_labels, job_name
from airflow_accel_provider.core.jobs import JobState
from airflow_accel_provider.core.placement import Placement
from airflow_accel_provider.core.record import Outcome, Record, begin
from airflow_accel_provider.core.spark.labels import spark_labels
from airflow_accel_provider.hooks.spark import SparkHook

if TYPE_CHECKING:
    from collections.abc import Iterator

    from google.auth.transport.requests import AuthorizedSession

NOW = datetime.now(UTC)
DAG_ID, TASK_ID = "Nightly scores", "score"
HERE = Placement.parse("nvidia-l4 on g2-standard-8 in us-central1")
CANCEL = "dataflow.projects.locations.jobs.update"
GET = "dataflow.projects.locations.jobs.get"
_owners = (f"{n:032x}" for n in count(10))
BATCH: dict[str, Any] = {
    "pysparkBatch": {"mainPythonFileUri": "gs://nowhere/main.py"},
    "runtimeConfig": {
        "version": "2.3",
        "properties": {
            "spark.dataproc.executor.compute.tier": "premium",
            "spark.dataproc.executor.disk.tier": "premium",
            "spark.dataproc.executor.resource.accelerator.type": "l4",
            "spark.executor.instances": "2",
        },
    },
}


def accel(*arguments: str) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main(arguments)
    return code, out.getvalue(), err.getvalue()


@pytest.fixture(scope="module")
def emulator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Emulator]:
    """Return an emulator of this module's own, in which nothing ends by itself while it is looked at."""
    with running(tmp_path_factory.mktemp("emulator"), time_scale=20.0) as started:
        yield started


@pytest.fixture
def google(emulator: Emulator, session: AuthorizedSession, monkeypatch: pytest.MonkeyPatch) -> Iterator[Client]:
    """Return a client of a Google in which nothing runs, to which the default connection leads."""
    extra = {
        "keyfile_dict": emulator.keys["airflow"].read_text(),
        "project": emulator.project,
        "endpoint_url": emulator.url,
    }
    value = json.dumps({"conn_type": "google_cloud_platform", "extra": extra})
    monkeypatch.setenv("AIRFLOW_CONN_GOOGLE_CLOUD_DEFAULT", value)
    client = Client(emulator=emulator, session=session)
    yield client
    emulator.admin("DELETE", "faults")
    client.clear()
    end_batches(SparkHook(google_session(emulator)))


def end_batches(hook: SparkHook) -> None:
    for each in hook.list_active("us-central1"):
        assert each.job
        hook.cancel(each.job.id, "us-central1")
    until(lambda: hook.list_active("us-central1"), lambda active: not active)


@pytest.fixture
def airflow(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeAirflow]:
    """Return an Airflow that the commands find by themselves."""
    with FakeAirflow() as fake:
        monkeypatch.setenv("AIRFLOW__API__BASE_URL", fake.url)
        monkeypatch.setenv("AIRFLOW_API_TOKEN", TOKEN)
        yield fake


def labels_of(record: Record, run_id: str, **said: Any) -> dict[str, str]:
    ids = {"dag_id": DAG_ID, "task_id": TASK_ID, "run_id": run_id}
    return job_labels(owner=record.owner, life=record.life, attempt=1, **{**ids, **said})


def fresh() -> Record:
    return begin(owner=next(_owners), max_tries=0, now=NOW, project="acme", prefix="score")


def submit(google: Client, record: Record, run_id: str, **said: Any) -> tuple[dict[str, Any], Record]:
    """Make a job as a task's first attempt; return it, and the record that knows it."""
    name = job_name("score", owner=record.owner, life=record.life, attempt=1)
    env = environment(machine="g2-standard-8", option=L4)
    job = google.create(env, name=name, labels=labels_of(record, run_id, **said))
    intended = record.intend(0, HERE, NOW)
    attempt = replace(intended.attempts[-1], outcome=Outcome.SUBMITTED, job_id=job["id"])
    return job, intended.with_attempt(attempt)


def keep(airflow: FakeAirflow, record: Record, run_id: str, **said: Any) -> TaskInstance:
    """Have a task instance that keeps the record."""
    at = (NOW - timedelta(minutes=5)).isoformat()
    said = {"run_after": at, "stored": {"accel_job": record.to_json()}, **said}
    return airflow.add(said.pop("dag_id", DAG_ID), run_id, TASK_ID, **said)


def rows(out: str) -> dict[str, dict[str, Any]]:
    return {row["job_id"]: row for row in map(json.loads, out.splitlines())}


def is_live(google: Client, job: dict[str, Any]) -> bool:
    return google.get(job)["currentState"] in {"JOB_STATE_PENDING", "JOB_STATE_RUNNING"}


def is_cancelled(google: Client, job: dict[str, Any]) -> bool:
    return google.wait(job, "CANCELLED", "FAILED", "DONE")["currentState"] == "JOB_STATE_CANCELLED"


# --- accel jobs


def test_jobs_of_all_regions_and_services(google: Client, emulator: Emulator) -> None:
    """Jobs and batches are listed wherever they run, with the task they belong to; strangers' are not."""
    record = fresh()
    job, _ = submit(google, record, "manual__1", map_index=4)
    google.create(environment(), name="nightly-scores")
    google.create(environment(), name="nightly-scores-0123456789ab", labels={"accel-owner": "x"})
    hook = SparkHook(google_session(emulator))
    own = spark_labels(labels_of(fresh(), "manual__2"))
    hook.create("etl-0123456789ab", "us-central1", {**BATCH, "labels": own}, request_id="r-jobs")
    code, out, err = accel("jobs", "--json")
    assert (code, err) == (0, "")
    found = rows(out)
    assert set(found) == {job["id"], "etl-0123456789ab"}
    row = found[job["id"]]
    assert (row["service"], row["region"], row["owner"]) == ("dataflow", "us-central1", record.owner)
    assert (row["task"], row["run"], row["map_index"]) == ("score", "manual__1", 4)
    assert (row["life"], row["attempt"], row["job_name"]) == (1, 1, job["name"])
    assert row["age_seconds"] >= 0
    assert job["id"] in row["url"]
    assert found["etl-0123456789ab"]["attempt"] == 1
    code, out, _ = accel("jobs", "--service", "dataproc", "--json")
    assert set(rows(out)) == {"etl-0123456789ab"}


def test_a_person_reads_a_table(google: Client) -> None:
    """A person gets a table; jobs that have ended are in it when asked for, and none are told in a sentence."""
    code, out, _ = accel("jobs")
    assert (code, out) == (0, f"In project {google.emulator.project} there is no such job.\n")
    job, record = submit(google, fresh(), "manual__table", map_index=2)
    code, out, _ = accel("jobs", "--region", "us-central1")
    head, line = out.splitlines()[1:]
    assert head.split() == ["STATE", "AGE", "REGION", "JOB", "TASK", "RUN", "TRY", "OWNER"]
    for word in (job["id"], "us-central1", "score [2]", "manual__table", "1.1", record.owner):
        assert word in line
    assert job["id"] not in accel("jobs", "--region", "europe-west4")[1]
    google.cancel(job)
    google.wait(job, "CANCELLED")
    assert job["id"] not in accel("jobs")[1]
    ended = rows(accel("jobs", "--all", "--json")[1])
    assert ended[job["id"]]["state"] == "cancelled"


def test_only_jobs_with_our_kind_of_name_are_asked_for(google: Client, emulator: Emulator) -> None:
    """Listing costs one call for all regions, and one more for each job whose name has the form of ours."""
    for number in range(3):
        google.create(environment(), name=f"somebody-elses-{number}")
    job, _ = submit(google, fresh(), "manual__calls")
    since = emulator.mark()
    accel("jobs", "--service", "dataflow")
    assert [call["path"]["jobId"] for call in emulator.calls(GET, since=since)] == [job["id"]]
    assert len(emulator.calls("dataflow.projects.jobs.aggregated", since=since)) == 1


def test_what_cannot_be_read_is_told(google: Client, emulator: Emulator) -> None:
    """A part that cannot be read is told on stderr with exit code 1, the rest is listed; no service is no problem."""
    job, _ = submit(google, fresh(), "manual__unread")
    emulator.fail("dataproc.projects.locations.batches.list", times=1, status=403, message="Not you.")
    code, out, err = accel("jobs", "--json")
    assert (code, set(rows(out))) == (1, {job["id"]})
    assert err.count("Not read: Spark batches of ") == 1
    assert "Not you." in err


def test_an_unusable_connection_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection that is not there is told by name."""
    code, out, err = accel("jobs", "--conn-id", "nobody")
    assert (code, out) == (1, "")
    assert "export AIRFLOW_CONN_NOBODY" in err


# --- accel reap


def test_a_dry_run_cancels_nothing(google: Client, airflow: FakeAirflow, emulator: Emulator) -> None:
    """Each job is told with whose it is and why; without --yes nothing is cancelled, and the exit code is 1."""
    waiting, record = submit(google, fresh(), "manual__waiting")
    keep(airflow, record, "manual__waiting", state="deferred")
    orphan, record = submit(google, fresh(), "manual__over")
    keep(airflow, record, "manual__over", state="failed")
    since = emulator.mark()
    code, out, _ = accel("reap")
    assert code == 1
    told = {line.split()[3 + (line.split()[2] in {"s", "min"})]: line for line in out.splitlines()[2:4]}
    assert told[waiting["id"]].startswith("owned")
    assert told[waiting["id"]].endswith("its task is deferred")
    assert told[orphan["id"]].startswith("orphan")
    assert "its task is over (failed)" in told[orphan["id"]]
    assert "Nobody owns 1 of 2. Nothing was cancelled; --yes does it." in out
    assert emulator.calls(CANCEL, since=since) == []


def test_yes_cancels_what_is_nobodys(google: Client, airflow: FakeAirflow, emulator: Emulator) -> None:
    """With --yes jobs of tasks that are over, of earlier lives, and forgotten batches are cancelled, and no other."""
    kept, record = submit(google, fresh(), "manual__kept")
    keep(airflow, record, "manual__kept", state="up_for_retry")
    over, record = submit(google, fresh(), "manual__over")
    keep(airflow, record, "manual__over", state="success", map_index=-1)
    old, record = submit(google, fresh(), "manual__old", map_index=1)
    keep(airflow, replace(record, life=2, attempts=()), "manual__old", state="running", map_index=1)
    left, record = submit(google, fresh(), "manual__left")
    left_running = replace(record.attempts[-1], outcome=Outcome.RUNNING)
    keep(airflow, record.with_attempt(left_running), "manual__left", state="success")
    batch = fresh().intend(0, Placement.parse("l4 in us-central1"), NOW)
    batch = batch.with_attempt(replace(batch.attempts[-1], outcome=Outcome.SUBMITTED, job_id="etl-reaped00001"))
    hook = SparkHook(google_session(emulator))
    own = spark_labels(labels_of(batch, "scheduled__2026-03-02T00:00:00+00:00"))
    hook.create("etl-reaped00001", "us-central1", {**BATCH, "labels": own}, request_id="r-reap")
    keep(airflow, batch, "scheduled__2026-03-02T00:00:00+00:00", state="failed")
    code, out, _ = accel("reap", "--yes", "--json")
    found = rows(out)
    assert {id_ for id_, row in found.items() if row["cancelled"]} == {over["id"], old["id"], "etl-reaped00001"}
    assert (found[kept["id"]]["verdict"], found[left["id"]]["verdict"]) == ("owned", "owned")
    assert code == 0
    assert is_live(google, kept)
    assert is_live(google, left)
    assert is_cancelled(google, over)
    assert is_cancelled(google, old)
    ended = hook.get("etl-reaped00001", "us-central1").job
    assert ended
    assert ended.state in {JobState.CANCELLING, JobState.CANCELLED}
    assert accel("reap", "--yes")[0] == 0


@pytest.mark.parametrize("absent", ["dag", "run", "task", "record", "owner"])
def test_strangers_are_left_alone(google: Client, airflow: FakeAirflow, absent: str) -> None:
    """A job that no task here knows is kept, as it may be another Airflow's, unless a person gives up its owner."""
    job, record = submit(google, fresh(), "manual__gone")
    other = replace(record, owner="e" * 32)
    if absent != "dag":
        airflow.dags.add(DAG_ID)
    if absent in {"task", "record", "owner"}:
        keep(airflow, other, "manual__gone", map_index=7 if absent == "task" else -1, state="failed")
    if absent == "record":
        airflow.tasks[0].stored.clear()
    code, out, _ = accel("reap", "--yes")
    assert code == 0
    assert f"accel reap --owner {record.owner}" in out
    assert is_live(google, job)
    code, out, _ = accel("reap", "--yes", "--json", "--owner", "e" * 32)
    assert rows(out)[job["id"]]["verdict"] == "unclaimed"
    code, out, _ = accel("reap", "--yes", "--json", "--owner", record.owner)
    assert (code, rows(out)[job["id"]]["cancelled"]) == (0, True)
    assert is_cancelled(google, job)


@pytest.mark.parametrize("trouble", ["403", "500", "hidden", "token", "version", "away"])
def test_what_airflow_does_not_tell_is_left_alone(
    google: Client, airflow: FakeAirflow, monkeypatch: pytest.MonkeyPatch, trouble: str
) -> None:
    """When Airflow refuses, fails, hides the DAG, is away or keeps a newer record, nothing is cancelled at all."""
    job, record = submit(google, fresh(), "manual__dark")
    task = keep(airflow, record, "manual__dark", state="failed")
    if trouble in {"403", "500"}:
        airflow.broken = int(trouble)
    elif trouble == "hidden":
        airflow.hidden = {DAG_ID, job["labels"]["accel-dag"]}
    elif trouble == "token":
        monkeypatch.setenv("AIRFLOW_API_TOKEN", "another")
    elif trouble == "version":
        task.stored["accel_job"]["v"] = 99
    else:
        monkeypatch.setenv("AIRFLOW__API__BASE_URL", "http://localhost:9")
    code, out, _ = accel("reap", "--yes", "--json", "--owner", record.owner)
    row = rows(out)[job["id"]]
    assert (code, row["verdict"], row["cancelled"]) == (1, "unknown", False)
    said = {
        "403": "Airflow answered 403",
        "500": "Airflow answered 500",
        "hidden": "Airflow answered 403",
        "token": "Airflow answered 401",
        "version": "version 99",
        "away": "Airflow did not answer (ConnectionError)",
    }
    assert said[trouble] in row["reason"]
    assert is_live(google, job)


def test_a_password_does(google: Client, airflow: FakeAirflow, monkeypatch: pytest.MonkeyPatch) -> None:
    """A name and a password are changed for a token; a wrong one is told and cancels nothing."""
    job, record = submit(google, fresh(), "manual__password")
    keep(airflow, record, "manual__password", state="deferred")
    monkeypatch.delenv("AIRFLOW_API_TOKEN")
    monkeypatch.setenv("AIRFLOW_API_USER", "admin")
    monkeypatch.setenv("AIRFLOW_API_PASSWORD", PASSWORD)
    code, out, err = accel("reap", "--json")
    assert (code, rows(out)[job["id"]]["verdict"]) == (0, "owned")
    monkeypatch.setenv("AIRFLOW_API_PASSWORD", "wrong-password")
    code, out, err = accel("reap", "--json")
    assert (code, rows(out)[job["id"]]["verdict"]) == (1, "unknown")
    assert "wrong-password" not in out + err


def test_a_run_is_found_among_many(google: Client, airflow: FakeAirflow) -> None:
    """A run is found however many newer ones there are, page after page."""
    job, record = submit(google, fresh(), "manual__old_run")
    keep(airflow, record, "manual__old_run", state="failed", run_after="2026-01-01T00:00:00+00:00")
    airflow.runs += [(DAG_ID, f"manual__{n}", f"2026-02-01T00:00:{n:06}+00:00") for n in range(250)]
    airflow.dags |= {f"dag-{n}" for n in range(150)}
    assert rows(accel("reap", "--json")[1])[job["id"]]["verdict"] == "orphan"


def test_a_refused_cancel_is_told(google: Client, airflow: FakeAirflow, emulator: Emulator) -> None:
    """A job that Google does not let us cancel is told with its reason and exit code 1."""
    job, record = submit(google, fresh(), "manual__refused")
    keep(airflow, record, "manual__refused", state="failed")
    emulator.fail(CANCEL, times=1, status=403, message="Not you.")
    code, out, _ = accel("reap", "--yes", "--json")
    row = rows(out)[job["id"]]
    assert (code, row["verdict"], row["cancelled"]) == (1, "orphan", False)
    assert "Not you." in row["error"]


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        ({"AIRFLOW__API__BASE_URL": ""}, "--airflow-url must be an address"),
        ({"AIRFLOW__API__BASE_URL": "airflow.example.com"}, "--airflow-url must be an address"),
        ({"AIRFLOW_API_TOKEN": ""}, "export AIRFLOW_API_TOKEN, or AIRFLOW_API_USER and AIRFLOW_API_PASSWORD"),
    ],
)
def test_an_airflow_must_be_named(
    airflow: FakeAirflow, monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], said: str
) -> None:
    """Without Airflow's address, or a way in, the usage is told and nothing is asked."""
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    code, out, err = accel("reap")
    assert (code, out) == (2, "")
    assert said in err
    assert airflow.seen == []
