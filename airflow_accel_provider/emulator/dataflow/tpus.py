"""The TPU slices a job can have: each topology of a type has one machine type, and nothing else is taken.

Source: https://cloud.google.com/dataflow/docs/tpu/tpu-support, read 2026-11-29.
"""

from __future__ import annotations

import math
import re
from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

SLICES: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "tpu-v5-lite-podslice": {
            "1x1": "ct5lp-hightpu-1t",
            "2x2": "ct5lp-hightpu-4t",
            "2x4": "ct5lp-hightpu-8t",
        },
        "tpu-v6e-slice": {
            "1x1": "ct6e-standard-1t",
            "2x2": "ct6e-standard-4t",
            "2x4": "ct6e-standard-8t",
        },
        "tpu-v5p-slice": {"2x2x1": "ct5p-hightpu-4t"},
    }
)
"""Accelerator type, then topology, to machine type."""

TOPOLOGY = re.compile(r"[1-9]\d{0,2}(x[1-9]\d{0,2}){1,2}")


def is_tpu(accelerator: str) -> bool:
    """Tell whether an accelerator type is one of TPUs."""
    return accelerator.startswith("tpu-")


def chips(topology: str) -> int:
    """Return how many chips a topology has."""
    return math.prod(int(side) for side in topology.split("x"))
