"""The methods on objects that leave bytes alone: list, get, patch, delete; and downloads."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from airflow_accel_provider.emulator.storage.buckets import page_size
from airflow_accel_provider.emulator.storage.conditions import Conditions, whole_number
from airflow_accel_provider.emulator.storage.listing import LARGEST_PAGE, Wish, list_page
from airflow_accel_provider.emulator.storage.names import check_header_fields
from airflow_accel_provider.emulator.storage.resources import EDITABLE, StoredObject
from airflow_accel_provider.emulator.wire import Call, GoogleError, Reply

if TYPE_CHECKING:
    from collections.abc import Mapping

RANGE = re.compile(r"^bytes=(?P<first>\d*)-(?P<last>\d*)$")


def list_(call: Call) -> dict[str, Any]:
    """List one page of a bucket's objects and prefixes."""
    wish = Wish(
        prefix=call.first("prefix") or "",
        delimiter=call.first("delimiter") or "",
        start=call.first("startOffset") or "",
        end=call.first("endOffset") or "",
        glob=call.first("matchGlob") or "",
        page_token=call.first("pageToken") or "",
        page_size=page_size(call, LARGEST_PAGE),
        show_folders=call.first("includeTrailingDelimiter") == "true",
    )
    page = list_page(call.google.buckets.objects(call.path["bucket"], wish.prefix), wish)
    answer: dict[str, Any] = {"kind": "storage#objects"}
    if page.items:
        answer["items"] = [item.to_json(call.base_url) for item in page.items]
    if page.prefixes:
        answer["prefixes"] = list(page.prefixes)
    if page.next_token:
        answer["nextPageToken"] = page.next_token
    return answer


def get(call: Call) -> Reply | dict[str, Any]:
    """Return an object's resource, or with ``alt=media`` its bytes."""
    if call.first("alt") == "media":
        return download(call)
    return _found(call).to_json(call.base_url)


def download(call: Call) -> Reply:
    """Return an object's bytes, all (200) or the range that was asked for (206)."""
    found = _found(call)
    first, last = _range(call.headers.get("range"), found)
    if first > last and "range" in call.headers:
        error = GoogleError(416, f"The requested range cannot be satisfied: the object has {found.size} bytes.")
        return Reply(status=416, body=error.body(), headers={"Content-Range": f"bytes */{found.size}"})
    with call.google.buckets.open(found) as file:
        file.seek(first)
        data = file.read(last - first + 1)
    headers = _digest_headers(found)
    is_whole = len(data) == found.size
    if not is_whole:
        headers["Content-Range"] = f"bytes {first}-{last}/{found.size}"
    content_type = str(found.fields.get("contentType", "application/octet-stream"))
    return Reply(body=data, status=200 if is_whole else 206, headers=headers, content_type=content_type)


def patch(call: Call) -> dict[str, Any]:
    """Change the fields that are named; null removes a field, or a key of ``metadata``."""
    changes = {name: value for name, value in call.json().items() if name in EDITABLE}
    check_header_fields(changes)
    edited = call.google.buckets.edit(
        call.path["bucket"],
        call.path["object"],
        lambda fields: _patched(fields, changes),
        generation=whole_number(call, "generation"),
        conditions=Conditions.of(call),
    )
    return edited.to_json(call.base_url)


def delete(call: Call) -> Reply:
    """Delete an object."""
    call.google.buckets.delete(
        call.path["bucket"],
        call.path["object"],
        generation=whole_number(call, "generation"),
        conditions=Conditions.of(call),
    )
    return Reply(status=204)


def _patched(fields: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    patched = _merged(fields, changes)
    if changes.get("metadata"):
        patched["metadata"] = _merged(fields.get("metadata", {}), changes["metadata"])
    return patched


def _merged(old: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in {**old, **changes}.items() if value is not None}


def _found(call: Call) -> StoredObject:
    found = call.google.buckets.get(
        call.path["bucket"], call.path["object"], generation=whole_number(call, "generation")
    )
    Conditions.of(call).check(found, reading=True)
    return found


def _range(header: str | None, found: StoredObject) -> tuple[int, int]:
    match = RANGE.match(header or "")
    if match is None or (not match["first"] and not match["last"]):
        return 0, found.size - 1
    end = found.size - 1
    if match["first"]:
        first, last = int(match["first"]), min(int(match["last"] or end), end)
    else:
        first, last = max(found.size - int(match["last"]), 0), end
    return first, last


def _digest_headers(found: StoredObject) -> dict[str, str]:
    digests = [f"crc32c={found.crc32c}", *([f"md5={found.md5}"] if found.md5 else [])]
    headers = {
        "X-Goog-Hash": ",".join(digests),
        "X-Goog-Generation": str(found.generation),
        "X-Goog-Metageneration": str(found.metageneration),
        "X-Goog-Stored-Content-Length": str(found.size),
        "ETag": found.etag,
        "Accept-Ranges": "bytes",
    }
    if encoding := found.fields.get("contentEncoding"):
        headers |= {"Content-Encoding": str(encoding), "X-Goog-Stored-Content-Encoding": str(encoding)}
    return headers
