"""What a launch leaves behind of credentials and output when it, or the worker that made it, is killed."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import requests
from connections import google_session

from airflow_accel_provider.hooks import _scratch
from airflow_accel_provider.hooks._scratch import scratch
from airflow_accel_provider.hooks.credentials import launcher_credentials
from airflow_accel_provider.hooks.launcher import Launcher
from demo.waiting import wait_for

if TYPE_CHECKING:
    from emulators import Emulator

PROGRAM = """
import os, pathlib, sys, time
pathlib.Path(sys.argv[1]).write_text(f"{os.getpid()} {os.environ['GOOGLE_APPLICATION_CREDENTIALS']}")
time.sleep(600)
"""


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Have temporary files in a folder of the test's own."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def launch(emulator: Emulator, note: Path) -> None:
    """Launch something that lasts, as a worker does."""
    command = [sys.executable, "-S", "-c", PROGRAM, str(note)]
    with launcher_credentials(google_session(emulator)) as env, Launcher(command, env=env) as launcher:
        while launcher.poll() is None:
            time.sleep(0.05)


def noted(note: Path) -> tuple[int, Path]:
    """Return the process id of the launcher, and its credentials file, once it runs."""
    told = wait_for("the launcher to run", lambda: note.exists() and note.read_text(), seconds=30)
    pid, _, path = told.partition(" ")
    return int(pid), Path(path)


def test_a_killed_launcher_leaves_nothing(emulator: Emulator, temporary: Path, tmp_path: Path) -> None:
    """When a launcher is killed, or runs out of memory, its credentials and its output are gone with it."""
    worker = multiprocessing.get_context("fork").Process(target=launch, args=(emulator, tmp_path / "note"))
    worker.start()
    pid, path = noted(tmp_path / "note")
    assert path.stat().st_mode & 0o777 == 0o600
    os.kill(pid, signal.SIGKILL)
    worker.join(30)
    assert worker.exitcode == 0
    assert list(temporary.iterdir()) == []


def test_what_a_killed_worker_leaves_opens_nothing_and_goes(
    emulator: Emulator, temporary: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A killed worker's file holds no key and changes for no token; its user alone can read it, until it is removed."""
    worker = multiprocessing.get_context("fork").Process(target=launch, args=(emulator, tmp_path / "note"))
    worker.start()
    pid, path = noted(tmp_path / "note")
    os.kill(worker.pid or 0, signal.SIGKILL)
    worker.join(30)
    try:
        left = [file for file in temporary.rglob("*") if file.is_file()]
        assert {file.name for file in left} == {"credentials.json", "subject", "output.log"}
        assert {file.parent.stat().st_mode & 0o777 for file in left} == {0o700}
        key = json.loads(emulator.keys["airflow"].read_text())["private_key"]
        lines = [line for line in key.splitlines() if len(line) > 20]
        assert [line for line in lines for file in left if line in file.read_text()] == []
        said = json.loads(path.read_text())
        form = {"subject_token": Path(said["credential_source"]["file"]).read_text()}
        with pytest.raises(requests.ConnectionError):
            requests.post(said["token_url"], data=form, timeout=10)
        monkeypatch.setattr(_scratch, "YOUNG_SECONDS", -1.0)
        for kind in ("credentials", "launcher"):
            with scratch(kind):
                pass
        assert list(temporary.iterdir()) == []
    finally:
        os.kill(pid, signal.SIGKILL)


def test_what_is_in_use_stays(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A launch removes neither what another uses, however long, nor what is too young to tell, nor what others made."""
    other = temporary / "accel-launcher-link"
    kept = temporary / "kept"
    kept.mkdir()
    other.symlink_to(kept)
    (kept / "file").touch()
    (temporary / "accel-launcher-young").mkdir()
    with scratch("launcher") as used:
        with scratch("launcher"):
            pass
        monkeypatch.setattr(_scratch, "YOUNG_SECONDS", 60.0)
        assert (temporary / "accel-launcher-young").exists()
        monkeypatch.setattr(_scratch, "YOUNG_SECONDS", -1.0)
        with scratch("launcher"):
            pass
        assert used.exists()
        assert not (temporary / "accel-launcher-young").exists()
    assert not used.exists()
    assert (kept / "file").exists()
