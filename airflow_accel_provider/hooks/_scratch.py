"""Folders for what must not outlive its use, also when nobody is left to remove it."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

YOUNG_SECONDS = 60.0
"""For so long a folder is left alone: whoever made it may not hold it yet."""


@contextmanager
def scratch(kind: str) -> Iterator[Path]:
    """Yield a new folder that only this user can read, and remove it with all that is in it.

    A process that is killed removes nothing; the next that makes a folder of the same kind on the same machine does.
    """
    prefix = f"accel-{kind}-"
    _remove_orphans(prefix)
    folder = Path(tempfile.mkdtemp(prefix=prefix))
    # Held for as long as this process lives: its children do not inherit it.
    held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(held, fcntl.LOCK_SH)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(held)


def _remove_orphans(prefix: str) -> None:
    for folder in Path(tempfile.gettempdir()).glob(f"{prefix}*"):
        # Another process may remove it at the same time, and other users' folders are closed to this one.
        with suppress(OSError):
            found = folder.lstat()
            if found.st_uid == os.getuid() and time.time() - found.st_mtime > YOUNG_SECONDS:
                _remove_unless_held(folder)


def _remove_unless_held(folder: Path) -> None:
    held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(folder, ignore_errors=True)
    finally:
        os.close(held)
