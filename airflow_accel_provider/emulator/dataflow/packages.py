"""Installs what was staged with a pipeline into a directory of its own, kept for the next job with the same files."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

REQUIREMENTS = "requirements.txt"
EXTRA_PACKAGES = "extra_packages.txt"
WORKFLOW = "workflow.tar.gz"
"""Names that Beam's stager gives."""

_ARCHIVES = (".whl", ".tar.gz", ".zip", ".tar")


class InstallationError(Exception):
    """pip refused what was staged."""


def install(staged: Mapping[str, Path], cache: Path) -> Path:
    """Return a directory with the staged packages installed.

    Requirements come from the staged files, or from the package index when the launcher staged none. The pipeline's own
    packages are installed without their dependencies. Raises InstallationError with pip's last lines.
    """
    target = cache / _key(staged)
    if target.exists():
        return target
    draft = cache / f".{target.name}.{os.getpid()}"
    draft.mkdir(parents=True)
    try:
        _install_requirements(staged, draft)
        own = _own_packages(staged)
        if own:
            _pip(["--no-deps", "--no-index", "--no-build-isolation", *map(str, own)], draft)
        _publish(draft, target)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return target


def _key(staged: Mapping[str, Path]) -> str:
    digest = hashlib.sha256(sys.version.encode())
    for name in sorted(staged):
        if name in {REQUIREMENTS, EXTRA_PACKAGES} or name.endswith(_ARCHIVES):
            digest.update(name.encode() + b"\0" + hashlib.sha256(staged[name].read_bytes()).digest())
    return digest.hexdigest()[:24]


def _own_packages(staged: Mapping[str, Path]) -> Sequence[Path]:
    names = [WORKFLOW] if WORKFLOW in staged else []
    if EXTRA_PACKAGES in staged:
        names += staged[EXTRA_PACKAGES].read_text(encoding="utf-8").split()
    return [staged[name] for name in names]


def _install_requirements(staged: Mapping[str, Path], target: Path) -> None:
    requirements = staged.get(REQUIREMENTS)
    if requirements is None:
        return
    wanted = ["--requirement", str(requirements), "--find-links", str(requirements.parent)]
    try:
        _pip(["--no-index", "--no-build-isolation", *wanted], target)
    except InstallationError:
        # As the real worker does: what was not staged is fetched.
        _pip(wanted, target)


def _pip(arguments: Sequence[str], target: Path) -> None:
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input"]
    result = subprocess.run(
        [*command, "--target", str(target), *arguments], capture_output=True, text=True, check=False
    )
    if result.returncode:
        lines = "\n".join(result.stderr.strip().splitlines()[-10:])
        raise InstallationError(
            f"Failed to install packages: failed to install workflow: exit status {result.returncode}\n{lines}"
        )


def _publish(draft: Path, target: Path) -> None:
    try:
        draft.rename(target)
    except OSError:
        # Another worker was quicker; its directory holds the same.
        if not target.exists():
            raise
