"""Whether what a batch runs is where it should be."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING
from urllib.parse import quote

from airflow_accel_provider.core.problems import Problem, error
from airflow_accel_provider.exceptions import GoogleApiError

if TYPE_CHECKING:
    from airflow_accel_provider.hooks.session import GoogleSession

_GS = "gs://"
_NOT_FOUND = 404


def missing_files(session: GoogleSession, files: Iterable[str]) -> Sequence[Problem]:
    """Return a problem for each file in a bucket that is not there.

    It is the batch's own account that reads them: what this connection may not see says nothing, nor does a service
    that does not answer. Files inside an image are left out.
    """
    problems = []
    for file in dict.fromkeys(each for each in files if each.startswith(_GS)):
        bucket, _, name = file.removeprefix(_GS).partition("/")
        if not bucket or not name or name.endswith("/"):
            text = f"{file} is not the address of a file, such as gs://bucket/jobs/main.py."
            problems.append(error("batch-main", text, "batch"))
        elif _is_missing(session, bucket, name):
            problems.append(error("batch-main-missing", f"There is no {file}.", "batch"))
    return problems


def _is_missing(session: GoogleSession, bucket: str, name: str) -> bool:
    path = f"b/{quote(bucket, safe='')}/o/{quote(name, safe='')}"
    try:
        session.request("storage", "GET", path, params={"fields": "name"}, retry_seconds=10)
    except GoogleApiError as refused:
        return refused.status == _NOT_FOUND
    return False
