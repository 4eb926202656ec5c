"""Access tokens of a connection: fetched once for all threads, changed when Google refuses them."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from airflow_accel_provider.exceptions import TRANSIENT_STATUSES, GoogleApiError
from airflow_accel_provider.hooks._answers import google_error, plain, retry_after
from airflow_accel_provider.hooks._identity import Identity, is_anonymous
from airflow_accel_provider.hooks._refusals import refusal

if TYPE_CHECKING:
    from collections.abc import Iterator

_UNLIMITED_SECONDS = 300.0


class Tokens:
    """The tokens of one identity. Every method raises :class:`GoogleApiError` where none is to be had.

    What keeps a token away is told as an error of the call that needs it: an outage of the token endpoint is transient,
    with what it says of waiting; a refusal is a status of 401 and one sentence that names the connection.
    """

    def __init__(self, identity: Identity) -> None:
        self._identity = identity
        self._changing = threading.Lock()

    def headers(self, service: str, method: str, *, timeout: float) -> dict[str, str]:
        """Return what a call carries to be the connection's, under a token that does not end at once."""
        from google.auth.credentials import TokenState

        credentials, carried = self._identity.credentials, dict[str, str]()
        if is_anonymous(credentials):
            return carried
        with self._changing:
            if credentials.token_state is not TokenState.FRESH:
                self._fetch(service, method, timeout)
            credentials.apply(carried)
        return carried

    def change(self, refused: dict[str, str], service: str, method: str, *, timeout: float) -> dict[str, str]:
        """Return what a call carries after Google refused what it carried before.

        Of many threads that are refused at once the first fetches a token for all.
        """
        if is_anonymous(self._identity.credentials):
            return refused
        with self._changing:
            now: dict[str, str] = {}
            self._identity.credentials.apply(now)
            if now == refused:
                self._fetch(service, method, timeout)
                self._identity.credentials.apply(now)
        return now

    def current(self, *, timeout: float) -> tuple[str, float]:
        """Return a token and for how many seconds it is good."""
        self.headers("oauth2", "token", timeout=timeout)
        credentials = self._identity.credentials
        if credentials.expiry is None:
            return credentials.token, _UNLIMITED_SECONDS
        # google-auth keeps naive times that mean UTC.
        left = credentials.expiry.replace(tzinfo=UTC) - datetime.now(UTC)
        return credentials.token, max(left.total_seconds(), 1.0)

    def _fetch(self, service: str, method: str, timeout: float) -> None:
        with _told(self._identity.connection_id, service, method):
            self._identity.credentials.refresh(partial(_ask, timeout=timeout))


class _Outage(Exception):  # noqa: N818 - an answer, told as an error of the call that needs the token
    """The token endpoint is out of order; google-auth would forget the status and Retry-After."""

    def __init__(self, answer: Any) -> None:
        super().__init__(answer.status)
        text = answer.data.decode("utf-8", "replace")
        reason, message = google_error(text)
        self.status: int = answer.status
        self.reason = reason or f"http{answer.status}"
        self.message = message or plain(text) or "no explanation given"
        self.retry_after = retry_after(answer.headers)


def _ask(*said: Any, timeout: float, **named: Any) -> Any:
    """Send one request of google-auth's; an outage ends it here, since trying again is for the caller to bound."""
    from google.auth.transport.requests import Request

    answer = Request()(*said, **{"timeout": timeout, **named})
    if answer.status in TRANSIENT_STATUSES:
        raise _Outage(answer)
    return answer


@contextmanager
def _told(connection_id: str, service: str, method: str) -> Iterator[None]:
    """Turn what keeps a token away into an error of the call that needs it."""
    from google.auth.exceptions import GoogleAuthError, TransportError

    no_token = f"no access token for connection {connection_id!r}"
    try:
        yield
    except TransportError as error:
        text = f"{no_token}: {plain(str(error))}"
        raise GoogleApiError(0, type(error.args[0] if error.args else error).__name__, text, service, method) from error
    except _Outage as outage:
        text, wait = f"{no_token}: {outage.message}", outage.retry_after
        raise GoogleApiError(outage.status, outage.reason, text, service, method, retry_after=wait) from outage
    except GoogleAuthError as error:
        if error.retryable:
            raise GoogleApiError(503, "tokenEndpoint", f"{no_token}: it is out of order", service, method) from error
        refused = refusal(error.args, connection_id)
        raise GoogleApiError(401, refused.reason, refused.sentence, service, method) from error
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        # An answer that google-auth takes for a token and is none: a proxy's page with status 200.
        raise GoogleApiError(502, "unreadableAnswer", f"{no_token}: the answer holds none", service, method) from error
