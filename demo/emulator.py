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
    from demo.processes import Processes


DAGS = Path(__file__).parents[1] / "dags"
TIME_SCALE = "30"
"""A minute at Google in two seconds: fast, yet workers outlive the seconds a new triggerer takes to its first look."""


class Emulator:
    """A running emulator: where it is, how to reach it, what it saw."""

    def __init__(self, processes: Processes, state: Path, *, world: str, time_scale: str = TIME_SCALE) -> None:
        self._processes = processes
        self._state = state
        self._world = world
        self._time_scale = time_scale

    def start(self) -> None:
        """Start it on a free port and wait until it answers."""
        module = [sys.executable, "-m", "airflow_accel_provider.emulator"]
        options = ["--port", "0", "--state", str(self._state), "--world", self._world, "--time-scale", self._time_scale]
        templates = [f"--template={image}={DAGS / file}" for image, file in TEMPLATES.items()]
        self._processes.start("emulator", [*module, *options, *templates], clean_environment())
        wait_for("the emulator to answer", self._answers, seconds=60)

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

    def set_world(self, name: str) -> None:
        """Change what is in stock and what is within quota from now on."""
        self._admin("PUT", "world", {"name": name})

    def ledger(self, *, since: int = 0) -> dict[str, Any]:
        """Return calls and events after a sequence number, oldest first, and the last number."""
        ledger: dict[str, Any] = self._admin("GET", f"ledger?since={since}")
        return ledger

    def _answers(self) -> bool:
        self._processes.check()
        try:
            return bool(self._admin("GET", "health"))
        except (FileNotFoundError, httpx.TransportError):
            return False

    def _admin(self, verb: str, path: str, body: dict[str, Any] | None = None) -> Any:
        answer = httpx.request(verb, f"{self.url}/_emulator/{path}", json=body, timeout=30, trust_env=False)
        answer.raise_for_status()
        return answer.json()
