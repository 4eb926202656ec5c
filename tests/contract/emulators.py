"""Emulators for tests: in a thread of the test process, with every answer held against the discovery documents."""

from __future__ import annotations

import json
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

import discovery
import requests

from airflow_accel_provider.emulator.server import EmulatorServer
from airflow_accel_provider.emulator.state import Google

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

# Answered here, but in no discovery document.
UNDOCUMENTED = frozenset({"oauth2.token"})


@dataclass
class Witness:
    """Looks at every answer on its way out and keeps what is wrong with it."""

    app: ASGIApp
    problems: list[str] = field(default_factory=list)
    seen: set[str] = field(default_factory=set)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request through and judge its answer."""
        start: dict[str, Any] = {}
        body = bytearray()

        async def look(message: Message) -> None:
            if message["type"] == "http.response.start":
                start.update(message)
            elif message["type"] == "http.response.body":
                body.extend(message.get("body", b""))
                if not message.get("more_body"):
                    self._judge(scope, start, bytes(body))
            await send(message)

        await self.app(scope, receive, look if scope["type"] == "http" else send)

    def _judge(self, scope: Scope, start: dict[str, Any], body: bytes) -> None:
        headers = {name.decode().lower(): value.decode("latin-1") for name, value in start["headers"]}
        method_id = headers.get("x-emulator-method")
        is_media = "media" in parse_qs(scope["query_string"].decode()).get("alt", ())
        if method_id is None or method_id in UNDOCUMENTED or not body or (is_media and start["status"] < 300):
            return
        self.seen.add(method_id)
        if not headers["content-type"].startswith("application/json"):
            return
        answer = json.loads(body)
        if start["status"] < 300:
            self.problems += discovery.problems(method_id, answer)
        else:
            self.problems += discovery.error_problems(method_id, start["status"], answer)


@dataclass(frozen=True, kw_only=True)
class Emulator:
    """A running emulator: where it is, who may call it, what it saw."""

    url: str
    project: str
    directory: Path
    keys: dict[str, Path]
    google: Google
    witness: Witness

    def admin(self, verb: str, name: str, body: object = None, **query: str | int) -> Any:
        """Call the admin API and return its answer."""
        answer = requests.request(verb, f"{self.url}/_emulator/{name}", json=body, params=query, timeout=30)
        answer.raise_for_status()
        return answer.json()

    def calls(self, method: str, *, since: int = 0) -> list[dict[str, Any]]:
        """Return the ledger's calls of a method."""
        return self.admin("GET", "ledger", method=method, since=since)["calls"]

    def events(self, kind: str | None = None, *, since: int = 0) -> list[dict[str, Any]]:
        """Return the ledger's events, all or of one kind."""
        found = self.admin("GET", "ledger", since=since)["events"]
        return [event for event in found if kind in (None, event["kind"])]

    def mark(self) -> int:
        """Return the ledger's newest sequence number, to ask later for what came since."""
        return self.admin("GET", "ledger")["last"]

    def enter(self, world: str) -> None:
        """Change the world."""
        self.admin("PUT", "world", {"name": world})

    def fail(self, method: str, *, times: int = 1, **action: object) -> dict[str, Any]:
        """Arm a fault."""
        return self.admin("POST", "faults", {"method": method, "times": times, "action": action})

    def email(self, name: str) -> str:
        """Return the e-mail of ``airflow`` or ``pipeline``."""
        return f"{name}@{self.project}.iam.gserviceaccount.com"

    def environment(self, identity: str = "airflow") -> dict[str, str]:
        """Return the variables that point a process at this emulator."""
        return {
            "GOOGLE_APPLICATION_CREDENTIALS": str(self.keys[identity]),
            "GOOGLE_CLOUD_PROJECT": self.project,
            "STORAGE_EMULATOR_HOST": self.url,
        }


@contextmanager
def running(directory: Path, *, port: int = 0, **settings: Any) -> Iterator[Emulator]:
    """Run an emulator in a thread; ``settings`` are those of ``Google`` (project, world, time_scale)."""
    google = Google(directory, **settings)
    ready = threading.Event()
    server = EmulatorServer(google, port=port, on_ready=lambda _: ready.set())
    witness = Witness(server.config.app)
    server.config.app = witness
    thread = threading.Thread(target=server.serve_until_stopped, name="emulator", daemon=True)
    thread.start()
    deadline = time.monotonic() + 60
    while not ready.wait(0.1):
        assert thread.is_alive(), "The emulator ended while it started."
        assert time.monotonic() < deadline, "The emulator does not start."
    try:
        yield Emulator(
            url=google.url,
            project=google.project,
            directory=google.directory,
            keys=google.identities.key_files(),
            google=google,
            witness=witness,
        )
    finally:
        server.should_exit = True
        thread.join(30)
        assert not thread.is_alive(), "The emulator does not stop."
