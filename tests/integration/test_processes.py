"""What the demo starts ends with it, or at the next start."""

from __future__ import annotations

import subprocess
import sys
import time
from typing import TYPE_CHECKING

import psutil
import pytest

from demo.processes import AlreadyRunningError, Processes, clean_environment, is_alive
from demo.waiting import wait_for

if TYPE_CHECKING:
    from pathlib import Path

# Starts a child that starts a grandchild in a session of its own, as Airflow's tasks and the emulator's jobs do.
OWNER = """
import sys, time
from pathlib import Path
from demo.processes import Processes, clean_environment
child = (
    "import subprocess, sys, time;"
    "p = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'], start_new_session=True);"
    "print(p.pid, flush=True); time.sleep(600)"
)
Processes(Path(sys.argv[1])).start("child", [sys.executable, "-c", child], clean_environment())
time.sleep(600)
"""


@pytest.fixture
def owner(tmp_path: Path) -> subprocess.Popen[bytes]:
    """Start a process that owns the directory, a child of it, and a grandchild."""
    owner = subprocess.Popen([sys.executable, "-c", OWNER, str(tmp_path)])
    wait_for("the grandchild", lambda: grandchild(tmp_path), seconds=30)
    return owner


def grandchild(directory: Path) -> int:
    log = directory / "child.log"
    return int(log.read_text() or 0) if log.exists() else 0


def test_refuses_a_directory_in_use(owner: subprocess.Popen[bytes], tmp_path: Path) -> None:
    """A second demo in the same place is refused and told which process has it."""
    try:
        with pytest.raises(AlreadyRunningError, match=f"in use by process {owner.pid}"):
            Processes(tmp_path)
    finally:
        owner.kill()
        owner.wait()
        Processes(tmp_path)


def test_ends_what_a_crash_left(owner: subprocess.Popen[bytes], tmp_path: Path) -> None:
    """After its owner was killed, the next start ends the child and the grandchild in another session."""
    left = psutil.Process(grandchild(tmp_path))
    owner.kill()
    owner.wait()
    assert left.is_running()
    Processes(tmp_path)
    assert not is_alive(left)


def test_leaves_a_later_namesake_alone(tmp_path: Path) -> None:
    """A process that has got the number of a noted one since is not touched."""
    bystander = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
    try:
        note = {"name": "scheduler", "pid": bystander.pid, "started": time.time() - 86400}
        (tmp_path / "processes.json").write_text(f"[{note}]".replace("'", '"'))
        Processes(tmp_path)
        assert bystander.poll() is None
    finally:
        bystander.kill()
        bystander.wait()


def test_an_early_end_is_told_with_its_last_lines(tmp_path: Path) -> None:
    """A child that ends by itself is reported with its status and what it said last."""
    processes = Processes(tmp_path)
    processes.start("child", [sys.executable, "-c", "print('no port'); raise SystemExit(3)"], clean_environment())
    with pytest.raises(RuntimeError, match=r"child ended with status 3(.|\n)*no port"):
        wait_for("the child's end", processes.check, seconds=20)
    processes.stop()
