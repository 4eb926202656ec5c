"""What the service takes, from ``tables.json``: runtimes, accelerators and properties, and which mean nothing here."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_TABLES: Mapping[str, Any] = json.loads((Path(__file__).parent / "tables.json").read_text(encoding="utf-8"))

Version = tuple[int, int]

CLASSES_SINCE: Version = (3, 0)
"""The first runtime with classes in place of tiers, a queue, and usage by accelerator type."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """An executor that carries GPUs; ``machine`` is the Compute Engine type that it is."""

    gpus: int
    disks_gb: tuple[int, ...]
    memory_mb: int
    machine: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkAccelerator:
    """A GPU under the service's name; ``type`` is Compute Engine's, ``label`` how usage fields end."""

    name: str
    type: str
    label: str
    default_cores: int
    shapes: Mapping[int, Shape]


@dataclass(frozen=True, slots=True, kw_only=True)
class Property:
    """A row about a property, or about all whose names start so: which ``values`` it takes, in which runtimes.

    ``containing`` limits a row to values with that text; ``why`` says what makes it mean nothing here.
    """

    name: str
    is_prefix: bool = False
    values: tuple[str, ...] = ()
    since: Version = (0, 0)
    before: Version = (99, 0)
    containing: str = ""
    why: str = ""
    value: str = ""

    def covers(self, name: str, value: str = "") -> bool:
        """Tell whether the row is about a property."""
        is_named = name.startswith(self.name) if self.is_prefix else name == self.name
        return is_named and self.containing in value

    def holds_in(self, runtime: Version) -> bool:
        """Tell whether the row is about a runtime."""
        return self.since <= runtime < self.before


def version_of(text: str) -> Version:
    """Return ``2.3`` or ``2.3.39`` as numbers. Raises ValueError for what is no version."""
    major, minor = text.split(".")[:2]
    return int(major), int(minor)


def row_for(rows: Iterable[Property], name: str, value: str = "") -> Property | None:
    """Return the first row about a property, or None."""
    return next((row for row in rows if row.covers(name, value)), None)


def _properties(rows: Iterable[Mapping[str, Any]]) -> tuple[Property, ...]:
    return tuple(
        Property(
            **{
                **row,
                **{bound: version_of(row[bound]) for bound in ("since", "before") if bound in row},
                "values": tuple(row.get("values", ())),
            }
        )
        for row in rows
    )


def _accelerator(name: str, row: Mapping[str, Any]) -> SparkAccelerator:
    shapes = {
        int(cores): Shape(**{**shape, "disks_gb": tuple(shape["disks_gb"])}) for cores, shape in row["shapes"].items()
    }
    return SparkAccelerator(name=name, **{**row, "shapes": shapes})


DEFAULT_RUNTIME: str = _TABLES["default_runtime"]
RUNTIMES: Mapping[str, str] = MappingProxyType({name: row["full"] for name, row in _TABLES["runtimes"].items()})
"""The runtimes that can be chosen, each with the full number that the service answers."""

SPARK_ACCELERATORS: Mapping[str, SparkAccelerator] = MappingProxyType(
    {name: _accelerator(name, row) for name, row in _TABLES["accelerators"].items()}
)
REQUIRED = _properties(_TABLES["required"])
"""What a batch with GPUs must say, by runtime."""

PROPERTIES = _properties(_TABLES["properties"])
"""Every property under ``spark.dataproc`` that there is."""

UNSUPPORTED = _properties(_TABLES["unsupported"])
SET_ASIDE = _properties(_TABLES["set_aside"])
"""Properties that cannot hold where a batch runs in one process without GPUs, and why."""
