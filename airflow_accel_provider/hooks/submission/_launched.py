"""Pipelines with a launcher: a program on this worker that submits the job and may go on talking about it."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from airflow_accel_provider.core.classification import classify_launch
from airflow_accel_provider.core.options import FLAGS
from airflow_accel_provider.core.problems import Problem, error
from airflow_accel_provider.core.ways import way_of
from airflow_accel_provider.hooks.credentials import launcher_credentials
from airflow_accel_provider.hooks.launcher import Launcher
from airflow_accel_provider.hooks.submission._files import why_unreadable
from airflow_accel_provider.hooks.submission._pipeline import Place, Submission, Submitting, addresses

if TYPE_CHECKING:
    from collections.abc import Callable

    from airflow_accel_provider.core.jobs import Job
    from airflow_accel_provider.core.request import BeamRequest
    from airflow_accel_provider.hooks.session import GoogleSession

_LOOK_SECONDS = 2.0
_STEP_SECONDS = 0.25
# A launcher that does not wait for the job ends by itself within this time; one that waits is ended, the job goes on.
_GRACE_SECONDS = 3.0
_TAIL_LINES = 20


class LaunchedPipeline(ABC):
    """A pipeline whose launcher is run until the service shows the job.

    The launcher runs as the session's identity. Its log is handed on line by line and never read for the job's id.
    Whatever happens, it is ended and reaped and its credentials are gone.
    """

    def __init__(self, request: BeamRequest) -> None:
        """Take the request as the user said it; what differs in a place comes with the place."""
        self._request = request
        self._way = way_of(request)
        self._commands: dict[str, tuple[str, ...]] = {}

    def missing(self, session: GoogleSession, places: Sequence[Place]) -> Sequence[Problem]:
        """Return a problem when the pipeline's file cannot be read from here."""
        name = self._way.parameter
        reasons = [why_unreadable(session, address) for address in addresses(self._request, name, places)]
        return [error(f"{name.replace('_', '-')}-missing", reason, name) for reason in reasons if reason]

    def prepare(self, session: GoogleSession, place: Place) -> None:
        """Fetch and build what the launcher needs, once."""
        key = self._key(place.request)
        if key not in self._commands:
            self._commands[key] = self.command(session, place.request)

    def submit(self, session: GoogleSession, place: Place, submitting: Submitting) -> Submission:
        """Run the launcher until the job is seen on the server."""
        if submitting.stopped():
            return Submission()
        command = self._commands[self._key(place.request)]
        flags = FLAGS[self._way.sdk](
            place.request,
            place.placement,
            project=session.project,
            job_name=submitting.job_name,
            labels=submitting.labels,
            endpoint=session.endpoint("dataflow"),
        )
        too_late = time.monotonic() + submitting.seconds
        with (
            launcher_credentials(session) as env,
            Launcher([*command, *flags], env=env, grace_seconds=_GRACE_SECONDS) as launcher,
        ):
            seen = _until_seen(launcher, submitting, over=lambda: time.monotonic() > too_late)
        if seen.job:
            return Submission(job=seen.job)
        last_lines = tuple(submitting.hide(line) for line in seen.last_lines)
        if seen.exit_code is not None:
            return Submission(failure=classify_launch(seen.exit_code, last_lines), last_lines=last_lines)
        # A launcher that was ended may have made its job in the last moment.
        return Submission(job=submitting.find(), last_lines=last_lines)

    def _key(self, request: BeamRequest) -> str:
        return repr([getattr(request, name) for name in (self._way.parameter, *self._way.takes)])

    @abstractmethod
    def command(self, session: GoogleSession, request: BeamRequest) -> tuple[str, ...]:
        """Return the launcher without the pipeline's flags, fetching and building what it needs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    job: Job | None = None
    exit_code: int | None = None
    last_lines: tuple[str, ...] = ()


def _until_seen(launcher: Launcher, submitting: Submitting, *, over: Callable[[], bool]) -> _Seen:
    next_look = 0.0
    while True:
        # The exit code first: a job that exists when the launcher has ended is then seen by the look after it.
        code = launcher.poll()
        for line in launcher.new_lines():
            submitting.say(line)
        if code is not None or time.monotonic() >= next_look:
            job = submitting.find()
            next_look = time.monotonic() + _LOOK_SECONDS
            if job:
                _let_finish(launcher, submitting.say)
                return _Seen(job=job)
        if code is not None or submitting.stopped() or over():
            return _Seen(exit_code=code, last_lines=launcher.tail(_TAIL_LINES))
        time.sleep(_STEP_SECONDS)


def _let_finish(launcher: Launcher, say: Callable[[str], None]) -> None:
    deadline = time.monotonic() + _GRACE_SECONDS
    while launcher.poll() is None and time.monotonic() < deadline:
        time.sleep(_STEP_SECONDS)
    for line in launcher.new_lines():
        say(line)
