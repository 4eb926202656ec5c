"""Processes that may die between any two of their deeds, and what they reach the world through."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from airflow_accel_provider.hooks.session import GoogleSession
from tests.chaos.access import SimCredentials
from tests.chaos.google import PROJECT, Answer, SimGoogle

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
    skew: float = 0.0
    """How far its clock is ahead, in seconds."""
    epoch: int = 0
    """The id of the task instance that it runs, which Airflow renews with each try, see :class:`Kept`."""
    operator: Any = None
    is_signalled: bool = False
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
    """A session of a process with the simulated Google; tokens, errors, pages and repetitions are the product's own."""

    def __init__(self, google: SimGoogle, process: Process) -> None:
        identity = SimpleNamespace(
            project=PROJECT,
            connection_id="google_cloud_default",
            credentials=SimCredentials(google.tokens),
            endpoints=SimpleNamespace(url="{}/{}".format, override=lambda _: None),
        )
        super().__init__(identity)  # type: ignore[arg-type]
        self._google = google
        self._process = process

    def _http(self) -> Any:
        return SimpleNamespace(request=self._request)

    def _request(self, verb: str, url: str, *, headers: Mapping[str, str], **said: Any) -> Answer:
        service, _, path = url.partition("/")
        where = f"{verb} {service}/{path.split('/', 3)[-1]}"
        token = headers["authorization"].removeprefix("Bearer ")
        self._process.point(f"before {where}")
        sent = (service, verb, path, said.get("params") or {}, said.get("json") or {})
        answer = self._google.call(self._process, token, *sent)
        self._process.point(f"after {where}")
        return answer

    def download(self, gs_uri: str, local_path: Any, **_: Any) -> None:
        """Write the object's content to a file."""
        value = self.request("storage", "GET", f"b/x/o/{gs_uri.rpartition('/')[2]}", params={"alt": "media"})
        local_path.write_text(json.dumps(value))
