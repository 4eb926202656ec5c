"""Worker images that cannot be pulled."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from dataflow_jobs import L4, Client, environment, judged, until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from emulators import Emulator
    from google.auth.transport.requests import AuthorizedSession

MISSING = "us-docker.pkg.dev/acme/beam/gpu:missing"
OWN = "gcr.io/cloud-dataflow/v1beta3/beam_python3.11_sdk:2.77.0"


@pytest.fixture
def client(emulator: Emulator, session: AuthorizedSession) -> Client:
    """Return bare calls of airflow@."""
    return Client(emulator=emulator, session=session)


@pytest.fixture
def enter(emulator: Emulator, client: Client) -> Iterator[Callable[[str], None]]:
    """Return what changes the world; afterwards all is plenty again, and no job is left."""
    yield emulator.enter
    client.clear()
    emulator.enter("plenty")


def _with(image: str) -> dict[str, Any]:
    pool = {"machineType": "g2-standard-8", "numWorkers": 1, "sdkHarnessContainerImages": [{"containerImage": image}]}
    return environment(workerPools=[pool], serviceOptions=[L4])


def _pulls(client: Client, job: dict[str, Any]) -> list[str]:
    return [text for text in client.texts(job, "ERROR") if text.startswith("Unable to pull container image")]


def test_workers_without_their_image_do_no_work(client: Client, enter: Callable[[str], None]) -> None:
    """Workers come up with their GPU, say again and again that the image is missing, and the job ends as stuck."""
    enter("plenty")
    job = client.create(_with(MISSING))
    until(lambda: _pulls(client, job), bool)
    assert client.get(job)["currentState"] == "JOB_STATE_RUNNING"
    assert client.vms(job)[0]["guestAccelerators"]
    client.wait(job, "FAILED")
    errors = client.texts(job, "ERROR")
    assert len(errors) == 5
    assert MISSING in errors[0]
    assert "no worker activity has been seen in the last 1h" in errors[-1]
    assert judged(errors).kind == "image"
    assert not [text for text in client.texts(job) if text.startswith("All workers have finished")]


def test_a_world_may_have_no_custom_images(client: Client, enter: Callable[[str], None]) -> None:
    """Where no custom image can be pulled, Google's own still can."""
    enter("image-missing")
    custom, own = client.create(_with("us-docker.pkg.dev/acme/beam/gpu:1")), client.create(_with(OWN))
    until(lambda: _pulls(client, custom), bool)
    client.wait(own, "FAILED")
    assert _pulls(client, own) == []
    assert "nowhere/pipeline.pb" in client.texts(own, "ERROR")[-1]


def test_a_stream_is_not_given_up(client: Client, enter: Callable[[str], None]) -> None:
    """A streaming job goes on trying, and works as soon as its image is there."""
    enter("image-missing")
    job = client.create(_with("us-docker.pkg.dev/acme/beam/gpu:1"), type="JOB_TYPE_STREAMING")
    until(lambda: _pulls(client, job), lambda found: len(found) > 5)
    enter("plenty")
    until(lambda: [text for text in client.texts(job) if text.startswith("All workers have finished")], bool)
