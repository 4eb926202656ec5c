"""Streaming jobs: they run until they are told to end, and can be drained."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest
from dataflow_jobs import BUCKET, L4, Client, environment, fresh_name, launch, until
from google.cloud import storage
from google.cloud.exceptions import Conflict

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from emulators import Emulator
    from google.auth.transport.requests import AuthorizedSession

STREAMING = "JOB_TYPE_STREAMING"
G2: dict[str, Any] = {"machine": "g2-standard-8", "option": L4}


@pytest.fixture
def client(emulator: Emulator, session: AuthorizedSession) -> Iterator[Client]:
    """Return bare calls of airflow@; jobs that are left are cancelled."""
    client = Client(emulator=emulator, session=session)
    yield client
    client.clear()


def _request(client: Client, job: dict[str, Any], state: str) -> Any:
    body = {"requestedState": f"JOB_STATE_{state}"}
    return client.session.put(client.url(job["location"], job["id"]), json=body, timeout=30)


def _states(emulator: Emulator, job: dict[str, Any]) -> list[str]:
    events = emulator.events("dataflow.job.state")
    return [event["state"].removeprefix("JOB_STATE_") for event in events if event["job_id"] == job["id"]]


def _ready(client: Client, job: dict[str, Any]) -> None:
    until(lambda: [text for text in client.texts(job) if text.startswith("All workers have finished")], bool)


def test_a_streaming_job_runs_until_it_is_drained(client: Client, emulator: Emulator) -> None:
    """Workers come up and stay; a drain is a request, then a state, then the end, and a second one changes nothing."""
    job = client.create(environment(**G2), type=STREAMING)
    assert job["type"] == STREAMING
    _ready(client, job)
    assert client.get(job, "JOB_VIEW_SUMMARY")["currentState"] == "JOB_STATE_RUNNING"
    assert client.vms(job)[0]["guestAccelerators"][0]["acceleratorCount"] == 1
    answered = _request(client, job, "DRAINED").json()
    assert answered["requestedState"] == "JOB_STATE_DRAINED"
    assert _request(client, job, "DRAINED").status_code == 200
    client.wait(job, "DRAINED")
    assert _states(emulator, job) == ["RUNNING", "DRAINING", "DRAINED"]
    assert client.vms(job) == []
    assert client.texts(job, "ERROR") == []
    assert "terminal state" in _request(client, job, "DRAINED").text
    requested = [event for event in emulator.events("dataflow.job.requested") if event["job_id"] == job["id"]]
    assert [event["state"] for event in requested] == ["JOB_STATE_DRAINED"]


def test_a_streaming_job_is_cancelled_even_while_it_drains(client: Client, emulator: Emulator) -> None:
    """A cancel overrules a drain."""
    job = client.create(environment(), type=STREAMING)
    _ready(client, job)
    _request(client, job, "DRAINED")
    assert _request(client, job, "CANCELLED").json()["requestedState"] == "JOB_STATE_CANCELLED"
    client.wait(job, "CANCELLED")
    assert _states(emulator, job)[-1] == "CANCELLED"


def test_only_what_streams_and_runs_is_drained(client: Client) -> None:
    """A batch job cannot be drained, nor one that has not begun to run."""
    batch = client.create(environment(**G2))
    answer = _request(client, batch, "DRAINED")
    assert answer.status_code == 400
    assert "A batch job cannot be brought to JOB_STATE_DRAINED." in answer.text
    pending = client.create(environment(**G2), type=STREAMING)
    if client.get(pending)["currentState"] == "JOB_STATE_PENDING":
        assert "only a running job can be drained" in _request(client, pending, "DRAINED").text


def test_workers_of_streams_have_defaults_of_their_own(client: Client) -> None:
    """Where nothing is asked for, a streaming worker is larger than a batch worker."""
    job = client.create(environment(), type=STREAMING)
    vm = until(lambda: client.vms(job), bool)[0]
    assert vm["machineType"].endswith("/n1-standard-2")
    assert vm["disks"][0]["diskSizeGb"] == "30"


def test_beam_submits_a_stream(client: Client, emulator: Emulator, google_environment: None, tmp_path: Path) -> None:
    """What Beam sends with --streaming is such a job, and runs until it is drained."""
    store = storage.Client.from_service_account_json(
        str(emulator.keys["airflow"]), client_options={"api_endpoint": emulator.url}
    )
    with suppress(Conflict):
        store.create_bucket(BUCKET)
    program = tmp_path / "stream.py"
    program.write_text(
        "import sys\n"
        "import apache_beam as beam\n"
        "from apache_beam.options.pipeline_options import PipelineOptions\n"
        "from apache_beam.transforms.periodicsequence import PeriodicImpulse\n"
        "pipeline = beam.Pipeline(options=PipelineOptions(sys.argv[1:]))\n"
        "pipeline | PeriodicImpulse(fire_interval=1) | beam.Map(print)\n"
        "result = pipeline.run()\n"
        "print(result.job_id())\n"
    )
    name = fresh_name("stream")
    done = launch(emulator, str(program), "--streaming", f"--job_name={name}")
    assert done.returncode == 0, done.stderr
    job = client.get({"location": "us-central1", "id": done.stdout.split()[-1]})
    assert job["type"] == STREAMING
    _ready(client, job)
    assert client.get(job)["currentState"] == "JOB_STATE_RUNNING"
    _request(client, job, "DRAINED")
    client.wait(job, "DRAINED")
