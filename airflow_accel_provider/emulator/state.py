"""All the state there is: what the handlers of every service share."""

from __future__ import annotations

import threading
import zlib
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from airflow_accel_provider.emulator.compute.instances import TENANT, Instance
from airflow_accel_provider.emulator.compute.operations import Operations
from airflow_accel_provider.emulator.compute.reservations import Reservations
from airflow_accel_provider.emulator.database import Database
from airflow_accel_provider.emulator.dataflow import Dataflow
from airflow_accel_provider.emulator.dataproc import Dataproc
from airflow_accel_provider.emulator.faults import Faults
from airflow_accel_provider.emulator.identity import Identities
from airflow_accel_provider.emulator.ledger import Ledger
from airflow_accel_provider.emulator.storage import Buckets
from airflow_accel_provider.emulator.worlds import World, load_world

if TYPE_CHECKING:
    from pathlib import Path

DEFAULT_PROJECT = "acme-ml-prod"
DEFAULT_WORLD = "plenty"
DEFAULT_TIME_SCALE = 60.0


class Google:
    """One pretended Google: a project with two service accounts, in a world.

    ``directory`` holds everything that survives a restart. ``url`` (``http://localhost:PORT``) is empty until ``open``.
    ``time_scale`` divides the durations of what Google does; timestamps are real.
    """

    def __init__(
        self,
        directory: Path,
        *,
        project: str = DEFAULT_PROJECT,
        world: str = DEFAULT_WORLD,
        time_scale: float = DEFAULT_TIME_SCALE,
    ) -> None:
        self.directory = directory.resolve()
        self.project = project
        self.time_scale = time_scale
        self.url = ""
        self._ending = threading.Event()
        self.directory.mkdir(parents=True, exist_ok=True)
        # Keys, tokens and staged code lie here.
        self.directory.chmod(0o700)
        self.database = Database(self.directory / "state.sqlite")
        self.ledger = Ledger(self.database)
        self.faults = Faults(self.database)
        self.identities = Identities(self.database, self.directory / "keys", project=project)
        self.buckets = Buckets(self.database, self.directory / "objects")
        self.world_name = world
        self.world: World = load_world(world)
        self.operations = Operations(self.database)
        self.reservations = Reservations(self)
        self.dataflow = Dataflow(self)
        self.dataproc = Dataproc(self)

    def open(self, url: str) -> None:
        """Take the address that clients will use, and write it into the key files."""
        self.url = url
        self.identities.write_keys(token_uri=f"{url}/token")

    def start(self) -> None:
        """Let time pass: jobs go on from here. Called once the address answers."""
        self.ledger.event("world.entered", world=self.world_name)
        self.dataflow.start()
        self.dataproc.start()

    def end(self) -> None:
        """Let no call wait any longer: the server is about to stop."""
        self._ending.set()

    def pause(self, seconds: float) -> bool:
        """Let a call wait for real seconds; return whether it may go on, which it may not when the end came first."""
        return not self._ending.wait(seconds)

    def stop(self) -> None:
        """Stop whatever runs and close the files."""
        self.dataflow.stop()
        self.dataproc.stop()
        self.database.close()

    def enter(self, world: str) -> None:
        """Change the world; what runs already goes on in it."""
        self.world_name, self.world = world, load_world(world)
        self.ledger.event("world.entered", world=world)

    def machines(self) -> tuple[Instance, ...]:
        """Return every VM that takes of the project's stock and quota, be it in the project or kept by a service."""
        vms = self.dataflow.instances
        return (*vms.list(self.project), *vms.list(TENANT))

    @property
    def project_number(self) -> int:
        """Return the project's number, twelve digits that follow from its id."""
        return 10**11 + zlib.crc32(self.project.encode())

    def now(self) -> datetime:
        """Return the time, in UTC."""
        return datetime.now(UTC)

    def scaled(self, seconds: float) -> float:
        """Return how many real seconds stand for so many of Google's."""
        return seconds / self.time_scale
