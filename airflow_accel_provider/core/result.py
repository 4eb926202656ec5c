"""What a task hands on in XCom: the winner and every attempt, in one form for both modes."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from airflow_accel_provider.core.console import page_of
from airflow_accel_provider.core.record import VERSION, Attempt, Record


def result(record: Record) -> dict[str, Any]:
    """Return the XCom value of a record whose last attempt did the work, or was left running."""
    winner = record.attempts[-1]
    return {
        "v": VERSION,
        "job_id": winner.job_id,
        "job_name": winner.job_name,
        "project": record.project,
        "region": winner.placement.region,
        "zone": winner.zone or winner.placement.zone,
        "state": str(winner.outcome),
        "placement": str(winner.placement),
        "proof": winner.proof.to_json() if winner.proof else None,
        "attempts": [attempt_row(record, attempt) for attempt in record.attempts],
    }


def attempt_row(record: Record, attempt: Attempt) -> dict[str, Any]:
    """Return one attempt as XCom, UI and command line show it."""
    region, job_id = attempt.placement.region, attempt.job_id
    place = {"project": record.project, "region": region}
    return {
        "n": attempt.n,
        "placement": str(attempt.placement),
        "region": region,
        "job_id": attempt.job_id,
        "job_name": attempt.job_name,
        "submitted_at": _iso(attempt.submitted_at),
        "ended_at": _iso(attempt.ended_at),
        "outcome": str(attempt.outcome),
        "failure": attempt.failure.to_json() if attempt.failure else None,
        "url": page_of(service=record.service, **place, job_id=job_id) if job_id else None,
    }


def _iso(at: datetime | None) -> str | None:
    return at.isoformat() if at else None
