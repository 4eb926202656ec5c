"""The local Google as a child process."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx

from demo.examples import TEMPLATES
from demo.processes import clean_environment
from demo.waiting import wait_for

if TYPE_CHECKING:
    from google.cloud.storage import Bucket

    from demo.processes import Processes


DAGS = Path(__file__).parents[1] / "dags"
TIME_SCALE = "30"
"""A minute at Google in two seconds: fast, yet workers outlive the seconds a new triggerer takes to its first look."""


class RunningEmulator:
    """An emulator that somebody has started: where it is, how to reach it, what it saw."""

    def __init__(self, state: Path) -> None:
        self._state = state

    def environment(self) -> dict[str, str]:
        """Return the variables that point an Airflow at it."""
        command = [str(Path(sys.executable).with_name("accel")), "emulator", "env", "--json"]
        answer = subprocess.run([*command, "--state", str(self._state)], check=False, capture_output=True, text=True)
        if answer.returncode:
            raise RuntimeError(f"accel emulator env failed: {answer.stdout}{answer.stderr}")
        variables: dict[str, str] = json.loads(answer.stdout)
        return variables

    @property
    def url(self) -> str:
        """Its address."""
        address: str = json.loads((self._state / "emulator.json").read_text())["url"]
        return address

    def bucket(self, name: str) -> Bucket:
        """Make a bucket, or return the one that is there, for a bare client."""
        from google.auth.credentials import AnonymousCredentials
        from google.cloud import storage

        client = storage.Client(
            project="acme-ml-prod",
            credentials=AnonymousCredentials(),
            client_options={"api_endpoint": self.url},
        )
        return client.lookup_bucket(name) or client.create_bucket(name)

    def set_world(self, name: str) -> None:
        """Change what is in stock and what is within quota from now on."""
        self._admin("PUT", "world", {"name": name})

    def add_fault(self, method: str, *, times: int = 1, **action: Any) -> None:
        """Let the next calls of an API method go wrong."""
        self._admin("POST", "faults", {"method": method, "times": times, "action": action})

    def faults(self) -> list[dict[str, Any]]:
        """Return what was to go wrong, in order, and how often it did."""
        faults: list[dict[str, Any]] = self._admin("GET", "faults")["faults"]
        return faults

    def clear_faults(self) -> None:
        """Let everything go right again."""
        self._admin("DELETE", "faults")

    def ledger(self, *, since: int = 0) -> dict[str, Any]:
        """Return calls and events after a sequence number, oldest first, and the last number."""
        ledger: dict[str, Any] = self._admin("GET", f"ledger?since={since}")
        return ledger

    def _admin(self, verb: str, path: str, body: dict[str, Any] | None = None) -> Any:
        answer = httpx.request(verb, f"{self.url}/_emulator/{path}", json=body, timeout=30, trust_env=False)
        answer.raise_for_status()
        return answer.json()


class Emulator(RunningEmulator):
    """An emulator that is a child of this process."""

    def __init__(self, processes: Processes, state: Path, *, world: str, time_scale: str = TIME_SCALE) -> None:
        super().__init__(state)
        self._processes = processes
        self._world = world
        self._time_scale = time_scale

    def start(self) -> None:
        """Start it on a free port and wait until it answers."""
        module = [sys.executable, "-m", "airflow_accel_provider.emulator"]
        options = ["--port", "0", "--state", str(self._state), "--world", self._world, "--time-scale", self._time_scale]
        templates = [f"--template={image}={DAGS / file}" for image, file in TEMPLATES.items()]
        self._processes.start("emulator", [*module, *options, *templates], clean_environment())
        wait_for("the emulator to answer", self._answers, seconds=60)

    def _answers(self) -> bool:
        self._processes.check()
        try:
            return bool(self._admin("GET", "health"))
        except (FileNotFoundError, httpx.TransportError):
            return False
