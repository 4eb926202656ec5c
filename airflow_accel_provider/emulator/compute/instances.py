"""The VMs there are, in a table of their own: they hold stock and quota until they are gone."""

from __future__ import annotations

import json
import zlib
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from airflow_accel_provider.emulator.compute.tables import ACCELERATORS, Machine, find_machine, listed_name, region_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from airflow_accel_provider.emulator.database import Database

PLAIN_MACHINE = "n1-standard-1"
"""What a batch worker is where nothing else is asked for."""

TENANT = "a project of Google's"
"""Where VMs lie that services keep to themselves. No project's id can be that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Instance:
    """One VM. ``accelerator`` and ``count`` are what it draws; ``shows_accelerator`` is whether one is really there.

    ``reservation`` is the path (``projects/P/zones/Z/reservations/R``) of the reservation whose place it takes.
    ``own_draws`` is what it takes of regional quotas, where its machine type does not say that.
    """

    name: str
    project: str
    zone: str
    machine_type: str
    status: str
    created: str
    accelerator: str | None = None
    count: int = 0
    shows_accelerator: bool = True
    disk_gb: int = 25
    public_ip: bool = True
    description: str = ""
    service_account: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    reservation: str | None = None
    own_draws: Mapping[str, float] | None = None

    @property
    def shown_machine_type(self) -> str:
        """Return the machine type it has in truth: a TPU is never taken off its machine, so without one it is plain."""
        is_tpu = self.accelerator is not None and ACCELERATORS[self.accelerator].is_tpu
        return PLAIN_MACHINE if is_tpu and not self.shows_accelerator else self.machine_type

    @property
    def machine(self) -> Machine:
        """Return what kind of machine it is."""
        machine = find_machine(self.machine_type)
        if machine is None:
            raise LookupError(f"There is no machine type {self.machine_type}.")
        return machine


class Instances:
    """All VMs of all projects. Names are unique in the whole."""

    def __init__(self, database: Database) -> None:
        self._database = database
        database.execute(
            "CREATE TABLE IF NOT EXISTS compute_instances"
            " (name TEXT PRIMARY KEY, project TEXT NOT NULL, zone TEXT NOT NULL, body TEXT NOT NULL)"
        )

    def put(self, instances: Iterable[Instance]) -> None:
        """Add VMs, or replace those of the same name."""
        with self._database.transaction():
            for instance in instances:
                self._database.execute(
                    "INSERT OR REPLACE INTO compute_instances VALUES (?, ?, ?, ?)",
                    (instance.name, instance.project, instance.zone, json.dumps(asdict(instance))),
                )

    def remove(self, instances: Iterable[Instance]) -> None:
        """Let VMs go."""
        with self._database.transaction():
            for instance in instances:
                self._database.execute("DELETE FROM compute_instances WHERE name = ?", (instance.name,))

    def list(self, project: str, *, zone: str | None = None) -> tuple[Instance, ...]:
        """Return a project's VMs, of one zone or of all, ordered by zone and name."""
        rows = self._database.query(
            "SELECT body FROM compute_instances WHERE project = ? AND (? IS NULL OR zone = ?) ORDER BY zone, name",
            (project, zone, zone),
        )
        return tuple(Instance(**json.loads(row["body"])) for row in rows)


def number_of(name: str) -> str:
    """Return the numeric id that stands for a name; the same name has the same number."""
    return str(10**18 + zlib.crc32(name.encode()) * 1_000_003 + zlib.crc32(name[::-1].encode()))


def to_json(instance: Instance, root: str) -> dict[str, Any]:
    """Return a VM as Compute Engine shows it; ``root`` is the URL its links begin with, up to ``/compute/v1``."""
    zone = f"{root}/projects/{instance.project}/zones/{instance.zone}"
    is_attached = bool(instance.count)
    body: dict[str, Any] = {
        "kind": "compute#instance",
        "id": number_of(instance.name),
        "name": instance.name,
        "description": instance.description,
        "creationTimestamp": instance.created,
        "status": instance.status,
        "machineType": f"{zone}/machineTypes/{instance.shown_machine_type}",
        "zone": zone,
        "selfLink": f"{zone}/instances/{instance.name}",
        "labels": dict(instance.labels),
        "scheduling": {
            # A VM with a GPU cannot move to another host.
            "onHostMaintenance": "TERMINATE" if is_attached else "MIGRATE",
            "automaticRestart": True,
            "preemptible": False,
            "provisioningModel": "STANDARD",
        },
        "disks": [_boot_disk(instance)],
        "networkInterfaces": [_network(instance, root)],
        "serviceAccounts": [
            {"email": instance.service_account, "scopes": ["https://www.googleapis.com/auth/cloud-platform"]}
        ],
    }
    if instance.accelerator and is_attached and instance.shows_accelerator:
        accelerator = f"{zone}/acceleratorTypes/{listed_name(instance.accelerator)}"
        body["guestAccelerators"] = [{"acceleratorType": accelerator, "acceleratorCount": instance.count}]
    if instance.reservation:
        body["resourceStatus"] = {"reservationConsumptionInfo": {"consumedReservation": instance.reservation}}
    return body


def _boot_disk(instance: Instance) -> dict[str, Any]:
    return {
        "kind": "compute#attachedDisk",
        "type": "PERSISTENT",
        "mode": "READ_WRITE",
        "boot": True,
        "autoDelete": True,
        "index": 0,
        "deviceName": "persistent-disk-0",
        "diskSizeGb": str(instance.disk_gb),
    }


def _network(instance: Instance, root: str) -> dict[str, Any]:
    project = f"{root}/projects/{instance.project}"
    interface: dict[str, Any] = {
        "kind": "compute#networkInterface",
        "name": "nic0",
        "network": f"{project}/global/networks/default",
        "subnetwork": f"{project}/regions/{region_of(instance.zone)}/subnetworks/default",
    }
    if instance.public_ip:
        interface["accessConfigs"] = [
            {"kind": "compute#accessConfig", "type": "ONE_TO_ONE_NAT", "name": "External NAT"}
        ]
    return interface
