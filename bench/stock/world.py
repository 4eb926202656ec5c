"""The Airflow, the emulator and the front of one comparison, and what a scenario does to them."""

from __future__ import annotations

import contextlib
import json
import shutil
import signal
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import psutil

from bench.stock.front import Front
from bench.stock.reading import subject_of
from bench.stock.subjects import SUBJECTS
from demo.emulator import Emulator
from demo.home import ROOT
from demo.jobs import Job, jobs_of
from demo.processes import Note, Processes, family
from demo.stack import USER, Airflow

if TYPE_CHECKING:
    from collections.abc import Iterator

HERE = Path(__file__).parent
BUCKET = "acme-ml-losses"
TEMPLATE_IMAGE = "us-docker.pkg.dev/acme-ml-prod/templates/held:1"
PARAMETERS = [
    {"name": name, "label": name, "helpText": name, "isOptional": True} for name in ("marker", "sdk_container_image")
]
TEMPLATE = {
    "image": TEMPLATE_IMAGE,
    "sdkInfo": {"language": "PYTHON"},
    "metadata": {"name": "Held", "parameters": PARAMETERS},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """All that runs."""

    directory: Path
    processes: Processes
    emulator: Emulator
    front: Front
    airflow: Airflow
    bearer: str

    def last(self) -> int:
        """Return the newest number of the emulator's ledger."""
        last: int = self.emulator.ledger()["last"]
        return last

    def jobs(self, *, since: int) -> list[Job]:
        """Return the jobs that were made after a number of the ledger."""
        return jobs_of(self.emulator.ledger(since=since))

    def task(self, key: str, run_id: str) -> dict[str, Any]:
        """Return a subject's task instance."""
        said: dict[str, Any] = self.airflow.api.call("GET", f"/dags/{key}/dagRuns/{run_id}/taskInstances/{key}")
        return said

    def kill_task(self, key: str, run_id: str) -> None:
        """Kill a task's process and all that it started, as the end of a worker's machine does."""
        title = f"airflow worker -- {self.task(key, run_id)['id']}"
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.NoSuchProcess):
                if " ".join(process.cmdline()).startswith(title):
                    for each in (*process.children(recursive=True), process):
                        each.kill()

    def kill_triggerer(self) -> None:
        """Kill the triggerer and start another."""
        notes = [Note(**each) for each in json.loads((self.directory / "processes.json").read_text())]
        for member in family(next(note for note in notes if note.name == "triggerer")):
            with contextlib.suppress(psutil.NoSuchProcess):
                member.send_signal(signal.SIGKILL)
        self.processes.stop(["triggerer"])
        self.processes.start("triggerer", [sys.executable, "-m", "airflow", "triggerer"], self.airflow.environment)

    def orphans(self) -> set[str]:
        """Return the ids of the jobs that ``accel reap`` would end."""
        command = [str(Path(sys.executable).with_name("accel")), "reap", "--json", "--airflow-url", self.airflow.url]
        login = {"AIRFLOW_API_USER": USER, "AIRFLOW_API_PASSWORD": self.airflow.password}
        environment = {**self.airflow.environment, **login}
        said = subprocess.run(command, check=False, env=environment, capture_output=True, text=True)
        judged = [json.loads(line) for line in said.stdout.splitlines()]
        return {each["job_id"] for each in judged if each["verdict"] == "orphan"}

    def end(self, job: Job) -> None:
        """End a job that a scenario left running."""
        headers = {"authorization": f"Bearer {self.bearer}"}
        root = f"{self.emulator.url}/v1b3/projects/acme-ml-prod/locations/{job.region}/jobs/{job.id}"
        verb, body = "PUT", {"requestedState": "JOB_STATE_CANCELLED"}
        subject = subject_of(job)
        if "-batch-" in subject or "-fixed-" in subject:
            batches = f"{self.emulator.url}/v1/projects/acme-ml-prod/locations/{job.region}/batches"
            shown = httpx.get(f"{batches}/{job.id}", headers=headers, trust_env=False).json()
            root, verb, body = f"{self.emulator.url}/v1/{shown['operation']}:cancel", "POST", {}
        httpx.request(verb, root, json=body, headers=headers, trust_env=False, timeout=60).raise_for_status()


@contextmanager
def running(directory: Path) -> Iterator[World]:
    """Start everything in a directory; end everything however the block is left."""
    processes = Processes(directory)
    for old in ("emulator", "airflow", "markers"):
        shutil.rmtree(directory / old, ignore_errors=True)
    (directory / "markers").mkdir(parents=True)
    try:
        emulator = Emulator(processes, directory / "emulator", world="plenty")
        emulator.start()
        settings = emulator.environment()
        bearer = bearer_of(settings["GOOGLE_APPLICATION_CREDENTIALS"])
        fill(emulator, settings["GOOGLE_CLOUD_PROJECT"])
        front = Front(emulator.url, bearer=bearer)
        front.start()
        airflow = Airflow(
            processes, directory / "airflow", dags=dags_in(directory / "dags"), variables=variables(settings, front)
        )
        airflow.start()
        for subject in SUBJECTS:
            airflow.api.unpause(subject.key)
        yield World(
            directory=directory, processes=processes, emulator=emulator, front=front, airflow=airflow, bearer=bearer
        )
        airflow.stop()
    finally:
        processes.stop()


def variables(settings: dict[str, str], front: Front) -> dict[str, str]:
    """Return what leads stock operators and ours to the front, and what makes Airflow's waits short."""
    connection = json.loads(settings["AIRFLOW_CONN_GOOGLE_CLOUD_DEFAULT"])
    connection["extra"]["endpoints"] = {"dataflow": front.http, "dataproc": front.http}
    return {
        **settings,
        "AIRFLOW_CONN_GOOGLE_CLOUD_DEFAULT": json.dumps(connection),
        "PYTHONPATH": f"{HERE / 'redirect'}:{ROOT}",
        "LOSSES_HTTP": front.http,
        "LOSSES_GRPC": front.grpc,
        "AIRFLOW__CORE__PARALLELISM": "16",
        "AIRFLOW__TRIGGERER__JOB_HEARTBEAT_SEC": "2",
        "AIRFLOW__TRIGGERER__TRIGGERER_HEALTH_CHECK_THRESHOLD": "10",
    }


def dags_in(folder: Path) -> Path:
    """Write a file for each subject's DAG, and return their folder."""
    folder.mkdir(exist_ok=True)
    for subject in SUBJECTS:
        text = f"from airflow.sdk import DAG\n\nfrom bench.stock.told import dag_of\n\ndag = dag_of({subject.key!r})\n"
        (folder / f"{subject.key}.py").write_text(text)
    return folder


def bearer_of(key_file: str) -> str:
    """Return an access token."""
    from google.auth.transport.requests import Request
    from google.oauth2.service_account import Credentials

    credentials = Credentials.from_service_account_file(
        key_file, scopes=["https://www.googleapis.com/auth/cloud-platform"]
    )
    credentials.refresh(Request())
    return str(credentials.token)


def fill(emulator: Emulator, project: str) -> None:
    """Put the programs where the jobs look for them."""
    from google.auth.credentials import AnonymousCredentials
    from google.cloud import storage

    client = storage.Client(
        project=project, credentials=AnonymousCredentials(), client_options={"api_endpoint": emulator.url}
    )
    bucket = client.create_bucket(BUCKET)
    bucket.blob("held.json").upload_from_string(json.dumps(TEMPLATE))
    bucket.blob("held_batch.py").upload_from_filename(HERE / "programs" / "held_batch.py")
    httpx.put(
        f"{emulator.url}/_emulator/templates",
        json={TEMPLATE_IMAGE: str(HERE / "programs" / "held.py")},
        trust_env=False,
    ).raise_for_status()
