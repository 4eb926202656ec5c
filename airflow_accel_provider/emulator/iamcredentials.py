"""IAM Service Account Credentials v1: one account's token for another, directly or through delegates."""

from __future__ import annotations

import re
from datetime import timedelta
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from airflow_accel_provider.emulator.wire import Call, GoogleError, Method

if TYPE_CHECKING:
    from collections.abc import Mapping

ACCOUNT_NAME = re.compile(r"^(?:projects/-/serviceAccounts/)?(?P<email>[^/]+)$")
LIFETIME = re.compile(r"^(?P<seconds>\d+)(?:\.\d+)?s$")
DEFAULT_SECONDS = 3600
LONGEST_SECONDS = 3600
"""Longer needs an organisation policy, which this project has not. Source: IAM's page on generateAccessToken."""


def generate_access_token(call: Call) -> dict[str, Any]:
    """Issue a token of the named account, when the caller may impersonate it along the chain of delegates."""
    body = call.json()
    target = call.path["account"]
    chain = [str(call.principal), *map(_email, _delegates(body)), target]
    seconds = _lifetime(body.get("lifetime"))
    if not body.get("scope"):
        raise GoogleError(400, "Request must include at least one scope.")
    _require_grants(call, chain)
    issued = call.google.identities.tokens.issue(target, seconds=seconds)
    call.google.ledger.event("token.issued", principal=target, by="impersonation", chain=chain[:-1])
    end = call.google.now() + timedelta(seconds=seconds)
    return {"accessToken": issued, "expireTime": end.strftime("%Y-%m-%dT%H:%M:%SZ")}


def _require_grants(call: Call, chain: list[str]) -> None:
    identities = call.google.identities
    for account in chain[1:]:
        if account not in identities.accounts:
            raise GoogleError(404, f"Not found; Gaia id not found for email {account}")
    for caller, account in pairwise(chain):
        if not identities.may_impersonate(caller, account):
            raise GoogleError(
                403,
                "Permission 'iam.serviceAccounts.getAccessToken' denied on resource (or it may not exist).",
                reason="IAM_PERMISSION_DENIED",
            )


def _delegates(body: Mapping[str, Any]) -> list[object]:
    delegates = body.get("delegates") or []
    if not isinstance(delegates, list):
        raise GoogleError(400, "Invalid value at 'delegates': it is a list of service accounts.")
    return delegates


def _email(name: object) -> str:
    match = ACCOUNT_NAME.match(str(name))
    if match is None:
        raise GoogleError(400, f"Invalid form of account ID {name}. Should be projects/-/serviceAccounts/{{ACCOUNT}}.")
    return match["email"]


def _lifetime(text: object) -> int:
    if text is None:
        return DEFAULT_SECONDS
    match = LIFETIME.match(str(text))
    if match is None:
        raise GoogleError(400, f"Invalid value at 'lifetime' (type.googleapis.com/google.protobuf.Duration), {text!r}")
    seconds = int(match["seconds"])
    if not 0 < seconds <= LONGEST_SECONDS:
        raise GoogleError(400, f"The lifetime {text} must be more than 0s and at most {LONGEST_SECONDS}s.")
    return seconds


METHODS: tuple[Method, ...] = (
    Method(
        id="iamcredentials.projects.serviceAccounts.generateAccessToken",
        verb="POST",
        path="/v1/projects/-/serviceAccounts/{account}:generateAccessToken",
        handler=generate_access_token,
    ),
)
