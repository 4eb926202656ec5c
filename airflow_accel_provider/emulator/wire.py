"""The form every API method of the emulator has: a pure-looking function from a call to a reply."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from airflow_accel_provider.emulator.state import Google

STATUS_WORDS: Mapping[int, tuple[str, str]] = {
    400: ("INVALID_ARGUMENT", "badRequest"),
    401: ("UNAUTHENTICATED", "authError"),
    403: ("PERMISSION_DENIED", "forbidden"),
    404: ("NOT_FOUND", "notFound"),
    409: ("ALREADY_EXISTS", "conflict"),
    411: ("INVALID_ARGUMENT", "required"),
    412: ("FAILED_PRECONDITION", "conditionNotMet"),
    413: ("INVALID_ARGUMENT", "uploadTooLarge"),
    416: ("OUT_OF_RANGE", "requestedRangeNotSatisfiable"),
    429: ("RESOURCE_EXHAUSTED", "rateLimitExceeded"),
    500: ("INTERNAL", "backendError"),
    501: ("UNIMPLEMENTED", "notImplemented"),
    503: ("UNAVAILABLE", "backendError"),
    504: ("DEADLINE_EXCEEDED", "backendError"),
}
"""HTTP status to (canonical status word, classic error reason), as Google's error bodies spell them."""


class GoogleError(Exception):
    """An error answer, in the body form that Google's clients parse.

    ``reason`` defaults to the classic reason of the status, which JSON APIs of the older kind (Storage, Compute) show.
    """

    def __init__(self, status: int, message: str, *, reason: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.reason = reason or STATUS_WORDS.get(status, ("UNKNOWN", "unknown"))[1]

    def body(self) -> dict[str, Any]:
        """Return the error as Google writes it."""
        word = STATUS_WORDS.get(self.status, ("UNKNOWN", "unknown"))[0]
        detail = {"message": self.message, "domain": "global", "reason": self.reason}
        return {"error": {"code": self.status, "message": self.message, "status": word, "errors": [detail]}}


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One authenticated request, after routing.

    ``method`` is the API method id (``dataflow.projects.locations.jobs.get``), ``query`` holds every value of every
    query parameter, ``principal`` is the e-mail of the caller (``None`` for an anonymous storage read), and ``google``
    is all the state there is.
    """

    method: str
    path: Mapping[str, str]
    query: Mapping[str, tuple[str, ...]]
    headers: Mapping[str, str]
    body: bytes
    principal: str | None
    base_url: str
    google: Google

    def first(self, name: str, default: str | None = None) -> str | None:
        """Return the first value of a query parameter."""
        values = self.query.get(name)
        return values[0] if values else default

    def json(self) -> dict[str, Any]:
        """Return the body as a JSON object; an empty body is an empty object."""
        if not self.body:
            return {}
        try:
            value = json.loads(self.body)
        except (ValueError, RecursionError) as error:
            raise GoogleError(400, f"Invalid JSON payload received. {error}", reason="parseError") from None
        if not isinstance(value, dict):
            raise GoogleError(
                400, "Invalid JSON payload received. Root element must be a message.", reason="parseError"
            )
        return value


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """One answer: a JSON object, raw bytes, or nothing."""

    body: Mapping[str, Any] | bytes | None = None
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    content_type: str = "application/json; charset=UTF-8"


Handler = Callable[[Call], Reply | Mapping[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """One row of a service's route table.

    ``path`` is in Starlette's syntax, from the server's root (``/v1b3/projects/{projectId}/locations/…``). Handlers run
    in a worker thread, so they may block and must lock what they share. ``open`` methods take calls without a token.
    ``errors`` makes an answer of a status and a sentence where a service writes its errors in a form of its own.
    """

    id: str
    verb: str
    path: str
    handler: Handler
    open: bool = False
    errors: Callable[[int, str], Reply] | None = None
