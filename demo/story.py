"""What became of each place of a task, read from the record that Airflow keeps for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One try of a place, or a place that was not tried.

    ``kind`` is ``done``, a kind of failure, or ``not tried``; ``job_id`` is None where no job was made.
    """

    number: int
    placement: str
    kind: str
    reason: str
    proof: str
    job_id: str | None

    @property
    def region(self) -> str:
        """The region that the place is, or is in."""
        words = self.placement.rpartition(" ")[2].split("-")
        return "-".join(words[:2])

    def is_proven_by(self, vms: Sequence[Mapping[str, Any]]) -> bool:
        """Return whether the accelerator that was seen is one that the emulator gave one of these VMs."""
        # Spark shows no VMs, so its proof names no zone.
        seen = {(carried(vm["count"], seen_as(vm["accelerator"])), vm.get("zone", "")) for vm in vms}
        return any(self.proof.startswith(device) and self.proof.endswith(zone) for device, zone in seen)


def seen_as(accelerator: str) -> str:
    """Return the name that Compute Engine has for an accelerator: TPUs have one of their own."""
    return {"tpu-v5-lite-podslice": "ct5lp", "tpu-v5p-slice": "ct5p", "tpu-v6e-slice": "ct6e"}.get(
        accelerator, accelerator
    )


def carried(count: int | None, accelerator: str | None) -> str:
    """Return what a VM has, followed by a space."""
    return f"{count} x {accelerator} " if accelerator else "CPUs "


def rows_of(record: Mapping[str, Any]) -> list[Row]:
    """Return the rows of a record in the user's order of places, tries of one place in the order of time."""
    rows = []
    for index, place in enumerate(record["plan"]):
        tries = [attempt for attempt in record["attempts"] if attempt["candidate"] == index]
        rows += [tried(index + 1, attempt) for attempt in tries] or [untried(index + 1, place)]
    return rows


def tried(number: int, attempt: Mapping[str, Any]) -> Row:
    """Return the row of an attempt."""
    failure = attempt.get("failure") or {}
    return Row(
        number=number,
        placement=attempt["placement"],
        kind=failure.get("kind", attempt["outcome"]),
        reason=failure.get("explanation", ""),
        proof=proven(attempt.get("proof") or {}),
        job_id=attempt.get("job_id"),
    )


def untried(number: int, place: Mapping[str, Any]) -> Row:
    """Return the row of a place that no job was sent to."""
    rejected = place.get("rejected") or {}
    return Row(
        number=number,
        placement=place["placement"],
        kind=rejected.get("kind", "not tried"),
        reason=rejected.get("explanation", ""),
        proof="",
        job_id=None,
    )


def proven(proof: Mapping[str, Any]) -> str:
    """Return a proof as a few words; nothing if no worker was ever looked for."""
    if proof.get("status") == "seen":
        where = f"on {proof['machine_type']} in {proof['zone']}" if proof["zone"] else "in use"
        return f"{carried(proof['count'], proof['accelerator'])}{where}"
    return str(proof.get("status", "")).replace("_", " ")
