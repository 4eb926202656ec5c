"""Buckets and objects as they are kept, and as Cloud Storage shows them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

if TYPE_CHECKING:
    from collections.abc import Mapping

EDITABLE = (
    "cacheControl",
    "contentDisposition",
    "contentEncoding",
    "contentLanguage",
    "contentType",
    "customTime",
    "eventBasedHold",
    "metadata",
    "storageClass",
    "temporaryHold",
)
"""The fields of an object that a client may set."""

BUCKET_SETTINGS = ("iamConfiguration", "labels", "lifecycle", "location", "storageClass")
"""The fields of a bucket that a client may set and reads back."""

MULTI_REGIONS = frozenset({"US", "EU", "ASIA"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Bucket:
    """One bucket; ``created`` is in microseconds since 1970, ``settings`` what its creator chose."""

    name: str
    created: int
    created_text: str
    project_number: int
    settings: Mapping[str, Any]

    def to_json(self, base_url: str) -> dict[str, Any]:
        """Return the bucket resource."""
        location = str(self.settings.get("location", "US")).upper()
        return {
            "kind": "storage#bucket",
            "id": self.name,
            "name": self.name,
            "selfLink": f"{base_url}/storage/v1/b/{self.name}",
            "projectNumber": str(self.project_number),
            "generation": str(self.created),
            "metageneration": "1",
            "etag": "CAE=",
            "timeCreated": self.created_text,
            "updated": self.created_text,
            "storageClass": "STANDARD",
            "iamConfiguration": {"publicAccessPrevention": "inherited", "uniformBucketLevelAccess": {"enabled": True}},
            # Deleted objects are gone at once here, and clients that ask are told so.
            "softDeletePolicy": {"retentionDurationSeconds": "0"},
            **self.settings,
            "location": location,
            "locationType": "multi-region" if location in MULTI_REGIONS else "region",
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredObject:
    """One live object. ``content`` names the file that holds its bytes; composed objects have no MD5, as in Google."""

    bucket: str
    name: str
    generation: int
    metageneration: int
    size: int
    crc32c: str
    md5: str | None
    components: int | None
    content: str
    created: str
    updated: str
    fields: Mapping[str, Any]

    @property
    def etag(self) -> str:
        """Return a tag that changes with content and metadata."""
        return f"{self.generation}/{self.metageneration}"

    def to_json(self, base_url: str) -> dict[str, Any]:
        """Return the object resource; numbers that Google writes as strings are strings."""
        path = f"b/{self.bucket}/o/{quote(self.name, safe='')}"
        shown = {
            "kind": "storage#object",
            "id": f"{self.bucket}/{self.name}/{self.generation}",
            "selfLink": f"{base_url}/storage/v1/{path}",
            "mediaLink": f"{base_url}/download/storage/v1/{path}?generation={self.generation}&alt=media",
            "name": self.name,
            "bucket": self.bucket,
            "generation": str(self.generation),
            "metageneration": str(self.metageneration),
            "storageClass": "STANDARD",
            "size": str(self.size),
            "md5Hash": self.md5,
            "crc32c": self.crc32c,
            "componentCount": self.components,
            "etag": self.etag,
            "timeCreated": self.created,
            "updated": self.updated,
            "timeStorageClassUpdated": self.created,
            "timeFinalized": self.created,
            **self.fields,
        }
        return {name: value for name, value in shown.items() if value is not None}
