"""New objects from old ones: copy, rewrite, compose."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_accel_provider.emulator.storage.conditions import Conditions, to_whole_number, whole_number
from airflow_accel_provider.emulator.storage.inserts import UNKNOWN_TYPE, settable
from airflow_accel_provider.emulator.storage.names import check_object_name
from airflow_accel_provider.emulator.wire import Call, GoogleError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow_accel_provider.emulator.storage.resources import StoredObject

MOST_SOURCES = 32
"""Source: https://cloud.google.com/storage/docs/composite-objects (2026-11)."""


def copy(call: Call) -> dict[str, Any]:
    """Copy an object; a body replaces its metadata."""
    return _copy(call).to_json(call.base_url)


def rewrite(call: Call) -> dict[str, Any]:
    """Copy an object in one go, however large it is."""
    copied = _copy(call)
    return {
        "kind": "storage#rewriteResponse",
        "totalBytesRewritten": str(copied.size),
        "objectSize": str(copied.size),
        "done": True,
        "resource": copied.to_json(call.base_url),
    }


def compose(call: Call) -> dict[str, Any]:
    """Concatenate objects of one bucket."""
    body, buckets, bucket = call.json(), call.google.buckets, call.path["bucket"]
    wished = body.get("sourceObjects") or []
    if not 1 <= len(wished) <= MOST_SOURCES:
        raise GoogleError(400, f"The number of source components ({len(wished)}) must be 1 to {MOST_SOURCES}.")
    name = check_object_name(call.path["object"])
    fields = {"contentType": UNKNOWN_TYPE, **settable(body.get("destination") or {})}
    conditions = Conditions.of(call)
    sources = [_source(call, bucket, item) for item in wished]
    stored = buckets.put(
        bucket,
        name,
        buckets.contents.join(buckets.open(source) for source in sources),
        fields=fields,
        conditions=conditions,
        components=sum(source.components or 1 for source in sources),
    )
    if body.get("deleteSourceObjects"):
        for name in {source.name for source in sources} - {stored.name}:
            buckets.delete(bucket, name)
    return stored.to_json(call.base_url)


def _source(call: Call, bucket: str, item: Mapping[str, Any]) -> StoredObject:
    generation = to_whole_number("generation", item.get("generation"))
    found = call.google.buckets.get(bucket, check_object_name(item.get("name")), generation=generation)
    wished = (item.get("objectPreconditions") or {}).get("ifGenerationMatch")
    Conditions(generation_match=to_whole_number("ifGenerationMatch", wished)).check(found)
    return found


def _copy(call: Call) -> StoredObject:
    buckets = call.google.buckets
    source = buckets.get(
        call.path["sourceBucket"], call.path["sourceObject"], generation=whole_number(call, "sourceGeneration")
    )
    Conditions.of(call, "ifSource").check(source)
    name = check_object_name(call.path["object"])
    fields = settable(call.json()) or source.fields
    conditions = Conditions.of(call)
    return buckets.put(
        call.path["bucket"],
        name,
        buckets.share(source),
        fields=fields,
        conditions=conditions,
        components=source.components,
    )
