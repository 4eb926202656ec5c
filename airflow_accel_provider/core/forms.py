"""The form of each of the catalogue's tables: its columns, and what a cell may hold."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Any

from airflow_accel_provider.core.locations import is_zone


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """What a cell may hold."""

    said: str
    fits: Callable[[Any], bool]


TEXT = Kind(said="a text", fits=lambda value: isinstance(value, str) and bool(value))
_NUMBER = Kind(said="a number", fits=lambda value: _is_number(value) and value >= 0)
_WHOLE = Kind(said="a whole number", fits=lambda value: _is_number(value) and value >= 0 and int(value) == value)
_FLAG = Kind(said="true or false", fits=lambda value: isinstance(value, bool))
_TEXTS = Kind(said="a list of texts", fits=lambda value: isinstance(value, list) and all(map(TEXT.fits, value)))
_ZONES = Kind(
    said="a list of zones such as us-central1-a",
    fits=lambda value: _TEXTS.fits(value) and all(map(is_zone, value)),
)
_WHOLES = Kind(
    said="a list of whole numbers", fits=lambda value: isinstance(value, list) and all(map(_WHOLE.fits, value))
)
_NAMED = Kind(
    said="an object of texts", fits=lambda value: isinstance(value, Mapping) and all(map(TEXT.fits, value.values()))
)
DATE = Kind(said="a day such as 2026-11-29", fits=lambda value: isinstance(value, str) and _is_date(value))
_VERSION = Kind(
    said="a version such as 2.3",
    fits=lambda value: isinstance(value, str) and bool(re.fullmatch("[0-9]+[.][0-9]+", value)),
)


def _one_of(*words: str) -> Kind:
    return Kind(said=f"{', '.join(words[:-1])} or {words[-1]}", fits=lambda value: value in words)


_PROVISIONING = _one_of("standard", "preemptible")
_PROPERTY_KIND = _one_of("text", "word", "number", "ratio", "size", "flag", "seconds")
_SEVERITY = _one_of("error", "warning")


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """What a table looks like.

    It is a list of rows with ``required`` and ``optional`` columns (an optional cell may be null), a row known by the
    columns in ``key``; or, where ``value`` is given, an object that maps names to values.
    """

    key: tuple[str, ...] = ()
    required: Mapping[str, Kind] = field(default_factory=dict)
    optional: Mapping[str, Kind] = field(default_factory=dict)
    value: Kind | None = None


FORMS: Mapping[str, Form] = {
    "accelerators": Form(
        key=("type",),
        required={"type": TEXT, "memory_gb": _NUMBER},
        optional={"minimum_beam": TEXT, "advised_beam": TEXT, "minimum_driver": _WHOLE},
    ),
    "tpu_types": Form(key=("type",), required={"type": TEXT, "compute_name": TEXT, "generation": TEXT}),
    "tpu_slices": Form(
        key=("type", "topology"),
        required={"type": TEXT, "topology": TEXT, "machine_type": TEXT, "chips": _WHOLE, "environment": _NAMED},
    ),
    "tpu_environment": Form(value=TEXT),
    "machines": Form(
        key=("name",),
        required={"name": TEXT, "vcpus": _WHOLE, "memory_gb": _NUMBER},
        optional={"accelerator": TEXT, "count": _WHOLE, "on_demand": _FLAG, "on_dataflow": _FLAG, "note": TEXT},
    ),
    "families": Form(value=TEXT),
    "n1_hosts": Form(
        key=("type", "count", "zone"),
        required={"type": TEXT, "count": _WHOLE, "max_vcpus": _WHOLE, "max_memory_gb": _NUMBER},
        optional={"zone": TEXT},
    ),
    "names": Form(key=("name",), required={"name": TEXT, "meant": TEXT, "why": TEXT}),
    "quotas": Form(
        key=("type", "provisioning"),
        required={"type": TEXT, "provisioning": _PROVISIONING, "unit": TEXT, "dimensions": _NAMED},
        optional={"metric": TEXT, "quota_id": TEXT},
    ),
    "zones": Form(value=_ZONES),
    "documented_zones": Form(value=_ZONES),
    "machine_zones": Form(value=_ZONES),
    "regions": Form(value=_TEXTS),
    "prices": Form(
        key=("accelerator", "count", "machine_type", "region"),
        required={"accelerator": TEXT, "count": _WHOLE, "machine_type": TEXT, "region": TEXT, "doubts": _TEXTS},
        optional={"low": _NUMBER, "high": _NUMBER, "spot_low": _NUMBER, "spot_high": _NUMBER},
    ),
    "rates": Form(
        key=("service", "item"),
        required={"service": TEXT, "item": TEXT, "unit": TEXT, "usd": _NUMBER, "region": TEXT, "doubts": _TEXTS},
    ),
    "spark_accelerators": Form(
        key=("type",),
        required={"type": TEXT, "compute_type": TEXT, "quota_metric": TEXT, "queued_quota_metric": TEXT},
    ),
    "spark_executors": Form(
        key=("type", "cores"),
        required={"type": TEXT, "cores": _WHOLE, "gpus": _WHOLE, "disks_gb": _WHOLES, "memory_mb": _WHOLE},
        optional={"disputed_above_mb": _WHOLE},
    ),
    "spark_runtimes": Form(
        key=("version",),
        required={"version": _VERSION, "lts": _FLAG, "provisioning": _TEXTS, "gpu_properties": _NAMED},
        optional={
            "spark": TEXT,
            "java": _WHOLE,
            "scala": TEXT,
            "python": TEXT,
            "support_ends": DATE,
            "usable_until": DATE,
        },
    ),
    "spark_properties": Form(
        key=("name",),
        required={"name": TEXT},
        optional={
            "prefix": _FLAG,
            "kind": _PROPERTY_KIND,
            "words": _TEXTS,
            "refused_words": _TEXTS,
            "choices": _WHOLES,
            "least": _WHOLE,
            "most": _WHOLE,
            "since": _VERSION,
            "before": _VERSION,
            "outside": _SEVERITY,
            "instead": TEXT,
            "refused": TEXT,
            "advice": TEXT,
        },
    ),
    "spark_batch": Form(key=("message",), required={"message": TEXT, "fields": _NAMED}),
}
"""Every table there is."""


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_date(text: str) -> bool:
    try:
        return bool(date.fromisoformat(text))
    except ValueError:
        return False
