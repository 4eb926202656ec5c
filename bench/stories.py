"""Where the stories of ``bench/chaos.py`` come from: the simulation, or the emulator with real processes."""

from __future__ import annotations

import asyncio
import logging
import queue
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What the table has of a story."""

    seed: int
    operator: str
    deferrable: bool
    state: str
    jobs: int
    left: int
    """Jobs that a failure left alive and named."""
    minutes: float
    """For how long its jobs had accelerators, by the clock of where it was played."""
    events: Counter[str]
    violations: Sequence[str]


def simulated(seeds: Sequence[int], without: str | None = None) -> Iterator[Row]:
    """Play stories in this process, in simulated time; ``without`` takes a guard out."""
    from tests.chaos import mutants
    from tests.chaos.story import tell

    _quiet()
    for seed in seeds:
        with mutants.without(without) if without else nullcontext():
            told = tell(seed)
        yield Row(
            seed=seed,
            operator=told.operator,
            deferrable=told.deferrable,
            state=told.state,
            jobs=told.jobs,
            left=told.left,
            minutes=told.minutes,
            events=told.events,
            violations=told.violations,
        )


def with_processes(seeds: Sequence[int], jobs: int, without: str | None = None) -> Iterator[Row]:
    """Play stories on so many emulators at a time, and yield them as they end; ``without`` takes a guard out.

    A stage that breaks ends its seeds.
    """
    ended: queue.Queue[Row | None] = queue.Queue()
    shares = [share for number in range(jobs) if (share := seeds[number::jobs])]
    with tempfile.TemporaryDirectory(prefix="chaos-") as directory:
        places = [Path(directory) / str(number) for number in range(len(shares))]
        threads = [
            threading.Thread(target=_play, args=(place, share, without, ended))
            for place, share in zip(places, shares, strict=True)
        ]
        for thread in threads:
            thread.start()
        playing = len(threads)
        while playing:
            if (row := ended.get()) is None:
                playing -= 1
            else:
                yield row
        for thread in threads:
            thread.join()


def _play(directory: Path, seeds: Sequence[int], without: str | None, ended: queue.Queue[Row | None]) -> None:
    from tests.kills.stage import play

    try:
        for told in play(directory, seeds, without):
            ended.put(
                Row(
                    seed=told["seed"],
                    operator=told["kind"],
                    deferrable=told["deferrable"],
                    state=told["state"],
                    jobs=told["jobs"],
                    left=0,
                    minutes=told["held"] / 60,
                    events=Counter(told["events"]),
                    violations=told["violations"],
                )
            )
    finally:
        ended.put(None)


def _quiet() -> None:
    """Keep the logs of the tasks out of the table."""
    import structlog

    logging.disable(logging.CRITICAL)
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    logging.getLogger(asyncio.__name__).setLevel(logging.CRITICAL)
