"""``accel check`` over DAG files: a process of its own parses them, and this one tells what it found.

The parsing process runs the user's code, prints included, and sees Airflow's configuration but a metadata database that
is empty and thrown away.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from itertools import groupby
from pathlib import Path
from typing import Any

from airflow_accel_provider.cli._deployment import ALLOWED_REGIONS, OVERLAY, catalog
from airflow_accel_provider.cli._lines import print_error, print_json
from airflow_accel_provider.cli._tables import aligned, show, verdict
from airflow_accel_provider.core.problems import Problem

_MODULE = "airflow_accel_provider.cli._parsing"


def run(arguments: argparse.Namespace) -> int:
    """Check the DAGs and print what was found."""
    if find_spec("airflow") is None:
        return print_error("Checking DAGs needs Airflow, which is not installed here: pip install apache-airflow")
    # An overlay that cannot be read is told once, and not by every task.
    catalog(arguments)
    target = Path(arguments.target).resolve()
    found = _parsed(target, {ALLOWED_REGIONS: arguments.allowed_regions, OVERLAY: arguments.overlay})
    if found is None:
        return print_error("The DAGs could not be parsed; what was written above says why.")
    is_ok = not any(problem["severity"] == "error" for problem in found["problems"])
    if arguments.json:
        print_json({"ok": is_ok, **found})
    else:
        show(_told(found))
    return 0 if is_ok else 1


def _parsed(target: Path, flags: Mapping[str, str | None]) -> dict[str, Any] | None:
    """Return what the parsing process found, or ``None`` when it came to no end."""
    with tempfile.TemporaryDirectory(prefix="accel-check-") as scratch:
        answer = Path(scratch) / "answer.json"
        command = [sys.executable, "-m", _MODULE, str(target), str(answer)]
        # What users' code prints must not mix with the answer.
        subprocess.run(command, env=_environment(Path(scratch), flags), stdout=sys.stderr, check=False)
        if not answer.exists():
            return None
        found: dict[str, Any] = json.loads(answer.read_text(encoding="utf-8"))
        return found


def _environment(scratch: Path, flags: Mapping[str, str | None]) -> dict[str, str]:
    home = Path(os.environ.get("AIRFLOW_HOME", "~/airflow")).expanduser()
    said = {
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{scratch}/airflow.db",
        # What Airflow would log of files that do not import is told as problems.
        "AIRFLOW__LOGGING__LOGGING_LEVEL": "CRITICAL",
        "AIRFLOW__LOGGING__BASE_LOG_FOLDER": str(scratch),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        # Deep enough to hold the line of the DAG file.
        "AIRFLOW__CORE__DAGBAG_IMPORT_ERROR_TRACEBACK_DEPTH": "100",
    }
    if not (home / "airflow.cfg").exists():
        # Airflow would make itself at home where nobody asked it to.
        said["AIRFLOW_HOME"] = str(scratch)
    given = {name: value for name, value in flags.items() if value is not None}
    return {**os.environ, **said, **given}


def _told(found: Mapping[str, Any]) -> str:
    problems: Sequence[Mapping[str, Any]] = found["problems"]
    files = f"{found['files']} file{'' if found['files'] == 1 else 's'}, {found['tasks']} accelerated task"
    head = f"{files}{'' if found['tasks'] == 1 else 's'}: {verdict([_problem(each) for each in problems])}"
    return "\n\n".join([head, *(_told_of(place, list(those)) for place, those in groupby(problems, _place))])


def _told_of(place: str, problems: Sequence[Mapping[str, Any]]) -> str:
    rows = [(each["severity"], _where(each), each["message"]) for each in problems]
    return f"{place}\n{aligned(rows, indent='  ')}"


def _place(each: Mapping[str, Any]) -> str:
    names = [each.get("file"), each.get("dag"), each.get("task")]
    return " ".join(name for name in names if name)


def _where(each: Mapping[str, Any]) -> str:
    index = "" if each.get("map_index") is None else f"[{each['map_index']}] "
    return f"{index}{each.get('where', '-')}"


def _problem(each: Mapping[str, Any]) -> Problem:
    return Problem(severity=each["severity"], code=each["code"], message=each["message"])
