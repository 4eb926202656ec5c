"""Submitting a Beam Python pipeline: run its launcher until the service shows the job."""

from __future__ import annotations

import platform
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from airflow_accel_provider.exceptions import GoogleApiError
from airflow_accel_provider.hooks.credentials import launcher_credentials
from airflow_accel_provider.hooks.launcher import Launcher, build_argv

if TYPE_CHECKING:
    from airflow_accel_provider.core.jobs import Job
    from airflow_accel_provider.hooks.session import GoogleSession

_LOOK_SECONDS = 2.0
_STEP_SECONDS = 0.25
# A launcher that does not wait for the job ends by itself within this time; one that waits is ended, the job goes on.
_GRACE_SECONDS = 3.0
_TAIL_LINES = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class PythonPipeline:
    """A pipeline file (local or ``gs://``) or module, and the interpreter that runs it."""

    py_interpreter: str
    py_file: str | None = None
    py_module: str | None = None
    py_options: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """How a launch ended: with the job, or with the launcher's exit code and last lines. A stopped one has neither."""

    job: Job | None = None
    exit_code: int | None = None
    last_lines: tuple[str, ...] = ()


def submit(
    session: GoogleSession,
    pipeline: PythonPipeline,
    flags: Sequence[str],
    *,
    find: Callable[[], Job | None],
    say: Callable[[str], None],
    stopped: Callable[[], bool],
    seconds: float,
) -> Submission:
    """Run the launcher as the session's identity until ``find`` sees the job on the server, at most for ``seconds``.

    The launcher's log is handed to ``say`` line by line and never read for the job's id. Whatever happens, the
    launcher is ended and reaped and its credentials are gone. Raises :class:`AcceleratorLaunchError` when it cannot
    be started, :class:`GoogleApiError` when the pipeline file or the job cannot be read.
    """
    with _local(session, pipeline) as py_file, launcher_credentials(session) as env:
        argv = build_argv(
            py_interpreter=pipeline.py_interpreter,
            py_options=pipeline.py_options,
            py_file=py_file,
            py_module=pipeline.py_module,
            flags=flags,
        )
        too_late = time.monotonic() + seconds
        with Launcher(argv, env=env, grace_seconds=_GRACE_SECONDS) as launcher:
            seen = _until_seen(launcher, find=find, say=say, stopped=lambda: stopped() or time.monotonic() > too_late)
    # A launcher that was ended may have made its job in the last moment.
    return seen if seen.job or seen.exit_code is not None else replace(seen, job=find())


def why_unreadable(session: GoogleSession, py_file: str) -> str | None:
    """Return why a pipeline file cannot be read by this process as this session, or ``None`` when it can."""
    if not py_file.startswith("gs://"):
        return None if Path(py_file).is_file() else f"There is no file {py_file} on this worker ({platform.node()})."
    bucket, _, name = py_file.removeprefix("gs://").partition("/")
    if not bucket or not name:
        return f"{py_file} is not the address of a file, such as gs://bucket/file.py."
    path = f"b/{quote(bucket, safe='')}/o/{quote(name, safe='')}"
    try:
        session.request("storage", "GET", path, params={"fields": "name"})
    except GoogleApiError as error:
        if error.is_transient:
            raise
        return f"There is no {py_file}." if error.status == 404 else f"{py_file} cannot be read: {error}"
    return None


def _until_seen(
    launcher: Launcher, *, find: Callable[[], Job | None], say: Callable[[str], None], stopped: Callable[[], bool]
) -> Submission:
    next_look = 0.0
    while True:
        # The exit code first: a job that exists when the launcher has ended is then seen by the look after it.
        code = launcher.poll()
        for line in launcher.new_lines():
            say(line)
        if code is not None or time.monotonic() >= next_look:
            job = find()
            next_look = time.monotonic() + _LOOK_SECONDS
            if job:
                _let_finish(launcher, say)
                return Submission(job=job)
        if code is not None or stopped():
            return Submission(exit_code=code, last_lines=launcher.tail(_TAIL_LINES))
        time.sleep(_STEP_SECONDS)


def _let_finish(launcher: Launcher, say: Callable[[str], None]) -> None:
    deadline = time.monotonic() + _GRACE_SECONDS
    while launcher.poll() is None and time.monotonic() < deadline:
        time.sleep(_STEP_SECONDS)
    for line in launcher.new_lines():
        say(line)


@contextmanager
def _local(session: GoogleSession, pipeline: PythonPipeline) -> Iterator[str | None]:
    """Yield the path of the pipeline file, fetched when it lies in a bucket."""
    if not (pipeline.py_file or "").startswith("gs://"):
        yield pipeline.py_file
        return
    with tempfile.TemporaryDirectory(prefix="accel-pipeline-") as folder:
        local = Path(folder) / Path(str(pipeline.py_file)).name
        session.download(str(pipeline.py_file), local)
        yield str(local)
