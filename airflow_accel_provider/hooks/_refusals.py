"""What it means that Google gives a connection no token, and what a person does about it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from airflow_accel_provider.exceptions import CREDENTIALS_REFUSED, CREDENTIALS_UNUSABLE
from airflow_accel_provider.hooks._answers import google_error, plain

# Pieces of what token endpoints say, in small letters, and what to do about it. Source: answers that people quote in
# public reports of google-auth's and other clients' errors, read 2026-11; IAM's own for impersonation.
_WHAT_TO_DO: Mapping[str, str] = {
    "short-lived token": "the clock of this machine is wrong; set it",
    "reasonable timeframe": "the clock of this machine is wrong; set it",
    "invalid jwt signature": "the key was deleted or disabled; put a new one into the connection",
    "account not found": "the service account was deleted or disabled; enable it, or give the connection another",
    "email not found": "there is no such service account; look at impersonation_chain",
    "not found for email": "there is no such service account; look at impersonation_chain",
    "expired or revoked": "its consent was withdrawn or has ended; sign in anew and renew the connection",
    "client was disabled": "its OAuth client was disabled; enable it, or give the connection another",
    "reauth": "its user must sign in again; a service account need not",
    "getaccesstoken": "grant roles/iam.serviceAccountTokenCreator on the service account that it acts as",
    "not authorized for any of the scopes": "the account may not have these scopes; look at the connection's scopes",
}
_OTHERWISE = "look at the connection's credentials"
_LACKS_PERMISSION = frozenset({"access_denied", "unauthorized_client"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Why there is no token: ``reason`` tells a lack of a permission from credentials that are of no use."""

    reason: str
    sentence: str


def refusal(said: Iterable[Any], connection_id: str) -> Refusal:
    """Return what google-auth's words mean, with nothing in it of what the endpoint was sent or gave.

    ``said`` are the arguments of its error: a sentence and the endpoint's answer, as text or as read already.
    """
    first, *answers = [*said] or [""]
    bodies = [_text(each) for each in (*answers, first)]
    word, message = next(filter(any, map(google_error, bodies)), ("", ""))
    message = message or plain(str(first)) or "it was refused"
    told = f"{word}: {message}" if word and word not in message else message
    hint = next((hint for piece, hint in _WHAT_TO_DO.items() if piece in told.lower()), _OTHERWISE)
    lacks = word in _LACKS_PERMISSION or any(_code(body) == 403 for body in bodies)
    return Refusal(
        reason=CREDENTIALS_REFUSED if lacks else CREDENTIALS_UNUSABLE,
        sentence=f"Google gives connection {connection_id!r} no access token ({told.rstrip('.')}): {hint}",
    )


def _text(answer: Any) -> str:
    return answer if isinstance(answer, str) else json.dumps(answer, default=str)


def _code(body: str) -> int | None:
    """Return the status that an error body of Google's tells."""
    try:
        error = json.loads(body)["error"]
        return int(error["code"])
    except (ValueError, TypeError, KeyError):
        return None
