"""What tests ask of the emulator: its ledger, its jobs as the API shows them, its buckets."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import httpx
from airflow.sdk import BaseHook

from airflow_accel_provider.hooks.dataflow import DataflowHook
from airflow_accel_provider.hooks.session import GoogleSession
from demo.emulator import TIME_SCALE, Emulator, RunningEmulator

if TYPE_CHECKING:
    from collections.abc import Mapping

    from google.cloud.storage import Bucket

    from demo.processes import Processes

PROJECT = "acme-ml-prod"
CREATE = "dataflow.projects.locations.jobs.create"


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalGoogle:
    """A running emulator, the key files of its two accounts, and the variables that lead to it."""

    emulator: RunningEmulator
    keys: Mapping[str, str]
    environment: Mapping[str, str]

    @classmethod
    def start(cls, processes: Processes, state: Path, *, time_scale: str = TIME_SCALE) -> Self:
        """Start an emulator in the world of plenty; it ends with ``processes``."""
        Emulator(processes, state, world="plenty", time_scale=time_scale).start()
        return cls.running_in(state)

    @classmethod
    def running_in(cls, state: Path) -> Self:
        """Return the emulator that somebody has started with this folder."""
        emulator = RunningEmulator(state)
        keys = json.loads((state / "emulator.json").read_text())["keys"]
        return cls(emulator=emulator, keys=keys, environment=emulator.environment())

    def mark(self) -> int:
        """Return the ledger's newest number, to ask later for what came since."""
        last: int = self.emulator.ledger()["last"]
        return last

    def calls(self, method: str, *, since: int) -> list[dict[str, Any]]:
        """Return the calls of a method."""
        return [call for call in self.emulator.ledger(since=since)["calls"] if call["method"] == method]

    def created(self, *, since: int) -> list[dict[str, Any]]:
        """Return what the ledger says of the jobs that were created, oldest first."""
        return self.events("dataflow.job.created", since=since)

    def events(self, kind: str, *, since: int) -> list[dict[str, Any]]:
        """Return the events of a kind, oldest first."""
        return [event for event in self.emulator.ledger(since=since)["events"] if event["kind"] == kind]

    def states(self, job_id: str) -> list[str]:
        """Return the states a job went through."""
        changes = self.events("dataflow.job.state", since=0)
        return [each["state"].removeprefix("JOB_STATE_") for each in changes if each["job_id"] == job_id]

    def job(self, job_id: str, region: str) -> dict[str, Any]:
        """Return a job as the API shows it, with all there is to show."""
        path = f"projects/{PROJECT}/locations/{region}/jobs/{job_id}"
        return self.session().request("dataflow", "GET", path, params={"view": "JOB_VIEW_ALL"})

    def fail(self, method: str, *, times: int = 1, **action: Any) -> None:
        """Have the next calls of a method go wrong, see the emulator's faults; they end with the test."""
        wish = {"method": method, "times": times, "action": action}
        httpx.post(f"{self.emulator.url}/_emulator/faults", json=wish, trust_env=False).raise_for_status()

    def heal(self) -> None:
        """End all faults."""
        httpx.delete(f"{self.emulator.url}/_emulator/faults", trust_env=False).raise_for_status()

    def cancel(self, job: Mapping[str, Any]) -> None:
        """Cancel a job that nobody waits for."""
        DataflowHook(self.session()).cancel(job["id"], job["location"])

    def session(self) -> GoogleSession:
        """Return a session of the default connection."""
        return GoogleSession.from_connection(BaseHook.get_connection("google_cloud_default"))

    def bucket(self, name: str) -> Bucket:
        """Return a bucket, made if there is none."""
        from google.auth.credentials import AnonymousCredentials
        from google.cloud import storage

        options = {"api_endpoint": self.emulator.url}
        client = storage.Client(project=PROJECT, credentials=AnonymousCredentials(), client_options=options)
        return client.lookup_bucket(name) or client.create_bucket(name)

    def connection(self, identity: str = "airflow", *, key: Mapping[str, Any] | None = None, **extras: Any) -> str:
        """Return a connection as the value of an ``AIRFLOW_CONN_…`` variable.

        ``key`` says what is different in the identity's key, extras what is in the connection; ``None`` leaves out.
        """
        usual = json.loads(self.environment["AIRFLOW_CONN_GOOGLE_CLOUD_DEFAULT"])["extra"]
        told = _without_none({**self.key(identity), **(key or {})})
        extra = _without_none({**usual, "keyfile_dict": json.dumps(told), **extras})
        return json.dumps({"conn_type": "google_cloud_platform", "extra": extra})

    def key(self, identity: str) -> dict[str, Any]:
        """Return an account's key."""
        key: dict[str, Any] = json.loads(Path(self.keys[identity]).read_text())
        return key


def _without_none(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}
