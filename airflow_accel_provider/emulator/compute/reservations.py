"""Reservations: machines kept for the project, which take neither stock nor quota when a VM comes up in one."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from airflow_accel_provider.emulator.compute.instances import Instance
from airflow_accel_provider.emulator.worlds import Reserved

if TYPE_CHECKING:
    from airflow_accel_provider.emulator.state import Google


@dataclass(frozen=True, slots=True, kw_only=True)
class Reservation:
    """A reservation as it stands. ``created`` is when a call made it, None where the world has it."""

    project: str
    reserved: Reserved
    in_use: int
    created: str | None = None

    @property
    def path(self) -> str:
        """Return what an Instance's ``reservation`` says when it takes a place of this one."""
        return path_of(self.project, self.reserved)

    @property
    def free(self) -> int:
        """Return how many more VMs it has room for."""
        return max(0, self.reserved.count - self.in_use)

    def fits(self, wanted: Instance) -> bool:
        """Tell whether a VM is of the kind that is reserved, and in its zone."""
        reserved = self.reserved
        return (wanted.zone, wanted.machine_type, wanted.accelerator, wanted.count) == (
            reserved.zone,
            reserved.machine_type,
            reserved.accelerator,
            reserved.accelerators_each,
        )


class Reservations:
    """All reservations of the project: those of the world, and those made by a call, which survive a restart."""

    def __init__(self, google: Google) -> None:
        self._google = google
        google.database.execute(
            "CREATE TABLE IF NOT EXISTS compute_reservations"
            " (zone TEXT NOT NULL, name TEXT NOT NULL, created TEXT NOT NULL, body TEXT NOT NULL,"
            " PRIMARY KEY (zone, name))"
        )

    def list(self, *, zone: str | None = None, existing: Iterable[Instance] | None = None) -> tuple[Reservation, ...]:
        """Return all as they stand, of one zone or of all, ordered by zone and name.

        ``existing`` are the VMs to count; by default those that there are.
        """
        vms = self._instances() if existing is None else tuple(existing)
        found = {
            (reserved.zone, reserved.name): self._standing(reserved, vms)
            for reserved in self._google.world.reservations
        }
        for row in self._google.database.query("SELECT * FROM compute_reservations"):
            reserved = Reserved(**json.loads(row["body"]))
            found[reserved.zone, reserved.name] = self._standing(reserved, vms, created=row["created"])
        return tuple(found[key] for key in sorted(found) if zone in (None, key[0]))

    def find(
        self, project: str, zone: str, name: str, *, existing: Iterable[Instance] | None = None
    ) -> Reservation | None:
        """Return the reservation of a name in a zone as it stands, or None."""
        if project != self._google.project:
            return None
        return next((each for each in self.list(zone=zone, existing=existing) if each.reserved.name == name), None)

    def usable_by(self, wanted: Instance, *, existing: Sequence[Instance] | None = None) -> tuple[Reservation, ...]:
        """Return those that a VM may take without naming one: of its kind, in its zone, open to all and not full."""
        return tuple(
            each
            for each in self.list(zone=wanted.zone, existing=existing)
            if each.fits(wanted) and not each.reserved.specific and each.free
        )

    def make(self, reserved: Reserved, *, created: str) -> None:
        """Keep a new reservation; its name must be free in its zone."""
        self._google.database.execute(
            "INSERT INTO compute_reservations VALUES (?, ?, ?, ?)",
            (reserved.zone, reserved.name, created, json.dumps(asdict(reserved))),
        )

    def remove(self, reservation: Reservation) -> None:
        """Let go one that was made by a call."""
        self._google.database.execute(
            "DELETE FROM compute_reservations WHERE zone = ? AND name = ?",
            (reservation.reserved.zone, reservation.reserved.name),
        )

    def _standing(self, reserved: Reserved, vms: Iterable[Instance], *, created: str | None = None) -> Reservation:
        path = path_of(self._google.project, reserved)
        in_use = reserved.in_use + sum(vm.reservation == path for vm in vms)
        return Reservation(project=self._google.project, reserved=reserved, in_use=in_use, created=created)

    def _instances(self) -> tuple[Instance, ...]:
        return self._google.dataflow.instances.list(self._google.project)


def path_of(project: str, reserved: Reserved) -> str:
    """Return a reservation's path: ``projects/P/zones/Z/reservations/R``."""
    return f"projects/{project}/zones/{reserved.zone}/reservations/{reserved.name}"
