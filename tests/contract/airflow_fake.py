"""A small Airflow that remembers: DAGs, runs, task instances and what they keep, behind the paths of its REST API."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import parse_qs, unquote, urlsplit

TOKEN = "the-token"
PASSWORD = "the-password"
PAGE = 100


@dataclass
class TaskInstance:
    """One task instance and what it keeps."""

    dag_id: str
    run_id: str
    task_id: str
    map_index: int = -1
    state: str | None = "deferred"
    stored: dict[str, Any] = field(default_factory=dict)


@dataclass
class FakeAirflow:
    """Answers as Airflow 3.3 does; ``hidden`` are DAGs that the caller may not see, ``broken`` answers that instead."""

    tasks: list[TaskInstance] = field(default_factory=list)
    dags: set[str] = field(default_factory=set)
    runs: list[tuple[str, str, str]] = field(default_factory=list)
    hidden: set[str] = field(default_factory=set)
    broken: int | None = None
    seen: list[str] = field(default_factory=list)

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

    def add(self, dag_id: str, run_id: str, task_id: str, *, run_after: str, **said: Any) -> TaskInstance:
        """Have a task instance, with its DAG and its run."""
        self.dags.add(dag_id)
        if (dag_id, run_id, run_after) not in self.runs:
            self.runs.append((dag_id, run_id, run_after))
        made = TaskInstance(dag_id=dag_id, run_id=run_id, task_id=task_id, **said)
        self.tasks.append(made)
        return made

    def answer(self, parts: list[str], query: dict[str, str]) -> tuple[int, Any]:
        """Return status and body of a GET below ``/api/v2``."""
        if self.broken:
            return self.broken, {"detail": "It is not to be."}
        if parts[1:] and parts[1] in self.hidden:
            return 403, {"detail": "Forbidden"}
        found = self._found(parts, query)
        return (404, {"detail": "Not found"}) if found is None else (200, found)

    def _found(self, parts: list[str], query: dict[str, str]) -> dict[str, Any] | None:
        index = int(query.get("map_index", -1))
        match parts:
            case ["dags"]:
                return _page("dags", [{"dag_id": each} for each in sorted(self.dags - self.hidden)], query)
            case ["dags", dag_id]:
                return {"dag_id": dag_id} if dag_id in self.dags else None
            case ["dags", dag_id, "dagRuns"]:
                return self._runs(dag_id, query) if dag_id in self.dags else None
            case ["dags", dag_id, "dagRuns", run_id, "taskInstances"]:
                rows = [{"task_id": each.task_id, "state": each.state} for each in self._of(dag_id, run_id, index)]
                return _page("task_instances", rows, query)
            case ["dags", dag_id, "dagRuns", run_id, "taskInstances", task_id, "state-store", key]:
                tasks = [each for each in self._of(dag_id, run_id, index) if each.task_id == task_id]
                return next(({"key": key, "value": each.stored[key]} for each in tasks if key in each.stored), None)
        return None

    def _of(self, dag_id: str, run_id: str, index: int) -> list[TaskInstance]:
        wanted = (dag_id, run_id, index)
        return [each for each in self.tasks if (each.dag_id, each.run_id, each.map_index) == wanted]

    def _runs(self, dag_id: str, query: dict[str, str]) -> dict[str, Any]:
        until = query["run_after_lte"]
        found = [each for each in self.runs if each[0] == dag_id and each[2] <= until]
        assert query["order_by"] == "-run_after"
        ordered = sorted(found, key=lambda each: each[2], reverse=True)
        return _page("dag_runs", [{"dag_run_id": run_id, "run_after": at} for _, run_id, at in ordered], query)

    def _handler(fake) -> type[BaseHTTPRequestHandler]:  # noqa: N805 - the handler has a self of its own
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                address = urlsplit(self.path)
                fake.seen.append(address.path)
                if self.headers.get("Authorization") != f"Bearer {TOKEN}":
                    return self.reply(401, {"detail": "Not authenticated"})
                parts = [unquote(part) for part in address.path.removeprefix("/api/v2/").split("/")]
                query = {name: values[0] for name, values in parse_qs(address.query).items()}
                return self.reply(*fake.answer(parts, query))

            def do_POST(self) -> None:
                said = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))))
                is_known = self.path == "/auth/token" and said == {"username": "admin", "password": PASSWORD}
                self.reply(201 if is_known else 401, {"access_token": TOKEN} if is_known else {"detail": "Wrong"})

            def reply(self, status: int, value: Any) -> None:
                body = json.dumps(value).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                """Stay silent."""

        return Handler


def _page(name: str, rows: list[dict[str, Any]], query: dict[str, str]) -> dict[str, Any]:
    offset, limit = int(query.get("offset", 0)), min(int(query.get("limit", 50)), PAGE)
    return {name: rows[offset : offset + limit], "total_entries": len(rows)}
