"""Batches: many calls in one multipart request, each answered as if it had come alone."""

from __future__ import annotations

from email.parser import BytesParser
from email.policy import HTTP
from http.client import responses
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from airflow_accel_provider.emulator.dispatch import Incoming, Outcome, encode, error_reply
from airflow_accel_provider.emulator.wire import GoogleError, Reply

if TYPE_CHECKING:
    from collections.abc import Callable
    from email.message import MIMEPart

MOST_CALLS = 100
"""Source: https://cloud.google.com/storage/docs/batch (2026-11)."""

BOUNDARY = "batch_accel_answers"


def is_batch(incoming: Incoming) -> bool:
    """Tell whether a request is a batch of one of the services."""
    return incoming.verb == "POST" and (incoming.path == "/batch" or incoming.path.startswith("/batch/"))


def answer_batch(batch: Incoming, answer: Callable[[Incoming], Outcome]) -> Outcome:
    """Answer every call of a batch in order; one that fails doesn't stop the others.

    They share one connection: when one of the answers is to be cut or halved, the whole is.
    """
    try:
        parts = _parts(batch)
        calls = [_call(part, batch) for part in parts]
    except GoogleError as error:
        return Outcome(reply=error_reply(error))
    outcomes = [answer(call) for call in calls]
    texts = [_answer_part(part, outcome) for part, outcome in zip(parts, outcomes, strict=True)]
    delimiter = b"--" + BOUNDARY.encode()
    body = b"".join(delimiter + b"\r\n" + text + b"\r\n" for text in texts) + delimiter + b"--\r\n"
    return Outcome(
        reply=Reply(body=body, content_type=f'multipart/mixed; boundary="{BOUNDARY}"'),
        cut=any(outcome.cut for outcome in outcomes),
        halved=any(outcome.halved for outcome in outcomes),
    )


def _parts(batch: Incoming) -> list[MIMEPart]:
    content_type = batch.headers.get("content-type", "")
    whole = BytesParser(policy=HTTP).parsebytes(f"Content-Type: {content_type}\r\n\r\n".encode() + batch.body)
    parts = list(whole.iter_parts()) if whole.is_multipart() else []
    if not parts:
        raise GoogleError(400, "Failed to parse batch request, error: 0 items.")
    if len(parts) > MOST_CALLS:
        raise GoogleError(400, f"The batch request could not be processed: it has more than {MOST_CALLS} calls.")
    return parts


def _call(part: MIMEPart, batch: Incoming) -> Incoming:
    first, _, rest = bytes(part.get_payload(decode=True) or b"").partition(b"\n")
    words = first.decode("utf-8", "replace").split()
    if len(words) < 2:
        raise GoogleError(400, f"Failed to parse batch request, error: {first!r} is no request line.")
    inner = BytesParser(policy=HTTP).parsebytes(rest)
    headers = {name.lower(): str(value) for name, value in inner.items()}
    # A call without credentials of its own has those of the batch.
    if "authorization" not in headers and "authorization" in batch.headers:
        headers["authorization"] = batch.headers["authorization"]
    target = urlsplit(words[1])
    return Incoming(
        verb=words[0],
        path=target.path,
        query=target.query,
        headers=headers,
        body=rest.replace(b"\r\n", b"\n").partition(b"\n\n")[2],
        base_url=batch.base_url,
    )


def _answer_part(part: MIMEPart, outcome: Outcome) -> bytes:
    reply = outcome.reply
    body = encode(reply)
    content_id = str(part.get("Content-ID", "")).strip().strip("<>")
    lines = [
        "Content-Type: application/http",
        *([f"Content-ID: <response-{content_id}>"] if content_id else []),
        "",
        f"HTTP/1.1 {reply.status} {responses.get(reply.status, '')}",
        f"Content-Type: {reply.content_type}",
        f"Content-Length: {len(body)}",
        *(f"{name}: {value}" for name, value in reply.headers.items()),
        "",
        "",
    ]
    return "\r\n".join(lines).encode() + body
