"""Preconditions on generations: an operation happens to the object that its caller knows, or not at all."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from airflow_accel_provider.emulator.wire import Call, GoogleError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow_accel_provider.emulator.storage.resources import StoredObject

NOT_HELD = "At least one of the pre-conditions you specified did not hold."


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditions:
    """What must hold of an object; generation 0 stands for an object that isn't there."""

    generation_match: int | None = None
    generation_not_match: int | None = None
    metageneration_match: int | None = None
    metageneration_not_match: int | None = None

    @classmethod
    def of(cls, call: Call, prefix: str = "if") -> Conditions:
        """Read them from a call's query; ``ifSource`` reads those on the source of a copy."""
        return cls(
            generation_match=whole_number(call, f"{prefix}GenerationMatch"),
            generation_not_match=whole_number(call, f"{prefix}GenerationNotMatch"),
            metageneration_match=whole_number(call, f"{prefix}MetagenerationMatch"),
            metageneration_not_match=whole_number(call, f"{prefix}MetagenerationNotMatch"),
        )

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Conditions:
        """Read back what ``to_json`` gave."""
        return cls(**value)

    def to_json(self) -> dict[str, Any]:
        """Return plain values, to be kept with an upload."""
        return {item.name: getattr(self, item.name) for item in fields(self)}

    def check(self, found: StoredObject | None, *, reading: bool = False) -> None:
        """Raise 412 unless all hold; when reading, a match that was not wanted is 304 (not modified)."""
        generation, metageneration = (found.generation, found.metageneration) if found else (0, 0)
        if self.generation_match not in (None, generation) or self.metageneration_match not in (None, metageneration):
            raise GoogleError(412, NOT_HELD)
        if generation == self.generation_not_match or (found and metageneration == self.metageneration_not_match):
            raise GoogleError(304, "Not modified.", reason="notModified") if reading else GoogleError(412, NOT_HELD)


def whole_number(call: Call, name: str) -> int | None:
    """Return a query parameter that must be a whole number, or None when it is absent."""
    return to_whole_number(name, call.first(name))


def to_whole_number(name: str, text: object) -> int | None:
    """Return what a field or parameter called ``name`` says; None stays None, and what is no whole number is 400."""
    if text is None:
        return None
    try:
        return int(str(text))
    except ValueError:
        raise GoogleError(400, f"Invalid value for {name}: {text!r} is not a whole number.", reason="invalid") from None
