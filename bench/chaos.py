"""Play many stories of crashes, clears and faults, and show what they did to jobs.

Run: python bench/chaos.py [--seeds N] [--first-seed S] [--on emulator [--jobs J]] [--without GUARD]

By default Google and Airflow are simulated, with a clock of their own. On the emulator the steps of each task are real
processes, in Airflow's own task runner, that are killed at numbered points; its first twenty seeds launch with Beam.

With ``--without`` one of the product's guards is taken out first, to see that the stories notice.

It exits 0 only when no story broke a promise; each that did is printed with the command that plays it again.
"""

from __future__ import annotations

import argparse
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import tests.conftest  # noqa: F401 - triggers need not wait for supervisors here
from bench.stories import on_emulator, simulated
from tests.chaos.mutants import MUTANTS
from tests.chaos.story import Told

HEADER = f"{'operator':<10}{'mode':<13}{'seeds':>6}{'crashes':>9}{'clears':>8}{'jobs':>7}{'left':>6}{'violations':>12}"


def main() -> int:
    """Play the stories and return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seeds", type=int, default=500, help="how many stories")
    parser.add_argument("--first-seed", type=int, default=0, help="seed of the first")
    parser.add_argument("--on", choices=["simulation", "emulator"], default="simulation", help="where they are played")
    parser.add_argument("--jobs", type=int, default=2, help="how many emulators play at the same time")
    parser.add_argument("--without", choices=sorted(MUTANTS), metavar="GUARD", help=", ".join(sorted(MUTANTS)))
    said = parser.parse_args()
    # An end that is asked for must end the emulators too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    begun = time.monotonic()
    seeds = range(said.first_seed, said.first_seed + said.seeds)
    has_processes = said.on == "emulator"
    playing = on_emulator(seeds, said.jobs, said.without) if has_processes else simulated(seeds, said.without)
    stories = list(shown(playing, said.on, said.without))
    if has_processes:
        print(file=sys.stderr)
    print(HEADER)
    for key in sorted({(told.operator, told.deferrable) for told in stories}):
        row(*key, [told for told in stories if (told.operator, told.deferrable) == key])
    events = sum((told.events for told in stories), Counter[str]())
    print("\n" + "\n".join(f"{count:>7}  {event}" for event, count in events.most_common()))
    broken = sum(bool(told.violations) for told in stories)
    outcomes = Counter(told.state for told in stories)
    print(
        f"\nchaos on={said.on} seeds={len(stories)} broken={broken} jobs={sum(told.jobs for told in stories)} "
        f"success={outcomes['success']} failed={outcomes['failed']} "
        f"accelerator_minutes={sum(told.minutes for told in stories):.0f} seconds={time.monotonic() - begun:.0f}"
    )
    return 1 if broken or len(stories) < said.seeds else 0


def shown(stories: Iterator[Told], where: str, without: str | None) -> Iterator[Told]:
    """Yield the stories; print what each broke, and on the emulator how far they are."""
    again = ("" if where == "simulation" else f" --on {where}") + (f" --without {without}" if without else "")
    for count, told in enumerate(stories, 1):
        for violation in told.violations:
            print(
                f"seed {told.seed}: {violation}\n  python bench/chaos.py --first-seed {told.seed} --seeds 1{again}",
                flush=True,
            )
        if where == "emulator":
            print(f"\r{count} stories, the last was seed {told.seed} ", end="", file=sys.stderr, flush=True)
        yield told


def row(operator: str, deferrable: bool, stories: list[Told]) -> None:
    """Print one line of the table."""
    events = sum((told.events for told in stories), Counter[str]())
    crashes = sum(count for event, count in events.items() if "killed" in event or "signalled" in event)
    clears = sum(count for event, count in events.items() if "clear" in event)
    mode = "deferrable" if deferrable else "synchronous"
    print(
        f"{operator:<10}{mode:<13}{len(stories):>6}{crashes:>9}{clears:>8}{sum(told.jobs for told in stories):>7}"
        f"{sum(told.left for told in stories):>6}{sum(len(told.violations) for told in stories):>12}"
    )


if __name__ == "__main__":
    sys.exit(main())
