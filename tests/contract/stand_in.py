"""A server that answers with prepared JSON, for what the emulator never says."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Mapping


class StandIn:
    """Answers each path with its JSON object, others with an empty one, and keeps the headers it was sent."""

    def __init__(self, answers: Mapping[str, Mapping[str, Any]] | None = None) -> None:
        self._answers = answers or {}
        self.headers: dict[str, str] = {}

    def __enter__(self) -> Self:
        """Start to listen."""
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.url = f"http://localhost:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop listening."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _handler(stand_in) -> type[BaseHTTPRequestHandler]:  # noqa: N805 - the handler has a self of its own
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                stand_in.headers = {name.lower(): value for name, value in self.headers.items()}
                body = json.dumps(stand_in._answers.get(urlsplit(self.path).path, {})).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def do_POST(self) -> None:
                self.rfile.read(int(self.headers.get("Content-Length", 0)))
                self.do_GET()

            def log_message(self, *_: object) -> None:
                """Stay silent."""

        return Handler
