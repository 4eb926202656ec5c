"""``make demo``: a real Airflow scores three days of digits in a local Google that makes it look for a GPU."""

from __future__ import annotations

import argparse
import sys
import time
from typing import TYPE_CHECKING, Any

from demo.home import STATE, raise_on_termination, running
from demo.judge import KINDS, objections
from demo.progress import Progress
from demo.show import console, show_attempts, show_predictions
from demo.story import Row, rows_of

if TYPE_CHECKING:
    from demo.home import Home

DAG_ID = "score_digits"
FIRST_DAY, LAST_DAY, DAYS = "2026-03-02", "2026-03-04", 3
FINAL = ("success", "failed")
LONGEST_SECONDS = 600


def main() -> int:
    """Run the demo; return 0 if all came as the world has it, 1 if not, 130 if it was stopped."""
    parser = argparse.ArgumentParser(prog="python -m demo.run", description=__doc__)
    parser.add_argument("--world", choices=sorted(KINDS), default="stockout-then-quota-then-stock")
    world = parser.parse_args().world
    raise_on_termination()
    try:
        console.print(f"Starting a local Google in the world [b]{world}[/], and an Airflow; about 20 seconds.")
        with running(STATE / "demo", world=world) as home:
            found = demonstrate(home, world)
            console.print("Stopping both.")
    except KeyboardInterrupt:
        console.print("Stopped; nothing is left running.")
        return 130
    except (RuntimeError, TimeoutError) as error:
        console.print(f"[red]{error}[/]\nThe logs are in {STATE / 'demo'}.")
        return 1
    for objection in found:
        console.print(f"[red]Not as it should be:[/] {objection}")
    if not found:
        console.print(
            "[green]All came as it should: order, reasons and predictions agree with the emulator's ledger.[/]"
        )
    return 1 if found else 0


def demonstrate(home: Home, world: str) -> list[str]:
    """Backfill the days, show what happens and what came of it; return what is not as it should be."""
    api = home.airflow.api
    api.unpause(DAG_ID)
    api.backfill(DAG_ID, FIRST_DAY, LAST_DAY, conf={}, at_once=DAYS)
    runs = follow(home)
    story: dict[str, list[Row]] = {}
    for day, run in runs.items():
        stored = api.stored(DAG_ID, run["dag_run_id"], "score")
        if "accel_job" not in stored:
            raise RuntimeError(
                f"{day} never came to score. Its prepare said:\n{api.log(DAG_ID, run['dag_run_id'], 'prepare')}"
            )
        story[day] = rows_of(stored["accel_job"])
    show_attempts(story)
    good = [run["dag_run_id"] for run in runs.values() if run["state"] == "success"]
    summaries = [api.xcom(DAG_ID, run_id, "check") for run_id in good]
    if summaries:
        show_predictions(summaries)
    else:
        console.print(failure_in(api.log(DAG_ID, runs[FIRST_DAY]["dag_run_id"], "score")), markup=False)
    return objections(world=world, story=story, summaries=summaries, ledger=home.emulator.ledger())


def failure_in(log: str) -> str:
    """Return what a task failed with: the exception at the end of its log, less Airflow's marks of foldable groups."""
    _, _, failure = log.rpartition("Task failed with exception\n")
    return "\n".join(line for line in failure.splitlines() if not line.startswith("::"))


def follow(home: Home) -> dict[str, dict[str, Any]]:
    """Print each change of a task or a job until all runs have ended; return the runs by day."""
    api, progress = home.airflow.api, Progress()
    while progress.seconds < LONGEST_SECONDS:
        runs = {run["logical_date"][:10]: run for run in api.runs(DAG_ID)}
        progress.tell_jobs(home.emulator.ledger(since=progress.seen))
        for day, run in runs.items():
            progress.tell_tasks(day, api.task_states(DAG_ID, run["dag_run_id"]))
        if len(runs) == DAYS and all(run["state"] in FINAL for run in runs.values()):
            return runs
        time.sleep(1)
    raise TimeoutError(f"The runs did not end within {LONGEST_SECONDS} s.")


if __name__ == "__main__":
    sys.exit(main())
