"""Put the stock operators and this provider's through the same crashes, clears and faults, and count what is lost.

Run: python bench/losses.py [--only SUBJECT ...] [--scenario WORD ...] [--json FILE]

One real Airflow, one emulator. Jobs are counted from the emulator's ledger, outcomes are Airflow's. Rows are merged
into the file, so that scenarios can be run in parts; the sums are those of all rows that it holds then. It exits 0 only
if this provider's operators never had two jobs at once and left none alone, but for a task that is marked failed before
a triggerer has heard of it: there each job that is left must be one that `accel reap` finds.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench.stock.scenarios import SCENARIOS, Row, run
from bench.stock.subjects import SUBJECTS
from bench.stock.world import running
from demo.home import STATE, raise_on_termination

FORM = "{:<60}{:>8}{:>9}{:>10}{:>11}{:>7}  {:<9}{:>8}"
SUMS = "{:<38}{:<7}{:>6}{:>9}{:>10}{:>9}{:>7}{:>11}"


def main() -> int:
    """Play the scenarios, print the tables, return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    keys = [subject.key for subject in SUBJECTS]
    parser.add_argument("--only", nargs="+", choices=keys, default=keys, metavar="SUBJECT", help=", ".join(keys))
    parser.add_argument("--scenario", nargs="+", default=[""], help="words that the names of the scenarios hold")
    parser.add_argument("--json", type=Path, help="a file into which all rows are merged")
    said = parser.parse_args()
    raise_on_termination()
    begun = time.monotonic()

    def say(text: str) -> None:
        print(f"{time.monotonic() - begun:5.0f} s  {text}", file=sys.stderr, flush=True)

    rows = read(said.json)
    say("starting a local Google and an Airflow")
    with running(STATE / "losses") as world:
        for scenario in SCENARIOS:
            if any(word in scenario.name for word in said.scenario):
                say(scenario.name)
                subjects = [subject for subject in SUBJECTS if subject.key in said.only]
                found = run(world, scenario, subjects, say)
                show(scenario.name, found)
                rows |= {(row.scenario, row.subject): row for row in found}
                if said.json:
                    said.json.write_text(json.dumps([row.as_json() for row in rows.values()], indent=1) + "\n")
    for line in summary(list(rows.values())):
        print(line)
    print(f"seconds {time.monotonic() - begun:.0f}")
    bad = [f"{row.subject}, {row.scenario}" for row in rows.values() if row.ours and not row.is_clean]
    print("ours, not as it must be: " + "; ".join(bad) if bad else "ours: all as it must be")
    unmeasured = [f"{row.subject}, {row.scenario}" for row in rows.values() if not row.created]
    print("no job was ever made by: " + "; ".join(unmeasured) if unmeasured else "each made a job")
    return 0 if rows and not unmeasured and not bad else 1


def read(file: Path | None) -> dict[tuple[str, str], Row]:
    """Return the rows that a file holds already."""
    known = json.loads(file.read_text()) if file and file.exists() else []
    return {(row.scenario, row.subject): row for row in (Row(**each) for each in known)}


def show(name: str, rows: list[Row]) -> None:
    """Print the table of one scenario."""
    print("\n" + FORM.format(name, "created", "at once", "orphaned", "cancelled", "reaped", "outcome", "seconds"))
    for row in rows:
        seconds = "never" if row.seconds is None else f"{row.seconds:.0f}"
        reaped = "" if row.reaped is None else row.reaped
        figures = (row.created, row.most_at_once, row.orphaned, row.cancelled, reaped)
        print(FORM.format(row.operator, *figures, row.outcome, seconds), flush=True)


def summary(rows: list[Row]) -> list[str]:
    """Return the sums of either side, for each scenario and for all."""
    lines = ["", SUMS.format("", "", "tasks", "created", "orphaned", "doubled", "reaped", "succeeded")]
    names = list(dict.fromkeys(row.scenario for row in rows))
    for name in (*names, "all"):
        for side in ("stock", "ours"):
            of = [row for row in rows if row.ours == (side == "ours") and name in (row.scenario, "all")]
            lines.append(SUMS.format(name, side, *figures_of(of)))
    return lines


def figures_of(rows: list[Row]) -> tuple[int, ...]:
    """Return the tasks, the jobs made and orphaned, the tasks with two at once, the jobs to reap, and the successes."""
    made, orphaned = sum(row.created for row in rows), sum(row.orphaned for row in rows)
    doubled, reaped = sum(row.most_at_once > 1 for row in rows), sum(row.reaped or 0 for row in rows)
    return len(rows), made, orphaned, doubled, reaped, sum(row.outcome == "success" for row in rows)


if __name__ == "__main__":
    sys.exit(main())
