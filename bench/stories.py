"""Where the stories of ``bench/chaos.py`` come from: the simulation, or the emulator with real processes."""

from __future__ import annotations

import asyncio
import logging
import queue
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, nullcontext
from pathlib import Path
from typing import Any

from tests.chaos import mutants
from tests.chaos.story import Told, tell
from tests.kills.stage import play


def simulated(seeds: Sequence[int], without: str | None = None) -> Iterator[Told]:
    """Play stories in this process, in simulated time; ``without`` takes a guard out."""
    _quiet()
    for seed in seeds:
        with mutants.without(without) if without else nullcontext():
            told = tell(seed)
        yield told


def on_emulator(seeds: Sequence[int], jobs: int, without: str | None = None) -> Iterator[Told]:
    """Play stories with real processes, on so many emulators at a time; ``without`` takes a guard out."""
    for told in with_processes([str(seed) for seed in seeds], jobs, without):
        yield Told(
            seed=int(told["name"]),
            operator=told["kind"],
            deferrable=told["deferrable"],
            state=told["state"],
            jobs=told["jobs"],
            minutes=told["held"] / 60,
            events=Counter(told["events"]),
            violations=told["violations"],
        )


def with_processes(names: Sequence[str], jobs: int, without: str | None = None) -> Iterator[dict[str, Any]]:
    """Play stories on so many emulators at a time, and yield them as they end; ``without`` takes a guard out.

    A stage that breaks ends its stories. When nobody wants any more, each stage ends with its present story.
    """
    ended: queue.Queue[dict[str, Any] | None] = queue.Queue()
    is_enough = threading.Event()
    shares = [share for number in range(jobs) if (share := names[number::jobs])]
    with tempfile.TemporaryDirectory(prefix="chaos-") as directory:
        stages = [play(Path(directory) / str(number), share, without) for number, share in enumerate(shares)]
        threads = [threading.Thread(target=_play, args=(stage, is_enough, ended)) for stage in stages]
        for thread in threads:
            thread.start()
        playing = len(threads)
        try:
            while playing:
                if (told := ended.get()) is None:
                    playing -= 1
                else:
                    yield told
        finally:
            is_enough.set()
            for thread in threads:
                thread.join()


def _play(
    stage: Generator[dict[str, Any], None, None], is_enough: threading.Event, ended: queue.Queue[dict[str, Any] | None]
) -> None:
    try:
        with closing(stage):
            for told in stage:
                ended.put(told)
                if is_enough.is_set():
                    return
    except RuntimeError as broken:
        print(f"\na stage broke, and its stories end here:\n{broken}", file=sys.stderr)
    finally:
        ended.put(None)


def _quiet() -> None:
    """Keep the logs of the tasks out of the table."""
    import structlog

    logging.disable(logging.CRITICAL)
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    logging.getLogger(asyncio.__name__).setLevel(logging.CRITICAL)
