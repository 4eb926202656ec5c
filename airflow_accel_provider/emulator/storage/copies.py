"""New objects from old ones: copy, rewrite, compose."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from airflow_accel_provider.emulator.storage.conditions import Conditions, whole_number
from airflow_accel_provider.emulator.storage.contents import Content
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
    sources = [_source(call, bucket, item) for item in wished]
    content = buckets.contents.join(source.content for source in sources)
    stored = buckets.put(
        bucket,
        check_object_name(call.path["object"]),
        content,
        fields={"contentType": UNKNOWN_TYPE, **settable(body.get("destination") or {})},
        conditions=Conditions.of(call),
        components=sum(source.components or 1 for source in sources),
    )
    if body.get("deleteSourceObjects"):
        for name in {source.name for source in sources} - {stored.name}:
            buckets.delete(bucket, name)
    return stored.to_json(call.base_url)


def _source(call: Call, bucket: str, item: Mapping[str, Any]) -> StoredObject:
    generation = item.get("generation")
    name = check_object_name(item.get("name"))
    found = call.google.buckets.get(bucket, name, generation=None if generation is None else int(generation))
    wished = (item.get("objectPreconditions") or {}).get("ifGenerationMatch")
    Conditions(generation_match=None if wished is None else int(wished)).check(found)
    return found


def _copy(call: Call) -> StoredObject:
    buckets = call.google.buckets
    source = buckets.get(
        call.path["sourceBucket"], call.path["sourceObject"], generation=whole_number(call, "sourceGeneration")
    )
    Conditions.of(call, "ifSource").check(source)
    buckets.bucket(call.path["bucket"])
    content = Content(file="", size=source.size, crc32c=source.crc32c, md5=source.md5 or "")
    return buckets.put(
        call.path["bucket"],
        check_object_name(call.path["object"]),
        replace(content, file=buckets.contents.share(source.content)),
        fields=settable(call.json()) or source.fields,
        conditions=Conditions.of(call),
        components=source.components,
    )
