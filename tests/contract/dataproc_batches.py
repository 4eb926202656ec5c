"""Submits Spark batches to an emulator with bare requests."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dataflow_jobs import until
from google.cloud import storage
from google.cloud.exceptions import Conflict

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from emulators import Emulator
    from google.auth.transport.requests import AuthorizedSession

BUCKET = "dataproc-tests"
PATIENCE_SECONDS = 400.0
"""Spark takes its time where others are at work, too."""

OVER = ("SUCCEEDED", "FAILED", "CANCELLED")
L4 = {
    "spark.dataproc.executor.compute.tier": "premium",
    "spark.dataproc.executor.disk.tier": "premium",
    "spark.dataproc.executor.resource.accelerator.type": "l4",
    "spark.executor.instances": "5",
}
QUEUED_L4 = {
    "spark.dataproc.executor.compute.class": "performance",
    "spark.dataproc.executor.storage.class": "performance",
    "spark.dataproc.executor.resource.accelerator.type": "l4",
    "spark.executor.instances": "5",
}


def fresh_id(prefix: str = "batch") -> str:
    """Return a batch id that no other test uses."""
    return f"{prefix}-{uuid.uuid4().hex[:12]}"


def pyspark(
    properties: Mapping[str, str] | None = None, *, version: str = "2.3", main: str = "nowhere.py", **fields: Any
) -> dict[str, Any]:
    """Return a PySpark batch; its program lies nowhere unless it is named."""
    batch = {"mainPythonFileUri": f"gs://{BUCKET}/{main}"}
    return {
        "pysparkBatch": batch,
        "runtimeConfig": {"version": version, "properties": dict(properties or {})},
        **fields,
    }


def open_bucket(emulator: Emulator, name: str = BUCKET) -> storage.Bucket:
    """Return a bucket, made if there is none."""
    client = storage.Client.from_service_account_json(
        str(emulator.keys["airflow"]), client_options={"api_endpoint": emulator.url}
    )
    try:
        return client.create_bucket(name)
    except Conflict:
        return client.bucket(name)


@dataclass(frozen=True, kw_only=True)
class Client:
    """Bare HTTP calls of one identity."""

    emulator: Emulator
    session: AuthorizedSession

    @property
    def root(self) -> str:
        """Return the address that resource names are put behind."""
        return f"{self.emulator.url}/v1"

    def url(self, batch_id: str = "", location: str = "us-central1") -> str:
        """Return the address of a location's batches, or of one of them."""
        base = f"{self.root}/projects/{self.emulator.project}/locations/{location}/batches"
        return f"{base}/{batch_id}" if batch_id else base

    def post(self, body: Mapping[str, Any], batch_id: str = "", location: str = "us-central1", **query: str) -> Any:
        """Ask for a batch and return the HTTP response."""
        parameters = {"batchId": batch_id or fresh_id(), **query}
        return self.session.post(self.url(location=location), params=parameters, json=body, timeout=30)

    def create(self, body: Mapping[str, Any], location: str = "us-central1", **query: str) -> str:
        """Create a batch and return its resource name."""
        answer = self.post(body, location=location, **query)
        assert answer.status_code == 200, answer.text
        return str(answer.json()["metadata"]["batch"])

    def get(self, name: str) -> dict[str, Any]:
        """Return a batch or operation as it is now."""
        answer = self.session.get(f"{self.root}/{name}", timeout=30)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def cancel(self, name: str) -> Any:
        """Ask for the cancel of a batch, through its operation, and return the HTTP response."""
        return self.session.post(f"{self.root}/{self.get(name)['operation']}:cancel", json={}, timeout=30)

    def delete(self, name: str) -> Any:
        """Ask for the end of a batch's record and return the HTTP response."""
        return self.session.delete(f"{self.root}/{name}", timeout=30)

    def wait(self, name: str, *states: str) -> dict[str, Any]:
        """Wait until a batch is in one of the states, or over where none is said, and return it."""
        wanted = states or OVER
        return until(lambda: self.get(name), lambda found: found["state"] in wanted, patience=PATIENCE_SECONDS)

    def list(self, location: str = "us-central1", **query: str) -> list[dict[str, Any]]:
        """Return a page of batches."""
        answer = self.session.get(self.url(location=location), params=query, timeout=30)
        assert answer.status_code == 200, answer.text
        return answer.json().get("batches", [])

    def quota(self, metric: str, region: str = "us-central1") -> float:
        """Return how much of a regional quota is used."""
        url = f"{self.emulator.url}/compute/v1/projects/{self.emulator.project}/regions/{region}"
        quotas = self.session.get(url, timeout=30).json()["quotas"]
        return next(float(quota["usage"]) for quota in quotas if quota["metric"] == metric)

    def clear(self) -> None:
        """Cancel every batch that is not over, wherever it is, and wait until none is."""
        for batch in self.emulator.google.dataproc.batches.active():
            self.cancel(batch.name)
        until(self.emulator.google.dataproc.batches.active, lambda batches: not batches)

    def states(self, name: str) -> Iterator[str]:
        """Yield the states that a batch was in, in order."""
        batch = self.get(name)
        yield from (entry["state"] for entry in batch["stateHistory"])
        yield batch["state"]
