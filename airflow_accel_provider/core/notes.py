"""What a trigger writes down before it acts, so that whoever follows the job next knows why it ends or is left.

A trigger's arguments are as old as its deferral. Without the note, one that is started anew in the middle of a cancel
would take it for somebody else's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from airflow_accel_provider.core.record import VERSION, Attempt, Outcome, check_version

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
