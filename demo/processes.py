"""Child processes in groups of their own, noted on disk, so that a later start can end what a crash left running."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import time
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import psutil

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

GRACE_SECONDS = 5
"""How long processes get between being asked to end and being ended; an idle triggerer would take ten seconds."""

FOREIGN_PREFIXES = ("AIRFLOW", "GOOGLE_", "CLOUDSDK_", "STORAGE_EMULATOR_HOST", "ACCEL_", "PYTHONDONTWRITEBYTECODE")
"""Variables of the user's shell that would lead children to the user's own Airflow or Google project, or slow them."""


class AlreadyRunningError(RuntimeError):
    """The directory belongs to a demo that is still running."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """A process that was started: its group has the same number; the start time tells it from a later namesake."""

    name: str
    pid: int
    started: float


def clean_environment() -> dict[str, str]:
    """Return the environment children start from: the user's, less what belongs to other Airflows and Googles."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN_PREFIXES)}
    return kept | {"NO_PROXY": "localhost,127.0.0.1", "no_proxy": "localhost,127.0.0.1", "PYTHONUNBUFFERED": "1"}


class Processes:
    """The children of one demo or test, with their logs in ``directory``.

    Making one first ends what an earlier owner of the directory left behind when it crashed, and nothing else. Raises
    :class:`AlreadyRunningError` if that owner is still alive.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._notes_file = directory / "processes.json"
        self._children: dict[str, subprocess.Popen[bytes]] = {}
        self._notes: list[Note] = []
        directory.mkdir(parents=True, exist_ok=True)
        self._end_leftovers()
        self._note("owner", os.getpid())

    def start(self, name: str, argv: Sequence[str], env: Mapping[str, str]) -> None:
        """Start a child in a session of its own; its output goes to the log of its name."""
        with self.log(name).open("wb") as log:
            child = subprocess.Popen(
                argv, env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
            )
        self._children[name] = child
        self._note(name, child.pid)

    def log(self, name: str) -> Path:
        """Return the file that holds a child's output."""
        return self.directory / f"{name}.log"

    def signal(self, name: str, number: signal.Signals) -> None:
        """Send a signal to a child, its group and their descendants."""
        send(number, [member for note in self._notes if note.name == name for member in family(note)])

    def check(self) -> None:
        """Raise ``RuntimeError`` with its last lines if a child has ended by itself."""
        for name, child in self._children.items():
            if child.poll() is not None:
                lines = self.log(name).read_text(errors="replace").splitlines()[-15:]
                raise RuntimeError("\n".join([f"{name} ended with status {child.returncode}. Its last lines:", *lines]))

    def stop(self, names: Iterable[str] | None = None) -> None:
        """End the named children and their descendants, or all; wait until none is left."""
        chosen = set(self._children if names is None else names) & set(self._children)
        end(note for note in self._notes if note.name in chosen)
        for name in chosen:
            self._children.pop(name).wait()
        self._notes = [note for note in self._notes if note.name not in chosen]
        self._write_notes()

    def _end_leftovers(self) -> None:
        try:
            notes = [Note(**each) for each in json.loads(self._notes_file.read_text())]
        except FileNotFoundError:
            return
        for note in notes:
            if note.name == "owner" and is_running(note) and note.pid != os.getpid():
                raise AlreadyRunningError(
                    f"{self.directory} is in use by process {note.pid}; stop it with Ctrl-C first."
                )
        end(note for note in notes if note.name != "owner")

    def _note(self, name: str, pid: int) -> None:
        self._notes.append(Note(name=name, pid=pid, started=psutil.Process(pid).create_time()))
        self._write_notes()

    def _write_notes(self) -> None:
        new = self._notes_file.with_suffix(".new")
        new.write_text(json.dumps([asdict(note) for note in self._notes]))
        new.replace(self._notes_file)


def end(notes: Iterable[Note]) -> None:
    """Ask these processes, their groups and their descendants to end, then end those that do not."""
    chosen = list(notes)
    asked = {member for note in chosen for member in family(note)}
    send(signal.SIGTERM, asked)
    wait_until_over(asked)
    late = {member for note in chosen for member in family(note)}
    stubborn = {process for process in asked | late if is_alive(process)}
    send(signal.SIGKILL, stubborn)
    wait_until_over(stubborn)


def send(number: signal.Signals, processes: Iterable[psutil.Process]) -> None:
    """Send a signal to those of the processes that are still there."""
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.send_signal(number)


def wait_until_over(processes: Iterable[psutil.Process]) -> None:
    """Wait until none of the processes is alive, or the grace is over."""
    limit = time.monotonic() + GRACE_SECONDS
    while any(is_alive(process) for process in processes) and time.monotonic() < limit:
        time.sleep(0.1)


def is_alive(process: psutil.Process) -> bool:
    """Return whether a process still runs; one that has ended but was not yet reaped does not."""
    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def is_running(note: Note) -> bool:
    """Return whether this very process, not a later one with its number, is there."""
    try:
        return bool(psutil.Process(note.pid).create_time() == note.started)
    except psutil.NoSuchProcess:
        return False


def family(note: Note) -> list[psutil.Process]:
    """Return the members of a process's group and their descendants; none if the number is another process's now."""
    if psutil.pid_exists(note.pid) and not is_running(note):
        return []
    members = {process for process in psutil.process_iter() if group_of(process.pid) == note.pid}
    for member in list(members):
        with contextlib.suppress(psutil.NoSuchProcess):
            members.update(member.children(recursive=True))
    return [member for member in members if is_alive(member)]


def group_of(pid: int) -> int | None:
    """Return the number of a process's group."""
    try:
        return os.getpgid(pid)
    except ProcessLookupError:
        return None
