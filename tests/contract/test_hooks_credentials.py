"""Lending an identity to a launcher: who its calls come as, and what is left behind."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlencode

import pytest
import requests
from connections import google_session, plain_connection

from airflow_accel_provider.exceptions import AcceleratorConfigurationError
from airflow_accel_provider.hooks.credentials import launcher_credentials
from airflow_accel_provider.hooks.launcher import Launcher, build_argv
from airflow_accel_provider.hooks.session import GoogleSession

if TYPE_CHECKING:
    from emulators import Emulator

CREATE = "dataflow.projects.locations.jobs.create"
GET_PROJECT = "compute.projects.get"

CHILD = """
import sys, time
begun = time.monotonic()
import google.auth, google.auth.transport.requests
imported = time.monotonic()
credentials, project = google.auth.default(scopes=["https://www.googleapis.com/auth/cloud-platform"])
session = google.auth.transport.requests.AuthorizedSession(credentials)
answer = session.get(sys.argv[1])
print(project, answer.status_code, round(time.monotonic() - imported, 3))
"""


def child(code: str, *arguments: str, env: Mapping[str, str]) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def config_of(env: Mapping[str, str]) -> dict[str, object]:
    return json.loads(Path(env["GOOGLE_APPLICATION_CREDENTIALS"]).read_text())


@pytest.mark.parametrize("impersonated", [False, True])
def test_a_child_process_is_the_session(emulator: Emulator, impersonated: bool) -> None:
    """google.auth.default() in a child is the session's identity, impersonation included, and loses no time."""
    chain = emulator.email("pipeline") if impersonated else None
    session = google_session(emulator, impersonation_chain=chain)
    mark = emulator.mark()
    with launcher_credentials(session) as env:
        address = f"{emulator.url}/compute/v1/projects/{emulator.project}"
        project, status, seconds = child(CHILD, address, env=env)
    assert (project, status) == (emulator.project, "200")
    assert float(seconds) < 5
    (call,) = emulator.calls(GET_PROJECT, since=mark)
    assert call["principal"] == emulator.email("pipeline" if impersonated else "airflow")


def test_no_secret_touches_the_disk(emulator: Emulator) -> None:
    """The files hold neither key nor token, and only this user can read them."""
    session = google_session(emulator)
    token, _ = session.token()
    with launcher_credentials(session) as env:
        config = Path(env["GOOGLE_APPLICATION_CREDENTIALS"])
        assert stat.S_IMODE(config.parent.stat().st_mode) == 0o700
        for file in config.parent.iterdir():
            assert stat.S_IMODE(file.stat().st_mode) == 0o600
            assert "PRIVATE KEY" not in file.read_text()
            assert token not in file.read_text()


def test_nothing_is_left_whatever_happens(emulator: Emulator) -> None:
    """After the context, left by an error too, files and broker are gone."""
    seen: dict[str, str] = {}

    def fail_inside() -> None:
        with launcher_credentials(google_session(emulator)) as env:
            seen.update(env, url=str(config_of(env)["token_url"]))
            raise KeyError

    with pytest.raises(KeyError):
        fail_inside()
    assert not Path(seen["GOOGLE_APPLICATION_CREDENTIALS"]).parent.exists()
    with pytest.raises(requests.ConnectionError):
        requests.post(seen["url"], timeout=5)


@pytest.mark.parametrize(
    "body", [b"", b"subject_token=wrong", b"\xff\xfe\x00", urlencode({"subject_token": "é" * 1000}).encode()]
)
def test_the_broker_gives_nothing_without_the_nonce(emulator: Emulator, body: bytes) -> None:
    """Who doesn't know the nonce gets a refusal that holds no token."""
    session = google_session(emulator)
    token, _ = session.token()
    with launcher_credentials(session) as env:
        answer = requests.post(str(config_of(env)["token_url"]), data=body, timeout=10)
    assert answer.status_code == 403
    assert token not in answer.text


def test_the_broker_renews_tokens(emulator: Emulator) -> None:
    """A token that is about to end is renewed before it is lent."""
    from datetime import UTC, datetime, timedelta

    session = google_session(emulator)
    old, _ = session.token()
    session.identity.credentials.expiry = datetime.now(UTC).replace(tzinfo=None) + timedelta(seconds=30)
    with launcher_credentials(session) as env:
        config = config_of(env)
        subject = Path(str(config["credential_source"]["file"])).read_text()  # type: ignore[index]
        answer = requests.post(str(config["token_url"]), data={"subject_token": subject}, timeout=30).json()
    assert answer["access_token"] != old
    assert answer["expires_in"] > 3000


def test_a_refused_identity_is_a_refusal_in_the_child(emulator: Emulator) -> None:
    """When Google refuses the session's identity, the child's library says so, in Google's words."""
    session = google_session(emulator, "pipeline", impersonation_chain=emulator.email("airflow"))
    code = (
        "import google.auth, google.auth.transport.requests as t\n"
        "credentials, _ = google.auth.default(scopes=['x'])\n"
        "try: credentials.refresh(t.Request())\n"
        "except google.auth.exceptions.GoogleAuthError as error: print(error)"
    )
    with launcher_credentials(session) as env:
        assert "getAccessToken'" in " ".join(child(code, env=env))


def test_the_environment_names_project_storage_and_quota_project(emulator: Emulator) -> None:
    """Project, quota project and the storage endpoint that the connection names reach the launcher."""
    with launcher_credentials(google_session(emulator, quota_project_id="billing-project")) as env:
        assert env["GOOGLE_CLOUD_PROJECT"] == env["CLOUDSDK_CORE_PROJECT"] == emulator.project
        assert env["GOOGLE_CLOUD_QUOTA_PROJECT"] == "billing-project"
        assert env["STORAGE_EMULATOR_HOST"] == emulator.url


def test_without_an_endpoint_storage_is_googles(emulator: Emulator) -> None:
    """A connection without endpoints says nothing about storage."""
    extras = {"keyfile_dict": emulator.keys["airflow"].read_text()}
    with launcher_credentials(GoogleSession.from_connection(plain_connection(**extras))) as env:
        assert "STORAGE_EMULATOR_HOST" not in env


def test_an_anonymous_connection_cannot_be_lent() -> None:
    """Anonymous credentials can't launch anything, and that is one clear error."""
    session = GoogleSession.from_connection(plain_connection(is_anonymous=True, project="p"))
    with pytest.raises(AcceleratorConfigurationError, match="'gcp' is anonymous"), launcher_credentials(session):
        pass


PIPELINE = """
import apache_beam as beam
from apache_beam.options.pipeline_options import PipelineOptions

pipeline = beam.Pipeline(options=PipelineOptions())
pipeline | beam.Create([1, 2, 3]) | beam.Map(print)
print("submitted", pipeline.run().job_id(), flush=True)
"""


@pytest.mark.parametrize("impersonated", [False, True])
def test_beams_create_comes_as_the_connection(emulator: Emulator, impersonated: bool, tmp_path: Path) -> None:
    """A real Beam launcher's jobs.create comes as the connection's account, or the one it impersonates."""
    (tmp_path / "pipeline.py").write_text(PIPELINE)
    session = google_session(emulator, impersonation_chain=emulator.email("pipeline") if impersonated else None)
    session.request(
        "storage", "POST", "b", params={"project": emulator.project}, body={"name": f"lent-{impersonated}".lower()}
    )
    argv = build_argv(
        py_interpreter=sys.executable,
        py_file=str(tmp_path / "pipeline.py"),
        flags=[
            "--runner=DataflowRunner",
            f"--project={emulator.project}",
            "--region=us-central1",
            f"--job_name=lent-{impersonated}".lower(),
            f"--temp_location=gs://lent-{impersonated}/beam".lower(),
            f"--dataflow_endpoint={emulator.url}",
        ],
    )
    mark = emulator.mark()
    with launcher_credentials(session) as env, Launcher(argv, env=env, cwd=tmp_path) as launcher:
        deadline = time.monotonic() + 180
        while launcher.poll() is None and time.monotonic() < deadline:
            time.sleep(0.2)
        assert launcher.poll() == 0, launcher.tail()
        assert any(line.startswith("submitted 20") for line in launcher.new_lines())
    (call,) = emulator.calls(CREATE, since=mark)
    assert call["principal"] == emulator.email("pipeline" if impersonated else "airflow")
    assert {call["principal"] for call in emulator.calls("storage.objects.insert", since=mark)} == {call["principal"]}
