"""The jobs there are: what was asked, how far they are, and when something next happens to them."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from airflow_accel_provider.emulator.dataflow.demand import STREAMING, Demand, read_demand
from airflow_accel_provider.emulator.passing import NEVER

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from airflow_accel_provider.emulator.database import Database

TERMINAL = frozenset(f"JOB_STATE_{word}" for word in ("DONE", "FAILED", "CANCELLED", "UPDATED", "DRAINED"))


class Phase(StrEnum):
    """Where in its life a job is; finer than its state, and never shown."""

    QUEUED = "queued"
    LAUNCHING = "launching"
    CREATED = "created"
    ALLOCATING = "allocating"
    PROVISIONING = "provisioning"
    BOOTING = "booting"
    PULLING = "pulling"
    EXECUTING = "executing"
    FAILING = "failing"
    NOTICED = "noticed"
    DRAINING = "draining"
    STOPPING = "stopping"
    ENDING = "ending"
    OVER = "over"


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One job. ``request`` is the cleaned body of its creation; ``due`` (epoch seconds) is when its phase is over.

    ``tries`` counts within a phase, ``outcome`` is what execution brought, ``ending`` the state to come after STOPPING.
    ``launch`` is how a template's program is to be run (see Launch); until it has, ``request`` says only what the
    launch did.
    """

    id: str
    project: str
    location: str
    name: str
    principal: str
    request: Mapping[str, Any]
    created: str
    state: str
    state_time: str
    phase: Phase = Phase.CREATED
    due: float = NEVER
    started: str | None = None
    requested_state: str | None = None
    zone: str | None = None
    has_workers: bool = False
    tries: int = 0
    outcome: Mapping[str, Any] | None = None
    ending: str | None = None
    launch: Mapping[str, Any] | None = None

    @property
    def demand(self) -> Demand:
        """Return what it asks for."""
        return read_demand(self.request, location=self.location)

    @property
    def is_streaming(self) -> bool:
        """Tell whether it runs until it is told to end."""
        return bool(self.request.get("type") == STREAMING)

    @property
    def is_over(self) -> bool:
        """Tell whether its state is final."""
        return self.state in TERMINAL

    @property
    def client_request_id(self) -> str:
        """Return the id that its creator gave the request, or nothing."""
        return str(self.request.get("clientRequestId", ""))


class Jobs:
    """All jobs of all regions."""

    def __init__(self, database: Database) -> None:
        self._database = database
        database.execute(
            "CREATE TABLE IF NOT EXISTS dataflow_jobs (number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT UNIQUE,"
            " project TEXT NOT NULL, location TEXT NOT NULL, name TEXT NOT NULL, phase TEXT NOT NULL,"
            " due REAL NOT NULL, body TEXT NOT NULL)"
        )
        database.execute("CREATE INDEX IF NOT EXISTS dataflow_jobs_due ON dataflow_jobs (due)")

    def add(self, job: Job) -> None:
        """Store a new job."""
        self._database.execute(
            "INSERT INTO dataflow_jobs (id, project, location, name, phase, due, body) VALUES (?, ?, ?, ?, ?, ?, ?)",
            (job.id, job.project, job.location, job.name, job.phase, job.due, json.dumps(asdict(job))),
        )

    def save(self, job: Job) -> None:
        """Store how far a job is."""
        self._database.execute(
            "UPDATE dataflow_jobs SET phase = ?, due = ?, body = ? WHERE id = ?",
            (job.phase, job.due, json.dumps(asdict(job)), job.id),
        )

    def get(self, job_id: str) -> Job | None:
        """Return a job by id, or None."""
        return next(self._select("id = ?", job_id), None)

    def list(self, project: str, *, location: str | None = None, name: str | None = None) -> tuple[Job, ...]:
        """Return a project's jobs, of one region and name or of all, newest first."""
        condition = "project = ? AND (? IS NULL OR location = ?) AND (? IS NULL OR name = ?)"
        return tuple(self._select(condition, project, location, location, name, name))

    def active(self) -> tuple[Job, ...]:
        """Return all jobs that are not over."""
        return tuple(self._select("phase != ?", Phase.OVER))

    def due(self, now: float) -> tuple[Job, ...]:
        """Return the jobs to which something happens now, the most overdue first."""
        return tuple(sorted(self._select("due <= ?", now), key=lambda job: job.due))

    def next_due(self) -> float:
        """Return when something next happens to any job."""
        row = self._database.one("SELECT MIN(due) AS due FROM dataflow_jobs")
        return NEVER if row is None or row["due"] is None else float(row["due"])

    def _select(self, condition: str, *parameters: Any) -> Iterator[Job]:
        # Conditions are the constants above; values go in as parameters.
        sql = f"SELECT body FROM dataflow_jobs WHERE {condition} ORDER BY number DESC"  # noqa: S608
        for row in self._database.query(sql, parameters):
            body = json.loads(row["body"])
            yield Job(**{**body, "phase": Phase(body["phase"])})
