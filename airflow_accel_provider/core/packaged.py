"""The packaged tables that are lists of rows, each with a source and a date."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

_DATA = Path(__file__).with_name("data")


@dataclass(frozen=True, slots=True, kw_only=True)
class SourcedRows:
    """The rows of one file, where they are from, and the day (ISO 8601) on which they were read there."""

    source: str
    date: str
    rows: tuple[Any, ...]


@lru_cache(maxsize=32)
def read_rows(name: str) -> SourcedRows:
    """Return a packaged table by its file's name, without the ending."""
    said = json.loads((_DATA / f"{name}.json").read_text(encoding="utf-8"))
    return SourcedRows(source=said["source"], date=said["date"], rows=tuple(said["rows"]))
