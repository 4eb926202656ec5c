"""Runs of the examples under ``airflow dags test``, and what Airflow and the emulator know of them afterwards."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from demo.batches import as_jobs
from demo.emulator import Emulator
from demo.judge import held_against_ledger
from demo.story import rows_of
from tests.integration.local_google import LocalGoogle

DAY = "2026-03-02"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tested:
    """A run that has ended: its status and output, what its tasks left behind, and what the emulator saw.

    Spark's batches are told as jobs in ``events``.
    """

    status: int
    output: str
    values: dict[str, list[Any]]
    records: list[dict[str, Any]]
    calls: list[dict[str, Any]]
    events: list[dict[str, Any]]

    @property
    def methods(self) -> set[str]:
        """The methods that were called."""
        return {call["method"] for call in self.calls}

    @property
    def kinds(self) -> list[tuple[str, ...]]:
        """What became of each place of each accelerated task, after it was held against the ledger."""
        stories = [rows_of(record) for record in self.records]
        assert [text for rows in stories for text in held_against_ledger(rows, self.events)] == []
        return [tuple(row.kind for row in rows) for rows in stories]

    @property
    def regions(self) -> list[str]:
        """Where jobs were made, in order."""
        return [event["location"] for event in self.events if event["kind"] == "dataflow.job.created"]

    @property
    def devices(self) -> list[tuple[str, int, str]]:
        """Accelerator, number and reservation of each worker; a Flex Template's launcher is none."""
        vms = [event for event in self.events if event["kind"] == "compute.instance.created"]
        workers = [vm for vm in vms if not vm["instance"].startswith("launcher-")]
        return [(vm["accelerator"], vm["count"], vm["reservation"]) for vm in workers]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shell:
    """A shell whose Airflow takes the emulator for Google."""

    google: LocalGoogle
    environment: dict[str, str]

    @property
    def emulator(self) -> Emulator:
        """The emulator."""
        return self.google.emulator

    def dags_test(self, dag_id: str, *, world: str, bucket: str, day: str = DAY) -> Tested:
        """Run an example once under ``airflow dags test``, with its data in a bucket."""
        self.emulator.set_world(world)
        since = self.google.mark()
        options = [dag_id, day, "--conf", json.dumps({"bucket": bucket})]
        command = [sys.executable, "-m", "airflow", "dags", "test", *options]
        done = subprocess.run(command, env=self.environment, capture_output=True, text=True, check=False, timeout=600)
        ledger = as_jobs(self.emulator.ledger(since=since))
        return Tested(
            status=done.returncode,
            output=done.stdout + done.stderr,
            values=self._values(dag_id),
            records=self._records(dag_id),
            calls=ledger["calls"],
            events=ledger["events"],
        )

    def predictions(self, bucket: str, prefix: str) -> list[str]:
        """Return the ids of the images in the objects whose name begins like this."""
        return [json.loads(line)["id"] for line in self.lines(bucket, prefix)]

    def lines(self, bucket: str, prefix: str) -> list[str]:
        """Return the lines of the objects whose name begins like this."""
        texts = [blob.download_as_text() for blob in self.google.bucket(bucket).list_blobs(prefix=prefix)]
        return [line for text in texts for line in text.splitlines()]

    def _values(self, dag_id: str) -> dict[str, list[Any]]:
        rows = self._newest("SELECT task_id, value FROM xcom WHERE key = 'return_value'", dag_id)
        tasks = {task for task, _ in rows}
        return {task: [json.loads(value) for other, value in rows if other == task] for task in tasks}

    def _records(self, dag_id: str) -> list[dict[str, Any]]:
        rows = self._newest("SELECT task_id, value FROM task_state_store WHERE key = 'accel_job'", dag_id)
        return [json.loads(value) for _, value in rows]

    def _newest(self, query: str, dag_id: str) -> list[tuple[str, str]]:
        """Return what a query finds of the newest run of a DAG, mapped tasks in the order of their indexes."""
        database = Path(self.environment["AIRFLOW_HOME"]) / "airflow.db"
        newest = "dag_run_id = (SELECT MAX(id) FROM dag_run WHERE dag_id = ?)"
        with closing(sqlite3.connect(database, timeout=30)) as connection:
            return connection.execute(f"{query} AND {newest} ORDER BY map_index", (dag_id,)).fetchall()
