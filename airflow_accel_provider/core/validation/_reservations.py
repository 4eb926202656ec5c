"""Whether a reservation can serve the place that is to draw on it.

Source: https://cloud.google.com/dataflow/docs/guides/reservations, read 2026-11: not with Prime nor FlexRS; a specific
one is in one zone, and the option that names it is given to enrolled projects, so that it passes as it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from airflow_accel_provider.core.accelerators import Cpu
from airflow_accel_provider.core.locations import region_of
from airflow_accel_provider.core.problems import Problem, error, warning
from airflow_accel_provider.core.reservations import ANY, AUTOMATIC, Reservation, ReservationError, reservations_in
from airflow_accel_provider.core.validation._extras import said_extras
from airflow_accel_provider.core.validation._templated import is_templated

if TYPE_CHECKING:
    from airflow_accel_provider.core.placement import Placement
    from airflow_accel_provider.core.request import BeamRequest

_WHERE = "reservation"


def check_reservation(request: BeamRequest, placement: Placement) -> Iterator[Problem]:
    """Yield what is wrong with ``reservation`` and with what other options say of one, as meant in one place."""
    items = list(said_extras(request))
    names = {item.partition("=")[0] for _, item in items}
    for where, item in items:
        yield from _check_option(item, placement, names, where)
    text = request.reservation
    if text is None or is_templated(text):
        return
    yield from _check_schedulers(request, placement, names)
    if text != ANY:
        yield from _check_named(text, placement, [item for _, item in items])


def _check_option(item: str, placement: Placement, names: set[str], where: str) -> Iterator[Problem]:
    name = item.partition("=")[0]
    named = reservations_in(item)
    if "reservation" in name and "enable_prime" in names and isinstance(placement.accelerator, Cpu):
        yield error("reservation-prime", f"Dataflow Prime takes no reservations; leave out {name} or it.", where)
    elsewhere = [problem for each in named for problem in _check_zone(each, placement, where)]
    yield from elsewhere
    if elsewhere or placement.zone or name == AUTOMATIC:
        return
    if named or "reservation" in name:
        text = f"A specific reservation is in one zone; pin it in the placement, {placement.accelerator} … in ZONE."
        yield warning("reservation-zone", text, where)


def _check_schedulers(request: BeamRequest, placement: Placement, names: set[str]) -> Iterator[Problem]:
    # On accelerators both are errors of their own.
    if not isinstance(placement.accelerator, Cpu):
        return
    if "enable_prime" in names:
        yield error("reservation-prime", "Dataflow Prime takes no reservations; leave out it or this.", _WHERE)
    options = {**request.default_pipeline_options, **request.pipeline_options}
    if options.get("flexrs_goal") == "COST_OPTIMIZED":
        yield error("flexrs-reservation", "FlexRS takes no reservations; leave out one of the two.", _WHERE)


def _check_named(text: str, placement: Placement, items: Iterable[str]) -> Iterator[Problem]:
    says_zone = "zones/" in text
    try:
        # Of an unpinned place the form alone can be judged; any zone does for that.
        stand_in = placement if placement.zone else placement.pinned(f"{placement.region}-a")
        named = Reservation.parse(text, placement=stand_in)
    except ReservationError as wrong:
        yield error("reservation-form", f"{wrong}, or {ANY!r} for any that fits.", _WHERE)
        return
    elsewhere = list(_check_zone(named, placement, _WHERE)) if says_zone else []
    yield from elsewhere
    if not placement.zone and not elsewhere:
        meant = placement.pinned(named.zone) if says_zone else f"{placement.accelerator} … in ZONE"
        yield error("reservation-zone", f"A specific reservation is in one zone; pin it, {meant}.", _WHERE)
    yield from _check_asked(named, items)


def _check_zone(named: Reservation, placement: Placement, where: str) -> Iterator[Problem]:
    if region_of(named.zone) != placement.region:
        code, here = "reservation-region", f"in {placement.region}"
    elif placement.zone not in (None, named.zone):
        code, here = "reservation-zone", f"in {placement.zone}"
    else:
        return
    advice = f"; a candidate that draws on none says {_WHERE}=None" if where == _WHERE else ""
    yield error(code, f"The reservation is in {named.zone}, but {placement} is {here}{advice}.", where)


def _check_asked(named: Reservation, items: Iterable[str]) -> Iterator[Problem]:
    """Yield what the options that reach Dataflow lack to make it use the reservation, or say against it."""
    texts = tuple(items)
    others = [str(each) for text in texts for each in reservations_in(text) if each.name != named.name]
    if others:
        yield error("reservation-contradicted", f"It is {named}, but the options name {', '.join(others)}.", _WHERE)
    elif not any(named.name in text for text in texts):
        text = (
            f"No option asks Dataflow for {named.name}: Google gives the one that names a reservation to enrolled "
            "projects. Add it to service_options."
        )
        yield warning("reservation-unasked", text, _WHERE)
