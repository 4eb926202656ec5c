"""The house holds: imports go one way, the core is pure, the emulator is an island, operators are light."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import airflow_accel_provider

ROOT = Path(airflow_accel_provider.__file__).parent
PACKAGE = ROOT.name

# What each floor may import of the package; the rest of a floor's own modules is always allowed.
MAY_IMPORT = {
    "core": set(),
    "exceptions": {"core"},
    "hooks": {"core", "exceptions"},
    "links": {"core"},
    "retry": {"core", "exceptions"},
    "triggers": {"hooks", "core", "exceptions"},
    "operators": {"triggers", "hooks", "core", "exceptions", "links"},
    "sensors": {"operators", "triggers", "hooks", "core", "exceptions"},
    "cli": {"sensors", "operators", "triggers", "hooks", "core", "exceptions"},
    "emulator": set(),
    "get_provider_info": set(),
}
PURE = {
    *("__future__", "ast", "bisect", "collections", "configparser", "dataclasses", "datetime", "difflib", "enum"),
    *("functools", "hashlib", "itertools", "json", "math", "operator", "pathlib", "re", "textwrap", "types", "typing"),
    *("unicodedata", "urllib"),
}
CLOCKS = ("datetime.now", "datetime.utcnow", "time.time", "date.today", "os.environ", "random.")


def modules(floor: str) -> list[Path]:
    single = ROOT / f"{floor}.py"
    return [single] if single.exists() else sorted((ROOT / floor).rglob("*.py"))


def imports(path: Path) -> set[str]:
    """Return every module that a file imports, anywhere in it."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
            found |= {f"{node.module}.{alias.name}" for alias in node.names if node.module == PACKAGE}
    return found


def calls(path: Path) -> set[str]:
    """Return the names of the builtins and methods that a file calls."""
    called = [node.func for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, ast.Call)]
    methods = {func.attr for func in called if isinstance(func, ast.Attribute)}
    return {func.id for func in called if isinstance(func, ast.Name) and func.id == "open"} | methods - {"open"}


def floors_of(names: set[str]) -> set[str]:
    return {name.split(".")[1] for name in names if name.startswith(f"{PACKAGE}.")}


@pytest.mark.parametrize("floor", MAY_IMPORT)
def test_imports_go_one_way(floor: str) -> None:
    """A floor imports only the floors below it."""
    allowed = MAY_IMPORT[floor] | {floor}
    wrong = {path.name: floors_of(imports(path)) - allowed for path in modules(floor)}

    assert modules(floor)
    assert not {name: floors for name, floors in wrong.items() if floors}


def test_every_floor_is_watched() -> None:
    """No part of the package is left out of the rule above."""
    parts = {path.stem for path in ROOT.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}

    assert parts - {"__init__"} == set(MAY_IMPORT)


def test_the_core_is_pure() -> None:
    """The core imports the standard library's pure parts alone and asks no clock, environment or dice."""
    for path in modules("core"):
        tops = {name.split(".")[0] for name in imports(path)}
        text = path.read_text(encoding="utf-8")

        assert tops <= PURE | {PACKAGE}, path.name
        assert not [word for word in CLOCKS if word in text], path.name


def test_only_the_tables_are_read_from_files() -> None:
    """No other module of the core opens anything."""
    readers = {path.name for path in modules("core") if {"open", "read_text", "read_bytes"} & calls(path)}

    assert readers <= {"catalog.py", "packaged.py"}


@pytest.mark.parametrize(
    "module",
    [
        "operators.beam",
        "operators.dataproc",
        "sensors.quota",
        "sensors.proof",
        "triggers.job",
        "links",
        "retry",
        "exceptions",
        "cli",
    ],
)
def test_importing_is_light(module: str) -> None:
    """Importing what a DAG file imports loads no google, grpc, beam or pandas module."""
    code = (
        # Namespace packages are there as soon as Python starts, and Airflow itself reads providers' metadata.
        "import sys; there = set(sys.modules)\n"
        f"import {PACKAGE}.{module}\n"
        "heavy = ('google', 'grpc', 'apache_beam', 'googleapiclient', 'pandas', 'requests')\n"
        "print([m for m in set(sys.modules) - there if m.split('.')[0] in heavy or 'providers.google.' in m])"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout

    assert shown.strip().splitlines()[-1] in {"[]", "['airflow.providers.google.get_provider_info']"}


def test_the_command_line_needs_no_airflow() -> None:
    """The command line starts without Airflow."""
    code = f"import sys, {PACKAGE}.cli; print('airflow' in sys.modules)"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout

    assert shown.strip() == "False"
