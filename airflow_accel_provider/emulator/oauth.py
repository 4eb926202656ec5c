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
    principal = call.google.identities.assertion_principal(form.get("assertion", ""))
    if principal is None:
        return _refuse("invalid_grant", "Invalid JWT Signature.")
    call.google.ledger.event("token.issued", principal=principal, by="assertion")
    issued = call.google.identities.tokens.issue(principal, seconds=TOKEN_SECONDS)
    return _reply(200, {"access_token": issued, "expires_in": TOKEN_SECONDS, "token_type": "Bearer"})


def _refuse(error: str, description: str) -> Reply:
    return _reply(400, {"error": error, "error_description": description})


def _reply(status: int, body: dict[str, Any]) -> Reply:
    return Reply(status=status, body=json.dumps(body).encode(), headers={"Cache-Control": "no-store"})


METHODS: tuple[Method, ...] = (Method(id="oauth2.token", verb="POST", path="/token", handler=token, open=True),)
