"""Cloud Storage's route table.

All of it is open: a bare client under STORAGE_EMULATOR_HOST is anonymous even where there are credentials, so calls
without a bearer are let through, reading and writing. A bearer that is there must be right, and is recorded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_accel_provider.emulator.storage import buckets, copies, inserts, objects
from airflow_accel_provider.emulator.wire import Handler, Method

if TYPE_CHECKING:
    from collections.abc import Iterator

BUCKET = "/b/{bucket}"
OBJECT = "/b/{bucket}/o/{object}"
FROM = "/b/{sourceBucket}/o/{sourceObject}"

_TABLE: tuple[tuple[str, str, str, Handler], ...] = (
    ("storage.buckets.insert", "POST", "/b", buckets.insert),
    ("storage.buckets.list", "GET", "/b", buckets.list_),
    ("storage.buckets.get", "GET", BUCKET, buckets.get),
    ("storage.buckets.delete", "DELETE", BUCKET, buckets.delete),
    ("storage.objects.list", "GET", f"{BUCKET}/o", objects.list_),
    ("storage.objects.get", "GET", OBJECT, objects.get),
    ("storage.objects.patch", "PATCH", OBJECT, objects.patch),
    ("storage.objects.delete", "DELETE", OBJECT, objects.delete),
    ("storage.objects.compose", "POST", f"{OBJECT}/compose", copies.compose),
    ("storage.objects.copy", "POST", f"{FROM}/copyTo{OBJECT}", copies.copy),
    ("storage.objects.rewrite", "POST", f"{FROM}/rewriteTo{OBJECT}", copies.rewrite),
)

_UPLOADS: tuple[tuple[str, str, str, Handler], ...] = (
    ("storage.objects.insert", "POST", f"{BUCKET}/o", inserts.insert),
    ("storage.objects.insert", "PUT", f"{BUCKET}/o", inserts.resume),
    ("storage.objects.insert", "DELETE", f"{BUCKET}/o", inserts.cancel),
)


def _rows() -> Iterator[Method]:
    for prefix, table in (("/storage/v1", _TABLE), ("/upload/storage/v1", _UPLOADS)):
        for method_id, verb, path, handler in table:
            yield Method(id=method_id, verb=verb, path=prefix + path, handler=handler, open=True)
    yield Method(
        id="storage.objects.get",
        verb="GET",
        path=f"/download/storage/v1{OBJECT}",
        handler=objects.download,
        open=True,
    )


METHODS: tuple[Method, ...] = tuple(_rows())
