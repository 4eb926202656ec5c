"""Where stories are played: an emulator, an Airflow's database, and a process that plays."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from demo.processes import Processes
from demo.stack import Airflow
from tests.integration.local_google import LocalGoogle
from tests.kills.recording import BUCKET, record
from tests.kills.tasks import PROGRAM, TEMPLATE

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

ROOT = Path(__file__).parents[2]
TIME_SCALE = "600"
_TOLD = "told "


def play(directory: Path, names: Sequence[str], without: str | None = None) -> Generator[dict[str, Any], None, None]:
    """Play some stories in a new directory, and yield what each was like as it ends.

    ``names`` are theirs, see ``tests/kills/plot.py``; ``without`` names a guard that the product is to be without, see
    ``tests/chaos/mutants.py``.
    """
    processes = Processes(directory)
    try:
        google = LocalGoogle.start(processes, directory / "emulator", time_scale=TIME_SCALE)
        _furnish(google, directory)
        airflow = _airflow(google, processes, directory)
        airflow.prepare()
        command = [sys.executable, "-m", "tests.kills.player", str(directory), without or "nothing", *names]
        with (directory / "player.err").open("wb") as errors:
            player = subprocess.Popen(
                command,
                env=airflow.environment,
                cwd=ROOT,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                start_new_session=True,
            )
        try:
            for line in player.stdout or ():
                if line.startswith(_TOLD):
                    yield json.loads(line.removeprefix(_TOLD))
            if player.wait():
                raise RuntimeError((directory / "player.err").read_text()[-3000:])
        finally:
            # With the step that it plays, if somebody wants no more.
            with suppress(ProcessLookupError):
                os.killpg(player.pid, signal.SIGKILL)
            player.wait()
    finally:
        processes.stop()


def tell(told: dict[str, Any]) -> None:
    """Say what a story was like, from the process that plays to the one that asked for it."""
    print(_TOLD + json.dumps(told), flush=True)  # noqa: T201


def launcher_in(directory: Path) -> Path:
    """Return the light launcher of a stage's directory."""
    return directory / "launcher" / "light.py"


def _furnish(google: LocalGoogle, directory: Path) -> None:
    """Record Beam for the light launcher, and put a template and a Spark program where the tasks look for them."""
    url = google.emulator.url
    beams = {"GOOGLE_APPLICATION_CREDENTIALS": google.keys["airflow"], "STORAGE_EMULATOR_HOST": url}
    record(directory / "launcher", state=directory / "emulator", url=url, environment=beams)
    bucket = google.bucket(BUCKET)
    job = directory / "launcher" / "recorded" / "job.json"
    bucket.blob(TEMPLATE.removeprefix(f"gs://{BUCKET}/")).upload_from_filename(str(job))
    bucket.blob(PROGRAM.removeprefix(f"gs://{BUCKET}/")).upload_from_string("print('done')\n")


def _airflow(google: LocalGoogle, processes: Processes, directory: Path) -> Airflow:
    (directory / "dags").mkdir()
    variables = {**google.environment, "AIRFLOW__WORKERS__MIN_HEARTBEAT_INTERVAL": "0"}
    return Airflow(processes, directory / "airflow", dags=directory / "dags", variables=variables)
