"""What Google's managed Spark takes: its accelerators, executors, runtimes, properties and the form of a batch.

The tables are a dated, offline picture: a runtime or property that is not in them may be new, so callers warn about it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

from airflow_accel_provider.core.catalog import load_catalog
from airflow_accel_provider.core.tables import Table, fold

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from airflow_accel_provider.core.catalog import Catalog
    from airflow_accel_provider.core.problems import Severity

_PREFIX = "spark_"
_VERSION = re.compile(r"([0-9]+)\.([0-9]+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkAccelerator:
    """A GPU type by Spark's name; ``compute_type`` is Compute Engine's.

    ``queued_quota_metric`` is drawn by batches that wait in a queue for their GPUs, ``quota_metric`` by all others.
    """

    type: str
    compute_type: str
    quota_metric: str
    queued_quota_metric: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutorShape:
    """One executor that carries GPUs: its cores decide over GPUs, disks (GB) and the most memory (MB, all included).

    Above ``disputed_above_mb`` the page gives a figure that contradicts its other rows.
    """

    type: str
    cores: int
    gpus: int
    disks_gb: tuple[int, ...]
    memory_mb: int
    disputed_above_mb: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Runtime:
    """A runtime of the service. ``None`` stands for what is not published any more; support has ended there.

    ``gpu_properties`` are those that a batch with GPUs must have there. ``provisioning`` are the modes it can be asked
    for, the default for GPUs first; none where a batch without stock fails at once.
    """

    version: str
    lts: bool
    spark: str | None = None
    java: int | None = None
    scala: str | None = None
    python: str | None = None
    support_ends: date | None = None
    usable_until: date | None = None
    provisioning: tuple[str, ...]
    gpu_properties: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Property:
    """What is known of one property, or of all whose name starts with it (``prefix``).

    It exists ``since`` one runtime and ``before`` another; ``outside`` of these it is an error or a warning, and
    ``instead`` is its other name there. ``refused`` says why it never does, ``advice`` what a person should know.
    ``words`` and ``choices`` are its only values, ``least`` and ``most`` their bounds (sizes have none here).
    """

    name: str
    prefix: bool = False
    kind: Literal["text", "word", "number", "ratio", "size", "flag", "seconds"] = "text"
    words: tuple[str, ...] = ()
    refused_words: tuple[str, ...] = ()
    choices: tuple[int, ...] = ()
    least: int | None = None
    most: int | None = None
    since: str | None = None
    before: str | None = None
    outside: Severity = "error"
    instead: str | None = None
    refused: str | None = None
    advice: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkCatalog:
    """All tables of managed Spark as one value. ``messages`` maps a part of a batch to its fields and their kinds."""

    accelerators: Mapping[str, SparkAccelerator]
    executors: tuple[ExecutorShape, ...]
    runtimes: Mapping[str, Runtime]
    properties: Mapping[str, Property]
    prefixes: tuple[Property, ...]
    messages: Mapping[str, Mapping[str, str]]

    @property
    def default_runtime(self) -> str:
        """The newest long-term runtime of the table: 2.3 as of 2026-11-29."""
        return max((each.version for each in self.runtimes.values() if each.lts), key=release)

    def rules_of(self, version: str) -> Runtime | None:
        """Return the runtime whose rules hold for a version: itself, or the next older one for a version too new."""
        known = [each for each in self.runtimes.values() if release(each.version) <= release(version)]
        return max(known, key=lambda each: release(each.version), default=None)

    def may_be_new(self, version: str) -> bool:
        """Tell whether an unknown version could have come out since: it is newer than all of its major version."""
        major, minor = release(version)
        known = [each for each in map(release, self.runtimes) if each[0] == major]
        newest = max(release(each) for each in self.runtimes)
        return minor > max(known)[1] if known else newest[0] < major <= newest[0] + 1

    def shapes_of(self, type_: str, gpus: int | None = None) -> tuple[ExecutorShape, ...]:
        """Return the executors that carry the accelerator, of a count where one is given, the smallest first."""
        return tuple(each for each in self.executors if each.type == type_ and gpus in (None, each.gpus))

    def shape(self, type_: str, cores: int) -> ExecutorShape | None:
        """Return the executor of so many cores, or ``None`` where there is none."""
        return next((each for each in self.shapes_of(type_) if each.cores == cores), None)

    def property_named(self, name: str) -> Property | None:
        """Return what is known of a property, by its name or by how its name starts."""
        by_start = (each for each in self.prefixes if name.startswith(each.name))
        return self.properties.get(name) or next(by_start, None)


@lru_cache(maxsize=256)
def release(version: str) -> tuple[int, int]:
    """Return a version as numbers that can be compared. Raises :class:`ValueError` unless it is ``MAJOR.MINOR``."""
    form = _VERSION.fullmatch(version)
    if not form:
        raise ValueError(f"{version!r} is not a version such as 2.3")
    return int(form[1]), int(form[2])


def is_release(version: str) -> bool:
    """Tell whether a text has the form of a version, ``MAJOR.MINOR``."""
    return bool(_VERSION.fullmatch(version))


def load_spark_catalog(overlay_path: str | Path | None = None) -> SparkCatalog:
    """Return the packaged tables with an overlay's rows laid over them, as :func:`.load_catalog` does. Raises as it."""
    return spark_catalog(load_catalog(overlay_path))


def spark_catalog(catalog: Catalog) -> SparkCatalog:
    """Return what a catalogue's tables, an overlay's among them, say of managed Spark."""
    return _built(tuple(table for table in catalog.tables if table.name.startswith(_PREFIX)))


@lru_cache(maxsize=4)
def _built(tables: tuple[Table, ...]) -> SparkCatalog:
    rows = {name: [_said(row) for row in of_it.values()] for name, of_it in fold(tables).items()}
    known = [Property(**row) for row in rows["spark_properties"]]
    return SparkCatalog(
        accelerators={row["type"]: SparkAccelerator(**row) for row in rows["spark_accelerators"]},
        executors=tuple(sorted((ExecutorShape(**row) for row in rows["spark_executors"]), key=_size)),
        runtimes={row["version"]: _runtime(row) for row in rows["spark_runtimes"]},
        properties={each.name: each for each in known if not each.prefix},
        prefixes=tuple(each for each in known if each.prefix),
        messages={row["message"]: row["fields"] for row in rows["spark_batch"]},
    )


def _said(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the cells of a row that say something, lists as tuples."""
    return {
        name: tuple(value) if isinstance(value, list) else value for name, value in row.items() if value is not None
    }


def _runtime(row: Mapping[str, Any]) -> Runtime:
    dates = {name: date.fromisoformat(row[name]) for name in ("support_ends", "usable_until") if name in row}
    return Runtime(**{**row, **dates})


def _size(shape: ExecutorShape) -> tuple[str, int]:
    return shape.type, shape.cores
