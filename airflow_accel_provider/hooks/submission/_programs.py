"""The launchers: Python files and modules, Java jars, Go binaries."""

from __future__ import annotations

import platform
import shutil
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from airflow_accel_provider.core.problems import Problem, error
from airflow_accel_provider.hooks.launcher import build_argv
from airflow_accel_provider.hooks.submission._environments import environment
from airflow_accel_provider.hooks.submission._files import local
from airflow_accel_provider.hooks.submission._launched import LaunchedPipeline
from airflow_accel_provider.hooks.submission._pipeline import Place

if TYPE_CHECKING:
    from airflow_accel_provider.core.request import BeamRequest
    from airflow_accel_provider.hooks.session import GoogleSession


class PythonFile(LaunchedPipeline):
    """A Python file, local or in a bucket."""

    def command(self, session: GoogleSession, request: BeamRequest) -> tuple[str, ...]:
        """Return the interpreter and the file."""
        path = str(local(session, str(request.py_file)))
        options = tuple(request.py_options)
        return tuple(build_argv(py_interpreter=_interpreter(request), py_options=options, py_file=path))


class PythonModule(LaunchedPipeline):
    """A Python module that the interpreter finds by itself."""

    def missing(self, session: GoogleSession, places: Sequence[Place]) -> Sequence[Problem]:  # noqa: ARG002
        """Return nothing: what the interpreter finds shows when it runs."""
        return ()

    def command(self, session: GoogleSession, request: BeamRequest) -> tuple[str, ...]:  # noqa: ARG002
        """Return the interpreter and the module."""
        options = tuple(request.py_options)
        return tuple(build_argv(py_interpreter=_interpreter(request), py_options=options, py_module=request.py_module))


class JavaJar(LaunchedPipeline):
    """A jar with the pipeline and all it needs; its own main class, or ``job_class``."""

    def missing(self, session: GoogleSession, places: Sequence[Place]) -> Sequence[Problem]:
        """Return a problem when the jar cannot be read, or there is no Java to run it."""
        found = list(super().missing(session, places))
        if shutil.which("java") is None:
            found.append(error("java-missing", f"There is no java on this worker ({platform.node()}).", "jar"))
        return found

    def command(self, session: GoogleSession, request: BeamRequest) -> tuple[str, ...]:
        """Return Java with the jar."""
        jar = str(local(session, str(request.jar)))
        return ("java", "-cp", jar, request.job_class) if request.job_class else ("java", "-jar", jar)


class GoBinary(LaunchedPipeline):
    """A binary that was built for this worker's platform."""

    def command(self, session: GoogleSession, request: BeamRequest) -> tuple[str, ...]:
        """Return the binary, made executable when it was fetched."""
        said = str(request.go_binary)
        binary = local(session, said)
        if str(binary) != said:
            binary.chmod(0o700)
        # A bare name would be looked for on the PATH.
        return (str(binary.absolute()),)


def _interpreter(request: BeamRequest) -> str:
    """Return the Python that runs the launcher, in an environment of its own where requirements are given."""
    python = request.py_interpreter or sys.executable
    if request.py_requirements is None:
        return python
    return environment(python, request.py_requirements, system_site_packages=request.py_system_site_packages)
