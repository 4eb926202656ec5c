"""Launchers as real child processes."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from airflow_accel_provider.exceptions import AcceleratorLaunchError
from airflow_accel_provider.hooks.launcher import Launcher, build_argv

if TYPE_CHECKING:
    from collections.abc import Callable

PATIENCE = 60.0


def python(code: str, **settings: object) -> Launcher:
    return Launcher([sys.executable, "-S", "-c", code], **settings)  # type: ignore[arg-type]


def until(condition: Callable[[], object], patience: float = PATIENCE) -> None:
    deadline = time.monotonic() + patience
    while not condition():
        assert time.monotonic() < deadline, "it never came true"
        time.sleep(0.02)


def ended(launcher: Launcher) -> int:
    until(lambda: launcher.poll() is not None)
    code = launcher.poll()
    assert code is not None
    return code


def is_running(pid: int) -> bool:
    """Tell whether a process runs; a zombie that nobody reaps does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_the_output_of_both_streams_is_read_in_order() -> None:
    """Standard output and error come as lines in the order in which they were written."""
    code = "import sys\nfor n in range(3):\n print('out', n, flush=True)\n print('err', n, file=sys.stderr, flush=True)"
    with python(code) as launcher:
        assert ended(launcher) == 0
        lines = list(launcher.new_lines())
    assert lines == ["out 0", "err 0", "out 1", "err 1", "out 2", "err 2"]


def test_lines_come_once_and_only_when_complete(tmp_path: Path) -> None:
    """A line is given once, when its end was written; the last one also without an end."""
    go = tmp_path / "go"
    code = (
        "import os, sys, time\n"
        "print('first'); print('sec', end='', flush=True)\n"
        f"while not os.path.exists({str(go)!r}): time.sleep(0.02)\n"
        "print('ond'); print('last', end='')"
    )
    with python(code) as launcher:
        until(lambda: launcher.tail() == ("first", "sec"))
        assert list(launcher.new_lines()) == ["first"]
        assert list(launcher.new_lines()) == []
        go.touch()
        ended(launcher)
        assert list(launcher.new_lines()) == ["second", "last"]
        assert list(launcher.new_lines()) == []


def test_megabytes_on_both_streams_never_hang_it() -> None:
    """A launcher that writes 20 MB to each stream ends by itself though nobody reads."""
    code = (
        "import sys, threading\n"
        "def fill(stream):\n"
        "  for n in range(200_000): stream.write('x' * 99 + chr(10))\n"
        "threads = [threading.Thread(target=fill, args=[s]) for s in (sys.stdout, sys.stderr)]\n"
        "[t.start() for t in threads]; [t.join() for t in threads]"
    )
    with python(code) as launcher:
        assert ended(launcher) == 0
        assert sum(len(line) for line in launcher.new_lines()) == 2 * 200_000 * 99


def test_a_line_without_end_is_cut() -> None:
    """A line of 20 MB is given as five thousand characters, and the next one whole."""
    with python("import sys; sys.stdout.write('x' * 20_000_000 + chr(10) + 'next')") as launcher:
        ended(launcher)
        cut, after = launcher.new_lines()
        assert len(cut) == 5_000
        assert cut.endswith("x…")
        assert after == "next"
        assert launcher.tail(1) == ("next",)


def test_bytes_that_are_no_text_are_replaced() -> None:
    """Bytes that are no UTF-8 are replaced rather than raised, and a sign cut by a read is put together."""
    with python(
        "import sys; sys.stdout.buffer.write(b'caf' + bytes([0xe9]) + b' ' + 'é€😀'.encode() + b'\\r\\n')"
    ) as launcher:
        ended(launcher)
        assert list(launcher.new_lines()) == ["caf\N{REPLACEMENT CHARACTER} é€😀"]


def test_the_tail_is_the_last_lines() -> None:
    """The tail holds the last lines that say anything."""
    with python("for n in range(1000): print('line', n)\nprint()\nprint('  ')") as launcher:
        ended(launcher)
        assert launcher.tail(3) == ("line 997", "line 998", "line 999")


@pytest.mark.parametrize(
    ("code", "expected"),
    [("raise SystemExit(0)", 0), ("raise SystemExit(3)", 3), ("1/0", 1), ("import os; os.kill(os.getpid(), 9)", -9)],
)
def test_the_exit_code_is_told(code: str, expected: int) -> None:
    """An exit code is told as it is, and an ending by a signal as its negative number."""
    with python(code) as launcher:
        assert ended(launcher) == expected


def test_the_environment_is_added_to(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The child sees this process's environment with the given additions, in the given directory."""
    monkeypatch.setenv("ACCEL_TEST_OWN", "own")
    code = "import os; print(os.environ['ACCEL_TEST_OWN'], os.environ['ACCEL_TEST_NEW'], os.getcwd())"
    with python(code, env={"ACCEL_TEST_NEW": "new"}, cwd=tmp_path) as launcher:
        ended(launcher)
        assert list(launcher.new_lines()) == [f"own new {tmp_path.resolve()}"]


def test_arguments_are_never_a_shell_command(tmp_path: Path) -> None:
    """Whatever stands in an argument arrives as it is."""
    hostile = ["a b", "$(touch x)", "`id`", "'", '"', ";rm", "*", "\n", "é€"]
    with Launcher([sys.executable, "-c", "import sys; print(ascii(sys.argv[1:]))", *hostile], cwd=tmp_path) as launcher:
        ended(launcher)
        assert list(launcher.new_lines()) == [ascii(hostile)]
    assert list(tmp_path.iterdir()) == []


def test_leaving_ends_the_child_and_removes_its_output() -> None:
    """When the context is left, child and spool file are gone."""
    with python("import time; print('on', flush=True); time.sleep(600)") as launcher:
        until(launcher.tail)
        pid = launcher._process.pid  # type: ignore[union-attr]
        spool = launcher._spool
        assert spool is not None
        assert spool.exists()
    assert not is_running(pid)
    assert launcher.poll() == -signal.SIGTERM
    assert not spool.parent.exists()
    assert list(launcher.new_lines()) == []
    assert launcher.tail() == ()


def test_leaving_by_an_error_ends_the_child_too() -> None:
    """An error inside the context ends the child as well."""
    launcher = python("import time; time.sleep(600)")
    with pytest.raises(KeyError), launcher:
        raise KeyError
    assert not is_running(launcher._process.pid)  # type: ignore[union-attr]


def test_a_child_that_ignores_sigterm_is_killed() -> None:
    """A launcher that ignores the polite signal is killed after the grace."""
    code = (
        "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('deaf', flush=True); time.sleep(600)"
    )
    with python(code) as launcher:
        until(launcher.tail)
        launcher.stop(0.2)
        assert launcher.poll() == -signal.SIGKILL


def test_grandchildren_end_with_the_group(tmp_path: Path) -> None:
    """Processes that the launcher started end with it, even deaf ones, and even when it has ended before them."""
    grandchild = (
        "import os, pathlib, signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN);"
        f"pathlib.Path({str(tmp_path)!r}, str(os.getpid())).touch(); time.sleep(600)"
    )
    code = f"import subprocess, sys; [subprocess.Popen([sys.executable, '-S', '-c', {grandchild!r}]) for _ in range(2)]"
    with python(code, grace_seconds=0.2) as launcher:
        until(lambda: len(list(tmp_path.iterdir())) == 2)
        assert ended(launcher) == 0
        pids = [int(path.name) for path in tmp_path.iterdir()]
        assert all(map(is_running, pids))
    until(lambda: not any(map(is_running, pids)))


def test_the_child_is_in_a_session_of_its_own() -> None:
    """A signal to this process's group does not reach the launcher."""
    with python("import os; print(os.getsid(0) == os.getpid() == os.getpgid(0))") as launcher:
        ended(launcher)
        assert list(launcher.new_lines()) == ["True"]
    assert os.getsid(0) != launcher._process.pid  # type: ignore[union-attr]


def test_stopping_twice_is_stopping_once() -> None:
    """Stopping what has ended does nothing."""
    with python("pass") as launcher:
        ended(launcher)
        launcher.stop(1)
        launcher.stop(1)
        assert launcher.poll() == 0


def test_a_program_that_is_not_there_is_one_clear_error() -> None:
    """A missing interpreter is named, and nothing is left behind."""
    launcher = Launcher(["python9.9"])
    with pytest.raises(AcceleratorLaunchError, match=r"'python9\.9' could not be started: .*No such file"), launcher:
        pass
    assert launcher._spool is not None
    assert not launcher._spool.parent.exists()


def test_argv_of_a_file_and_of_a_module() -> None:
    """Interpreter, its options, the pipeline and its flags stand in this order."""
    assert build_argv(
        py_interpreter="python3", py_options=["-W", "ignore"], py_file="/x/a b.py", flags=["--a=b c"]
    ) == [
        "python3",
        "-W",
        "ignore",
        "/x/a b.py",
        "--a=b c",
    ]
    assert build_argv(py_interpreter="python3", py_module="acme.score") == ["python3", "-m", "acme.score"]


@pytest.mark.parametrize("what", [{}, {"py_file": "a.py", "py_module": "a"}])
def test_argv_takes_one_pipeline(what: dict[str, str]) -> None:
    """Neither no pipeline nor two make an argument list."""
    with pytest.raises(ValueError, match="either py_file or py_module"):
        build_argv(py_interpreter="python3", **what)
