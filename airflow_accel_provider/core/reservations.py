"""Reservations of Compute Engine: how they are named, and what is free in them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from airflow_accel_provider.core.locations import is_zone

if TYPE_CHECKING:
    from airflow_accel_provider.core.placement import Placement

ANY = "any"
"""What ``reservation`` says when any that fits may be used, and machines on demand when none has room."""

AUTOMATIC = "automatically_use_created_reservation"
"""The service option that asks for any reservation. Source: https://cloud.google.com/dataflow/docs/guides/reservations"""

# A project may have a domain before its name. The short form without a zone is Compute Engine's own, in the affinity of
# a VM. Sources: Compute Engine API v1, Reservation.selfLink and ReservationAffinity.values, read 2026-11.
_FORM = re.compile(
    r"^(?:(?:https?:)?//[^/]+/(?:compute/[a-z0-9]+/)?)?"
    r"(?:projects/(?P<project>[a-z0-9][-a-z0-9.:]*)/)?"
    r"(?:zones/(?P<zone>[^/]+)/)?"
    r"(?:reservations/)?(?P<name>[a-z](?:[-a-z0-9]{0,61}[a-z0-9])?)$"
)
_INSIDE = re.compile(
    r"(?:projects/(?P<project>[a-z0-9][-a-z0-9.:]*)/)?zones/(?P<zone>[a-z0-9-]+)/reservations/(?P<name>[a-z][-a-z0-9]*)"
)
_FULL = "projects/PROJECT/zones/ZONE/reservations/NAME"


class ReservationError(ValueError):
    """A text that names no reservation; the message says how it should read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reservation:
    """One reservation. ``project`` is ``None`` where the job's own is meant."""

    project: str | None
    zone: str
    name: str

    @classmethod
    def parse(cls, text: str, *, placement: Placement | None = None) -> Reservation:
        """Return the reservation that a path, a URL or a bare name means.

        A text without a zone means the zone of ``placement``. Raises :class:`ReservationError`.
        """
        form = _FORM.match(text.strip())
        if not form:
            raise ReservationError(f"{text!r} is not a reservation; write {_FULL}, or its name alone")
        zone = form["zone"] or (placement.zone if placement else None)
        if zone is None:
            raise ReservationError(f"{text!r} does not say the reservation's zone; write {_FULL}")
        if not is_zone(zone):
            raise ReservationError(f"{text!r}: {zone!r} is not a zone such as europe-west4-a")
        return cls(project=form["project"], zone=zone, name=form["name"])

    def __str__(self) -> str:
        project = f"projects/{self.project}/" if self.project else ""
        return f"{project}zones/{self.zone}/reservations/{self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReservationState:
    """What Compute Engine says of a reservation, in machines.

    ``accelerator`` is Compute's own name (``nvidia-l4``, ``ct6e``), or ``None`` where the machine type alone says it. A
    reservation for machines of any size of a TPU family names no machine type and counts single chips. One that
    ``is_specific`` is used only by machines that name it. ``status`` is in lower case (``ready``, ``creating``, …).
    """

    reservation: Reservation
    machine_type: str
    accelerator: str | None
    accelerators_each: int
    count: int
    in_use: int
    status: str
    is_specific: bool

    @property
    def free(self) -> int:
        """How many more machines (or chips) it holds; none while it is not ready."""
        return max(self.count - self.in_use, 0) if self.status == "ready" else 0


def reservations_in(text: str) -> tuple[Reservation, ...]:
    """Return the reservations that a text written for Google names in full, wherever they stand in it."""
    return tuple(
        Reservation(project=form["project"], zone=form["zone"], name=form["name"]) for form in _INSIDE.finditer(text)
    )
