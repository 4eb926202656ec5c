"""What is run for a job, as argument lists: its pipeline's worker, and before that its template's launcher."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from airflow_accel_provider.emulator.dataflow.jobs import Job

PACKAGE = "airflow_accel_provider.emulator.dataflow"


def worker_command(job: Job, directory: Path) -> list[str]:
    """Return what runs a job's pipeline, and leave its options in the directory."""
    work = {"options": job.request["environment"]["sdkPipelineOptions"]["options"], "job_id": job.id}
    (directory / "work.json").write_text(json.dumps(work), encoding="utf-8")
    return [sys.executable, "-m", f"{PACKAGE}.worker", str(directory), str(directory.parent.parent / "packages")]


def launcher_command(job: Job, directory: Path) -> list[str]:
    """Return what runs the program of a job's template."""
    launch = job.launch or {}
    return [sys.executable, "-m", f"{PACKAGE}.launcher", str(directory), launch["file"], *launch["flags"]]
