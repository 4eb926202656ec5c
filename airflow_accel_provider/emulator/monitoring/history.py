"""What happened that can be measured: which world it was, and when which VM was there."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from airflow_accel_provider.emulator.worlds import WORLD_NAMES, World, load_world

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow_accel_provider.emulator.state import Google


@dataclass(frozen=True, slots=True, kw_only=True)
class Stay:
    """How long one VM was there; ``ended`` is None while it is. ``accelerator`` is empty where it was given none."""

    job_id: str
    job_name: str
    location: str
    zone: str
    accelerator: str
    count: int
    is_reserved: bool
    begun: datetime
    ended: datetime | None

    def covers(self, moment: datetime) -> bool:
        """Tell whether the VM was there at a moment."""
        return self.begun <= moment and (self.ended is None or moment < self.ended)


class History:
    """The ledger's tale of worlds and VMs, as it is when it is made."""

    def __init__(self, google: Google) -> None:
        self._google = google
        entered = [event for event in google.ledger.events(kind="world.entered") if event["world"] in WORLD_NAMES]
        self.entered = tuple(_time(event) for event in entered)
        self._worlds = tuple(load_world(event["world"]) for event in entered)
        self.stays = tuple(self._stays())

    def world_at(self, moment: datetime) -> World:
        """Return the world of a moment; before the first there is on record, that one."""
        number = bisect_right(self.entered, moment)
        return self._worlds[max(number - 1, 0)] if self._worlds else self._google.world

    def _stays(self) -> list[Stay]:
        gone = {
            event["instance"]: _time(event) for event in self._google.ledger.events(kind="compute.instance.deleted")
        }
        return [
            Stay(
                job_id=event["job_id"],
                job_name=event["name"],
                location=event["location"],
                zone=event["zone"],
                accelerator=event.get("accelerator", ""),
                count=event.get("count", 0),
                is_reserved=bool(event.get("reservation")),
                begun=_time(event),
                ended=gone.get(event["instance"]) or self._end_of(event["job_id"]),
            )
            for event in self._google.ledger.events(kind="compute.instance.created")
            if "job_id" in event
        ]

    def _end_of(self, job_id: str) -> datetime | None:
        """Return when a job ended that left no word of its VMs' end."""
        job = self._google.dataflow.jobs.get(job_id)
        return datetime.fromisoformat(job.state_time) if job and job.is_over else None


def _time(event: Mapping[str, Any]) -> datetime:
    return datetime.fromisoformat(event["time"])
