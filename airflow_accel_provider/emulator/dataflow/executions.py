"""Runs what jobs are made of: one process a job, in a session of its own, with the worker's identity and no other.

A child that cannot start yet, for there are only so many slots, waits its turn. Children end with the emulator, even
when that is killed: each watches the pipe that is its standard input.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

GRACE_SECONDS = 3.0
"""Between SIGTERM and SIGKILL. Real time: it is a process that stops."""
SLOTS = max(2, os.cpu_count() or 1)

LEAVE_OUT = ("AIRFLOW", "GOOGLE_", "GCP_", "GCE_", "CLOUDSDK_", "STORAGE_EMULATOR_HOST", "ACCEL_", "PYTHONSTARTUP")
"""Beginnings of environment variables that say who and where the emulator's user is: not the worker's business."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What a worker finds about itself: its key file, the address of storage, and its project."""

    key_file: Path
    url: str
    project: str

    def environment(self) -> dict[str, str]:
        """Return the worker's environment variables."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(LEAVE_OUT)}
        return {
            **kept,
            "GOOGLE_APPLICATION_CREDENTIALS": str(self.key_file),
            "STORAGE_EMULATOR_HOST": self.url,
            "GOOGLE_CLOUD_PROJECT": self.project,
            "NO_GCE_CHECK": "true",
            "PYTHONUNBUFFERED": "1",
        }


class Executed(Protocol):
    """What a child is run for."""

    @property
    def id(self) -> str:
        """Return a name that nothing else has."""


J = TypeVar("J", bound=Executed)


class Executions(Generic[J]):
    """The children. ``on_exit`` is called, from another thread, with the id of each job whose child has ended.

    ``command`` returns what to run for a job in a directory of its own, after it has put there what that reads. The
    child leaves ``outcome.json`` there; ``lost`` returns the outcome of one that did not, by its exit code and log.
    """

    def __init__(
        self,
        directory: Path,
        *,
        command: Callable[[J, Path], Sequence[str]],
        surroundings: Callable[[J], Surroundings],
        on_exit: Callable[[str], None],
        lost: Callable[[int, Path], Mapping[str, Any]] | None = None,
    ) -> None:
        self._directory = directory
        self._command = command
        self._surroundings = surroundings
        self._on_exit = on_exit
        self._lost = lost or _lost
        self._lock = threading.RLock()
        self._children: dict[str, subprocess.Popen[bytes]] = {}
        self._waiting: dict[str, J] = {}
        self._is_open = True

    def start(self, job: J) -> None:
        """Run a job's child, now or when a slot is free."""
        with self._lock:
            if job.id in self._children or not self._is_open:
                return
            self._waiting[job.id] = job
            self._fill_slots()

    def outcome(self, job_id: str) -> Mapping[str, Any] | None:
        """Return what an ended execution brought, or None when there is none yet."""
        path = self._path(job_id) / "outcome.json"
        if self.is_running(job_id) or not path.exists():
            return None
        outcome: Mapping[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return outcome

    def log(self, job_id: str) -> Path:
        """Return the file with all that a job's child wrote."""
        return self._path(job_id) / "worker.log"

    def is_running(self, job_id: str) -> bool:
        """Tell whether a job's child has not ended yet."""
        with self._lock:
            return job_id in self._children

    def stop(self, job_id: str) -> None:
        """Ask a job's child, and all that it started, to end; it is killed if it does not."""
        with self._lock:
            self._waiting.pop(job_id, None)
            child = self._children.get(job_id)
        if child:
            _signal(child, signal.SIGTERM)
            timer = threading.Timer(GRACE_SECONDS, _signal, (child, signal.SIGKILL))
            timer.daemon = True
            timer.start()

    def close(self) -> None:
        """End every child and start no more."""
        with self._lock:
            self._is_open = False
            self._waiting.clear()
            children = list(self._children.values())
        for child in children:
            _signal(child, signal.SIGTERM)
        for child in children:
            try:
                child.wait(GRACE_SECONDS)
            except subprocess.TimeoutExpired:
                _signal(child, signal.SIGKILL)
                child.wait()

    def _fill_slots(self) -> None:
        while self._is_open and self._waiting and len(self._children) < SLOTS:
            job = self._waiting.pop(next(iter(self._waiting)))
            child = self._spawn(job)
            self._children[job.id] = child
            threading.Thread(target=self._watch, args=(job.id, child), name=f"watch-{job.id}", daemon=True).start()

    def _spawn(self, job: J) -> subprocess.Popen[bytes]:
        directory = self._path(job.id)
        scratch = directory / "scratch"
        scratch.mkdir(parents=True, exist_ok=True)
        (directory / "outcome.json").unlink(missing_ok=True)
        command = self._command(job, directory)
        with self.log(job.id).open("ab") as log:
            return subprocess.Popen(
                command,
                cwd=scratch,
                env=self._surroundings(job).environment(),
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def _watch(self, job_id: str, child: subprocess.Popen[bytes]) -> None:
        code = child.wait()
        # What the child itself started, in its session, ends with it.
        _signal(child, signal.SIGKILL)
        if child.stdin:
            child.stdin.close()
        path = self._path(job_id) / "outcome.json"
        with self._lock:
            if self._is_open and not path.exists():
                path.write_text(json.dumps(self._lost(code, self.log(job_id))), encoding="utf-8")
            del self._children[job_id]
            self._fill_slots()
            is_open = self._is_open
        if is_open:
            self._on_exit(job_id)

    def _path(self, job_id: str) -> Path:
        return self._directory / job_id


def _signal(child: subprocess.Popen[bytes], number: signal.Signals) -> None:
    try:
        os.killpg(child.pid, number)
    except (ProcessLookupError, PermissionError):
        # Ended and reaped: that is what was wanted.
        return


def _lost(code: int, log: Path) -> dict[str, Any]:
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()[-20:]
    how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
    error = f"The worker lost contact with the service. The SDK harness ended with {how}. Last lines:\n" + "\n".join(
        lines
    )
    cause = "The worker lost contact with the service."
    return {"error": error, "cause": cause, "is_work_item": True, "step": "Worker", "metrics": []}
