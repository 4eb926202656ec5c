"""``make demo``: a real Airflow scores three days of digits in a local Google that makes it look for an accelerator."""

from __future__ import annotations

import argparse
import sys
import time
from typing import TYPE_CHECKING, Any

from demo.batches import as_jobs
from demo.examples import EXAMPLES
from demo.home import STATE, raise_on_termination, running
from demo.judge import objections
from demo.progress import Progress
from demo.show import console, show_attempts, show_results
from demo.story import Row, rows_of

if TYPE_CHECKING:
    from demo.examples import Example
    from demo.home import Home

FIRST_DAY, LAST_DAY, DAYS = "2026-03-02", "2026-03-04", 3
FINAL = ("success", "failed")
LONGEST_SECONDS = 600


def main() -> int:
    """Run the demo; return 0 if all came as the world has it, 1 if not, 130 if it was stopped."""
    parser = argparse.ArgumentParser(prog="python -m demo.run", description=__doc__)
    parser.add_argument("--job", choices=EXAMPLES, default="gpu", help="which example")
    parser.add_argument("--world", default="", help="what is in stock and within quota; the example's usual one")
    arguments = parser.parse_args()
    example = EXAMPLES[arguments.job]
    world = arguments.world or example.usual_world
    if world not in example.worlds:
        parser.error(f"--world: {world!r} is not one of {', '.join(example.worlds)}, which {arguments.job} is shown in")
    raise_on_termination()
    try:
        console.print(f"[b]{example.dag_id}[/]: {example.about}.")
        console.print(f"Starting a local Google in the world [b]{world}[/], and an Airflow; about 20 seconds.")
        with running(STATE / "demo", world=world) as home:
            found = demonstrate(home, example, world)
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


def demonstrate(home: Home, example: Example, world: str) -> list[str]:
    """Backfill the days, show what happens and what came of it; return what is not as it should be."""
    api, dag_id = home.airflow.api, example.dag_id
    api.unpause(dag_id)
    api.backfill(dag_id, FIRST_DAY, LAST_DAY, conf={}, at_once=DAYS)
    runs = follow(home, dag_id)
    story: dict[str, list[Row]] = {}
    for day, run in runs.items():
        stored = api.stored(dag_id, run["dag_run_id"], example.task)
        if "accel_job" not in stored:
            said = api.log(dag_id, run["dag_run_id"], "prepare")
            raise RuntimeError(f"{day} never came to {example.task}. Its prepare said:\n{said}")
        story[day] = rows_of(stored["accel_job"])
    show_attempts(story)
    good = [run["dag_run_id"] for run in runs.values() if run["state"] == "success"]
    summaries = [api.xcom(dag_id, run_id, "check") for run_id in good]
    if summaries:
        show_results(example, summaries)
    else:
        console.print(failure_in(api.log(dag_id, runs[FIRST_DAY]["dag_run_id"], example.task)), markup=False)
    return objections(example, world=world, story=story, summaries=summaries, ledger=as_jobs(home.emulator.ledger()))


def failure_in(log: str) -> str:
    """Return what a task failed with: the exception at the end of its log, less Airflow's marks of foldable groups."""
    _, _, failure = log.rpartition("Task failed with exception\n")
    return "\n".join(line for line in failure.splitlines() if not line.startswith("::"))


def follow(home: Home, dag_id: str) -> dict[str, dict[str, Any]]:
    """Print each change of a task or a job until all runs have ended; return the runs by day."""
    api, progress = home.airflow.api, Progress()
    while progress.seconds < LONGEST_SECONDS:
        runs = {run["logical_date"][:10]: run for run in api.runs(dag_id)}
        progress.tell_jobs(as_jobs(home.emulator.ledger(since=progress.seen)))
        for day, run in runs.items():
            progress.tell_tasks(day, api.task_states(dag_id, run["dag_run_id"]))
        if len(runs) == DAYS and all(run["state"] in FINAL for run in runs.values()):
            return runs
        time.sleep(1)
    raise TimeoutError(f"The runs did not end within {LONGEST_SECONDS} s.")


if __name__ == "__main__":
    sys.exit(main())
