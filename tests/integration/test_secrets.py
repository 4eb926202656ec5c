"""Secrets in every place where a user can put one, looked for in every place that outlives the task."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from airflow_accel_provider.core.notes import NOTE_KEY
from airflow_accel_provider.exceptions import AcceleratorError, AcceleratorMissingError
from tests.integration.batches import CREATE, L4_ELSEWHERE, MAIN, etl_run
from tests.integration.local_google import PROJECT
from tests.integration.pipelines import BUCKET, run_of
from tests.integration.test_operator_templates import OPTIONAL, OUTPUT, SPEC, template_run

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.integration.local_google import LocalGoogle
    from tests.integration.task_run import TaskRun

L4, T4 = "nvidia-l4 on g2-standard-8 in us-central1", "nvidia-tesla-t4 on n1-standard-8 in us-central1"
MODES = pytest.mark.parametrize("deferrable", [True, False], ids=["deferrable", "synchronous"])
# By where each is planted; no two are alike, so that a finding names its place.
PLANTED = {
    "pipeline_options": "hunter2-among-the-options",
    "default_pipeline_options": "hunter2-among-the-defaults",
    "fallback": "hunter2-of-another-place",
    "parameters": "hunter2-of-the-template",
    "environment": "hunter2-of-the-worker",
    "properties": "hunter2-of-the-executors",
    "batch": "hunter2-of-the-batch",
    "metadata": "hunter2-of-the-headers",
}


@pytest.fixture
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder in which every temporary file of the task, and of the processes it starts, is made."""
    folder = tmp_path / "scratch"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    monkeypatch.setenv("MODEL_REGISTRY_TOKEN", PLANTED["environment"])
    return folder


def pipeline(google: LocalGoogle, **said: Any) -> TaskRun:
    """Return a task of a pipeline's file, with a secret wherever one can be among its options."""
    return run_of(
        google,
        pipeline_options={"model_registry_token": PLANTED["pipeline_options"]},
        default_pipeline_options={"db_password": PLANTED["default_pipeline_options"]},
        fallback=[{"placement": T4, "pipeline_options": {"api_key": PLANTED["fallback"]}}],
        **said,
    )


def template(google: LocalGoogle, **said: Any) -> TaskRun:
    """Return a task of a Flex Template, with a secret wherever one can be among its parameters."""
    names = [{"name": name, "label": name, "helpText": name, "isOptional": True} for name in ("token", "api_key")]
    spec = {**SPEC, "metadata": {"name": "Echo", "parameters": [OUTPUT, *OPTIONAL, *names]}}
    output = {"output": f"gs://{BUCKET}/echoed"}
    other = {"parameters": {**output, "api_key": PLANTED["fallback"]}}
    given = {"parameters": {**output, "token": PLANTED["parameters"]}, "fallback": [{"placement": T4, **other}]}
    return template_run(google, spec=spec, **given, **said)


def batch(google: LocalGoogle, **said: Any) -> TaskRun:
    """Return a task of a Spark batch, with a secret wherever one can be among what is given to it."""

    def properties(secret: str) -> dict[str, str]:
        return {"spark.dynamicAllocation.enabled": "false", "spark.executorEnv.DB_PASSWORD": secret}

    return etl_run(
        google,
        batch={
            "pyspark_batch": {"main_python_file_uri": MAIN},
            "runtime_config": {"properties": {"spark.hadoop.fs.s3a.secret.key": PLANTED["batch"]}},
        },
        properties=properties(PLANTED["properties"]),
        metadata=[("x-api-token", PLANTED["metadata"])],
        fallback=[{"placement": L4_ELSEWHERE, "properties": properties(PLANTED["fallback"])}],
        fallback_on=["accelerator_missing"],
        **said,
    )


WAYS = pytest.mark.parametrize("way", [pipeline, template], ids=["file", "flex"])


@MODES
@WAYS
def test_secrets_outlive_nothing(
    google: LocalGoogle, scratch: Path, capsys: pytest.CaptureFixture[str], way: Any, *, deferrable: bool
) -> None:
    """No planted secret and no key is in a log, trigger, event, XCom, record, label, ledger or file that is left."""
    google.emulator.set_world("stockout-then-quota-then-stock")
    since = google.mark()
    run = way(google, deferrable=deferrable, placement=L4)
    value = run.run()
    output = capsys.readouterr()
    jobs = google.created(since=since)
    assert len(jobs) == 2, "Both places were tried, the second with options of its own."
    labels = [google.job(job["job_id"], job["location"])["labels"] for job in jobs]
    kept = kept_of(google, run, scratch, since=since, log=output.out + output.err, value=[value, labels])
    assert leaked(google, kept) == set()
    assert bool(run.triggers) is deferrable
    assert (kept["note"] != "null") is deferrable, "The trigger wrote down why it left the first place."


@MODES
def test_secrets_of_a_batch_outlive_nothing(
    google: LocalGoogle, scratch: Path, capsys: pytest.CaptureFixture[str], *, deferrable: bool
) -> None:
    """No secret among properties, batch, headers or another place's own properties is anywhere but in the batch."""
    google.emulator.set_world("gpu-missing")
    since = google.mark()
    run = batch(google, deferrable=deferrable)
    with pytest.raises(AcceleratorMissingError) as failed:
        run.run()
    output = capsys.readouterr()
    made = google.events("dataproc.batch.created", since=since)
    assert len(made) == 2, "Both places were tried, the second with properties of its own."
    told = [str(failed.value), [each["labels"] for each in made]]
    kept = kept_of(google, run, scratch, since=since, log=output.out + output.err, value=told)
    assert leaked(google, kept) == set()
    assert bool(run.triggers) is deferrable
    assert (kept["note"] != "null") is deferrable
    paths = [f"projects/{PROJECT}/locations/{each['location']}/batches/{each['batch_id']}" for each in made]
    sent = json.dumps([google.session().request("dataproc", "GET", path) for path in paths])
    assert {name for name, secret in PLANTED.items() if secret in sent} == {"properties", "batch", "fallback"}


def kept_of(google: LocalGoogle, run: TaskRun, scratch: Path, *, since: int, log: str, value: Any) -> Mapping[str, str]:
    """Return all that outlives a task, by where it is; ``value`` is what it returned or raised, with labels."""
    return {
        "log": log,
        "triggers": json.dumps(run.triggers),
        "events": json.dumps(run.events),
        "xcom": json.dumps([value, run.xcom]),
        "state store": json.dumps(run.stored),
        "note": json.dumps(run.xcom.get(NOTE_KEY)),
        "ledger": json.dumps(google.emulator.ledger(since=since)),
        **{str(path): path.read_text("latin-1") for path in scratch.rglob("*") if path.is_file()},
    }


def leaked(google: LocalGoogle, kept: Mapping[str, str]) -> set[tuple[str, str]]:
    """Return where which secret was found."""
    return {(where, name) for where, text in kept.items() for name, secret in secrets(google) if secret in text}


@pytest.mark.parametrize("status", [400, 409])
@MODES
def test_a_secret_that_a_refusal_repeats_goes_no_further(
    google: LocalGoogle, capsys: pytest.CaptureFixture[str], *, deferrable: bool, status: int
) -> None:
    """What a service says of a batch that it refuses is kept without the secrets that it repeats."""
    secret = PLANTED["parameters"]
    google.emulator.set_world("plenty")
    google.fail(CREATE, status=status, message=f"Property spark.executorEnv.DB_PASSWORD has the value '{secret}'.")
    properties = {"spark.dynamicAllocation.enabled": "false", "spark.executorEnv.DB_PASSWORD": secret}
    run = etl_run(google, deferrable=deferrable, properties=properties)
    with pytest.raises(AcceleratorError) as refused:
        run.run()
    output = capsys.readouterr()
    assert "DB_PASSWORD has the value" in str(refused.value)
    for kept in (output.out, output.err, str(refused.value), json.dumps(run.stored), json.dumps(run.xcom)):
        assert secret not in kept


@MODES
def test_credentials_are_gone_when_the_launch_is_over(google: LocalGoogle, scratch: Path, *, deferrable: bool) -> None:
    """Nothing of a launcher's credentials is left behind, whether it submitted a job or failed."""
    pipeline(google, deferrable=deferrable).run()
    raises = str(Path(__file__).parent / "dags" / "pipelines" / "raises.py")
    with pytest.raises(Exception, match="digits-7"):
        pipeline(google, deferrable=deferrable, py_file=raises).run()
    assert [path.name for path in scratch.iterdir() if "credentials" in path.name] == []


def test_a_credentials_file_is_its_owners_alone(google: LocalGoogle, scratch: Path, tmp_path: Path) -> None:
    """What a launcher is lent only the worker's own user can read; it holds no key and no planted secret."""
    note = tmp_path / "note"
    spy = tmp_path / "spy.py"
    spy.write_text(SPY, encoding="utf-8")
    with pytest.raises(Exception, match="exit code 3"):
        run_of(google, py_file=str(spy), pipeline_options={"note": str(note)}).run()
    told = json.loads(note.read_text(encoding="utf-8"))
    assert {mode for _, mode in told["modes"]} == {0o600}
    assert told["folder_mode"] == 0o700
    assert {name for name, _ in told["modes"]} == {"credentials.json", "subject"}
    assert not Path(told["path"]).exists()
    assert [name for name, secret in secrets(google) if secret in told["content"]] == []
    assert os.environ["GOOGLE_APPLICATION_CREDENTIALS"] != told["path"]


SPY = """
import json, os, sys
from pathlib import Path

path = Path(os.environ["GOOGLE_APPLICATION_CREDENTIALS"])
files = list(path.parent.iterdir())
(note,) = [each.partition("=")[2] for each in sys.argv if each.startswith("--note=")]
told = {
    "path": str(path),
    "modes": [(each.name, each.stat().st_mode & 0o777) for each in files],
    "folder_mode": path.parent.stat().st_mode & 0o777,
    "content": "".join(each.read_text() for each in files),
}
Path(note).write_text(json.dumps(told))
sys.exit(3)
"""


def secrets(google: LocalGoogle) -> list[tuple[str, str]]:
    """Return what was planted and the connection's key in the forms it may take, each with its name."""
    key = google.key("airflow")["private_key"]
    lines = [("a line of the key", line) for line in key.splitlines() if line and not line.startswith("-----")]
    return [*PLANTED.items(), ("key", key), ("key as JSON", json.dumps(key)[1:-1]), *lines]
