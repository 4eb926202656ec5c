"""Runs of the DAGs in ``dags/lives.py``: what is done to a task, and what becomes of its jobs by the ledger."""

from __future__ import annotations

import json
import signal
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import psutil

from airflow_accel_provider.core.identity import DAG, RUN
from airflow_accel_provider.core.ownership import label_form
from demo.jobs import Job, jobs_of
from demo.processes import is_alive, send
from demo.waiting import wait_for

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from airflow_accel_provider.core.jobs import Service
    from demo.api import AirflowApi
    from demo.home import Home

SLOW = 120
"""Seconds that anything may take on a busy machine."""

BUCKET = "acme-ml-lives"
IMAGE = "us-docker.pkg.dev/acme-ml-prod/beam/gpu:2.77.0"

_ENVIRONMENT = {
    "tempStoragePrefix": f"storage.googleapis.com/{BUCKET}/temp",
    "userAgent": {"name": "Apache Beam Python 3.11 SDK", "version": "2.77.0"},
    "workerPools": [{"kind": "local", "numWorkers": 1, "sdkHarnessContainerImages": [{"containerImage": IMAGE}]}],
}
_OPTIONS = {"pipelineUrl": f"gs://{BUCKET}/nowhere/pipeline.pb"}
FILES: Mapping[str, str] = {
    "endless": json.dumps(
        {
            "type": "JOB_TYPE_STREAMING",
            "environment": {
                **_ENVIRONMENT,
                "version": {"job_type": "FNAPI_STREAMING", "major": "8"},
                "sdkPipelineOptions": {"options": {"streaming": True, **_OPTIONS}},
            },
        }
    ),
    "stuck": json.dumps(
        {
            "type": "JOB_TYPE_BATCH",
            "environment": {
                **_ENVIRONMENT,
                "version": {"job_type": "FNAPI_BATCH", "major": "8"},
                "sdkPipelineOptions": {"options": _OPTIONS},
            },
        }
    ),
    "etl.py": "import pathlib, sys, time\nwhile pathlib.Path(sys.argv[1]).exists():\n    time.sleep(0.2)\n",
}
"""What the DAGs' templates and their Spark program are."""


@dataclass(frozen=True, kw_only=True)
class Run:
    """A run of one of the DAGs. Everything is read when it is asked for."""

    home: Home
    dag_id: str
    id: str
    since: int

    @property
    def api(self) -> AirflowApi:
        """Airflow's REST API."""
        return self.home.airflow.api

    @property
    def jobs(self) -> list[Job]:
        """The run's jobs that were made since it was triggered, oldest first."""
        service: Service = "dataproc" if self.dag_id.startswith("spark") else "dataflow"
        own = {DAG: label_form(self.dag_id, service), RUN: label_form(self.id, service)}
        return [
            job for job in jobs_of(self.home.emulator.ledger(since=self.since)) if own.items() <= job.labels.items()
        ]

    @property
    def state(self) -> str:
        """The run's own state."""
        return self.api.run_state(self.dag_id, self.id)

    def task(self, task_id: str = "job", map_index: int = -1) -> dict[str, Any]:
        """Return what Airflow tells of a task."""
        return self.api.task(self.dag_id, self.id, task_id, map_index)

    def log(self, task_id: str = "job", try_number: int = 1) -> str:
        """Return a task's log."""
        return self.api.log(self.dag_id, self.id, task_id, try_number)

    def seconds_of(self, try_number: int, task_id: str = "job") -> float:
        """Return how long a try took."""
        tries = self.api.call("GET", f"/dags/{self.dag_id}/dagRuns/{self.id}/taskInstances/{task_id}/tries")
        (told,) = (each for each in tries["task_instances"] if each["try_number"] == try_number)
        return float(told["duration"])

    def reaches(self, state: str, task_id: str = "job", *, try_number: int = 0, map_index: int = -1) -> dict[str, Any]:
        """Wait until a task is in a state, in that try or a later one, and return what Airflow tells of it then."""

        def there() -> dict[str, Any] | None:
            told = self.task(task_id, map_index)
            return told if told["state"] == state and told["try_number"] >= try_number else None

        what = f"{self.dag_id}.{task_id} to be {state}"
        try:
            return wait_for(what, lambda: there() or {}, seconds=SLOW)
        except TimeoutError as late:
            told = self.task(task_id, map_index)
            raise TimeoutError(f"{late} It is {told['state']} in try {told['try_number']}; jobs: {self.jobs}") from None

    def has(self, *states: str) -> Sequence[Job]:
        """Wait until the run's jobs are in these states, one each, oldest first."""
        what = f"{self.dag_id} to have jobs that are {states}"
        try:
            return wait_for(what, lambda: are_in(self.jobs, states), seconds=SLOW)
        except TimeoutError as late:
            raise TimeoutError(f"{late} There are {self.jobs}, and the task is {self.task()['state']}.") from None

    def processes(self, task_id: str = "job", map_index: int = -1) -> list[psutil.Process]:
        """Return the process that runs a task, and that of its supervisor."""
        worker = psutil.Process(self.task(task_id, map_index)["pid"])
        supervisor = worker.parent()
        assert supervisor is not None
        assert "LocalExecutor" in " ".join(supervisor.cmdline())
        return [worker, supervisor]


class Stage:
    """A real Airflow with two triggerers, and its emulator."""

    def __init__(self, home: Home) -> None:
        self.home = home
        self._triggerers = {self._triggerer_ids()[-1]: "triggerer"}
        self.start_triggerer("triggerer-2")

    @property
    def triggerers(self) -> set[str]:
        """The names of those that were not killed."""
        return set(self._triggerers.values())

    def start(self, dag_id: str, *, world: str, run_id: str | None = None, **conf: Any) -> Run:
        """Enter a world and start a run."""
        self.home.emulator.set_world(world)
        since = self.home.emulator.ledger()["last"]
        run_id = self.home.airflow.api.trigger(dag_id, logical_date=None, conf=conf, run_id=run_id)
        return Run(home=self.home, dag_id=dag_id, id=run_id, since=since)

    def start_triggerer(self, name: str) -> None:
        """Start a triggerer, and wait until Airflow knows it."""
        known = set(self._triggerer_ids())
        self.home.airflow.start_part(name)
        (new,) = wait_for("a new triggerer", lambda: set(self._triggerer_ids()) - known, seconds=SLOW)
        self._triggerers[new] = name

    def kill_triggerer(self, name: str) -> None:
        """Kill a triggerer with all its processes, as the kernel would."""
        self.home.processes.signal(name, signal.SIGKILL)
        self.home.processes.stop([name])
        self._triggerers = {id_: other for id_, other in self._triggerers.items() if other != name}

    def triggerer_of(self, run: Run, *, other_than: str = "") -> str:
        """Wait until a triggerer has a deferred task, and return its name."""

        def named() -> str:
            job = run.task()["triggerer_job"]
            name = self._triggerers.get(job["id"], "") if job else ""
            return "" if name == other_than else name

        return wait_for("a triggerer to have the task", named, seconds=SLOW)

    def _triggerer_ids(self) -> list[int]:
        jobs = self.home.airflow.api.call("GET", "/jobs?job_type=TriggererJob&order_by=id&limit=100")["jobs"]
        return [job["id"] for job in jobs]


def are_in(jobs: Sequence[Job], states: Sequence[str]) -> Sequence[Job]:
    """Return the jobs if these are their states, else nothing."""
    return jobs if [job.state for job in jobs] == list(states) else []


def kill(processes: Sequence[psutil.Process]) -> None:
    """End processes as the kernel does when there is no memory left, the first of them first."""
    send(signal.SIGKILL, processes)
    wait_for("the processes to be gone", lambda: not any(map(is_alive, processes)), seconds=SLOW)


def hold(condition: Callable[[], bool], *, seconds: float) -> None:
    """See that a condition holds for some seconds, within which what it excludes would have happened."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        assert condition()
        time.sleep(0.3)
