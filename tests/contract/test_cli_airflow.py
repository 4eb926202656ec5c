"""``airflow accel …``, in Airflow's own processes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from airflow_accel_provider.get_provider_info import get_provider_info

AIRFLOW = [str(Path(sys.executable).with_name("airflow"))]
REQUEST = '{"operator": "BeamGpuPipelineOperator", "placement": "nvidia-l4 on n1-standard-4 in us-central1"}\n'


def airflow(home: Path, *arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "AIRFLOW_HOME": str(home)}
    return subprocess.run(
        [*AIRFLOW, *arguments], env=env, input=stdin, capture_output=True, text=True, timeout=120, check=False
    )


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a home for Airflow without a database."""
    return tmp_path_factory.mktemp("airflow")


def test_flags_reach_the_command(home: Path) -> None:
    """Flags after ``airflow accel`` are the command's, its help among them."""
    ended = airflow(home, "accel", "check", "--help")
    assert ended.returncode == 0
    assert ended.stdout.startswith("usage: airflow accel check")
    assert "--json" in ended.stdout


def test_answers_and_exit_codes_are_the_same(home: Path) -> None:
    """The answer comes on stdout, with the exit code of ``accel``; no database is made for it."""
    ended = airflow(home, "accel", "check", "--json", "-", stdin=REQUEST)
    assert ended.returncode == 1
    assert '"machine-family"' in ended.stdout.splitlines()[-1]
    assert airflow(home, "accel", "chek").returncode == 2
    assert not list(home.glob("*.db"))


def test_mounting_is_cheap() -> None:
    """What Airflow loads for each of its commands imports parsers, and no catalogue, operator or hook."""
    (path,) = get_provider_info()["cli"]
    module = path.rpartition(".")[0]
    code = (
        "import sys, airflow.cli.cli_config; there = set(sys.modules)\n"
        f"import {module}; {path}()\n"
        "heavy = ('core.catalog', 'core.checking', 'operators', 'hooks', 'triggers', 'emulator')\n"
        "print([name for name in set(sys.modules) - there if name.startswith(\n"
        "    tuple(f'airflow_accel_provider.{each}' for each in heavy))])"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert shown.strip().splitlines()[-1] == "[]"
