"""Talking REST to Google as one connection."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from airflow_accel_provider.exceptions import AcceleratorConfigurationError, GoogleApiError
from airflow_accel_provider.hooks._answers import google_error, is_outage, object_of, plain, raise_for_status
from airflow_accel_provider.hooks._identity import Identity, identity_of, is_anonymous
from airflow_accel_provider.hooks._retry import retrying

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from airflow.sdk import Connection

_CHUNK = 1024 * 1024


class GoogleSession:
    """Authorised calls to Google's REST APIs; may be used by many threads at once."""

    def __init__(self, identity: Identity) -> None:
        self.identity = identity
        self._refreshing = threading.Lock()
        self._of_thread = threading.local()

    @classmethod
    def from_connection(
        cls,
        connection: Connection,
        *,
        impersonation_chain: str | Sequence[str] | None = None,
        project_id: str | None = None,
        quota_project_id: str | None = None,
    ) -> GoogleSession:
        """Return a session for an Airflow connection that was read already; arguments win over the connection.

        The first call in a process takes seconds (it imports the google provider), and credentials may be read from
        files, Secret Manager or a metadata server: in a trigger, call it in a thread. Raises
        :class:`AcceleratorConfigurationError` naming the connection when it can't be used.
        """
        return cls(
            identity_of(
                connection,
                impersonation_chain=impersonation_chain,
                project_id=project_id,
                quota_project_id=quota_project_id,
            )
        )

    @property
    def project(self) -> str:
        """The project that jobs run in."""
        return self.identity.project

    @property
    def is_anonymous(self) -> bool:
        """Tell whether calls carry no credentials."""
        return is_anonymous(self.identity.credentials)

    def endpoint(self, service: str) -> str | None:
        """Return the root that the connection names instead of Google's for this service, or ``None``."""
        return self.identity.endpoints.override(service)

    def request(
        self,
        service: str,
        verb: str,
        path: str,
        *,
        params: Mapping[str, Any] | None = None,
        body: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float = 20.0,
        retry_seconds: float = 30.0,
        idempotent: bool | None = None,
    ) -> dict[str, Any]:
        """Return the JSON object that a service answers to one call.

        ``path`` follows the version: ``projects/P/locations/R/jobs``. ``timeout`` (seconds) is for each try. Transient
        failures are tried again for at most ``retry_seconds``, of ``GET`` and of what the caller says is
        ``idempotent``. Raises :class:`GoogleApiError`.
        """
        said = {"params": params, "json": body, "headers": dict(headers) if headers else None}
        once = partial(self._object, service, verb, path, timeout=timeout, **said)
        repeatable = verb == "GET" if idempotent is None else idempotent
        return retrying(once, seconds=retry_seconds if repeatable else 0)

    def pages(
        self, service: str, path: str, *, params: Mapping[str, Any], most: int = 200, **limits: float
    ) -> Iterator[dict[str, Any]]:
        """Yield every page of a listing, at most ``most`` of them; ``limits`` are those of :meth:`request`."""
        token: str | None = None
        for _ in range(most):
            said = {**params, "pageToken": token} if token else params
            page = self.request(service, "GET", path, params=said, **limits)  # type: ignore[arg-type]
            yield page
            token = page.get("nextPageToken")
            if not token:
                return

    def download(self, gs_uri: str, local_path: Path, *, timeout: float = 60.0, retry_seconds: float = 30.0) -> None:
        """Write the content of a ``gs://`` object to a local file.

        Nothing is left there when it fails. Raises :class:`GoogleApiError`, and :class:`AcceleratorConfigurationError`
        for what is no address of an object.
        """
        bucket, _, name = gs_uri.removeprefix("gs://").partition("/")
        if not gs_uri.startswith("gs://") or not bucket or not name or name.endswith("/"):
            raise AcceleratorConfigurationError(f"{gs_uri!r} is not the address of a file, such as gs://bucket/file.py")
        path = f"b/{quote(bucket, safe='')}/o/{quote(name, safe='')}"
        try:
            retrying(partial(self._download, path, local_path, timeout), seconds=retry_seconds)
        except BaseException:
            local_path.unlink(missing_ok=True)
            raise

    def token(self, timeout: float = 20.0) -> tuple[str, float]:
        """Return a current access token and for how many seconds it is good. Raises :class:`GoogleApiError`."""
        with _no_answer("oauth2", "token"):
            self._refresh(timeout)
        credentials = self.identity.credentials
        if credentials.expiry is None:
            return credentials.token, 300.0
        # google-auth keeps naive times that mean UTC.
        left = credentials.expiry.replace(tzinfo=UTC) - datetime.now(UTC)
        return credentials.token, max(left.total_seconds(), 1.0)

    def _object(self, service: str, verb: str, path: str, **said: Any) -> dict[str, Any]:
        method = f"{verb} {path}"
        with self._answer(service, verb, path, **said) as answer:
            return object_of(answer, service, method)

    def _download(self, path: str, local_path: Path, timeout: float) -> None:
        content = self._answer("storage", "GET", path, timeout=timeout, params={"alt": "media"}, stream=True)
        with content as answer, local_path.open("wb") as file:
            raise_for_status(answer, "storage", f"GET {path}")
            for chunk in answer.iter_content(_CHUNK):
                file.write(chunk)

    @contextmanager
    def _answer(self, service: str, verb: str, path: str, *, timeout: float, **said: Any) -> Iterator[Any]:
        with _no_answer(service, f"{verb} {path}"):
            self._refresh(timeout)
            url = self.identity.endpoints.url(service, path)
            with self._http().request(verb, url, timeout=timeout, **said) as answer:
                answer.encoding = "utf-8"
                yield answer

    def _http(self) -> Any:
        """Return this thread's connection pool; requests' sessions are not made for sharing."""
        from google.auth.transport.requests import AuthorizedSession

        if not hasattr(self._of_thread, "http"):
            self._of_thread.http = AuthorizedSession(self.identity.credentials, refresh_timeout=20)
        return self._of_thread.http

    def _refresh(self, timeout: float) -> None:
        """Fetch a token when there is none or it ends soon, once for all threads that need it."""
        from google.auth.credentials import TokenState
        from google.auth.transport.requests import Request

        if self.is_anonymous:
            return
        with self._refreshing:
            if self.identity.credentials.token_state is not TokenState.FRESH:
                self.identity.credentials.refresh(partial(Request(), timeout=timeout))


@contextmanager
def _no_answer(service: str, method: str) -> Iterator[None]:
    """Turn what prevents an answer (network, refused credentials) into a GoogleApiError."""
    from google.auth.exceptions import GoogleAuthError, TransportError
    from requests import RequestException

    try:
        yield
    except (RequestException, TransportError) as error:
        raise GoogleApiError(0, type(error).__name__, plain(str(error)), service, method) from error
    except GoogleAuthError as error:
        status = 503 if error.retryable or _is_outage(error) else 401
        raise GoogleApiError(status, "credentialsRefused", _refusal(error), service, method) from error


def _is_outage(error: Exception) -> bool:
    """Tell whether a token endpoint was out of order, which google-auth does not always tell from a refusal."""
    return any(is_outage(part) for part in error.args)


def _refusal(error: Exception) -> str:
    """Return what a token endpoint said, and nothing of what it was sent or gave."""
    said = plain(str(error.args[0])) if error.args else type(error).__name__
    explained = [google_error(part)[1] for part in error.args[1:] if isinstance(part, str)]
    return ": ".join([said, *filter(None, explained)])
