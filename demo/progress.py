"""The lines the demo prints while it runs."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Any

from demo.show import console

if TYPE_CHECKING:
    from collections.abc import Mapping

WORDS: Mapping[str, str] = {
    "dataflow.job.created": "job created in {location}",
    "dataflow.workers.refused": "no worker: {reason} in {zone}",
    "compute.instance.created": "worker VM in {zone}",
    "dataflow.job.requested": "job asked to cancel",
}
FINAL_STATES = ("DONE", "FAILED", "CANCELLED")


class Progress:
    """Tells each change once, with the seconds since it was made."""

    def __init__(self) -> None:
        self.seen = 0
        self._start = time.monotonic()
        self._states: dict[tuple[str, str], str] = {}
        self._days: dict[str, str] = {}
        self._told: set[str] = set()

    @property
    def seconds(self) -> float:
        """How long this has been going on."""
        return time.monotonic() - self._start

    def tell_tasks(self, day: str, states: Mapping[str, str | None]) -> None:
        """Print the tasks of a day that are in another state than before."""
        for task, state in states.items():
            if state and self._states.get((day, task)) != state:
                self._states[day, task] = state
                self._tell(day, f"{task} {state.replace('_', ' ')}")

    def tell_jobs(self, ledger: Mapping[str, Any]) -> None:
        """Print what happened to jobs, from the emulator's newest events."""
        self.seen = ledger["last"]
        for event in ledger["events"]:
            if "job_id" in event:
                self._tell_job(event)

    def _tell_job(self, event: Mapping[str, Any]) -> None:
        job = event["job_id"]
        if event["kind"] == "dataflow.job.created":
            found = re.search(r"\d{4}-\d\d-\d\d", event["labels"].get("accel-run", ""))
            self._days[job] = found[0] if found else "?"
        words = WORDS.get(event["kind"], "").format_map(event)
        state = event.get("state", "").removeprefix("JOB_STATE_")
        if event["kind"] == "dataflow.job.state" and state in FINAL_STATES:
            words = f"job {state.lower()}"
        line = f"{job} {words}"
        # The service tries a zone several times before it gives up; once is enough to read.
        if words and line not in self._told:
            self._told.add(line)
            self._tell(self._days[job], f"  {words}")

    def _tell(self, day: str, text: str) -> None:
        console.print(f"{self.seconds:5.0f} s  {day}  {text}")
