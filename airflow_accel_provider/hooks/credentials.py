"""Lending a session's identity to a launcher, without writing a key anywhere.

The launcher's google-auth library reads a credentials file of type ``external_account``: a nonce, and the address at
which to change it for an access token. That address is a token broker on loopback in this process, which answers with
the session's own current token. So a launcher is exactly who the connection is, however its credentials came about
(key, Secret Manager, credential config, impersonation through delegates, metadata server), and when the launch is over
the file and the broker are gone. Where this process is killed the broker is gone with it and the file opens nothing;
the next launch on that machine removes it.
"""

from __future__ import annotations

import hmac
import json
import os
import secrets
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

from airflow_accel_provider.exceptions import AcceleratorConfigurationError, GoogleApiError
from airflow_accel_provider.hooks._scratch import scratch

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from airflow_accel_provider.hooks.session import GoogleSession

_HOST = "127.0.0.1"
_MOST_BYTES = 64 * 1024
_ACCESS_TOKEN = "urn:ietf:params:oauth:token-type:access_token"  # noqa: S105 - a type, not a token
# Without a project number in it, google-auth asks no resource manager for the project.
_AUDIENCE = "//iam.googleapis.com/launcher"


@contextmanager
def launcher_credentials(session: GoogleSession) -> Iterator[Mapping[str, str]]:
    """Yield the environment in which a launcher is the session's identity, for as long as the context lasts.

    Raises :class:`AcceleratorConfigurationError` for an anonymous connection, whose identity can't be lent.
    """
    if session.is_anonymous:
        raise AcceleratorConfigurationError(
            f"Connection {session.identity.connection_id!r} is anonymous; a launcher needs credentials to submit a job"
        )
    nonce = secrets.token_urlsafe(32)
    with scratch("credentials") as directory, _broker(session, nonce) as url:
        yield {**_environment(session), "GOOGLE_APPLICATION_CREDENTIALS": str(_written(directory, nonce, url))}


def _environment(session: GoogleSession) -> dict[str, str]:
    env = {"GOOGLE_CLOUD_PROJECT": session.project, "CLOUDSDK_CORE_PROJECT": session.project}
    if session.identity.quota_project:
        env["GOOGLE_CLOUD_QUOTA_PROJECT"] = session.identity.quota_project
    storage = session.endpoint("storage")
    if storage:
        env["STORAGE_EMULATOR_HOST"] = storage
    # The broker is here, whatever proxy leads elsewhere.
    for name in ("NO_PROXY", "no_proxy"):
        env[name] = ",".join(filter(None, [os.environ.get(name), _HOST, "localhost"]))
    return env


def _written(directory: Path, nonce: str, url: str) -> Path:
    """Write nonce and credentials file, readable by this user alone, and return the latter's path."""
    subject = directory / "subject"
    config = directory / "credentials.json"
    _write_private(subject, nonce)
    _write_private(
        config,
        json.dumps(
            {
                "type": "external_account",
                "audience": _AUDIENCE,
                "subject_token_type": "urn:ietf:params:oauth:token-type:jwt",
                "token_url": url,
                "credential_source": {"file": str(subject)},
            }
        ),
    )
    return config


def _write_private(path: Path, text: str) -> None:
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)


@contextmanager
def _broker(session: GoogleSession, nonce: str) -> Iterator[str]:
    """Run the broker in a thread and yield the address at which it changes the nonce for a token."""
    server = ThreadingHTTPServer((_HOST, 0), _handler(session, nonce))
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), name="token-broker", daemon=True)
    thread.start()
    try:
        yield f"http://{_HOST}:{server.server_port}/token"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _handler(session: GoogleSession, nonce: str) -> type[BaseHTTPRequestHandler]:
    class Broker(BaseHTTPRequestHandler):
        """The token exchange of RFC 8693, reduced to the one exchange that is offered here."""

        timeout = 10

        def do_POST(self) -> None:
            form = parse_qs(self._body())
            if not hmac.compare_digest(form.get("subject_token", [""])[0].encode(), nonce.encode()):
                self._answer(403, {"error": "invalid_grant", "error_description": "unknown subject token"})
                return
            try:
                token, seconds = session.token()
            except GoogleApiError as error:
                self._answer(*_refused(error))
                return
            self._answer(200, _granted(token, seconds))

        def _body(self) -> str:
            length = self.headers.get("Content-Length", "")
            size = min(int(length), _MOST_BYTES) if length.isdigit() else 0
            return self.rfile.read(size).decode("latin-1")

        def _answer(self, status: int, value: Mapping[str, Any]) -> None:
            body = json.dumps(value).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Stay silent: a refused token shows where it was asked for."""

    return Broker


def _granted(token: str, seconds: float) -> dict[str, Any]:
    return {
        "access_token": token,
        "issued_token_type": _ACCESS_TOKEN,
        "token_type": "Bearer",
        "expires_in": int(seconds),
    }


def _refused(error: GoogleApiError) -> tuple[int, dict[str, str]]:
    """Return what the launcher hears: an outage that outlasted the tries of the session, or a refusal."""
    status, word = (503, "temporarily_unavailable") if error.is_transient else (400, "invalid_grant")
    return status, {"error": word, "error_description": f"{error.message}{error.tried}"}
