"""What Beam's own runner sends for the tiny pipeline, taken from the emulator that it was sent to."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from google.auth.credentials import AnonymousCredentials
from google.cloud import storage

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

PROJECT = "acme-ml-prod"
BUCKET = "acme-ml-kills"
TINY = Path(__file__).with_name("tiny.py")
LIGHT = Path(__file__).with_name("light.py")
STAGED = ("submission_environment_dependencies.txt", "pipeline.pb")


def record(directory: Path, *, state: Path, url: str, environment: Mapping[str, str]) -> Path:
    """Run Beam once and return a light launcher with what it sent; ``state`` is the emulator's."""
    client = bucket_client(url)
    flags = ["--region=us-central1", "--job_name=recorded", f"--temp_location=gs://{BUCKET}/recorded"]
    launch(TINY, ["--runner=DataflowRunner", f"--project={PROJECT}", f"--dataflow_endpoint={url}", *flags], environment)
    folder = directory / "recorded"
    folder.mkdir(parents=True)
    job = request_of(state, "recorded")
    (folder / "job.json").write_text(json.dumps(job), encoding="utf-8")
    prefix = job["environment"]["tempStoragePrefix"].partition(f"{BUCKET}/")[2]
    for name in STAGED:
        client.bucket(BUCKET).blob(f"{prefix}/{name}").download_to_filename(str(folder / name))
    return Path(shutil.copy(LIGHT, directory / LIGHT.name))


def bucket_client(url: str) -> storage.Client:
    """Return a client of the emulator's buckets, with the stories' bucket made."""
    client = storage.Client(project=PROJECT, credentials=AnonymousCredentials(), client_options={"api_endpoint": url})
    if not client.lookup_bucket(BUCKET):
        client.create_bucket(BUCKET)
    return client


def launch(program: Path, flags: Sequence[str], environment: Mapping[str, str]) -> None:
    """Run a launcher to its end. Raises ``RuntimeError`` with what it said where it fails."""
    child = {**os.environ, **environment, "NO_GCE_CHECK": "true"}
    command = [sys.executable, str(program), *flags]
    done = subprocess.run(command, env=child, capture_output=True, text=True, check=False, timeout=60)
    if done.returncode:
        raise RuntimeError(f"{program.name} ended with {done.returncode}: {done.stderr[-2000:]}")


def request_of(state: Path, name: str) -> dict[str, Any]:
    """Return the creation that the newest job of a name was made by, as the emulator keeps it."""
    query = "SELECT body FROM dataflow_jobs WHERE name = ? ORDER BY number DESC"
    with closing(sqlite3.connect(state / "state.sqlite", timeout=30)) as database:
        (body,) = database.execute(query, (name,)).fetchone()
    request: dict[str, Any] = json.loads(body)["request"]
    return request
