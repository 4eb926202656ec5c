"""A small real Airflow: api-server, scheduler, dag-processor and triggerer as processes, on loopback.

Its database is SQLite, or what its variables say.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import socket
import subprocess
import sys
from typing import TYPE_CHECKING

from demo.api import AirflowApi
from demo.processes import clean_environment
from demo.waiting import wait_for

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from demo.processes import Processes

USER = "admin"
PARTS = ("api-server", "scheduler", "dag-processor", "triggerer")


class Airflow:
    """An Airflow of its own in ``home``, which must be new; ``variables`` are added to its environment."""

    def __init__(self, processes: Processes, home: Path, *, dags: Path, variables: Mapping[str, str]) -> None:
        port, worker_log_port, trigger_log_port = free_ports(3)
        self.url = f"http://localhost:{port}"
        self.password = secrets.token_urlsafe(9)
        self.api = AirflowApi(self.url, user=USER, password=self.password)
        self._processes = processes
        self._home = home
        self._started: set[str] = set()
        self.environment = {
            **clean_environment(),
            "AIRFLOW_HOME": str(home),
            "AIRFLOW__API__BASE_URL": self.url,
            "AIRFLOW__API__HOST": "127.0.0.1",
            "AIRFLOW__API__PORT": str(port),
            "AIRFLOW__API__SECRET_KEY": secrets.token_hex(16),
            "AIRFLOW__API__WORKERS": "1",
            # All parts must share the secret: the scheduler signs the tokens that the api-server verifies.
            "AIRFLOW__API_AUTH__JWT_SECRET": secrets.token_hex(32),
            "AIRFLOW__CORE__DAGS_FOLDER": str(dags),
            "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"{self.url}/execution/",
            "AIRFLOW__CORE__EXECUTOR": "LocalExecutor",
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
            # The default forks 32 workers, which two cores feel.
            "AIRFLOW__CORE__PARALLELISM": "4",
            "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(home / "passwords.json"),
            "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": f"{USER}:admin",
            # The defaults clash with another Airflow on this machine.
            "AIRFLOW__LOGGING__TRIGGER_LOG_SERVER_PORT": str(trigger_log_port),
            "AIRFLOW__LOGGING__WORKER_LOG_SERVER_PORT": str(worker_log_port),
            # The triggerer finds what a deadline calls only by its dotted name; see the DAG score_by_six.
            "PYTHONPATH": os.pathsep.join([str(dags), *filter(None, [os.environ.get("PYTHONPATH")])]),
            # The example's data covers three past days, which backfills run; a run scheduled for today could only fail.
            "AIRFLOW__SCHEDULER__USE_JOB_SCHEDULE": "False",
            "AIRFLOW__USAGE_DATA_COLLECTION__ENABLED": "False",
            # In the local Google a minute lasts two seconds: the usual ten are too long to see a worker in.
            "AIRFLOW__ACCEL__POLL_INTERVAL": "2",
            # A trigger may fire only when this and a few seconds have passed; the usual 5 is felt here.
            "AIRFLOW__WORKERS__MIN_HEARTBEAT_INTERVAL": "1",
            **variables,
        }

    def prepare(self) -> None:
        """Make its directory, its one user and its database; enough for ``airflow dags test``."""
        self._home.mkdir(parents=True)
        passwords = self._home / "passwords.json"
        passwords.touch(mode=0o600)
        passwords.write_text(json.dumps({USER: self.password}))
        command = [sys.executable, "-m", "airflow", "db", "migrate"]
        done = subprocess.run(command, env=self.environment, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"Airflow could not make its database:\n{done.stdout[-1000:]}{done.stderr[-2000:]}")

    def start(self) -> None:
        """Prepare, start all parts, wait until they are healthy, and log in."""
        self.prepare()
        for part in PARTS:
            self.start_part(part)
        wait_for("Airflow to be healthy", self._is_healthy, seconds=120)
        self.api.log_in()

    def start_part(self, part: str) -> None:
        """Start one process; one more ``triggerer`` has its own name, such as ``triggerer-2``."""
        command, environment = part, self.environment
        if part not in PARTS:
            port = str(*free_ports(1))
            command, environment = "triggerer", {**environment, "AIRFLOW__LOGGING__TRIGGER_LOG_SERVER_PORT": port}
        self._processes.start(part, [sys.executable, "-m", "airflow", command], environment)
        self._started.add(part)

    def stop(self) -> None:
        """End all parts: the api-server last, since the others report to it."""
        self._processes.stop(self._started - {"api-server"})
        self._processes.stop(["api-server"])
        self.api.close()

    def _is_healthy(self) -> bool:
        self._processes.check()
        return self.api.is_healthy()


def free_ports(count: int) -> list[int]:
    """Return so many different ports of this machine that nobody listens on."""
    with contextlib.ExitStack() as stack:
        listeners = [stack.enter_context(socket.socket()) for _ in range(count)]
        for listener in listeners:
            listener.bind(("127.0.0.1", 0))
        return [listener.getsockname()[1] for listener in listeners]
