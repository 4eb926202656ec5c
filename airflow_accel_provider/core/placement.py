"""A placement: one place an accelerated job can run, as text and as a value.

The grammar is frozen::

    ACCELERATOR[:COUNT or :TOPOLOGY] [on MACHINE_TYPE] [in REGION or ZONE]

>>> str(Placement.parse("nvidia-l4:1 on g2-standard-8 in us-central1-a"))
'nvidia-l4 on g2-standard-8 in us-central1-a'
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from airflow_accel_provider.core.accelerators import Accelerator, parse_accelerator
from airflow_accel_provider.core.locations import is_region, is_zone, region_of

_FORM = re.compile(
    r"^\s*(?P<accelerator>\S+)(?:\s+on\s+(?P<machine>\S+))?(?:\s+in\s+(?P<location>\S+))?\s*$",
    re.IGNORECASE,
)
_GRAMMAR = "ACCELERATOR[:COUNT or :TOPOLOGY] [on MACHINE_TYPE] [in REGION or ZONE]"
_MACHINE = re.compile(r"^[a-z][a-z0-9-]*$")


class PlacementError(ValueError):
    """A text that is not a placement; the message says how it should read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """Accelerator, machine type, and region or zone.

    ``machine_type`` is ``None`` where the catalogue's default is meant; ``zone`` is ``None`` where the service chooses
    among the region's zones. Equality is of the meaning: ``nvidia-l4:1`` and ``nvidia-l4`` are the same.
    """

    accelerator: Accelerator
    region: str
    machine_type: str | None = None
    zone: str | None = None

    @classmethod
    def parse(cls, text: str, *, region: str | None = None) -> Placement:
        """Return the placement that the text describes.

        ``region`` (or a zone) stands in for a location the text leaves out. Raises :class:`PlacementError`.
        """
        form = _FORM.match(text)
        if not form:
            raise PlacementError(f"{text!r} is not a placement; write {_GRAMMAR}, e.g. 'nvidia-l4 in us-central1'")
        try:
            accelerator = parse_accelerator(form["accelerator"])
        except ValueError as error:
            raise PlacementError(str(error)) from None
        machine_type = form["machine"].lower() if form["machine"] else None
        if machine_type and not _MACHINE.match(machine_type):
            raise PlacementError(f"{text!r}: {machine_type!r} is not a machine type such as g2-standard-8")
        location = (form["location"] or region or "").lower()
        if not location:
            raise PlacementError(f"{text!r} has no location; add 'in REGION' (or ZONE), or give region=")
        if is_region(location):
            return cls(accelerator=accelerator, machine_type=machine_type, region=location)
        if is_zone(location):
            return cls(accelerator=accelerator, machine_type=machine_type, region=region_of(location), zone=location)
        raise PlacementError(
            f"{text!r}: {location!r} is neither a region such as europe-west4 nor a zone such as europe-west4-a"
        )

    def __str__(self) -> str:
        machine = f" on {self.machine_type}" if self.machine_type else ""
        return f"{self.accelerator}{machine} in {self.location}"

    @property
    def location(self) -> str:
        """The zone where one is pinned, else the region."""
        return self.zone or self.region

    def pinned(self, zone: str) -> Placement:
        """Return the same placement in one zone of its region."""
        return replace(self, zone=zone)

    def on(self, machine_type: str) -> Placement:
        """Return the same placement on a machine type."""
        return replace(self, machine_type=machine_type)
