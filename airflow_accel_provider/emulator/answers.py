"""From an outcome to bytes on the wire, including the answers that go wrong on purpose."""

from __future__ import annotations

import socket
import struct
import time
from email.utils import formatdate
from typing import TYPE_CHECKING

from starlette.responses import Response
from uvicorn.protocols.http.h11_impl import H11Protocol

from airflow_accel_provider.emulator.dispatch import Outcome, encode

if TYPE_CHECKING:
    import asyncio

    from starlette.types import Receive, Scope, Send

# Linger for no time: closing sends a reset instead of an orderly end.
RESET = struct.pack("ii", 1, 0)


class CuttableProtocol(H11Protocol):
    """Lends its transport to the application, because no HTTP answer can express a cut connection."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take a new connection."""
        super().connection_made(transport)
        self.app_state = {**self.app_state, "transport": self.transport}


class _Cut(Response):
    """No answer at all: the connection is reset."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002
        transport = scope["state"]["transport"]
        transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        transport.abort()
        # Returning before the loss is noticed would be taken for a forgotten answer.
        while (await receive())["type"] != "http.disconnect":
            pass


class _Halved(Response):
    """The first half of an answer that announces its whole length, then the end of the connection."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        half = bytes(self.body[: len(self.body) // 2])
        await send({"type": "http.response.body", "body": half, "more_body": True})
        scope["state"]["transport"].close()


def to_response(outcome: Outcome) -> Response:
    """Return what Starlette sends for an outcome; the answering method's id goes along as a header."""
    reply = outcome.reply
    if outcome.cut:
        return _Cut()
    headers = {"Date": formatdate(time.time() + outcome.skew, usegmt=True), **reply.headers}
    if outcome.method:
        headers["X-Emulator-Method"] = outcome.method
    form = _Halved if outcome.halved else Response
    return form(encode(reply), status_code=reply.status, headers=headers, media_type=reply.content_type)
