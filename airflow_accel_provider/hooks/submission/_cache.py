"""What was fetched or built on this machine, for the processes that need it again: a deferral makes a new one."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import stat
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow_accel_provider.exceptions import AcceleratorLaunchError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

UNUSED_SECONDS = 14 * 24 * 3600.0
"""After how long what nobody used is removed."""

_READY = ".ready"


def kept(kind: str, key: Any, fill: Callable[[Path], None]) -> Path:
    """Return the folder that ``fill`` filled for this key, by this process or by one before it.

    ``key`` is plain data. Of processes that ask at once, one fills and the others wait for it. A folder whose filling
    was cut short is filled anew. Only this user can read it. Raises what ``fill`` raises.
    """
    home = _home() / kind
    home.mkdir(mode=0o700, exist_ok=True)
    folder = home / hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()[:32]
    with _locked(folder):
        if not (folder / _READY).exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(mode=0o700)
            fill(folder)
        # Its time says when it was used last.
        (folder / _READY).touch()
    _remove_unused(home)
    return folder


def _home() -> Path:
    """Return this user's folder.

    Raises :class:`AcceleratorLaunchError` when somebody else could have put things there.
    """
    home = Path(tempfile.gettempdir()) / f"accel-{os.getuid()}"
    home.mkdir(mode=0o700, exist_ok=True)
    found = home.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or stat.S_IMODE(found.st_mode) & 0o077:
        raise AcceleratorLaunchError(f"{home} is open to other users of this machine; remove it.")
    return home


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _remove_unused(home: Path) -> None:
    before = time.time() - UNUSED_SECONDS
    for mark in home.glob(f"*/{_READY}"):
        if _last_use(mark) < before:
            with _locked(mark.parent):
                if _last_use(mark) < before:
                    shutil.rmtree(mark.parent, ignore_errors=True)


def _last_use(mark: Path) -> float:
    try:
        return mark.stat().st_mtime
    except FileNotFoundError:
        return time.time()
