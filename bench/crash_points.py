"""Kill each operator, in both modes, at each point of its life on the emulator, and show what its ledger counts.

Run: python bench/crash_points.py [--kinds gpu spark …] [--late] [--jobs J] [--without GUARD]

The life goes from a place that is out of stock to the next. Each of its processes is Airflow's own task runner, or a
trigger; one is killed with SIGKILL at one point, and the task's next try, or next trigger, goes on. It exits 0 only
when every life ended well with as many jobs as one without a crash, one at a time, and none left alive. With ``--late``
nobody comes after the kill until the job that runs is over.
"""

from __future__ import annotations

import argparse
import signal
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import tests.conftest  # noqa: F401 - triggers need not wait for supervisors here
from bench.stories import with_processes
from tests.chaos.mutants import MUTANTS

KINDS = ("gpu", "tpu", "template", "spark")
MODES = ("synchronous", "deferrable")
_DULL = ("compute", "storage")
"""Services that are only read before anything is begun."""
_AGAIN = 4
"""How often a life is played again that did not come to its point."""


def main() -> int:
    """Play a calm life of each kind, then one for each of its points."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS, help="which operators, and ways to launch")
    parser.add_argument("--late", action="store_true", help="let nobody come until the job is over")
    parser.add_argument("--jobs", type=int, default=2, help="how many emulators play at the same time")
    parser.add_argument("--without", choices=sorted(MUTANTS), metavar="GUARD", help="a guard to take out first")
    said = parser.parse_args()
    # An end that is asked for must end the emulators too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    begun = time.monotonic()
    late = " late" if said.late else ""
    lives = [f"{kind}/{mode}{late}" for kind, mode in product(said.kinds, MODES)]
    calm = played(lives, said.jobs, None)
    names = [f"{life}/{step}/{point}" for life in lives for step, point in points_of(calm[life])]
    crashed = dict(played(names, said.jobs, said.without))
    for _ in range(_AGAIN):
        # Some points are passed by the faster alone, such as a cancel of what ends by itself.
        missed = [name for name in names if name in crashed and not is_killed(crashed[name])]
        crashed |= played(missed, said.jobs, said.without)
    wrong = [line for name in names for line in judged(crashed.get(name), calm[life_of(name)])]
    show(lives, {name: crashed[name] for name in names if name in crashed})
    print(*["", *wrong] if wrong else [], sep="\n")
    print(f"\ncrash_points lives={len(names)} wrong={len(wrong)} seconds={time.monotonic() - begun:.0f}")
    return 1 if wrong else 0


def played(names: Sequence[str], jobs: int, without: str | None) -> Mapping[str, dict[str, Any]]:
    """Play lives and return what each was like, by its name."""
    told = {}
    for count, each in enumerate(with_processes(names, jobs, without), 1):
        told[each["name"]] = each
        print(f"\r{count} of {len(names)} lives ", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return told


def points_of(told: Mapping[str, Any]) -> Iterator[tuple[int, str]]:
    """Yield the points at which a crash may make a difference, each with the number of its process.

    What comes after a call and before the next is one point, and so are all looks at a living job but the first two.
    """
    for step, (who, passed) in enumerate(told["points"], 1):
        for point in passed[:-1]:
            what, _, count = point.partition("#")
            is_dull = any(f" {service} " in what for service in _DULL) or (who == "worker" and what.endswith("SetXCom"))
            is_look = what.startswith("before GET")
            if what.startswith("before") and not is_dull and (int(count) <= 2 or not is_look):
                yield step, point
        yield step, passed[-1]


def life_of(name: str) -> str:
    """Return the calm life that a crash is put into."""
    return "/".join(name.split("/", 2)[:2])


def judged(told: Mapping[str, Any] | None, calm: Mapping[str, Any]) -> Iterator[str]:
    """Yield what is wrong with a life; ``told`` is missing where it was not played to its end."""
    if told is None:
        yield "a life was not played"
        return
    for violation in told["violations"]:
        yield f"{told['name']}: {violation}"
    if not told["violations"] and (told["state"], told["jobs"]) != ("success", calm["jobs"]):
        yield f"{told['name']}: {told['state']} with {told['jobs']} jobs, {calm['jobs']} without a crash"
    if not is_killed(told):
        yield f"{told['name']}: it was not killed"


def is_killed(told: Mapping[str, Any]) -> bool:
    """Tell whether a process was killed."""
    return any(event in {"worker killed", "trigger killed"} for event in told["events"])


def show(lives: Sequence[str], crashed: Mapping[str, dict[str, Any]]) -> None:
    """Print a row for each point: the jobs made in each life, and those left alive."""
    rows: dict[tuple[str, str], dict[str, dict[str, Any]]] = {}
    for name, told in crashed.items():
        _, _, step, point = name.split("/", 3)
        rows.setdefault((step, point), {})[life_of(name)] = told
    width = max((len(point) for _, point in rows), default=0) + 6
    heads = [f"{kind} {mode[:5]}." for kind, mode in (life.split("/") for life in lives)]
    print(f"{'killed at; jobs made/left':<{width}}" + "".join(f"{head:>16}" for head in heads))
    for step, point in sorted(rows, key=lambda row: int(row[0])):
        cells = [cell(rows[step, point].get(life)) for life in lives]
        print(f"{f'{step}. {point}':<{width}}" + "".join(f"{each:>16}" for each in cells))


def cell(told: Mapping[str, Any] | None) -> str:
    """Return what the ledger counts: jobs made, jobs left alive; a mark where anything is wrong."""
    if told is None:
        return ""
    left = sum("left alone" in violation for violation in told["violations"])
    return f"{told['jobs']}/{left}" + ("!" if told["violations"] else "")


if __name__ == "__main__":
    sys.exit(main())
