"""Whether what goes beside a batch in the call that creates it can go there."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from airflow_accel_provider.core.problems import Problem, error
from airflow_accel_provider.core.validation import is_templated

# Dataproc API v1, batches.create, requestId: at most 40 of these; read 2026-11.
_REQUEST_ID = re.compile(r"[A-Za-z0-9_-]{1,40}")
# RFC 9110, field names; and a value on one line.
_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_VALUE = re.compile(r"[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?")
_OURS = ("authorization", "content-type", "content-length", "host", "x-goog-user-project")


def check_call(parameters: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield what is wrong with ``request_id`` and ``metadata``."""
    request_id = parameters.get("request_id")
    if request_id is not None and not is_templated(request_id):
        if not isinstance(request_id, str):
            yield error("wrong-type", f"{request_id!r} does not do for request_id; give a text.", "request_id")
        elif not _REQUEST_ID.fullmatch(request_id):
            text = f"{request_id!r} is not a request's id: up to 40 letters, digits, '_' and '-'."
            yield error("request-id", text, "request_id")
    yield from _check_metadata(parameters.get("metadata") or ())


def _check_metadata(metadata: Any) -> Iterator[Problem]:
    if not isinstance(metadata, list | tuple) or not all(_is_pair(each) for each in metadata):
        text = f"{metadata!r} does not do; give a list of pairs of a name and a value, such as [('x-team', 'ml')]."
        yield error("wrong-type", text, "metadata")
        return
    for name, value in metadata:
        if name.lower() in _OURS:
            text = f"{name} is set from the connection; use gcp_conn_id, impersonation_chain and quota_project_id."
            yield error("metadata-ours", text, "metadata")
        elif not (_NAME.fullmatch(name) and _VALUE.fullmatch(value)):
            yield error("metadata", f"{name!r}: {value!r} cannot be sent as a header of a call.", "metadata")


def _is_pair(value: Any) -> bool:
    return isinstance(value, list | tuple) and len(value) == 2 and all(isinstance(each, str) for each in value)
