"""The process that a template's program runs in: ``python -m … DIRECTORY FILE FLAGS…``.

It runs the file with the flags, as the launcher in a template's image does, and leaves the exit status in
``DIRECTORY/outcome.json``. What the program writes is the console log.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def main(directory: Path, file: str, flags: Sequence[str]) -> int:
    """Run a template's program; returns its exit status."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    command = [sys.executable, file, *flags]
    print("Executing: python", *command[1:], flush=True)  # noqa: T201
    status = subprocess.run(command, stdin=subprocess.DEVNULL, check=False).returncode
    draft = directory / "outcome.draft"
    draft.write_text(json.dumps({"status": status}), encoding="utf-8")
    draft.replace(directory / "outcome.json")
    return status


def _end_with_parent() -> None:
    # Past the buffered stream, whose lock would be held when this process ends.
    while os.read(0, 1024):
        continue
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2], sys.argv[3:]))
