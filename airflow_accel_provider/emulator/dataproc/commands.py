"""What is run for a batch, as an argument list, and what is said when that ends without a word."""

from __future__ import annotations

import json
import signal
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airflow_accel_provider.emulator.dataproc.batches import Batch
from airflow_accel_provider.emulator.dataproc.tables import SPARK_ACCELERATORS
from airflow_accel_provider.emulator.dataproc.wishes import properties_of

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A batch that is executed, under an id that no other ever has."""

    id: str
    batch: Batch


def worker_command(run: Run, directory: Path) -> list[str]:
    """Return what executes a batch, and leave in the directory what that reads."""
    batch, wish = run.batch, run.batch.wish
    work = {
        "request": batch.request,
        "properties": properties_of(batch.request),
        "name": batch.name,
        "output_uri": batch.output_uri,
        "uuid": batch.uuid,
        "gpus": wish.gpus if batch.shows_gpus else 0,
        "gpu_name": SPARK_ACCELERATORS[wish.accelerator].label if wish.accelerator else "",
    }
    (directory / "work.json").write_text(json.dumps(work), encoding="utf-8")
    return [sys.executable, "-m", "airflow_accel_provider.emulator.dataproc.worker", str(directory)]


def lost(code: int, log: Path) -> dict[str, Any]:
    """Return the outcome of an execution that left none."""
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()[-20:]
    how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
    return {"error": "\n".join((f"The batch's process ended with {how}. Last lines:", *lines)), "is_emulators": True}
