"""Reading HTTP answers: a JSON object, or one error with a short text."""

from __future__ import annotations

import html
import json
import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, Protocol

from airflow_accel_provider.core.legible import clean
from airflow_accel_provider.exceptions import GoogleApiError

if TYPE_CHECKING:
    from collections.abc import Mapping

_TAG = re.compile(r"<(/?)(\w*)[^<>]*>")
_UNSEEN = frozenset({"script", "style", "head"})
_SECRET = re.compile(
    r"(?<![\w-])eyJ[\w-]{8,}\.[\w.-]+|\bya29\.[\w.-]+|-----BEGIN.*?(?:-----END[^-]*-----|$)", re.DOTALL
)
_LONGEST_READ = 100_000
_LONGEST_TEXT = 300
_LONGEST_REASON = 80


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
        return _word(error), plain(str(value.get("error_description") or error))
    if not isinstance(error, dict):
        return "", ""
    return _reason(error), plain(str(error.get("message") or ""))


def _reason(error: Mapping[str, Any]) -> str:
    lists = [each for each in (error.get("errors"), error.get("details")) if isinstance(each, list)]
    for entry in [entry for entries in lists for entry in entries]:
        if isinstance(entry, dict) and entry.get("reason"):
            return _word(entry["reason"])
    return _word(error.get("status") or "")


def _word(said: object) -> str:
    return plain(str(said))[:_LONGEST_REASON]


def retry_after(headers: Mapping[str, str], now: datetime | None = None) -> float | None:
    """Return the seconds that a Retry-After header asks to wait, given as a number or as a date.

    A date is held against that of the answer itself, since the service's clock need not be ours.
    """
    said = headers.get("Retry-After", "").strip()
    if said.isascii() and said.isdigit():
        return float(said)
    at = date_of(said)
    if at is None:
        return None
    since = date_of(headers.get("Date", "")) or now or datetime.now(UTC)
    return max((at - since).total_seconds(), 0.0)


def date_of(text: str) -> datetime | None:
    """Return the moment that a header names, ``None`` where it names none."""
    try:
        at = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return None
    return at if at.tzinfo else at.replace(tzinfo=UTC)


def plain(text: str) -> str:
    """Return a text on one line, without markup, tokens and keys, and cut to a readable length."""
    words = clean(html.unescape(_without_markup(text[:_LONGEST_READ])))
    line = " ".join(_SECRET.sub("***", words).split())
    return line if len(line) <= _LONGEST_TEXT else f"{line[: _LONGEST_TEXT - 1]}…"


def _without_markup(text: str) -> str:
    """Return what a browser would show of a text, in one pass over it whatever it holds."""
    kept, shown_from, unseen = [], 0, ""
    for tag in _TAG.finditer(text):
        name = tag[2].lower()
        if not unseen:
            kept.append(text[shown_from : tag.start()])
            unseen = name if name in _UNSEEN and not tag[1] else ""
        elif tag[1] and name == unseen:
            unseen = ""
        shown_from = tag.end()
    return " ".join([*kept, "" if unseen else text[shown_from:]])


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
