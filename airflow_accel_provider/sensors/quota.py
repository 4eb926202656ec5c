"""Waiting for quota."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal

from airflow_accel_provider.core.waiting.checks import check_on_unknown, check_switch, check_whole
from airflow_accel_provider.core.waiting.subjects import read_places
from airflow_accel_provider.operators._settings import allowed_regions, catalog
from airflow_accel_provider.sensors._base import IDENTITY_FIELDS, AcceleratorSensor

if TYPE_CHECKING:
    from airflow_accel_provider.core.placement import Placement
    from airflow_accel_provider.core.problems import Problem
    from airflow_accel_provider.core.waiting.quota import QuotaQuestion


class AcceleratorQuotaSensor(AcceleratorSensor):
    """Wait until any of several places has quota left for a job, and return the first one in your order with figures.

    :param placements: the places: ``ACCELERATOR[:COUNT or :TOPOLOGY] [on MACHINE_TYPE] [in REGION or ZONE]``
    :param region: location for placements that name none
    :param num_workers: workers the job starts with
    :param use_public_ips: whether they get public addresses, which have a quota too
    :param on_unknown: what to make of a quota that cannot be read: ``pass`` takes it for room, ``wait`` does not
    """

    template_fields: Sequence[str] = ("placements", "region", *IDENTITY_FIELDS)

    def __init__(
        self,
        *,
        placements: Sequence[str],
        region: str | None = None,
        num_workers: int = 1,
        use_public_ips: bool | None = None,
        on_unknown: Literal["pass", "wait"] = "pass",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.placements = placements
        self.region = region
        self.num_workers = num_workers
        self.use_public_ips = use_public_ips
        self.on_unknown = on_unknown
        self.check()

    def problems(self) -> Sequence[Problem]:
        """Return what is wrong with the places and the job."""
        _, wrong = self._read()
        return (
            *wrong,
            *check_whole("num_workers", self.num_workers),
            *check_switch("use_public_ips", self.use_public_ips, or_none=True),
            *check_on_unknown(self.on_unknown),
        )

    def question(self, started_at: datetime) -> QuotaQuestion:  # noqa: ARG002 - room has no history
        """Return whether a place has room."""
        from airflow_accel_provider.core.waiting.quota import QuotaQuestion

        places, _ = self._read()
        return QuotaQuestion(
            placements=tuple(str(place) for place in places),
            num_workers=self.num_workers,
            use_public_ips=self.use_public_ips,
            unknown_is_room=self.on_unknown == "pass",
        )

    def _read(self) -> tuple[tuple[Placement, ...], tuple[Problem, ...]]:
        return read_places(self.placements, region=self.region, catalog=catalog(), allowed_regions=allowed_regions())
