"""The virtual environment that a launcher runs in, as the Beam provider makes it, built once for all who need it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from subprocess import CalledProcessError
from typing import TYPE_CHECKING

from airflow_accel_provider.exceptions import AcceleratorLaunchError
from airflow_accel_provider.hooks.submission._cache import kept

if TYPE_CHECKING:
    from collections.abc import Sequence

# Prints where an interpreter that is itself of a virtual environment has its packages.
_OWN_PACKAGES = "import json, site, sys; print(json.dumps(site.getsitepackages() * (sys.prefix != sys.base_prefix)))"


def environment(interpreter: str, requirements: Sequence[str], *, system_site_packages: bool) -> str:
    """Return the Python of an environment that has the requirements.

    Environments are told apart by interpreter, requirements and whether they see the interpreter's own packages.
    Raises :class:`AcceleratorLaunchError` when it cannot be built; why is in the log.
    """
    base = shutil.which(interpreter)
    if base is None:
        raise AcceleratorLaunchError(f"There is no interpreter {interpreter!r} to build an environment from.")
    # An interpreter that was exchanged for another under the same name makes another environment.
    key = [os.path.abspath(base), Path(base).stat().st_mtime_ns, list(requirements), system_site_packages]  # noqa: PTH100
    built = kept("environments", key, lambda folder: _build(folder, base, requirements, system_site_packages))
    return str(_python(built))


def _build(folder: Path, base: str, requirements: Sequence[str], system_site_packages: bool) -> None:
    from airflow.providers.standard.utils.python_virtualenv import prepare_virtualenv

    try:
        prepare_virtualenv(
            venv_directory=str(folder),
            python_bin=base,
            system_site_packages=system_site_packages,
            requirements=list(requirements),
        )
        if system_site_packages:
            _show_packages(folder, base)
    except (CalledProcessError, OSError) as error:
        raise AcceleratorLaunchError(f"The environment for py_requirements could not be built: {error}") from error


def _show_packages(folder: Path, base: str) -> None:
    """Have an environment see the packages of an interpreter that is itself of one.

    The tools that make environments show the packages of the installation behind it only, and most workers run in an
    environment. What was required comes first on the path.
    """
    said = subprocess.run([base, "-c", _OWN_PACKAGES], capture_output=True, text=True, check=True).stdout
    lines = [f"import site; site.addsitedir({path!r})\n" for path in json.loads(said)]
    for own in folder.glob("lib/python*/site-packages"):
        (own / "interpreter.pth").write_text("".join(lines))


def _python(folder: Path) -> Path:
    return folder / "bin" / "python"
