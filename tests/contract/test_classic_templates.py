"""Classic templates: jobs that Beam described once, and that launches fill in."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest
from dataflow_jobs import BUCKET, L4, Client, environment, fresh_name, launch, until
from google.cloud import storage
from google.cloud.exceptions import Conflict
from google.oauth2 import service_account
from googleapiclient import discovery

if TYPE_CHECKING:
    from collections.abc import Iterator

    from emulators import Emulator
    from google.auth.transport.requests import AuthorizedSession

TEMPLATE = f"gs://{BUCKET}/templates/templated"


@pytest.fixture
def client(emulator: Emulator, session: AuthorizedSession) -> Iterator[Client]:
    """Return bare calls of airflow@; jobs that are left are cancelled."""
    client = Client(emulator=emulator, session=session)
    yield client
    client.clear()


@pytest.fixture
def bucket(emulator: Emulator, google_environment: None) -> storage.Bucket:
    """Return the bucket with templates and output."""
    store = storage.Client.from_service_account_json(
        str(emulator.keys["airflow"]), client_options={"api_endpoint": emulator.url}
    )
    with suppress(Conflict):
        store.create_bucket(BUCKET)
    return store.bucket(BUCKET)


def _launch(client: Client, url: str, body: dict[str, Any], **query: str) -> Any:
    address = client.url().removesuffix("/jobs") + "/templates:launch"
    return client.session.post(address, params={"gcsPath": url, **query}, json=body, timeout=30)


def test_a_template_that_beam_wrote_is_launched(client: Client, emulator: Emulator, bucket: storage.Bucket) -> None:
    """Beam writes the template; a launch by Google's client fills in place, accelerator and a runtime parameter."""
    built = launch(emulator, "templated.py", f"--template_location={TEMPLATE}", "--machine_type=n1-standard-2")
    assert built.returncode == 0, built.stderr
    credentials = service_account.Credentials.from_service_account_file(
        str(emulator.keys["airflow"]), scopes=["https://www.googleapis.com/auth/cloud-platform"]
    )
    options = {"api_endpoint": emulator.url}
    service = discovery.build(
        "dataflow", "v1b3", credentials=credentials, client_options=options, static_discovery=True
    )
    name = fresh_name()
    body = {
        "jobName": name,
        "parameters": {"output": f"gs://{BUCKET}/{name}/word"},
        "environment": {
            "machineType": "g2-standard-8",
            "additionalExperiments": [L4],
            "diskSizeGb": 100,
            "workerZone": "us-central1-c",
            "additionalUserLabels": {"accel-owner": "abc"},
            "maxWorkers": 3,
            "tempLocation": f"gs://{BUCKET}/other",
        },
    }
    place = {"projectId": emulator.project, "location": "us-central1", "gcsPath": TEMPLATE}
    templates = service.projects().locations().templates()
    assert templates.launch(**place, body=body, validateOnly=True).execute() == {}
    job = templates.launch(**place, body=body).execute()["job"]
    assert (job["name"], job["labels"]) == (name, {"accel-owner": "abc"})
    vm = until(lambda: client.vms(job), bool)[0]
    assert vm["zone"].endswith("/us-central1-c")
    assert vm["disks"][0]["diskSizeGb"] == "100"
    assert vm["guestAccelerators"]
    assert _launch(client, TEMPLATE, body).status_code == 409
    over = client.wait(job, "DONE", "FAILED")
    assert over["currentState"] == "JOB_STATE_DONE", client.texts(job)
    assert bucket.blob(f"{name}/word").download_as_text() == "WORD"
    assert over["environment"]["tempStoragePrefix"] == f"storage.googleapis.com/{BUCKET}/other"
    # The name is free again, and the request's id that Beam wrote into the template is not the launch's.
    assert _launch(client, TEMPLATE, body).json()["job"]["id"] != job["id"]


def test_a_wrong_template_is_refused(client: Client, bucket: storage.Bucket) -> None:
    """A template that is missing, is no JSON or describes no job is one answer; so is a parameter it does not know."""
    body = {"jobName": fresh_name(), "parameters": {"output": "gs://b/o"}}
    assert _launch(client, f"gs://{BUCKET}/no", body).status_code == 404
    bucket.blob("templates/text").upload_from_string("no template")
    assert "Unable to parse template file" in _launch(client, f"gs://{BUCKET}/templates/text", body).text
    bucket.blob("templates/empty").upload_from_string("{}")
    assert "it describes no job" in _launch(client, f"gs://{BUCKET}/templates/empty", body).text
    bucket.blob("templates/job").upload_from_string(
        json.dumps({"type": "JOB_TYPE_BATCH", "environment": environment()})
    )
    bucket.blob("templates/job_metadata").upload_from_string(json.dumps({"name": "job", "parameters": []}))
    answer = _launch(client, f"gs://{BUCKET}/templates/job", body)
    assert answer.status_code == 400
    assert "output: Unrecognized parameter" in answer.text
    answer = _launch(client, f"gs://{BUCKET}/templates/job", {"jobName": "No Name"})
    assert "does not match" in answer.text
