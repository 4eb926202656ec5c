"""The file of a pipeline: whether it is there, and where it is on this machine."""

from __future__ import annotations

import platform
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from airflow_accel_provider.exceptions import GoogleApiError
from airflow_accel_provider.hooks.submission._cache import kept

if TYPE_CHECKING:
    from airflow_accel_provider.hooks.session import GoogleSession

_GS = "gs://"
_LONGEST_NAME = 100


def why_unreadable(session: GoogleSession, path: str) -> str | None:
    """Return why a local or ``gs://`` file cannot be read by this process as this session, or ``None`` when it can.

    Raises :class:`GoogleApiError` when the service does not answer.
    """
    if not path.startswith(_GS):
        return None if Path(path).is_file() else f"There is no file {path} on this worker ({platform.node()})."
    bucket, _, name = path.removeprefix(_GS).partition("/")
    if not bucket or not name or name.endswith("/"):
        return f"{path} is not the address of a file, such as gs://bucket/file.py."
    try:
        _described(session, path)
    except GoogleApiError as refused:
        return refusal(path, refused)
    return None


def refusal(path: str, refused: GoogleApiError) -> str:
    """Return what a person reads of a file in a bucket that was refused. Raises what may pass by itself."""
    if refused.is_transient:
        raise refused
    return f"There is no {path}." if refused.status == 404 else f"{path} cannot be read: {refused}"


def local(session: GoogleSession, path: str) -> Path:
    """Return where a file is on this machine; one in a bucket is fetched, once for each of its generations."""
    if not path.startswith(_GS):
        return Path(path)
    described = _described(session, path)
    name = _local_name(path)
    key = [path, described.get("generation"), session.endpoint("storage")]
    return kept("files", key, lambda folder: session.download(path, folder / name)) / name


def _local_name(path: str) -> str:
    """Return a name for a copy that stays in its folder, with the ending of the object's own name."""
    name = re.sub(r"[^A-Za-z0-9._-]", "_", path.rpartition("/")[2])[-_LONGEST_NAME:]
    return name.lstrip(".-") or "file"


def _described(session: GoogleSession, path: str) -> dict[str, Any]:
    """Return what the service says of an object to those who may read it."""
    bucket, _, name = path.removeprefix(_GS).partition("/")
    address = f"b/{quote(bucket, safe='')}/o/{quote(name, safe='')}"
    return session.request("storage", "GET", address, params={"fields": "name,generation"})
