"""The batches there are: what was asked, how far they are, and when something next happens to them."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from airflow_accel_provider.emulator.dataproc.wishes import Wish, read_wish
from airflow_accel_provider.emulator.passing import NEVER

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from airflow_accel_provider.emulator.database import Database

TERMINAL = frozenset({"CANCELLED", "SUCCEEDED", "FAILED"})


class Phase(StrEnum):
    """Where in its life a batch is; finer than its state, and never shown."""

    CREATED = "created"
    ALLOCATING = "allocating"
    PROVISIONING = "provisioning"
    EXECUTING = "executing"
    CHURNING = "churning"
    CANCELLING = "cancelling"
    OVER = "over"


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """One batch. ``request`` is the body of its creation, ``due`` (epoch seconds) when its phase is over.

    ``expires`` is when its ttl is; ``gives_up`` when it stops to wait for machines; ``history`` its earlier states.
    ``code`` is that of google.rpc for a batch that did not succeed. ``shows_gpus`` is whether they are really there. A
    deleted batch is kept for the sake of its operation.
    """

    id: str
    project: str
    location: str
    uuid: str
    operation: str
    principal: str
    request_id: str
    request: Mapping[str, Any]
    output_uri: str
    created: str
    state: str
    state_time: str
    message: str = ""
    history: tuple[Mapping[str, Any], ...] = ()
    phase: Phase = Phase.CREATED
    due: float = NEVER
    expires: float = NEVER
    gives_up: float = NEVER
    started: str | None = None
    shows_gpus: bool = True
    code: int = 0
    is_deleted: bool = False

    @property
    def name(self) -> str:
        """Return its resource name."""
        return f"projects/{self.project}/locations/{self.location}/batches/{self.id}"

    @property
    def operation_name(self) -> str:
        """Return the resource name of its operation, which lies in a region rather than a location."""
        return f"projects/{self.project}/regions/{self.location}/operations/{self.operation}"

    @property
    def wish(self) -> Wish:
        """Return what it asks for."""
        return read_wish(self.request)

    @property
    def is_over(self) -> bool:
        """Tell whether its state is final."""
        return self.state in TERMINAL

    @property
    def next_at(self) -> float:
        """Return when something happens to it, be it that its time is up."""
        return self.due if self.phase in {Phase.CANCELLING, Phase.OVER} else min(self.due, self.expires)


class Batches:
    """All batches of all regions."""

    def __init__(self, database: Database) -> None:
        self._database = database
        database.execute(
            "CREATE TABLE IF NOT EXISTS dataproc_batches (number INTEGER PRIMARY KEY AUTOINCREMENT, uuid TEXT UNIQUE,"
            " id TEXT NOT NULL, project TEXT NOT NULL, location TEXT NOT NULL, request_id TEXT NOT NULL,"
            " operation TEXT NOT NULL, phase TEXT NOT NULL, is_deleted INTEGER NOT NULL, next_at REAL NOT NULL,"
            " body TEXT NOT NULL)"
        )
        database.execute("CREATE INDEX IF NOT EXISTS dataproc_batches_next ON dataproc_batches (next_at)")
        database.execute("CREATE INDEX IF NOT EXISTS dataproc_batches_id ON dataproc_batches (project, location, id)")

    def add(self, batch: Batch) -> None:
        """Store a new batch."""
        self._database.execute(
            "INSERT INTO dataproc_batches (uuid, id, project, location, request_id, operation, phase, is_deleted,"
            " next_at, body) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                batch.uuid,
                batch.id,
                batch.project,
                batch.location,
                batch.request_id,
                batch.operation,
                batch.phase,
                batch.is_deleted,
                batch.next_at,
                json.dumps(asdict(batch)),
            ),
        )

    def save(self, batch: Batch) -> None:
        """Store how far a batch is."""
        self._database.execute(
            "UPDATE dataproc_batches SET phase = ?, is_deleted = ?, next_at = ?, body = ? WHERE uuid = ?",
            (batch.phase, batch.is_deleted, batch.next_at, json.dumps(asdict(batch)), batch.uuid),
        )

    def get(self, project: str, location: str, batch_id: str) -> Batch | None:
        """Return a batch by id, or None; one that was deleted is not found."""
        condition = "project = ? AND location = ? AND id = ? AND NOT is_deleted"
        return next(self._select(condition, project, location, batch_id), None)

    def by_uuid(self, uuid: str) -> Batch | None:
        """Return a batch by its uuid, or None."""
        return next(self._select("uuid = ?", uuid), None)

    def requested(self, project: str, location: str, request_id: str) -> Batch | None:
        """Return the batch that a request of an id made, or None."""
        condition = "project = ? AND location = ? AND request_id = ?"
        return next(self._select(condition, project, location, request_id), None)

    def of_operation(self, project: str, location: str, operation: str) -> Batch | None:
        """Return the batch of an operation, or None; one that was deleted is found."""
        condition = "project = ? AND location = ? AND operation = ?"
        return next(self._select(condition, project, location, operation), None)

    def list(self, project: str, location: str, *, deleted_too: bool = False) -> tuple[Batch, ...]:
        """Return the batches of a region, newest first."""
        condition = "project = ? AND location = ? AND (? OR NOT is_deleted)"
        return tuple(self._select(condition, project, location, deleted_too))

    def active(self) -> tuple[Batch, ...]:
        """Return all batches that are not over."""
        return tuple(self._select("phase != ?", Phase.OVER))

    def due(self, now: float) -> tuple[Batch, ...]:
        """Return the batches to which something happens now, the most overdue first."""
        return tuple(sorted(self._select("next_at <= ?", now), key=lambda batch: batch.next_at))

    def next_due(self) -> float:
        """Return when something next happens to any batch."""
        row = self._database.one("SELECT MIN(next_at) AS next_at FROM dataproc_batches")
        return NEVER if row is None or row["next_at"] is None else float(row["next_at"])

    def _select(self, condition: str, *parameters: Any) -> Iterator[Batch]:
        # Conditions are the constants above; values go in as parameters.
        sql = f"SELECT body FROM dataproc_batches WHERE {condition} ORDER BY number DESC"  # noqa: S608
        for row in self._database.query(sql, parameters):
            body = json.loads(row["body"])
            yield Batch(**{**body, "phase": Phase(body["phase"]), "history": tuple(body["history"])})
