"""Names and labels under which a job can be found again, whatever happens to the process that started it.

Job name = readable prefix + hash of (owner, life, attempt): the same three always give the same name, and no other
wish of any task gives it. Ownership itself is the label ``accel-owner`` alone.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Mapping

OWNER = "accel-owner"
LIFE = "accel-life"
ATTEMPT = "accel-attempt"
DAG = "accel-dag"
TASK = "accel-task"
RUN = "accel-run"
MAP_INDEX = "accel-map-index"
RESERVED_PREFIX = "accel-"

_NAME_LENGTH = 63  # Dataflow takes 1,024, but VM names are cut from it and other services stop at 63.
_LABEL_LENGTH = 63  # https://cloud.google.com/compute/docs/labeling-resources, read 2026-11


def job_name(prefix: str, *, owner: str, life: int, attempt: int) -> str:
    """Return the job name of one attempt: at most 63 of ``[a-z0-9-]``, starting with a letter."""
    digest = _digest(f"{owner}/{life}/{attempt}", 12)
    return f"{_slug(prefix, _NAME_LENGTH - 13)}-{digest}"


def request_id(prefix: str | None, *, owner: str, life: int, attempt: int) -> str:
    """Return the id of the request that makes the attempt's job: at most 40 of ``[A-Za-z0-9_-]``.

    The same three always give the same id, so that a request that is repeated makes nothing new.
    """
    digest = _digest(f"{owner}/{life}/{attempt}", 24)
    return f"{(prefix or 'accel')[:15]}-{digest}"


def job_labels(
    *, owner: str, life: int, attempt: int, dag_id: str, task_id: str, run_id: str, map_index: int = -1
) -> dict[str, str]:
    """Return the labels that tie a job to its task instance, valid for any ids Airflow allows."""
    labels = {
        OWNER: label_value(owner),
        LIFE: str(life),
        ATTEMPT: str(attempt),
        DAG: label_value(dag_id),
        TASK: label_value(task_id),
        RUN: label_value(run_id),
    }
    if map_index >= 0:
        labels[MAP_INDEX] = str(map_index)
    return labels


def item_digest(owner: str, item: str) -> str:
    """Return what stands for the item that a mapped task was expanded over, without showing the item."""
    return _digest(f"{owner}/{item}", 16)


def owns(owner: str, labels: Mapping[str, str]) -> bool:
    """Tell whether a job with these labels was started by this owner."""
    return labels.get(OWNER) == label_value(owner)


def label_value(text: str) -> str:
    """Return the text as a label value; one that had to be changed ends in a hash, so that it stays distinct."""
    value = re.sub(r"[^a-z0-9_-]", "-", _ascii(text).lower())
    if value == text and len(value) <= _LABEL_LENGTH:
        return value
    digest = _digest(text, 8)
    return f"{value[: _LABEL_LENGTH - 9]}-{digest}"


def _slug(text: str, length: int) -> str:
    slug = re.sub(r"[^a-z0-9]+", "-", _ascii(text).lower()).strip("-")
    if not slug[:1].isalpha():
        slug = f"job-{slug}" if slug else "job"
    return slug[:length].rstrip("-")


def _ascii(text: str) -> str:
    return unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()


def _digest(text: str, length: int) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:length]
