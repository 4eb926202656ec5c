"""Launching: whose job it is, what the launcher says, and that it is neither lost nor waited for."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import psutil
import pytest
from airflow.sdk.exceptions import TaskDeferred

from airflow_accel_provider.core.identity import label_value
from airflow_accel_provider.exceptions import (
    AcceleratorConfigurationError,
    AcceleratorError,
    AcceleratorMissingError,
    AcceleratorPermissionError,
    AcceleratorPipelineError,
)
from tests.integration.local_google import CREATE, PROJECT
from tests.integration.pipelines import BUCKET, PIPELINES, run_of

if TYPE_CHECKING:
    from pathlib import Path

    from tests.integration.local_google import LocalGoogle

FALLBACK = ["nvidia-tesla-t4 on n1-standard-8 in us-central1"]


def account(name: str) -> str:
    return f"{name}@{PROJECT}.iam.gserviceaccount.com"


@pytest.mark.parametrize("identity", ["airflow", "pipeline"])
def test_job_is_created_by_the_connection(google: LocalGoogle, monkeypatch: pytest.MonkeyPatch, identity: str) -> None:
    """The job is created by the connection's account, never by the credentials that the worker itself has."""
    other = {"airflow": "pipeline", "pipeline": "airflow"}[identity]
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", google.keys[other])
    monkeypatch.setenv("AIRFLOW_CONN_GOOGLE_CLOUD_DEFAULT", google.connection(identity))
    since = google.mark()
    run_of(google).run()
    assert [call["principal"] for call in google.calls(CREATE, since=since)] == [account(identity)]


@pytest.mark.parametrize("chain", [account("pipeline"), [account("pipeline")]], ids=["text", "list"])
def test_job_is_created_by_the_impersonated_account(google: LocalGoogle, chain: str | list[str]) -> None:
    """With impersonation_chain the job is created by the account at its end."""
    since = google.mark()
    run_of(google, impersonation_chain=chain).run()
    assert [call["principal"] for call in google.calls(CREATE, since=since)] == [account("pipeline")]


def test_pipeline_that_raises_before_submission(google: LocalGoogle) -> None:
    """A pipeline that fails before there is a job fails the task with its last lines, and no other place is tried."""
    since = google.mark()
    run = run_of(google, py_file=str(PIPELINES / "raises.py"), fallback=FALLBACK)
    with pytest.raises(AcceleratorPipelineError) as failed:
        run.run()
    said = str(failed.value)
    head = "score failed on nvidia-l4 on g2-standard-8 in us-central1, user code: the launcher ended with exit code 1 "
    assert said.startswith(f"{head}before there was a job.\n\n")
    assert "reading the model" in said
    assert said.endswith("KeyError: \"model 'digits-7' is not in the registry\"")
    assert len(run.record["attempts"]) == 1
    assert google.calls(CREATE, since=since) == []


def test_pipeline_that_ignores_its_arguments(google: LocalGoogle) -> None:
    """A pipeline that ends well without making a job fails the task with a hint at why."""
    run = run_of(google, py_file=str(PIPELINES / "ignores.py"), fallback=FALLBACK)
    with pytest.raises(AcceleratorConfigurationError) as failed:
        run.run()
    assert "does the pipeline pass its arguments on to PipelineOptions?\n" in str(failed.value)
    assert str(failed.value).endswith("0 rows to score")
    assert len(run.record["attempts"]) == 1


def test_job_whose_creation_was_not_answered_is_found(google: LocalGoogle) -> None:
    """A job that was created, though the launcher never heard of it, is found and waited for, and is the only one."""
    since = google.mark()
    google.fail(CREATE, reset="after")
    value = run_of(google).run()
    assert value["state"] == "done"
    assert [job["job_id"] for job in google.created(since=since)] == [value["job_id"]]


@pytest.mark.parametrize(
    ("status", "error", "said"),
    [
        (403, AcceleratorPermissionError, ", permission: the service refused the caller.\n"),
        (400, AcceleratorConfigurationError, ", configuration: the service refused the job.\n"),
    ],
)
def test_refused_creation_is_told(google: LocalGoogle, status: int, error: type[AcceleratorError], said: str) -> None:
    """When the service refuses to create the job the failure says why, and no other place is tried."""
    google.fail(CREATE, times=20, status=status, message="It is not to be.")
    since = google.mark()
    run = run_of(google, fallback=FALLBACK)
    with pytest.raises(error) as failed:
        run.run()
    assert said in str(failed.value)
    assert str(failed.value).endswith("It is not to be.")
    assert len(run.record["attempts"]) == 1
    assert google.created(since=since) == []


def test_unreadable_workers_are_no_proof_and_no_obstacle(google: LocalGoogle) -> None:
    """Where worker VMs may not be read the job runs to its end, and its proof says that nobody could look."""
    google.fail("compute.instances.aggregatedList", times=10_000, status=403, message="Missing compute.instances.list")
    assert run_of(google).run()["proof"]["status"] == "unreadable"
    with pytest.raises(AcceleratorMissingError, match="unreadable"):
        run_of(google, on_unproven="fail").run()


def test_launcher_that_waits_is_ended(google: LocalGoogle) -> None:
    """A launcher that would wait for the job's end is ended once the job is found, and the job goes on."""
    run = run_of(google, pipeline_options={"wait": True, "seconds": 10})
    with pytest.raises(TaskDeferred):
        run.execute()
    mine = [child.cmdline() for child in psutil.Process().children(recursive=True) if child.is_running()]
    assert not [words for words in mine if any(run.record["attempts"][0]["job_name"] in word for word in words)]
    assert google.states(run.xcom["dataflow_job_id"])[-1] != "DONE"
    assert run.run()["state"] == "done"
    assert google.states(run.xcom["dataflow_job_id"])[-1] == "DONE"


HOSTILE_RUNS = [
    {"dag_id": "Team.Vision__daily-SCORES", "run_id": "manual__2026-03-02T00:00:00.123456+00:00_Ü b/c"},
    {"dag_id": "ünï.日本", "run_id": "scheduled 🙂"},
    {"dag_id": "d" * 250, "run_id": "r" * 250, "map_index": 12},
    {"dag_id": "7", "run_id": "-", "map_index": 0},
]


@pytest.mark.parametrize("run", HOSTILE_RUNS, ids=["mixed", "unicode", "long", "short"])
def test_any_ids_make_valid_labels(google: LocalGoogle, run: dict[str, object]) -> None:
    """Whatever ids Airflow allows, the job is accepted, and carries our labels besides the user's."""
    task_run = run_of(google, run=run, labels={"team": "vision", "cost_centre": "7"}, deferrable=True)
    with pytest.raises(TaskDeferred):
        task_run.execute()
    job = google.job(task_run.xcom["dataflow_job_id"], "us-central1")
    labels = job["labels"]
    assert (labels["team"], labels["cost_centre"]) == ("vision", "7")
    assert labels["accel-dag"] == label_value(task_run.dag_id)
    assert labels["accel-run"] == label_value(task_run.run_id)
    assert labels["accel-owner"] == task_run.record["owner"]
    assert labels.get("accel-map-index") == (str(task_run.map_index) if task_run.map_index >= 0 else None)
    google.cancel(job)


def test_candidates_differ(google: LocalGoogle, tmp_path: Path) -> None:
    """What a candidate says itself, and its region in any option, is in its own job and in no other."""
    google.emulator.set_world("l4-stockout")
    since = google.mark()
    bucket = google.bucket(f"{BUCKET}-europe-west4")
    google.bucket(f"{BUCKET}-us-central1")
    t4 = {
        "placement": "nvidia-tesla-t4 on n1-standard-8 in europe-west4",
        "pipeline_options": {"text": "float16 in {region} on {accelerator}"},
        "num_workers": 2,
    }
    options = {"temp_location": f"gs://{BUCKET}-{{region}}/work", "output": f"gs://{BUCKET}-{{region}}/out"}
    run = run_of(google, fallback=[t4], pipeline_options={**options, "text": "float32 in {region}"})
    assert run.run()["region"] == "europe-west4"
    first, second = (google.job(job["job_id"], job["location"]) for job in google.created(since=since))
    said = [job["environment"]["sdkPipelineOptions"]["options"] for job in (first, second)]
    assert [each["text"] for each in said] == ["float32 in us-central1", "float16 in europe-west4 on nvidia-tesla-t4"]
    assert [each["output"] for each in said] == [f"gs://{BUCKET}-us-central1/out", f"gs://{BUCKET}-europe-west4/out"]
    assert [job["environment"]["workerPools"][0]["numWorkers"] for job in (first, second)] == [1, 2]
    assert json.loads(bucket.blob("out").download_as_text())["text"] == said[1]["text"]


SECRET = "hunter2-hunter2-hunter2"


def secrets(google: LocalGoogle) -> list[str]:
    """Return the planted secret, and the connection's key in the forms it may take."""
    key = google.key("airflow")["private_key"]
    return [SECRET, key, key.splitlines()[1], json.dumps(key)[1:-1]]


@pytest.mark.parametrize("deferrable", [True, False], ids=["deferrable", "synchronous"])
def test_secrets_stay_secret(
    google: LocalGoogle, tmp_path: Path, capsys: pytest.CaptureFixture[str], *, deferrable: bool
) -> None:
    """A secret among the options and the connection's key are in no log, trigger, XCom, record or ledger."""
    since = google.mark()
    note = tmp_path / "note.json"
    options = {"model_registry_token": SECRET, "note": str(note)}
    run = run_of(google, deferrable=deferrable, pipeline_options=options)
    value = run.run()
    output = capsys.readouterr()
    kept = {
        "log": output.out + output.err,
        "triggers": json.dumps(run.triggers),
        "xcom": json.dumps([value, run.xcom]),
        "record": json.dumps(run.stored),
        "ledger": json.dumps(google.emulator.ledger(since=since)),
    }
    assert f"--model_registry_token={SECRET}" in json.loads(note.read_text())["argv"]
    assert "model_registry_token" in kept["log"], "Beam complains of the option, so the log is put to the test."
    assert [(where, secret[:9]) for where, text in kept.items() for secret in secrets(google) if secret in text] == []


def test_secrets_are_not_in_a_failure(google: LocalGoogle, capsys: pytest.CaptureFixture[str]) -> None:
    """A launcher that tells all its arguments as it fails does not bring a secret into the failure's text."""
    fallback = [{"placement": FALLBACK[0], "pipeline_options": {"db_password": f"other-{SECRET}"}}]
    options = {"model_registry_token": SECRET}
    run = run_of(google, py_file=str(PIPELINES / "raises.py"), pipeline_options=options, fallback=fallback)
    with pytest.raises(AcceleratorPipelineError, match=r"--model_registry_token=\*\*\*") as failed:
        run.run()
    told = str(failed.value) + json.dumps(run.stored) + capsys.readouterr().out
    assert [secret[:9] for secret in secrets(google) if secret in told] == []
