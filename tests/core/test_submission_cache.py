"""What is fetched or built is kept for the processes that come later."""

from __future__ import annotations

import json
import multiprocessing
import os
import stat
import tempfile
import time
from functools import partial
from pathlib import Path

import pytest

from airflow_accel_provider.exceptions import AcceleratorLaunchError
from airflow_accel_provider.hooks.submission import _cache
from airflow_accel_provider.hooks.submission._cache import kept


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Have temporary files in a folder of the test's own."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def note(log: Path, folder: Path) -> None:
    """Fill slowly, and note that it was done."""
    time.sleep(0.2)
    (folder / "content").write_text("x")
    with log.open("a") as lines:
        lines.write(f"{os.getpid()}\n")


def ask(home: str, log: Path, answers: str) -> None:
    """Ask for the folder as another process."""
    tempfile.tempdir = home
    folder = kept("things", ["a"], partial(note, log))
    Path(answers, str(os.getpid())).write_text(json.dumps([str(folder), (folder / "content").exists()]))


def test_processes_share_what_one_of_them_fills(temporary: Path, tmp_path: Path) -> None:
    """Of several processes that need the same at once, one makes it, and all get it whole."""
    log, answers = tmp_path / "log", tmp_path / "answers"
    answers.mkdir()
    several = [
        multiprocessing.get_context("spawn").Process(target=ask, args=(str(temporary), log, str(answers)))
        for _ in range(3)
    ]
    for process in several:
        process.start()
    for process in several:
        process.join(60)
    told = [json.loads(file.read_text()) for file in answers.iterdir()]
    assert len(told) == 3
    assert len({folder for folder, _ in told}) == 1
    assert all(whole for _, whole in told)
    assert len(log.read_text().splitlines()) == 1


def test_what_was_cut_short_is_made_anew(tmp_path: Path) -> None:
    """A folder whose filling failed is filled again, from nothing."""

    def fail(folder: Path) -> None:
        (folder / "half").touch()
        raise OSError("no space left")

    with pytest.raises(OSError, match="no space"):
        kept("things", "a", fail)
    folder = kept("things", "a", partial(note, tmp_path / "log"))
    assert sorted(path.name for path in folder.iterdir()) == [".ready", "content"]


def test_keys_are_told_apart(tmp_path: Path) -> None:
    """Each key has a folder of its own."""
    fill = partial(note, tmp_path / "log")
    assert kept("things", ["a"], fill) != kept("things", ["b"], fill)
    assert kept("things", ["a"], fill) != kept("others", ["a"], fill)


def test_nobody_else_can_read_or_write_there(tmp_path: Path) -> None:
    """Folders are this user's alone, and one that is open to others is refused."""
    folder = kept("things", "a", partial(note, tmp_path / "log"))
    for each in (folder, folder.parent, folder.parent.parent):
        assert stat.S_IMODE(each.stat().st_mode) == 0o700
    folder.parent.parent.chmod(0o777)
    with pytest.raises(AcceleratorLaunchError, match="open to other users"):
        kept("things", "a", partial(note, tmp_path / "log"))


def test_what_nobody_used_is_removed(tmp_path: Path) -> None:
    """What was not asked for in a long time is gone at the next chance, what was used stays."""
    fill = partial(note, tmp_path / "log")
    old, used = kept("things", "old", fill), kept("things", "used", fill)
    long_ago = time.time() - _cache.UNUSED_SECONDS - 60
    for each in (old, used):
        os.utime(each / ".ready", (long_ago, long_ago))
    assert kept("things", "used", fill) == used
    assert (old.exists(), used.exists()) == (False, True)


@pytest.mark.parametrize("name", ["../../out", "/tmp/accel-out", "..", "a\0b", "\ud800", "-r/etc/passwd", "x" * 10**6])  # noqa: S108 - not made
def test_no_name_leads_elsewhere(tmp_path: Path, name: str) -> None:
    """Whatever packages, interpreters and objects are called, what is made of them lies in one folder here."""
    folder = kept("environments", [name, [name], True], lambda made: (made / "content").touch())
    assert folder.parent == tmp_path / f"accel-{os.getuid()}" / "environments"
    assert {path.name for path in tmp_path.iterdir()} == {f"accel-{os.getuid()}"}
    assert (folder / "content").exists()
