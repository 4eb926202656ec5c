"""Reading HTTP answers: a JSON object, or one error with a short text."""

from __future__ import annotations

import html
import json
import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, Protocol

from airflow_accel_provider.exceptions import GoogleApiError

if TYPE_CHECKING:
    from collections.abc import Mapping

_MARKUP = re.compile(r"<(script|style|head)\b.*?</\1\s*>|<[^>]*>", re.IGNORECASE | re.DOTALL)
_LONGEST_TEXT = 300


class Answer(Protocol):
    """What is read of an HTTP answer."""

    @property
    def status_code(self) -> int:
        """The HTTP status."""

    @property
    def text(self) -> str:
        """The decoded body."""

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers, found whatever their case."""


def object_of(answer: Answer, service: str, method: str) -> dict[str, Any]:
    """Return the JSON object an answer holds; an empty body is an empty object.

    Raises :class:`GoogleApiError` for an error status, and for a body that is no JSON object (a proxy's page, a cut
    answer), with status 502, since whoever stood in between may be gone on the next try.
    """
    raise_for_status(answer, service, method)
    if not answer.text.strip():
        return {}
    value = _json(answer.text)
    if isinstance(value, dict):
        return value
    text = f"the answer is not a JSON object: {plain(answer.text)}"
    raise GoogleApiError(502, "unreadableAnswer", text, service, method)


def raise_for_status(answer: Answer, service: str, method: str) -> None:
    """Raise :class:`GoogleApiError` for a status that is not a success."""
    if answer.status_code < 300:
        return
    reason, message = google_error(answer.text)
    raise GoogleApiError(
        answer.status_code,
        reason or f"http{answer.status_code}",
        message or plain(answer.text) or "no explanation given",
        service,
        method,
        retry_after=retry_after(answer.headers),
    )


def google_error(text: str) -> tuple[str, str]:
    """Return reason and message of an error body in any of the forms Google uses; empty where there is none.

    The forms are ``{"error": {"errors": [{"reason"}], "status", "message"}}`` with or without the list or the status,
    the same inside a list, and OAuth's ``{"error": "word", "error_description"}``.
    """
    value = _json(text)
    if isinstance(value, list) and value:
        value = value[0]
    error = value.get("error") if isinstance(value, dict) else None
    if isinstance(error, str):
        return error, plain(str(value.get("error_description") or error))
    if not isinstance(error, dict):
        return "", ""
    return _reason(error), plain(str(error.get("message") or ""))


def is_outage(body: object) -> bool:
    """Tell whether a body, as text or as read already, is a gateway's page or an error that may pass by itself."""
    if isinstance(body, str) and body.lstrip().startswith("<"):
        return True
    value = _json(body) if isinstance(body, str) else body
    error = value.get("error") if isinstance(value, dict) else None
    code = error.get("code") if isinstance(error, dict) else None
    return isinstance(code, int) and (code >= 500 or code == 429)


def _reason(error: Mapping[str, Any]) -> str:
    for entry in [*(error.get("errors") or ()), *(error.get("details") or ())]:
        if isinstance(entry, dict) and entry.get("reason"):
            return str(entry["reason"])
    return str(error.get("status") or "")


def retry_after(headers: Mapping[str, str], now: datetime | None = None) -> float | None:
    """Return the seconds that a Retry-After header asks to wait, given as a number or as a date."""
    said = headers.get("Retry-After", "").strip()
    if said.isascii() and said.isdigit():
        return float(said)
    try:
        at = parsedate_to_datetime(said)
    except ValueError:
        return None
    at = at if at.tzinfo else at.replace(tzinfo=UTC)
    return max((at - (now or datetime.now(UTC))).total_seconds(), 0.0)


def plain(text: str) -> str:
    """Return a text on one line, without markup and cut to a readable length."""
    line = " ".join(html.unescape(_MARKUP.sub(" ", text)).split())
    return line if len(line) <= _LONGEST_TEXT else f"{line[: _LONGEST_TEXT - 1]}…"


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None
