"""Play many stories of crashes, clears and faults, and show what they did to jobs.

Run: python bench/chaos.py [--seeds N] [--first-seed S]

It exits 0 only when no story broke a promise; each that did is printed with the command that plays it again.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import sys
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import tests.conftest  # noqa: F401 - triggers need not wait for supervisors here
from tests.chaos.story import Told, tell

HEADER = f"{'operator':<10}{'mode':<13}{'seeds':>6}{'crashes':>9}{'clears':>8}{'jobs':>7}{'left':>6}{'violations':>12}"


def main() -> int:
    """Play the stories and return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seeds", type=int, default=500, help="how many stories")
    parser.add_argument("--first-seed", type=int, default=0, help="seed of the first")
    said = parser.parse_args()
    quiet()
    begun = time.monotonic()
    stories = [told_of(seed) for seed in range(said.first_seed, said.first_seed + said.seeds)]
    print(HEADER)
    for key in sorted({(told.operator, told.deferrable) for told in stories}):
        row(*key, [told for told in stories if (told.operator, told.deferrable) == key])
    events = sum((told.events for told in stories), Counter[str]())
    print("\n" + "\n".join(f"{count:>7}  {event}" for event, count in events.most_common()))
    broken = sum(bool(told.violations) for told in stories)
    outcomes = Counter(told.state for told in stories)
    print(
        f"\nchaos seeds={len(stories)} broken={broken} jobs={sum(told.jobs for told in stories)} "
        f"success={outcomes['success']} failed={outcomes['failed']} seconds={time.monotonic() - begun:.0f}"
    )
    return 1 if broken else 0


def quiet() -> None:
    """Keep the logs of the tasks out of the table."""
    import structlog

    logging.disable(logging.CRITICAL)
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    logging.getLogger(asyncio.__name__).setLevel(logging.CRITICAL)


def told_of(seed: int) -> Told:
    """Play one story and print what it broke."""
    told = tell(seed)
    for violation in told.violations:
        print(f"seed {seed}: {violation}\n  python bench/chaos.py --first-seed {seed} --seeds 1", flush=True)
    return told


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
