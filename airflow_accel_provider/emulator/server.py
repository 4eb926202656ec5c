"""The emulator as a server: one port on loopback for every service and the admin API."""

from __future__ import annotations

import json
import os
import socket
from typing import TYPE_CHECKING

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from airflow_accel_provider.emulator.admin import PREFIX, Admin
from airflow_accel_provider.emulator.answers import CuttableProtocol, to_response
from airflow_accel_provider.emulator.batch import answer_batch, is_batch
from airflow_accel_provider.emulator.dispatch import Dispatcher, Incoming, Outcome, error_reply, is_upload
from airflow_accel_provider.emulator.gate import check_gate
from airflow_accel_provider.emulator.identity.accounts import write_private
from airflow_accel_provider.emulator.services import METHODS
from airflow_accel_provider.emulator.wire import GoogleError

if TYPE_CHECKING:
    from collections.abc import Callable

    from airflow_accel_provider.emulator.state import Google

LARGEST_JSON = 20 * 1024 * 1024
LARGEST_UPLOAD = 1024 * 1024 * 1024
"""Bytes of one request's body; an object may be larger, sent in chunks."""

VERBS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")
GRACE_SECONDS = 2
ADDRESS_FILE = "emulator.json"


def create_app(google: Google) -> Starlette:
    """Return the application that answers for ``google``."""
    dispatcher = Dispatcher(google, METHODS)
    admin = Admin(dispatcher)

    def answer(incoming: Incoming) -> Outcome:
        if incoming.path.startswith(PREFIX):
            return Outcome(reply=admin.answer(incoming))
        if is_batch(incoming):
            return answer_batch(incoming, dispatcher.answer)
        return dispatcher.answer(incoming)

    async def endpoint(request: Request) -> Response:
        try:
            incoming = await _incoming(request)
        except GoogleError as error:
            return to_response(Outcome(reply=error_reply(error)))
        except ClientDisconnect:
            return Response(status_code=400)
        return to_response(await run_in_threadpool(answer, incoming))

    return Starlette(
        routes=[Route("/{path:path}", endpoint, methods=list(VERBS))],
        exception_handlers={HTTPException: _refused, Exception: _failed},
    )


async def _incoming(request: Request) -> Incoming:
    headers = {name.lower(): value for name, value in request.headers.items()}
    check_gate(headers)
    path = request.scope["raw_path"].decode("latin-1")
    limit = LARGEST_UPLOAD if is_upload(path) else LARGEST_JSON
    return Incoming(
        verb=request.method,
        path=path,
        query=request.url.query,
        headers=headers,
        body=await _body(request, limit),
        base_url=f"http://{headers['host']}",
    )


async def _body(request: Request, limit: int) -> bytes:
    pieces, size = [], 0
    async for piece in request.stream():
        size += len(piece)
        if size > limit:
            raise GoogleError(413, f"Request payload size exceeds the limit: {limit} bytes.")
        pieces.append(piece)
    return b"".join(pieces)


async def _refused(request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 400
    return to_response(Outcome(reply=error_reply(GoogleError(status, f"{request.method} is not supported."))))


async def _failed(_: Request, __: Exception) -> Response:
    return to_response(Outcome(reply=error_reply(GoogleError(500, "Internal error encountered."))))


class EmulatorServer(uvicorn.Server):
    """A server for one ``Google`` on 127.0.0.1; it runs in the main thread or in any other.

    The port is taken at once (0: a free one), so ``google.url`` is right from here on. While it answers,
    ``emulator.json`` in the state directory tells its url, pid, project and key files.
    """

    def __init__(self, google: Google, *, port: int, on_ready: Callable[[str], None] | None = None) -> None:
        self.socket = _listen(port)
        self.google = google
        self._on_ready = on_ready
        google.open(f"http://localhost:{self.socket.getsockname()[1]}")
        app = create_app(google)
        super().__init__(
            uvicorn.Config(
                app,
                http=CuttableProtocol,
                ws="none",
                lifespan="off",
                log_level="warning",
                access_log=False,
                proxy_headers=False,
                server_header=False,
                # Answers bring their own, which may be moved.
                date_header=False,
                timeout_graceful_shutdown=GRACE_SECONDS,
            )
        )

    def serve_until_stopped(self) -> None:
        """Answer until a signal (in the main thread) or ``should_exit`` ends it, then stop ``google``."""
        try:
            self.run(sockets=[self.socket])
        finally:
            self.google.stop()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to answer, let Google's time pass, and leave the address for others to find."""
        await super().startup(sockets)
        await run_in_threadpool(self.google.start)
        _write_address(self.google)
        if self._on_ready:
            self._on_ready(self.google.url)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Withdraw the address and stop."""
        self.google.end()
        (self.google.directory / ADDRESS_FILE).unlink(missing_ok=True)
        await super().shutdown(sockets)


def _listen(port: int) -> socket.socket:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(("127.0.0.1", port))
    except OSError as error:
        listener.close()
        raise OSError(f"port {port} cannot be had: {error.strerror}") from None
    return listener


def _write_address(google: Google) -> None:
    keys = {name: str(path) for name, path in google.identities.key_files().items()}
    address = {"url": google.url, "pid": os.getpid(), "project": google.project, "keys": keys}
    write_private(google.directory / ADDRESS_FILE, json.dumps(address, indent=2) + "\n")
