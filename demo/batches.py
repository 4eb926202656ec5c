"""Spark's batches told as jobs, so that one judge and one progress serve both services."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

KINDS: Mapping[str, str] = {
    "dataproc.batch.created": "dataflow.job.created",
    "dataproc.batch.state": "dataflow.job.state",
    "dataproc.batch.requested": "dataflow.job.requested",
    "dataproc.machines.refused": "dataflow.workers.refused",
}
STATES: Mapping[str, str] = {"SUCCEEDED": "DONE"}


def as_jobs(ledger: Mapping[str, Any]) -> dict[str, Any]:
    """Return the emulator's ledger with the events of batches in the words for jobs; all else stays as it is."""
    return {**ledger, "events": [_as_job(event) for event in ledger["events"]]}


def _as_job(event: Mapping[str, Any]) -> Mapping[str, Any]:
    if "batch_id" not in event:
        return event
    told = {**event, "job_id": event["batch_id"]}
    told["kind"] = KINDS.get(event["kind"], event["kind"])
    if event["kind"] == "dataproc.machines.refused":
        told["zone"] = event["location"]
    if "state" in event:
        told["state"] = STATES.get(event["state"], event["state"])
    return told
