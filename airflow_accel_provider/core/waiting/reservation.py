"""Whether there is free capacity in a reservation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from airflow_accel_provider.core.failures import Failure, FailureKind, Scope
from airflow_accel_provider.core.reservations import Reservation, ReservationState
from airflow_accel_provider.core.reserving import meant_by
from airflow_accel_provider.core.waiting.answers import Answer, Met, Never, NotYet


@dataclass(frozen=True, slots=True, kw_only=True)
class ReservationQuestion:
    """``count`` machines are free in the reservation (``projects/P/zones/Z/reservations/R``, the project optional)."""

    reservation: str
    count: int = 1

    @property
    def subject(self) -> str:
        """What is asked about, as a person names it."""
        return f"reservation {self.reservation}"


def answer_reservation(
    question: ReservationQuestion,
    state: ReservationState | None,
    *,
    project: str,
    others: Sequence[Reservation] = (),
) -> Answer:
    """Return whether so many machines are free; ``state`` is ``None`` where there is no such reservation.

    ``others`` are those that there are instead, from which the nearest is told.
    """
    if state is None:
        text = f"there is no {question.subject} for project {project}{_hint(question, others)}"
        return Never(Failure(kind=FailureKind.CONFIGURATION, scope=Scope.ZONE, explanation=text))
    if state.free >= question.count:
        return Met(_value(question, state))
    return NotYet(_why_not(question, state))


def _value(question: ReservationQuestion, state: ReservationState) -> dict[str, object]:
    return {
        "v": 1,
        "reservation": question.reservation,
        "zone": state.reservation.zone,
        "machine_type": state.machine_type,
        "accelerator": state.accelerator,
        "accelerators_each": state.accelerators_each,
        "needed": question.count,
        "free": state.free,
        "in_use": state.in_use,
        "count": state.count,
    }


def _hint(question: ReservationQuestion, others: Sequence[Reservation]) -> str:
    meant = meant_by(Reservation.parse(question.reservation), others)
    return f"; did you mean {' or '.join(f'{each.name} in {each.zone}' for each in meant)}?" if meant else ""


def _why_not(question: ReservationQuestion, state: ReservationState) -> str:
    if state.status != "ready":
        return f"{question.subject} is {state.status or 'of unknown status'}, not ready"
    if state.count < question.count:
        return f"{question.subject} holds {state.count} in all, and {question.count} must be free"
    return f"{state.free} of {state.count} free in {question.subject}, and {question.count} must be"
