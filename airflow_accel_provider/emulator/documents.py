"""Google's discovery documents, as Google's own Python client ships them, and one of ours where it ships none."""

from __future__ import annotations

import json
from functools import cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

NAMES = ("dataflow.v1b3", "compute.v1", "storage.v1", "iamcredentials.v1", "dataproc.v1", "monitoring.v3")


@cache
def documents() -> tuple[Mapping[str, Any], ...]:
    """Return the documents of the services that the emulator stands for."""
    folder = resources.files("googleapiclient") / "discovery_cache" / "documents"
    own = Path(__file__).parent / "cloudquotas" / "document.json"
    files = (*(folder / f"{name}.json" for name in NAMES), own)
    return tuple(json.loads(file.read_text(encoding="utf-8")) for file in files)


def methods(node: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield every method of a document."""
    yield from node.get("methods", {}).values()
    for child in node.get("resources", {}).values():
        yield from methods(child)
