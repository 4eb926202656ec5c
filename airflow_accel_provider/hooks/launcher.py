"""Running a launcher: a program that submits a job and may go on talking about it."""

from __future__ import annotations

import codecs
import os
import signal
import subprocess
import time
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, Self

from airflow_accel_provider.core.legible import one_line
from airflow_accel_provider.exceptions import AcceleratorLaunchError
from airflow_accel_provider.hooks._scratch import scratch

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path
    from types import TracebackType

LONGEST_LINE = 5_000
"""Characters kept of one line of the launcher's output."""

_CHUNK = 256 * 1024
_TAIL_BYTES = 64 * 1024
_SWEEP_SECONDS = 0.05


def build_argv(
    *,
    py_interpreter: str,
    py_options: Sequence[str] = (),
    py_file: str | None = None,
    py_module: str | None = None,
    flags: Sequence[str] = (),
) -> list[str]:
    """Return the argument list that runs a Python pipeline file or module with the given pipeline flags.

    Raises :class:`ValueError` unless there is exactly one of the two.
    """
    if (py_file is None) == (py_module is None):
        raise ValueError("a Python launcher runs either py_file or py_module")
    what = ["-m", py_module] if py_module is not None else [str(py_file)]
    return [py_interpreter, *py_options, *what, *flags]


class Launcher:
    """A child process in a session of its own, whose output goes to a file.

    Never a pipe, so a launcher that writes more than anybody reads can't hang. Leaving the context stops whatever is
    left of the process group, reaps the child and removes the file.
    """

    def __init__(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        cwd: str | Path | None = None,
        grace_seconds: float = 10.0,
    ) -> None:
        """Take what to run; ``env`` is added to this process's own environment."""
        self._argv = list(argv)
        self._env = {**os.environ, **(env or {})}
        self._cwd = cwd
        self._grace_seconds = grace_seconds
        self._process: subprocess.Popen[bytes] | None = None
        self._is_over = False
        self._spool: Path | None = None
        self._scratch = ExitStack()
        self._read_to = 0
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._begun_line = ""

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.stop(self._grace_seconds)
        finally:
            self._scratch.close()

    def start(self) -> None:
        """Start the child. Raises :class:`AcceleratorLaunchError` when the program can't be run."""
        self._spool = self._scratch.enter_context(scratch("launcher")) / "output.log"
        with self._spool.open("wb") as output:
            try:
                self._process = subprocess.Popen(
                    self._argv,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    env=self._env,
                    cwd=self._cwd,
                    start_new_session=True,
                )
            except (OSError, ValueError) as error:
                self._scratch.close()
                raise AcceleratorLaunchError(f"The launcher {self._argv[0]!r} could not be started: {error}") from error

    def poll(self) -> int | None:
        """Return the exit code (negative: the signal that ended it), or ``None`` while the child runs."""
        if self._process is None:
            return None
        code = self._process.poll()
        if code is not None and not self._is_over:
            # Asked at once, since the id of an empty group may soon be another's.
            self._is_over = not _is_alive(self._process.pid)
        return code

    def new_lines(self) -> Iterator[str]:
        """Yield the lines that were completed since the last call, and after the end of the child what is left."""
        over = self.poll() is not None
        if self._spool is None or not self._spool.exists():
            return
        with self._spool.open("rb") as output:
            output.seek(self._read_to)
            while chunk := output.read(_CHUNK):
                self._read_to += len(chunk)
                yield from self._lines_of(self._decoder.decode(chunk))
        if over and self._begun_line:
            line, self._begun_line = self._begun_line, ""
            yield _shortened(line)

    def tail(self, n: int = 20) -> tuple[str, ...]:
        """Return the last lines that hold anything."""
        if self._spool is None or not self._spool.exists():
            return ()
        with self._spool.open("rb") as output:
            size = output.seek(0, os.SEEK_END)
            output.seek(max(size - _TAIL_BYTES, 0))
            text = output.read().decode("utf-8", errors="replace")
        lines = [line.rstrip() for line in text.split("\n") if line.strip()]
        return tuple(_shortened(line) for line in lines[-n:])

    def stop(self, grace_seconds: float) -> None:
        """End the whole process group, first politely, and reap the child.

        Members that outlive the child are ended too. Does nothing when there is nothing left.
        """
        if self._process is None or self._is_over:
            return
        group = self._process.pid
        _signal(group, signal.SIGTERM)
        deadline = time.monotonic() + grace_seconds
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(grace_seconds)
            while _is_alive(group) and time.monotonic() < deadline:
                time.sleep(_SWEEP_SECONDS)
        _signal(group, signal.SIGKILL)
        self._process.wait()
        self._is_over = True

    def _lines_of(self, text: str) -> Iterator[str]:
        *complete, begun = (self._begun_line + text).split("\n")
        # What is longer than a line may be is dropped as it comes, however long it gets.
        self._begun_line = begun[: LONGEST_LINE + 1]
        yield from map(_shortened, complete)


def _shortened(line: str) -> str:
    line = one_line(line.rstrip("\r"))
    return line if len(line) <= LONGEST_LINE else f"{line[: LONGEST_LINE - 1]}…"


# A group of which only zombies are left refuses with PermissionError on macOS.
def _signal(group: int, number: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


def _is_alive(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except (ProcessLookupError, PermissionError):
        return False
    return True
