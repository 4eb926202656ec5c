"""Access tokens of the simulated Google, kept by credentials as google-auth has them."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Any

from google.auth.credentials import Credentials, TokenState
from google.auth.exceptions import RefreshError, TransportError

from tests.chaos.clock import Clock

_LASTS = 3600.0
_EARLY = 225.0
"""How long before its end google-auth renews a token (``google.auth._helpers.REFRESH_THRESHOLD``)."""


class Tokens:
    """The token endpoint: what it gave, until when that is good, and when it gives nothing."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.revoked: tuple[float, float] = (0.0, 0.0)
        """From when to when the grant is withdrawn: no token is good, and none is given."""
        self.withdrawn_at = inf
        """From then on tokens given earlier are good no more, though they have not expired: the service alone knows."""
        self.fails: Callable[[], bool] = lambda: False
        """Tells whether the endpoint is out of order at the moment."""
        self.refused = 0

    @property
    def is_revoked(self) -> bool:
        """Tell whether the grant is withdrawn now."""
        return self.revoked[0] <= self.clock.seconds < self.revoked[1]

    def give(self) -> str:
        """Return a new token, which says when it was given."""
        if self.is_revoked:
            self.refused += 1
            said = '{"error": "invalid_grant", "error_description": "Token has been expired or revoked."}'
            raise RefreshError("invalid_grant: Token has been expired or revoked.", said)
        if self.fails():
            raise TransportError("token endpoint: connection reset")
        return repr(self.clock.seconds)

    def accepts(self, token: str) -> bool:
        """Tell whether a service takes the token."""
        given = float(token)
        is_withdrawn = given < self.withdrawn_at <= self.clock.seconds
        return not (self.is_revoked or is_withdrawn) and self.clock.seconds < given + _LASTS


class SimCredentials(Credentials):  # type: ignore[misc]  # google-auth is not annotated
    """Credentials of one session."""

    def __init__(self, tokens: Tokens) -> None:
        super().__init__()
        self._tokens = tokens

    def refresh(self, request: Any) -> None:  # noqa: ARG002 - as google-auth calls it
        """Fetch a token."""
        self.token = self._tokens.give()

    @property
    def token_state(self) -> TokenState:
        """Tell by the story's clock whether the token ends soon."""
        is_fresh = self.token is not None and self._tokens.clock.seconds < float(self.token) + _LASTS - _EARLY
        return TokenState.FRESH if is_fresh else TokenState.INVALID
