"""Runs of the example through a real Airflow, and what is known of each afterwards."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from demo.judge import ending_of
from demo.waiting import wait_for

if TYPE_CHECKING:
    from google.cloud.storage import Bucket

    from demo.home import Home

DAG_ID = "score_digits"
DAY = "2026-03-02"
LONGEST_SECONDS = 400
"""One run, however slow the machine."""

_minutes = itertools.count()


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One job as the emulator's ledger tells it: id, region, how it ended (``stockout``, ``done``, …)."""

    id: str
    region: str
    ending: str


@dataclass(frozen=True, kw_only=True)
class Run:
    """A run of the example. Everything is read when it is asked for."""

    home: Home
    id: str
    bucket: Bucket
    since: int

    @property
    def state(self) -> str:
        """The run's own state."""
        return self.home.airflow.api.run_state(DAG_ID, self.id)

    @property
    def tasks(self) -> dict[str, str | None]:
        """The state of each task."""
        return self.home.airflow.api.task_states(DAG_ID, self.id)

    @property
    def events(self) -> list[dict[str, Any]]:
        """What the emulator wrote down since the run was triggered."""
        events: list[dict[str, Any]] = self.home.emulator.ledger(since=self.since)["events"]
        return events

    @property
    def jobs(self) -> list[Job]:
        """The jobs that were made, in order, as the emulator tells it."""
        events = self.events
        made = [event for event in events if event["kind"] == "dataflow.job.created"]
        return [
            Job(
                id=each["job_id"],
                region=each["location"],
                ending=ending_of([event for event in events if event.get("job_id") == each["job_id"]]),
            )
            for each in made
        ]

    @cached_property
    def log(self) -> str:
        """The log of ``score``."""
        return self.home.airflow.api.log(DAG_ID, self.id, "score")

    def log_of(self, task: str) -> str:
        """Return the log of a task."""
        return self.home.airflow.api.log(DAG_ID, self.id, task)

    def xcom(self, task: str) -> Any:
        """Return what a task returned."""
        return self.home.airflow.api.xcom(DAG_ID, self.id, task)

    def wait(self) -> Run:
        """Wait for the end."""
        wait_for(f"the end of {self.id}", lambda: self.state in {"success", "failed"}, seconds=LONGEST_SECONDS, every=1)
        return self


@dataclass(frozen=True, slots=True, kw_only=True)
class Driver:
    """A real Airflow in one mode, and its emulator."""

    home: Home
    mode: str

    def bucket(self, name: str) -> Bucket:
        """Make a bucket, for a test to put things into before its run."""
        return self.home.emulator.bucket(f"{self.mode}-{name}")

    def start(self, bucket: Bucket, *, world: str, logical_date: str | None = "") -> Run:
        """Enter a world and trigger a run for one of the days, at a time of the day that no other run has."""
        self.home.emulator.set_world(world)
        since = self.home.emulator.ledger()["last"]
        date = f"{DAY}T00:{next(_minutes):02}:00Z" if logical_date == "" else logical_date
        run_id = self.home.airflow.api.trigger(DAG_ID, logical_date=date, conf={"bucket": bucket.name})
        return Run(home=self.home, id=run_id, bucket=bucket, since=since)

    def run(self, bucket: Bucket, *, world: str, logical_date: str | None = "") -> Run:
        """Start a run and wait for its end."""
        return self.start(bucket, world=world, logical_date=logical_date).wait()
