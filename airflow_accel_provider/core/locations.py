"""Regions and zones, by their names."""

from __future__ import annotations

import re
from functools import lru_cache

# AI zones (us-south1-ai1b, us-central1-ai1) end in more than a letter, so a zone's last part is any word.
# Source: https://cloud.google.com/tpu/docs/regions-zones, read 2026-11.
_REGION = re.compile(r"^[a-z]+-[a-z]+\d+$")
_ZONE = re.compile(r"^[a-z]+-[a-z]+\d+-[a-z0-9]+$")


def is_region(text: str) -> bool:
    """Tell whether the text has the form of a region, such as ``europe-west4``."""
    return bool(_REGION.match(text))


def is_zone(text: str) -> bool:
    """Tell whether the text has the form of a zone, such as ``europe-west4-a`` or ``us-south1-ai1b``."""
    return bool(_ZONE.match(text))


@lru_cache(maxsize=4096)
def region_of(zone: str) -> str:
    """Return the region that a zone belongs to."""
    return zone.rpartition("-")[0]
