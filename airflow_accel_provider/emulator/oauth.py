"""OAuth's token endpoint: a signed assertion in, an access token out."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import parse_qs

from airflow_accel_provider.emulator.wire import Call, Method, Reply

JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer"
TOKEN_SECONDS = 3600


def token(call: Call) -> Reply:
    """Grant a token for an assertion signed with an account's key. Errors have OAuth's form, not Google's."""
    try:
        form = {name: values[-1] for name, values in parse_qs(call.body.decode()).items()}
    except UnicodeDecodeError:
        return _refuse("invalid_request", "The body is not a form.")
    if form.get("grant_type") != JWT_BEARER:
        return _refuse("unsupported_grant_type", f"Invalid grant_type: {form.get('grant_type', '')}")
    identities = call.google.identities
    principal = identities.assertion_principal(form.get("assertion", ""))
    if principal is None:
        return _refuse("invalid_grant", identities.why_refused(form.get("assertion", "")))
    call.google.ledger.event("token.issued", principal=principal, by="assertion")
    issued = call.google.identities.tokens.issue(principal, seconds=TOKEN_SECONDS)
    return _reply(200, {"access_token": issued, "expires_in": TOKEN_SECONDS, "token_type": "Bearer"})


def _refuse(error: str, description: str) -> Reply:
    return _reply(400, {"error": error, "error_description": description})


def _reply(status: int, body: dict[str, Any]) -> Reply:
    return Reply(status=status, body=json.dumps(body).encode(), headers={"Cache-Control": "no-store"})


def _failed(status: int, message: str) -> Reply:
    """Return an error that somebody wished for, by the word that goes with its status."""
    word = {401: "invalid_client", 403: "access_denied"}.get(status, "invalid_grant")
    return _reply(status, {"error": word if status < 500 else "internal_failure", "error_description": message})


METHODS: tuple[Method, ...] = (
    Method(id="oauth2.token", verb="POST", path="/token", handler=token, open=True, errors=_failed),
)
