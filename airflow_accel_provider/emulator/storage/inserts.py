"""Uploads: an object's bytes at once, together with its metadata, or in pieces."""

from __future__ import annotations

import json
import re
from email.message import Message
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from airflow_accel_provider.emulator.shapes import check_shape
from airflow_accel_provider.emulator.storage.conditions import Conditions
from airflow_accel_provider.emulator.storage.names import check_header_fields, check_object_name
from airflow_accel_provider.emulator.storage.resources import EDITABLE, StoredObject
from airflow_accel_provider.emulator.storage.uploads import Chunk, Upload
from airflow_accel_provider.emulator.wire import Call, GoogleError, Reply

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow_accel_provider.emulator.storage import Buckets
    from airflow_accel_provider.emulator.storage.contents import Content

UNKNOWN_TYPE = "application/octet-stream"
CANCELLED = 499


def insert(call: Call) -> Reply | dict[str, Any]:
    """Take an upload of any of the three kinds."""
    kind = call.first("uploadType")
    if kind == "resumable":
        return _begin(call)
    if kind == "multipart":
        metadata, content_type, data = split_related(call.headers.get("content-type", ""), call.body)
    elif kind == "media":
        metadata, content_type, data = {}, call.headers.get("content-type"), call.body
    else:
        raise GoogleError(400, f"uploadType {kind!r} is none of media, multipart, resumable.", reason="invalid")
    check_shape(call.method, metadata)
    buckets, bucket = call.google.buckets, call.path["bucket"]
    buckets.bucket(bucket)
    metadata = {"contentType": content_type or UNKNOWN_TYPE, **metadata}
    name = check_object_name(call.first("name") or metadata.get("name"))
    conditions = Conditions.of(call)
    stored = _store(buckets, (bucket, name), buckets.contents.save(data), metadata, conditions)
    return stored.to_json(call.base_url)


def resume(call: Call) -> Reply | dict[str, Any]:
    """Take the next piece of a resumable upload, or tell how far it is."""
    uploads = call.google.buckets.uploads
    with uploads.lock:
        upload = uploads.get(call.first("upload_id") or "")
        if upload.done is not None:
            return call.google.buckets.get(upload.bucket, upload.name).to_json(call.base_url)
        chunk = Chunk.of(call.headers.get("content-range"), call.body)
        received = uploads.append(upload, chunk)
        if chunk.total is None or received < chunk.total:
            return Reply(status=308, headers={"Range": f"bytes=0-{received - 1}"} if received else {})
        return _complete(call, upload).to_json(call.base_url)


def cancel(call: Call) -> Reply:
    """Give up a resumable upload."""
    uploads = call.google.buckets.uploads
    with uploads.lock:
        uploads.cancel(uploads.get(call.first("upload_id") or ""))
    return Reply(status=CANCELLED)


def _begin(call: Call) -> Reply:
    bucket = call.google.buckets.bucket(call.path["bucket"]).name
    metadata = call.json()
    check_shape(call.method, metadata)
    name = check_object_name(call.first("name") or metadata.get("name"))
    conditions = Conditions.of(call)
    # Known to fail already: say so before the bytes are sent. It is checked again when they are there.
    conditions.check(call.google.buckets.find(bucket, name))
    metadata = {"contentType": call.headers.get("x-upload-content-type") or UNKNOWN_TYPE, **metadata}
    upload_id = call.google.buckets.uploads.begin(bucket, name, metadata=metadata, conditions=conditions)
    location = f"{call.base_url}/upload/storage/v1/b/{bucket}/o?uploadType=resumable&name={quote(name, safe='')}"
    return Reply(headers={"Location": f"{location}&upload_id={upload_id}", "X-GUploader-UploadID": upload_id})


def _complete(call: Call, upload: Upload) -> StoredObject:
    buckets = call.google.buckets
    content = buckets.contents.adopt(buckets.uploads.path(upload.id))
    try:
        stored = _store(buckets, (upload.bucket, upload.name), content, upload.metadata, upload.conditions)
    except GoogleError:
        buckets.uploads.cancel(upload)
        raise
    buckets.uploads.finish(upload, stored.generation)
    return stored


def _store(
    buckets: Buckets, target: tuple[str, str], content: Content, metadata: Mapping[str, Any], conditions: Conditions
) -> StoredObject:
    try:
        _check_digests(content, metadata)
        fields = settable(metadata)
    except GoogleError:
        buckets.contents.remove(content.file)
        raise
    return buckets.put(*target, content, fields=fields, conditions=conditions)


def _check_digests(content: Content, metadata: Mapping[str, Any]) -> None:
    for field, word, measured in (("md5Hash", "MD5 hash", content.md5), ("crc32c", "CRC32C", content.crc32c)):
        given = metadata.get(field)
        if given and given != measured:
            message = f'Provided {word} "{given}" doesn\'t match calculated {word} "{measured}".'
            raise GoogleError(400, message, reason="invalid")


def settable(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a resource that a client may set."""
    fields = {field: metadata[field] for field in EDITABLE if metadata.get(field) is not None}
    check_header_fields(fields)
    return fields


def split_related(content_type: str, body: bytes) -> tuple[dict[str, Any], str | None, bytes]:
    """Return the metadata, the content type and the bytes of a ``multipart/related`` body, byte for byte."""
    header = Message()
    header["Content-Type"] = content_type
    boundary = header.get_boundary()
    if boundary is None:
        raise GoogleError(400, "Missing multipart boundary.", reason="badRequest")
    delimiter = b"--" + boundary.encode()
    # Some clients end lines with a bare line feed; the first line tells.
    newline = b"\r\n" if body.startswith(delimiter + b"\r\n") else b"\n"
    parts = re.split(re.escape(newline + delimiter), newline + body)[1:-1]
    if len(parts) != 2:
        raise GoogleError(400, f"Multipart body has {len(parts)} parts instead of metadata and media.")
    (_, metadata), (media_head, media) = (_split_part(part, newline) for part in parts)
    try:
        fields = json.loads(metadata)
    except ValueError:
        fields = None
    if not isinstance(fields, dict):
        raise GoogleError(400, "Parse Error: the metadata part is not a JSON object.", reason="parseError")
    return fields, media_head.get("content-type"), media


def _split_part(part: bytes, newline: bytes) -> tuple[dict[str, str], bytes]:
    head, _, content = part.partition(newline * 2)
    lines = (line.decode("latin-1").partition(":") for line in head.split(newline) if line)
    return {name.strip().lower(): value.strip() for name, _, value in lines}, content
