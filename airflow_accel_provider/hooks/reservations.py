"""Reading reservations from Compute Engine."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from airflow_accel_provider.core.reservations import Reservation
from airflow_accel_provider.core.reserving import named_problem, wanted_reservation
from airflow_accel_provider.core.validation import place_name
from airflow_accel_provider.exceptions import GoogleApiError
from airflow_accel_provider.hooks import _wire_supply
from airflow_accel_provider.hooks._together import ask_together

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow_accel_provider.core.catalog import Catalog
    from airflow_accel_provider.core.placement import Placement
    from airflow_accel_provider.core.problems import Problem
    from airflow_accel_provider.core.request import BeamRequest, Candidate
    from airflow_accel_provider.core.reservations import ReservationState
    from airflow_accel_provider.hooks.session import GoogleSession

_NOT_FOUND = 404


def read_reservation(
    session: GoogleSession, reservation: Reservation, *, seconds: float = 30.0
) -> ReservationState | None:
    """Return what is free in a reservation, or ``None`` when there is none of its name there.

    Raises :class:`GoogleApiError` when it cannot be read, after trying again for at most ``seconds``.
    """
    project = reservation.project or session.project
    path = f"projects/{project}/zones/{reservation.zone}/reservations/{reservation.name}"
    try:
        # Half the time for trying again: what is given up must also end by itself.
        value = session.request("compute", "GET", path, timeout=seconds, retry_seconds=seconds / 2)
    except GoogleApiError as error:
        if error.status == _NOT_FOUND:
            return None
        raise
    return replace(_wire_supply.reservation_from_json(value), reservation=reservation)


def list_reservations(
    session: GoogleSession, project: str | None = None, *, seconds: float = 30.0
) -> tuple[ReservationState, ...]:
    """Return all reservations of a project, by default the session's, in every zone.

    Raises :class:`GoogleApiError` when they cannot be read, after trying again for at most ``seconds``.
    """
    owner = project or session.project
    pages = session.pages(
        "compute",
        f"projects/{owner}/aggregated/reservations",
        params={"returnPartialSuccess": "true", "maxResults": 500},
        timeout=seconds,
        retry_seconds=seconds / 2,
    )
    return tuple(state for page in pages for state in _wire_supply.reservations_from_json(page, project=owner))


def missing_reservations(
    session: GoogleSession,
    request: BeamRequest,
    candidates: Sequence[Candidate],
    *,
    catalog: Catalog,
    seconds: float = 10.0,
) -> tuple[Problem, ...]:
    """Return what is wrong with the reservations that candidates name: not there, or of other machines.

    Candidates have their machine types filled in. What cannot be read within ``seconds`` is no problem.
    """
    named: dict[str, tuple[Reservation, Placement]] = {}
    for n, candidate in enumerate(candidates):
        wanted = wanted_reservation(request.for_candidate(candidate), candidate.placement)
        if isinstance(wanted, Reservation):
            named[place_name(n)] = (wanted, candidate.placement)
    states = ask_together(
        {wanted: partial(read_reservation, session, wanted, seconds=seconds) for wanted, _ in named.values()},
        seconds=seconds,
    )
    owners = {wanted.project for wanted, state in states.items() if state is None}
    others = ask_together(
        {owner: partial(list_reservations, session, owner, seconds=seconds) for owner in owners}, seconds=seconds
    )
    problems = (
        named_problem(
            wanted,
            states[wanted],
            placement,
            catalog,
            others=[each.reservation for each in others.get(wanted.project, ())],
            where=where,
        )
        for where, (wanted, placement) in named.items()
        if wanted in states
    )
    return tuple(problem for problem in problems if problem)
