"""Pipelines that Beam's unmodified launcher submits really run."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from contextlib import suppress
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from dataflow_jobs import BUCKET, L4, PIPELINES, Client, environment, fresh_name, launch, until
from emulators import running
from google.cloud import storage
from google.cloud.exceptions import Conflict, NotFound

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from emulators import Emulator
    from google.auth.transport.requests import AuthorizedSession

ON_L4 = ("--machine_type=g2-standard-8", f"--dataflow_service_options={L4}")
NOT_WAITING = ("--no_wait_until_finish",)


@pytest.fixture
def client(emulator: Emulator, session: AuthorizedSession) -> Iterator[Client]:
    """Return bare calls of airflow@; jobs that are left are cancelled."""
    client = Client(emulator=emulator, session=session)
    yield client
    client.clear()


@pytest.fixture
def bucket(emulator: Emulator, google_environment: None) -> storage.Bucket:
    """Return the bucket that jobs are staged in and write to."""
    return _bucket(emulator)


def _bucket(emulator: Emulator) -> storage.Bucket:
    client = storage.Client.from_service_account_json(
        str(emulator.keys["airflow"]), client_options={"api_endpoint": emulator.url}
    )
    try:
        return client.create_bucket(BUCKET)
    except Conflict:
        return client.bucket(BUCKET)


def _find(client: Client, name: str) -> dict[str, Any]:
    answer = client.session.get(client.url(), params={"name": name}, timeout=30).json()
    return answer["jobs"][0]


def _text(bucket: storage.Bucket, prefix: str) -> str:
    while True:
        # What is replaced between its listing and its download is gone in the listed generation, and listed anew.
        with suppress(NotFound):
            return "".join(blob.download_as_text() for blob in bucket.list_blobs(prefix=prefix))


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_a_pipeline_is_submitted_runs_and_writes(client: Client, emulator: Emulator, bucket: storage.Bucket) -> None:
    """Beam's launcher stages a pipeline, waits for it and ends well; output and counts are the pipeline's own."""
    name = fresh_name("shout")
    done = launch(
        emulator,
        "shout.py",
        *ON_L4,
        f"--job_name={name}",
        f"--output=gs://{BUCKET}/{name}/words",
        "--labels=accel-owner=abc",
        "--save_main_session",
        f"--service_account_email={emulator.email('pipeline')}",
    )
    assert done.returncode == 0, done.stderr
    job = _find(client, name)
    assert job["currentState"] == "JOB_STATE_DONE"
    assert sorted(_text(bucket, f"{name}/words").split()) == ["ONE!", "THREE!", "TWO!"]
    whole = client.get(job)
    assert whole["labels"] == {"accel-owner": "abc"}
    assert whole["environment"]["serviceOptions"] == [L4]
    assert client.texts(job, "ERROR") == []
    metrics = client.session.get(f"{client.url(job_id=job['id'])}/metrics", timeout=30).json()["metrics"]
    committed = [metric for metric in metrics if "tentative" not in metric["name"]["context"]]
    counts = {m["name"]["context"].get("output_user_name"): m["scalar"] for m in committed if "scalar" in m}
    assert counts["Shout-out0"] == 3
    user = {metric["name"]["name"]: metric for metric in committed if metric["name"]["origin"] == "user"}
    assert user["words"]["scalar"] == 3
    assert user["words"]["name"]["context"] == {"namespace": "shout", "step": "Shout"}
    assert user["length"]["distribution"] == {"count": 3, "sum": 11, "min": 3, "max": 5}
    writes = [call for call in emulator.calls("storage.objects.insert") if call["path"]["bucket"] == BUCKET]
    assert writes[-1]["principal"] == emulator.email("pipeline")


@pytest.mark.usefixtures("bucket")
def test_an_error_in_user_code_fails_the_job_with_its_traceback(client: Client, emulator: Emulator) -> None:
    """The traceback with file, line and step is said four times, then the workflow fails and names the step."""
    name = fresh_name("faulty")
    done = launch(emulator, "faulty.py", f"--job_name={name}")
    assert done.returncode != 0
    assert "ZeroDivisionError" in done.stderr
    job = _find(client, name)
    assert job["currentState"] == "JOB_STATE_FAILED"
    errors = client.texts(job, "ERROR")
    assert len(errors) == 5
    for text in errors[:4]:
        assert re.search(r'faulty\.py", line \d+, in invert', text)
        assert "ZeroDivisionError: division by zero" in text
        assert "[while running 'Invert" in text
    assert errors[4].startswith("Workflow failed. Causes: S01:Invert")
    assert "The job failed because a work item has failed 4 times." in errors[4]
    assert "-harness-" in errors[4]


def test_a_cancelled_pipeline_stops_and_leaves_nothing(
    client: Client, emulator: Emulator, bucket: storage.Bucket
) -> None:
    """A cancel ends the pipeline's processes, those it started too, before the job is CANCELLED; nothing is written."""
    name = fresh_name("slow")
    done = launch(emulator, "slow.py", *ON_L4, f"--job_name={name}", f"--output=gs://{BUCKET}/{name}")
    assert done.returncode == 0, done.stderr
    job = _find(client, name)
    pid = int(until(lambda: _text(bucket, f"{name}/begun"), bool))
    assert _is_alive(pid)
    client.cancel(job)
    client.wait(job, "CANCELLED")
    until(lambda: _is_alive(pid), lambda alive: not alive)
    assert [blob.name for blob in bucket.list_blobs(prefix=f"{name}/")] == [f"{name}/begun"]


def test_packages_that_come_with_a_pipeline_are_installed(
    client: Client, emulator: Emulator, bucket: storage.Bucket, tmp_path: Path
) -> None:
    """What --setup_file brings can be imported in the pipeline and stays out of the emulator."""
    name = fresh_name("packaged")
    # Building it leaves things beside it.
    source = shutil.copytree(PIPELINES / "packaged", tmp_path / "packaged")
    done = launch(
        emulator,
        str(source / "main.py"),
        f"--job_name={name}",
        f"--output=gs://{BUCKET}/{name}/words",
        f"--setup_file={source / 'setup.py'}",
        *NOT_WAITING,
    )
    assert done.returncode == 0, done.stderr
    client.wait(_find(client, name), "DONE", "FAILED")
    assert _text(bucket, f"{name}/words") == "HM!!\n"
    assert list((emulator.directory / "packages").iterdir())


@pytest.mark.usefixtures("bucket")
def test_a_pipeline_that_is_not_there_fails_its_job(client: Client) -> None:
    """A job whose staged pipeline is missing fails and says which file it missed."""
    job = client.create(environment())
    client.wait(job, "FAILED")
    assert f"gs://{BUCKET}/nowhere/pipeline.pb" in client.texts(job, "ERROR")[-1]


def test_a_pipeline_of_another_beam_fails_its_job(client: Client, emulator: Emulator, bucket: storage.Bucket) -> None:
    """A pipeline built with another Beam or Python is not run here: its job fails in the words of Beam's worker."""
    name = fresh_name("other")
    done = launch(emulator, "slow.py", *NOT_WAITING, f"--job_name={name}", f"--output=gs://{BUCKET}/{name}")
    assert done.returncode == 0, done.stderr
    first = _find(client, name)
    env = client.wait(first, "RUNNING")["environment"]
    client.cancel(first)
    path = env["sdkPipelineOptions"]["options"]["pipelineUrl"].removeprefix(f"gs://{BUCKET}/")
    built = bucket.blob(path).download_as_bytes()
    here = re.search(rb"beam:version:sdk_base:apache/beam_python3\.\d+_sdk:\d+\.\d+", built)
    assert here is not None
    other = here[0][:-1] + bytes([here[0][-1] ^ 1])
    bucket.blob(f"{name}/pipeline.pb").upload_from_string(built.replace(here[0], other))
    env["sdkPipelineOptions"]["options"]["pipelineUrl"] = f"gs://{BUCKET}/{name}/pipeline.pb"
    job = client.create(env)
    client.wait(job, "FAILED")
    last = client.texts(job, "ERROR")[-1]
    assert "Pipeline construction environment and pipeline runtime environment are not compatible." in last
    assert f"Submission environment: {other.decode()}" in last


def test_jobs_go_on_after_a_crash(tmp_path: Path) -> None:
    """When an emulator is killed its pipelines end with it; the next one on the same state executes them anew."""
    name = fresh_name("again")
    process = _start_process(tmp_path)
    try:
        settings = until(lambda: _settings(tmp_path), bool)
        killed = SimpleNamespace(
            url=settings["url"],
            project=settings["project"],
            keys=settings["keys"],
            environment=lambda: {
                "GOOGLE_APPLICATION_CREDENTIALS": settings["keys"]["airflow"],
                "STORAGE_EMULATOR_HOST": settings["url"],
            },
        )
        bucket = _bucket(killed)
        output = (f"--output=gs://{BUCKET}/{name}", f"--job_name={name}")
        done = launch(killed, "slow.py", *NOT_WAITING, *output)
        assert done.returncode == 0, done.stderr
        job = _find(_client(killed), name)
        pid = int(until(lambda: _text(bucket, f"{name}/begun"), bool))
    finally:
        process.kill()
        process.wait()
    until(lambda: _is_alive(pid), lambda alive: not alive)
    with running(tmp_path, port=int(killed.url.rpartition(":")[2]), time_scale=600.0) as emulator:
        client, bucket = _client(emulator), _bucket(emulator)
        until(lambda: _text(bucket, f"{name}/begun"), lambda text: int(text) != pid)
        assert client.get(job)["currentState"] == "JOB_STATE_RUNNING"
        assert client.vms(job)
        client.cancel(job)
        client.wait(job, "CANCELLED")
        assert emulator.witness.problems == []


def _client(emulator: Emulator) -> Client:
    from google.auth.transport.requests import AuthorizedSession
    from google.oauth2 import service_account

    scopes = ["https://www.googleapis.com/auth/cloud-platform"]
    key = str(emulator.keys["airflow"])
    credentials = service_account.Credentials.from_service_account_file(key, scopes=scopes)
    return Client(emulator=emulator, session=AuthorizedSession(credentials))


def _start_process(state: Path) -> subprocess.Popen[bytes]:
    module = [sys.executable, "-m", "airflow_accel_provider.emulator"]
    return subprocess.Popen([*module, "--port", "0", "--state", str(state), "--time-scale", "600"])


def _settings(state: Path) -> dict[str, Any]:
    path = state / "emulator.json"
    return json.loads(path.read_text()) if path.exists() else {}
