"""Memory, disks and durations as Spark, the service and Python spell them."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

# Spark reads sizes by org.apache.spark.network.util.JavaUtils.byteStringAs: no fractions, these suffixes, any case.
_SIZE = re.compile(r"([0-9]+)\s*(b|k|kb|m|mb|g|gb|t|tb)?", re.IGNORECASE)
_KB = {"b": 1 / 1024, "k": 1, "m": 1024, "g": 1024**2, "t": 1024**3}
_BEYOND_ALL = 1e15
_SECONDS = re.compile(r"([0-9]+(?:\.[0-9]{1,9})?)s")


def megabytes(value: Any, *, unit: str = "m") -> float | None:
    """Return a size such as ``16g`` in MB (of 1024 KB), or ``None`` when it is none; bare numbers are in ``unit``."""
    form = _SIZE.fullmatch(value.strip()) if isinstance(value, str) else None
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value * _KB[unit] / 1024
    if not form:
        return None
    return int(form[1]) * _KB[(form[2] or unit)[0].lower()] / 1024


def seconds(value: Any) -> float | None:
    """Return a duration in seconds, or ``None`` when it is not one.

    Understood are Google's JSON form such as ``3600s``, a number of seconds, a ``timedelta``, and a mapping with
    ``seconds``, as the service's own client takes it.
    """
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, Mapping) and set(value) == {"seconds"}:
        value = value["seconds"]
    if isinstance(value, int | float) and not isinstance(value, bool):
        # Numbers that are none, or beyond all durations, are compared as what they are: too long.
        return float(value) if abs(value) < _BEYOND_ALL else math.inf
    form = _SECONDS.fullmatch(value.strip()) if isinstance(value, str) else None
    return float(form[1]) if form else None


def duration(value: Any) -> Any:
    """Return a duration in Google's JSON form, such as ``3600s``; what is not a duration stays as it is."""
    read = seconds(value)
    return value if read is None else f"{read:.9f}".rstrip("0").rstrip(".") + "s"
