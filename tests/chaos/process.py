"""Processes that may die between any two of their deeds, and what they reach the world through."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from airflow_accel_provider.hooks._endpoints import Endpoints
from airflow_accel_provider.hooks.session import GoogleSession
from tests.chaos.google import PROJECT, SimGoogle

SUBMITTED = "submitted"
"""The point between a job's creation and anybody's knowing of it."""


class Killed(BaseException):
    """The process is gone: nothing it would still do happens."""


@dataclass(slots=True, kw_only=True)
class Process:
    """A worker or a triggerer; every deed of it that others can see lies between two numbered points."""

    plan: dict[int | str, Callable[[], None]] = field(default_factory=dict)
    """What happens to the process at which point, by its number, or :data:`SUBMITTED`."""
    trail: list[str] = field(default_factory=list)
    is_alive: bool = True
    on_death: Callable[[], None] = lambda: None

    def die(self) -> None:
        """End at once; what is tried from now on has no effect."""
        self.is_alive = False
        self.on_death()

    def point(self, name: str) -> None:
        """Pass a point, where the process may die."""
        if not self.is_alive:
            raise Killed
        number = len(self.trail)
        self.trail.append(name)
        is_submission = name.startswith("after POST") and not name.endswith(":cancel")
        happens = self.plan.pop(SUBMITTED if is_submission and SUBMITTED in self.plan else number, None)
        if happens:
            happens()
        if not self.is_alive:
            raise Killed


class SimSession(GoogleSession):
    """A session of a process with the simulated Google; errors, pages and repetitions are the product's own."""

    def __init__(self, google: SimGoogle, process: Process) -> None:
        super().__init__(SimpleNamespace(project=PROJECT, endpoints=Endpoints()))  # type: ignore[arg-type]
        self._google = google
        self._process = process

    @contextmanager
    def _answer(self, service: str, verb: str, path: str, **said: Any) -> Iterator[Any]:
        where = f"{verb} {service}/{path.split('/', 3)[-1]}"
        self._process.point(f"before {where}")
        answer = self._google.call(service, verb, path, said.get("params") or {}, said.get("json") or {})
        self._process.point(f"after {where}")
        yield answer

    def download(self, gs_uri: str, local_path: Any, **_: Any) -> None:
        """Write the object's content to a file."""
        value = self.request("storage", "GET", f"b/x/o/{gs_uri.rpartition('/')[2]}", params={"alt": "media"})
        local_path.write_text(json.dumps(value))


@dataclass(slots=True, kw_only=True)
class Kept:
    """What Airflow keeps for a task instance, written through a process."""

    process: Process
    stored: dict[str, str] = field(default_factory=dict)
    xcom: dict[str, Any] = field(default_factory=dict)
    on_set: Callable[[Mapping[str, Any]], None] = lambda _: None

    def get(self, key: str) -> Any:
        """Return a value as ``task_state_store`` does."""
        return json.loads(self.stored.get(key, "null"))

    def set(self, key: str, value: Any) -> None:
        """Keep a value as ``task_state_store`` does."""
        self.process.point(f"before set {key}")
        self.stored[key] = json.dumps(value)
        self.on_set(value)
        self.process.point(f"after set {key}")

    def xcom_push(self, key: str, value: Any) -> None:
        """Keep an XCom value as ``ti`` does."""
        self.process.point(f"before push {key}")
        self.xcom[key] = value
