"""Waiting for free capacity in a reservation."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from airflow_accel_provider.core.waiting.checks import check_whole
from airflow_accel_provider.core.waiting.subjects import read_reservation
from airflow_accel_provider.sensors._base import IDENTITY_FIELDS, AcceleratorSensor

if TYPE_CHECKING:
    from airflow_accel_provider.core.problems import Problem
    from airflow_accel_provider.core.waiting.reservation import ReservationQuestion


class AcceleratorReservationSensor(AcceleratorSensor):
    """Wait until enough machines are free in a reservation, and return how many are.

    A reservation that does not exist fails the task at once.

    :param reservation: ``projects/P/zones/Z/reservations/NAME``, its URL, or a name with ``zone``
    :param zone: zone of a reservation that is given by name
    :param count: machines that must be free
    """

    template_fields: Sequence[str] = ("reservation", "zone", *IDENTITY_FIELDS)

    def __init__(self, *, reservation: str, zone: str | None = None, count: int = 1, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.reservation = reservation
        self.zone = zone
        self.count = count
        self.check()

    def problems(self) -> Sequence[Problem]:
        """Return what is wrong with the reservation's name and the count."""
        _, wrong = read_reservation(self.reservation, self.zone)
        return (*wrong, *check_whole("count", self.count))

    def question(self, started_at: datetime) -> ReservationQuestion:  # noqa: ARG002 - capacity has no history
        """Return whether so many machines are free."""
        from airflow_accel_provider.core.waiting.reservation import ReservationQuestion

        reservation, _ = read_reservation(self.reservation, self.zone)
        return ReservationQuestion(reservation=str(reservation), count=self.count)
