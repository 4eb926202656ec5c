"""Both sides of the demo together: the emulator, and an Airflow that takes it for Google."""

from __future__ import annotations

import shutil
import signal
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from demo.emulator import DAGS, TIME_SCALE, Emulator
from demo.processes import Processes
from demo.stack import Airflow

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from types import FrameType

ROOT = Path(__file__).parents[1]
STATE = ROOT / ".accel"


@dataclass(frozen=True, slots=True, kw_only=True)
class Home:
    """A running emulator and a running Airflow, and their processes."""

    processes: Processes
    emulator: Emulator
    airflow: Airflow


@contextmanager
def running(
    directory: Path,
    *,
    world: str,
    dags: Path = DAGS,
    variables: Mapping[str, str] | None = None,
    time_scale: str = TIME_SCALE,
) -> Iterator[Home]:
    """Start both in a directory that is emptied first; end everything however the block is left."""
    processes = Processes(directory)
    for old in ("emulator", "airflow"):
        shutil.rmtree(directory / old, ignore_errors=True)
    try:
        emulator = Emulator(processes, directory / "emulator", world=world, time_scale=time_scale)
        emulator.start()
        settings = emulator.environment() | dict(variables or {})
        airflow = Airflow(processes, directory / "airflow", dags=dags, variables=settings)
        airflow.start()
        # The pool that score_by_six wants.
        airflow.api.make_pool("gpu", slots=2)
        yield Home(processes=processes, emulator=emulator, airflow=airflow)
        airflow.stop()
    finally:
        processes.stop()


def raise_on_termination() -> None:
    """Let SIGTERM end this process as Ctrl-C does, so that its children are ended with it."""
    signal.signal(signal.SIGTERM, _interrupt)


def _interrupt(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 -- the form of a signal handler
    raise KeyboardInterrupt
