"""Compute Engine's operations: what a call that changes something answers. Here, each is done when it is answered."""

from __future__ import annotations

import json
import uuid
from typing import TYPE_CHECKING, Any

from airflow_accel_provider.emulator.compute.instances import number_of
from airflow_accel_provider.emulator.compute.paging import not_found, project_of, root_of, zone_of
from airflow_accel_provider.emulator.ledger import rfc3339
from airflow_accel_provider.emulator.wire import Call, Method

if TYPE_CHECKING:
    from airflow_accel_provider.emulator.database import Database


class Operations:
    """The operations there were, by zone and name."""

    def __init__(self, database: Database) -> None:
        self._database = database
        database.execute(
            "CREATE TABLE IF NOT EXISTS compute_operations"
            " (zone TEXT NOT NULL, name TEXT NOT NULL, body TEXT NOT NULL, PRIMARY KEY (zone, name))"
        )

    def keep(self, zone: str, body: dict[str, Any]) -> None:
        """Remember one."""
        self._database.execute(
            "INSERT INTO compute_operations VALUES (?, ?, ?)", (zone, body["name"], json.dumps(body))
        )

    def find(self, zone: str, name: str) -> dict[str, Any] | None:
        """Return the one of a name, or None."""
        row = self._database.one("SELECT body FROM compute_operations WHERE zone = ? AND name = ?", (zone, name))
        return json.loads(row["body"]) if row else None


def done(call: Call, verb: str, *, zone: str, target: str) -> dict[str, Any]:
    """Remember and return the operation of a change that was just made; ``target`` is ``reservations/NAME``."""
    name, now = f"operation-{uuid.uuid4()}", rfc3339(call.google.now())
    where = f"{root_of(call)}/projects/{call.google.project}/zones/{zone}"
    body = {
        "kind": "compute#operation",
        "id": number_of(name),
        "name": name,
        "zone": where,
        "operationType": verb,
        "targetLink": f"{where}/{target}",
        "targetId": number_of(target),
        "status": "DONE",
        "user": call.principal,
        "progress": 100,
        "insertTime": now,
        "startTime": now,
        "endTime": now,
        "selfLink": f"{where}/operations/{name}",
    }
    call.google.operations.keep(zone, body)
    return body


def get_operation(call: Call) -> dict[str, Any]:
    """Answer ``zoneOperations.get`` and ``wait``: an operation, which is done."""
    project = project_of(call)
    zone, name = zone_of(call, project), call.path["operation"]
    found = call.google.operations.find(zone, name)
    if found is None:
        raise not_found(f"projects/{project}/zones/{zone}/operations/{name}")
    return found


_OPERATION = "/compute/v1/projects/{project}/zones/{zone}/operations/{operation}"

METHODS = (
    Method(id="compute.zoneOperations.get", verb="GET", path=_OPERATION, handler=get_operation),
    Method(id="compute.zoneOperations.wait", verb="POST", path=f"{_OPERATION}/wait", handler=get_operation),
)
