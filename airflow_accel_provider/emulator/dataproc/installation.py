"""Whether Spark can run here: PySpark in this environment, and a Java that it takes."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
from pathlib import Path

LEAST_JAVA = 17
"""Spark 4's. https://spark.apache.org/docs/4.0.0/ (2026-11)."""


class SparkMissingError(Exception):
    """Spark cannot run here; the message says what is missing and how to get it."""


def find_spark() -> Path:
    """Return the directory that PySpark's Spark is in. Raises SparkMissingError."""
    found = importlib.util.find_spec("pyspark")
    if found is None or found.origin is None:
        raise SparkMissingError(
            "PySpark is not installed where the emulator runs, so that no batch can be executed. Install it with:"
            " pip install 'airflow-provider-accel[spark]'"
        )
    _require_java()
    return Path(found.origin).parent


def _require_java() -> None:
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    wanted = f"Spark needs Java {LEAST_JAVA} or newer where the emulator runs"
    if java is None or not Path(java).exists():
        raise SparkMissingError(f"{wanted}, and there is no java {f'in JAVA_HOME ({home})' if home else 'on PATH'}.")
    said = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    version = re.search(r'version "(?:1\.)?(\d+)', said)
    if version is None or int(version[1]) < LEAST_JAVA:
        raise SparkMissingError(f"{wanted}; {java} is {said.splitlines()[0] if said else 'of no version'}.")
