"""Talking REST to Google as one connection."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from airflow_accel_provider.core.legible import one_line
from airflow_accel_provider.exceptions import AcceleratorConfigurationError, GoogleApiError
from airflow_accel_provider.hooks._answers import date_of, object_of, plain, raise_for_status
from airflow_accel_provider.hooks._endpoints import leads_astray
from airflow_accel_provider.hooks._fields import Fields, unreadable
from airflow_accel_provider.hooks._identity import Identity, identity_of, is_anonymous
from airflow_accel_provider.hooks._retry import retrying
from airflow_accel_provider.hooks._tokens import Tokens

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import datetime
    from pathlib import Path

    from airflow.sdk import Connection

_CHUNK = 1024 * 1024
_UNAUTHORIZED = 401


class GoogleSession:
    """Authorised calls to Google's REST APIs; may be used by many threads at once."""

    def __init__(self, identity: Identity) -> None:
        self.identity = identity
        self.told_at: datetime | None = None
        """When Google last answered, by its own clock."""
        self._tokens = Tokens(identity)
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
        """Yield every page of a listing; ``limits`` are those of :meth:`request`.

        Raises :class:`GoogleApiError` after ``most`` of them, since what has no end must not read as all there is.
        """
        token: str | None = None
        for _ in range(most):
            said = {**params, "pageToken": token} if token else params
            page = self.request(service, "GET", path, params=said, **limits)  # type: ignore[arg-type]
            yield page
            token = Fields(page, service, f"GET {path}").text("nextPageToken")
            if not token:
                return
        raise unreadable(service, f"GET {path}", f"it has more than {most} pages")

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

    def token(self, *, timeout: float = 20.0, retry_seconds: float = 30.0) -> tuple[str, float]:
        """Return a current access token and for how many seconds it is good. Raises :class:`GoogleApiError`."""
        return retrying(partial(self._tokens.current, timeout=timeout), seconds=retry_seconds)

    def _object(self, service: str, verb: str, path: str, **said: Any) -> dict[str, Any]:
        method = f"{verb} {path}"
        with self._answer(service, verb, path, **said) as answer:
            self.told_at = date_of(answer.headers.get("Date", "")) or self.told_at
            return object_of(answer, service, method)

    def _download(self, path: str, local_path: Path, timeout: float) -> None:
        content = self._answer("storage", "GET", path, timeout=timeout, params={"alt": "media"}, stream=True)
        with content as answer, local_path.open("wb") as file:
            raise_for_status(answer, "storage", f"GET {path}")
            for chunk in answer.iter_content(_CHUNK):
                file.write(chunk)

    @contextmanager
    def _answer(self, service: str, verb: str, path: str, *, timeout: float, **said: Any) -> Iterator[Any]:
        """Yield the answer to one call; a token that Google no longer takes is changed once for a new one."""
        if leads_astray(path):
            raise GoogleApiError(400, "badName", "a name in it is none", service, f"{verb} {one_line(path)[:200]}")
        method = f"{verb} {path}"
        send = partial(self._sent, verb, self.identity.endpoints.url(service, path), {**said, "timeout": timeout})
        carried = self._tokens.headers(service, method, timeout=timeout)
        with _no_answer(service, method):
            answer = send(carried)
            if answer.status_code == _UNAUTHORIZED:
                answer.close()
                answer = send(self._tokens.change(carried, service, method, timeout=timeout))
            with answer:
                answer.encoding = "utf-8"
                yield answer

    def _sent(self, verb: str, url: str, said: Mapping[str, Any], carried: Mapping[str, str]) -> Any:
        return self._http().request(verb, url, **{**said, "headers": {**(said.get("headers") or {}), **carried}})

    def _http(self) -> Any:
        """Return this thread's connection pool; requests' sessions are not made for sharing."""
        from requests import Session

        if not hasattr(self._of_thread, "http"):
            self._of_thread.http = Session()
        return self._of_thread.http


@contextmanager
def _no_answer(service: str, method: str) -> Iterator[None]:
    """Turn what prevents an answer into a GoogleApiError."""
    from requests import RequestException

    try:
        yield
    except RequestException as error:
        raise GoogleApiError(0, type(error).__name__, plain(str(error)), service, method) from error
