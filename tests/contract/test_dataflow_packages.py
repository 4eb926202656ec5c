"""Staged packages are installed once, apart from everything else."""

from __future__ import annotations

import zipfile
from typing import TYPE_CHECKING

import pytest

from airflow_accel_provider.emulator.dataflow.packages import InstallationError, install

if TYPE_CHECKING:
    from pathlib import Path

METADATA = "Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n"
WHEEL = "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


def _wheel(folder: Path, name: str) -> Path:
    path = folder / f"{name}-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"{name}.py", "WORD = 'here'\n")
        archive.writestr(f"{name}-1.0.dist-info/METADATA", METADATA.format(name=name))
        archive.writestr(f"{name}-1.0.dist-info/WHEEL", WHEEL)
        archive.writestr(f"{name}-1.0.dist-info/RECORD", "")
    return path


def test_requirements_come_from_what_was_staged_and_stay(tmp_path: Path) -> None:
    """A requirement is found among the staged files; the same files again are not installed again."""
    wheel = _wheel(tmp_path, "staged_thing")
    requirements = tmp_path / "requirements.txt"
    requirements.write_text("staged-thing==1.0\n")
    staged = {wheel.name: wheel, "requirements.txt": requirements}
    installed = install(staged, tmp_path / "cache")
    assert (installed / "staged_thing.py").exists()
    before = installed.stat().st_mtime_ns
    assert install(staged, tmp_path / "cache") == installed
    assert installed.stat().st_mtime_ns == before


def test_other_packages_go_elsewhere(tmp_path: Path) -> None:
    """Jobs with different packages do not see each other's."""
    cache = tmp_path / "cache"
    listing = tmp_path / "extra_packages.txt"
    wheel = _wheel(tmp_path, "own_thing")
    listing.write_text(f"{wheel.name}\n")
    own = install({wheel.name: wheel, "extra_packages.txt": listing}, cache)
    none = install({}, cache)
    assert (own / "own_thing.py").exists()
    assert own != none
    assert list(none.iterdir()) == []


def test_a_package_that_cannot_be_installed_is_named(tmp_path: Path) -> None:
    """What pip refuses is an error with pip's words, and leaves nothing in the cache."""
    broken = tmp_path / "workflow.tar.gz"
    broken.write_bytes(b"no archive")
    with pytest.raises(InstallationError, match="failed to install workflow"):
        install({"workflow.tar.gz": broken}, tmp_path / "cache")
    assert list((tmp_path / "cache").iterdir()) == []
