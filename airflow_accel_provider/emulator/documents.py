"""Google's discovery documents, as Google's own Python client ships them."""

from __future__ import annotations

import json
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

NAMES = ("dataflow.v1b3", "compute.v1", "storage.v1", "iamcredentials.v1", "dataproc.v1")


@cache
def documents() -> tuple[Mapping[str, Any], ...]:
    """Return the documents of the services that the emulator stands for."""
    folder = resources.files("googleapiclient") / "discovery_cache" / "documents"
    return tuple(json.loads((folder / f"{name}.json").read_text()) for name in NAMES)


def methods(node: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield every method of a document."""
    yield from node.get("methods", {}).values()
    for child in node.get("resources", {}).values():
        yield from methods(child)
