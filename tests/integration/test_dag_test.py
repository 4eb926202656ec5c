"""The example under ``dag.test()``, which a DAG author uses before there is any scheduler."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from demo.emulator import Emulator
from demo.home import DAGS
from demo.processes import Processes
from demo.stack import Airflow

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True, slots=True, kw_only=True)
class Shell:
    """A shell whose Airflow takes the emulator for Google."""

    emulator: Emulator
    environment: dict[str, str]

    def dags_test(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run the example once under ``airflow dags test``."""
        command = [sys.executable, "-m", "airflow", "dags", "test", "score_digits", *arguments]
        return subprocess.run(command, env=self.environment, capture_output=True, text=True, check=False, timeout=300)


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    """Start an emulator, and make an Airflow without any process."""
    directory = tmp_path_factory.mktemp("dag_test")
    processes = Processes(directory)
    try:
        emulator = Emulator(processes, directory / "emulator", world="stockout-then-quota-then-stock")
        emulator.start()
        airflow = Airflow(processes, directory / "airflow", dags=DAGS, variables=emulator.environment())
        airflow.prepare()
        yield Shell(emulator=emulator, environment=airflow.environment)
    finally:
        processes.stop()


def test_falls_back_and_finishes(shell: Shell) -> None:
    """A day is scored under ``dag.test()`` as by a scheduler, the deferral included."""
    done = shell.dags_test("2026-03-02")
    output = done.stdout + done.stderr
    assert done.returncode == 0, output[-4000:]
    assert '"date": "2026-03-02", "count": 400' in output


def test_a_day_without_images_starts_nothing(shell: Shell) -> None:
    """A date without images fails in the first task, and no job is made."""
    before = shell.emulator.ledger()["last"]
    done = shell.dags_test("2026-05-05")
    assert done.returncode != 0
    assert "There are no images for 2026-05-05" in done.stdout + done.stderr
    methods = {call["method"] for call in shell.emulator.ledger(since=before)["calls"]}
    assert not {method for method in methods if method.startswith("dataflow.")}
