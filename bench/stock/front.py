"""What stands between Airflow and the emulator: it takes HTTP and gRPC, asks in REST, and has faults for one subject.

The emulator's own faults belong to a method; here many tasks use one method at the same time, so a fault must know
whose call it is for.
"""

from __future__ import annotations

import asyncio
import json
import re
import threading
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import httpx
import uvicorn
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Route

from bench.stock.grpc_side import serve
from bench.stock.subjects import subject_in
from demo.stack import free_ports

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.requests import Request

CREATES = re.compile(r"(/flexTemplates:launch|/jobs|/batches)$")
ONE = re.compile(r"/(?:jobs|batches)/([^/:]+)$")
HELD_SECONDS = 60
KEPT = ("authorization", "content-type", "accept", "user-agent")
UNAVAILABLE = {"error": {"code": 503, "status": "UNAVAILABLE", "message": "The service is currently unavailable."}}


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What the emulator, or a fault, said."""

    status: int
    body: bytes
    content_type: str = "application/json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One fault for the next ``create`` or ``get`` of a subject; ``holds`` the answer back in place of a 503."""

    holds: bool
    came: threading.Event = field(default_factory=threading.Event)
    over: threading.Event = field(default_factory=threading.Event)


class Front:
    """Answers from ``start`` on; ``http`` and ``grpc`` say where. gRPC calls go on with the token ``bearer``."""

    def __init__(self, emulator: str, *, bearer: str) -> None:
        http, grpc = free_ports(2)
        self.http, self.grpc = f"http://localhost:{http}", f"localhost:{grpc}"
        self._emulator, self._bearer = emulator, bearer
        self._faults: dict[tuple[str, str], Fault] = {}
        self._owners: dict[str, str] = {}
        self._ready: Future[None] = Future()

    def start(self) -> None:
        """Serve from a thread that ends with this process."""
        threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True).start()
        self._ready.result(timeout=60)

    def arm(self, subject: str, call: str, *, holds: bool = False) -> Fault:
        """Make the next call of this kind go wrong for a subject."""
        fault = self._faults[subject, call] = Fault(holds=holds)
        return fault

    def disarm(self) -> None:
        """Forget the faults that nobody met."""
        self._faults.clear()

    async def call(self, verb: str, path: str, *, query: str = "", body: bytes = b"", **headers: str) -> Answer:
        """Pass a call on, unless a fault is meant for it."""
        headers.setdefault("authorization", f"Bearer {self._bearer}")
        subject = subject_in(body.decode(errors="replace")) if verb == "POST" and CREATES.search(path) else None
        fault = self._faults.pop((subject, "create"), None) if subject else None
        if fault and not fault.holds:
            fault.came.set()
            return refused()
        answer = await self._forward(verb, f"{path}?{query}" if query else path, body, headers)
        if subject and answer.status == httpx.codes.OK:
            self._owners[id_in(json.loads(answer.body))] = subject
        if fault:
            await hold(fault)
        if verb == "GET" and self._hits(path, answer):
            return refused()
        return answer

    def _hits(self, path: str, answer: Answer) -> bool:
        """Return whether a fault was meant for one of the jobs in an answer, and use up all that were."""
        if not self._faults or ("/jobs" not in path and "/batches" not in path):
            return False
        one = ONE.search(path)
        said = [one.group(1)] if one else [id_ for id_ in self._owners if id_.encode() in answer.body]
        met = [self._faults.pop((self._owners.get(id_, ""), "get"), None) for id_ in said]
        for fault in filter(None, met):
            fault.came.set()
        return any(met)

    async def _forward(self, verb: str, path: str, body: bytes, headers: Mapping[str, str]) -> Answer:
        said = await self._client.request(verb, self._emulator + path, content=body, headers=dict(headers))
        kind = said.headers.get("content-type", "application/json")
        return Answer(status=said.status_code, body=said.content, content_type=kind)

    async def _serve(self) -> None:
        self._client = httpx.AsyncClient(timeout=120, trust_env=False, limits=httpx.Limits(max_connections=200))
        app = Starlette(routes=[Route("/{path:path}", self._endpoint, methods=["GET", "POST", "PUT", "DELETE"])])
        port = int(self.http.rpartition(":")[2])
        http = uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=port, log_level="warning", access_log=False))
        http.install_signal_handlers = lambda: None  # type: ignore[attr-defined]
        self._grpc_server = await serve(self.call, self.grpc)
        self._ready.set_result(None)
        await http.serve()

    async def _endpoint(self, request: Request) -> Response:
        kept = {name: request.headers[name] for name in KEPT if name in request.headers}
        path = request.scope["raw_path"].decode()
        answer = await self.call(request.method, path, query=request.url.query, body=await request.body(), **kept)
        return Response(answer.body, status_code=answer.status, media_type=answer.content_type)


async def hold(fault: Fault) -> None:
    """Keep an answer back until it is let go."""
    fault.came.set()
    for _ in range(HELD_SECONDS * 20):
        if fault.over.is_set():
            return
        await asyncio.sleep(0.05)


def refused() -> Answer:
    """Return Google's 503."""
    return Answer(status=503, body=json.dumps(UNAVAILABLE).encode())


def id_in(said: Mapping[str, Any]) -> str:
    """Return the id of the job or the batch that was made."""
    made = said.get("job", said)
    batch: str = made.get("metadata", {}).get("batch", "")
    return batch.rpartition("/")[2] or str(made.get("id", ""))
