"""JWTs that an account signed: for the token endpoint, or as a bearer in place of a token."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import jwt

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from airflow_accel_provider.emulator.identity.accounts import Account

LONGEST_SECONDS = 3600
CLOCK_SKEW_SECONDS = 30
"""Google grants one hour, and a little for clocks that disagree."""


def read_assertion(
    token: str, accounts: Mapping[str, Account], *, audience: Callable[[str], bool], allow_scope: bool = False
) -> str | None:
    """Return the e-mail of the account that signed ``token``, or None unless all of it is right.

    The signature, ``iss``, ``iat``, ``exp`` and the audience must hold; ``sub``, if there, must name the signer. With
    ``allow_scope`` a scope may stand in place of the audience.
    """
    try:
        signer = accounts[str(jwt.decode(token, options={"verify_signature": False})["iss"])]
        claims = jwt.decode(
            token,
            signer.public_key,
            algorithms=["RS256"],
            leeway=CLOCK_SKEW_SECONDS,
            options={"require": ["iss", "iat", "exp"], "verify_aud": False},
        )
    except (jwt.InvalidTokenError, KeyError):
        return None
    return signer.email if _holds(claims, signer, audience, allow_scope=allow_scope) else None


def is_untimely(token: str) -> bool:
    """Tell whether a JWT was made at another time than now, by its own word: the clock of its maker is wrong."""
    try:
        claims = jwt.decode(token, options={"verify_signature": False})
        return not (claims["iat"] - CLOCK_SKEW_SECONDS <= time.time() <= claims["exp"] + CLOCK_SKEW_SECONDS)
    except (jwt.InvalidTokenError, KeyError, TypeError):
        return False


def _holds(claims: Mapping[str, Any], signer: Account, audience: Callable[[str], bool], *, allow_scope: bool) -> bool:
    if claims.get("sub", signer.email) != signer.email:
        return False
    if claims["exp"] - claims["iat"] > LONGEST_SECONDS + CLOCK_SKEW_SECONDS:
        return False
    if "aud" in claims:
        return isinstance(claims["aud"], str) and audience(claims["aud"])
    return allow_scope and bool(claims.get("scope"))
