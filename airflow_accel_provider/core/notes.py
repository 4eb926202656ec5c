"""What a trigger writes down before it acts, so that whoever follows the job next knows why it ends or is left.

A trigger's arguments are as old as its deferral. Without the note, one that is started anew in the middle of a cancel
would take it for somebody else's. Airflow deletes the notes of a try when the next one begins, but first tells that one
their keys: the key of the word says the little that the next try must know.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from airflow_accel_provider.core.failures import Failure, FailureKind, Scope
from airflow_accel_provider.core.record import VERSION, Attempt, Outcome, Record, check_version

NOTE_KEY = "accel_note"
"""The key of the task instance's XCom that holds the note."""


def note_of(attempt: Attempt) -> dict[str, Any]:
    """Return the note about an attempt, as plain JSON: what its job was asked for, and why."""
    return {"v": VERSION, "attempt": attempt.to_json()}


def recall(attempt: Attempt, note: object) -> Attempt:
    """Return the attempt as the note has it; one about another job, or none, says nothing.

    Raises :class:`UnknownVersionError`.
    """
    if not isinstance(note, Mapping):
        return attempt
    check_version(note, "note")
    noted = Attempt.from_json(note["attempt"])
    if (noted.job_id, noted.job_name) != (attempt.job_id, attempt.job_name):
        return attempt
    return replace(
        attempt,
        outcome=noted.outcome,
        failure=noted.failure,
        cancel_requested_at=noted.cancel_requested_at,
        proof=noted.proof or attempt.proof,
    )


def is_left_running(attempt: Attempt, note: object) -> bool:
    """Tell whether the note says that the attempt's job was proven and is meant to go on. Raises as :func:`recall`."""
    return recall(attempt, note).outcome is Outcome.RUNNING


_WORD = f"accel_asked_v{VERSION}"


def word_of(attempt: Attempt) -> str | None:
    """Return the key of the XCom that tells the next try what became of the attempt, as far as it must know.

    That is that and why its job was asked to end, or that it was left running after all.
    """
    if attempt.outcome is Outcome.RUNNING:
        return f"{_WORD}.{attempt.n}.{Outcome.RUNNING}"
    failure = attempt.failure
    if failure is None or not attempt.outcome.is_ending:
        return None
    return f"{_WORD}.{attempt.n}.{attempt.outcome}.{failure.kind}.{failure.scope}"


def heard(record: Record, keys: Iterable[str]) -> Record:
    """Return the record with what a trigger of the try before asked the open attempt's job for, by its word's key.

    A word of another version says nothing, and nothing is cancelled because of it.
    """
    attempt = record.open
    if attempt is None or attempt.outcome.is_ending:
        return record
    words = [key.split(".")[2:] for key in keys if key.startswith(f"{_WORD}.{attempt.n}.")]
    if not words or [Outcome.RUNNING] in words:
        return record
    return record.with_attempt(_asked(attempt, *words[-1]))


def _asked(attempt: Attempt, outcome: str, kind: str, scope: str) -> Attempt:
    explanation = f"an earlier try asked for its end ({kind})"
    region = attempt.placement.region
    reason = Failure(kind=FailureKind(kind), scope=Scope(scope), region=region, explanation=explanation)
    return replace(attempt, outcome=Outcome(outcome), failure=reason)
