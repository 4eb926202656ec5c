"""Reading all that a plan is made over, at once: quotas and reservations."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from airflow_accel_provider.core.reserving import Reserved
from airflow_accel_provider.hooks._together import ask_together
from airflow_accel_provider.hooks.quota import quota_calls, readings_of
from airflow_accel_provider.hooks.reservations import list_reservations, read_reservation

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from airflow_accel_provider.core.planning import Questions
    from airflow_accel_provider.core.quota import Readings
    from airflow_accel_provider.hooks.session import GoogleSession

_ALL = "reservations"


def read_supply(session: GoogleSession, wanted: Questions, *, seconds: float = 10.0) -> tuple[Readings, Reserved]:
    """Return the quotas and reservations in question; what can't be read within ``seconds`` is unknown.

    Nothing is raised.
    """
    calls: dict[Any, Callable[[], Any]] = {
        **quota_calls(session, wanted.regions, wanted.further, seconds=seconds),
        **{each: partial(read_reservation, session, each, seconds=seconds) for each in wanted.reservations},
    }
    if wanted.any_reservation:
        calls[_ALL] = partial(list_reservations, session, session.project, seconds=seconds)
    answers = ask_together(calls, seconds=seconds)
    reserved = Reserved(
        named={each: answers[each] for each in wanted.reservations if each in answers}, listed=answers.get(_ALL)
    )
    return readings_of(answers, wanted.regions, wanted.further), reserved
