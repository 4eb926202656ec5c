"""Which names buckets and objects may have."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from airflow_accel_provider.emulator.wire import GoogleError

if TYPE_CHECKING:
    from collections.abc import Mapping

BUCKET_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{1,220}[a-z0-9]")
LONGEST_PART = 63
"""Source: https://cloud.google.com/storage/docs/buckets#naming (2026-11)."""

LONGEST_OBJECT_NAME = 1024
"""Bytes in UTF-8. Source: https://cloud.google.com/storage/docs/objects#naming (2026-11)."""


HEADER_FIELDS = ("contentType", "contentEncoding")


def check_bucket_name(name: object) -> str:
    """Return a bucket's name; raise 400 for one that Cloud Storage refuses."""
    text = name if isinstance(name, str) else ""
    is_long = any(len(part) > LONGEST_PART for part in text.split("."))
    if not BUCKET_NAME.fullmatch(text) or is_long or ".." in text or text.startswith("goog") or "google" in text:
        raise GoogleError(400, f"Invalid bucket name: '{text}'", reason="invalid")
    return text


def check_header_fields(fields: Mapping[str, Any]) -> None:
    """Raise 400 when a field of an object that downloads send as a header could not be one."""
    for field in HEADER_FIELDS:
        text = fields.get(field)
        if text is not None and not (isinstance(text, str) and text.isascii() and text.isprintable()):
            raise GoogleError(400, f"Invalid value for {field}: {text!r:.100}.", reason="invalid")


def check_object_name(name: object) -> str:
    """Return an object's name; raise 400 for one that Cloud Storage refuses."""
    if not isinstance(name, str) or not name:
        raise GoogleError(400, "Required object name is missing.", reason="required")
    try:
        size = len(name.encode())
    except UnicodeEncodeError:
        raise GoogleError(400, "The object name is not valid UTF-8.", reason="invalid") from None
    if size > LONGEST_OBJECT_NAME or name in (".", "..") or "\r" in name or "\n" in name:
        raise GoogleError(400, f"Disallowed object name: '{name[:100]}'", reason="invalid")
    return name
