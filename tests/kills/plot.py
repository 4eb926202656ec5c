"""What a story has in store for a task: its kind, its world, what goes wrong at Google, and what happens to it.

A story is named by a seed, from which all is drawn, or by the one crash of a calm life that goes from one place to
the next: ``gpu/deferrable/2/before PUT dataflow job#1`` kills the second process of that life where it passes that
point for the first time; ``gpu/deferrable late/2/…`` lets nobody come after that until its job is over. Without step
and point nothing happens.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Self

REAL_SEEDS = 20
"""So many first seeds have Beam itself as their launcher; and those are all about pipelines."""
KINDS = ("gpu", "gpu", "tpu", "tpu", "template", "template", "spark")
WORLDS = ("plenty", "plenty", "us-central1-stockout", "gpu-missing", "nowhere")
HOPELESS = frozenset({"gpu-missing", "nowhere"})
"""Where a task may fail though nobody did it any harm."""

UNHEARD = "cleared unheard"
"""Cleared while there is no triggerer: nobody ends the job but the next try."""
OF_WORKER = ("killed", "killed", "killed", "stopped", "cleared", "marked failed")
OF_TRIGGER = ("killed", "killed", "moved", "cleared", UNHEARD, UNHEARD, "marked failed", "marked success")
_POINTS = {"worker": 30, "trigger": 12}

_DATAFLOW, _DATAPROC = "dataflow.projects.locations", "dataproc.projects"
_OF_ALL: Sequence[tuple[str, dict[str, Any]]] = (
    ("oauth2.token", {"status": 503}),
    ("compute.regions.get", {"status": 403}),
    ("compute.instances.aggregatedList", {"status": 503}),
)
_OF_DATAFLOW: Sequence[tuple[str, dict[str, Any]]] = (
    (f"{_DATAFLOW}.jobs.get", {"status": 503}),
    (f"{_DATAFLOW}.jobs.get", {"reset": "before"}),
    (f"{_DATAFLOW}.jobs.get", {"truncate": True}),
    (f"{_DATAFLOW}.jobs.list", {"status": 502, "html": "<html>Bad Gateway</html>"}),
    (f"{_DATAFLOW}.jobs.messages.list", {"status": 403}),
    (f"{_DATAFLOW}.jobs.update", {"status": 503}),
    (f"{_DATAFLOW}.jobs.update", {"reset": "after"}),
)
_OF_KINDS: dict[str, Sequence[tuple[str, dict[str, Any]]]] = {
    "launched": (
        *_OF_DATAFLOW,
        (f"{_DATAFLOW}.jobs.create", {"reset": "after"}),
        (f"{_DATAFLOW}.jobs.create", {"status": 503}),
        ("storage.objects.insert", {"status": 503}),
    ),
    "template": (
        *_OF_DATAFLOW,
        (f"{_DATAFLOW}.templates.launch", {"reset": "after"}),
        (f"{_DATAFLOW}.templates.launch", {"truncate": True}),
        (f"{_DATAFLOW}.templates.launch", {"status": 503}),
    ),
    "spark": (
        (f"{_DATAPROC}.locations.batches.create", {"reset": "after"}),
        (f"{_DATAPROC}.locations.batches.create", {"status": 503}),
        (f"{_DATAPROC}.locations.batches.get", {"status": 503}),
        (f"{_DATAPROC}.regions.operations.cancel", {"reset": "after"}),
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Plot:
    """The choices of one seed; the instants at which they take effect are those of real processes."""

    name: str
    kind: str
    deferrable: bool
    world: str
    faults: Sequence[tuple[str, int, dict[str, Any]]]
    troubles: int
    """How often something happens to the task."""
    pause: float
    """For how many seconds a light launcher hangs before it makes its job."""
    has_namesake: bool
    """Whether a second Airflow runs a task of the same ids, with a job of its own."""
    is_cleared: bool
    """Whether the task is cleared once more when it is over."""
    aim: str
    """Whom most of it happens to: a worker or a trigger."""
    has_real_launcher: bool = False
    """Whether Beam itself launches."""
    crash: tuple[int, str] | None = None
    """The step of a calm life that is killed, and the point of it."""
    is_calm: bool = False
    is_late: bool = False
    """Whether after the crash of a calm life nobody comes until its job is over."""
    absence: random.Random = field(repr=False, compare=False)
    """What tells whether nobody looks after the task for a while when a process of it was killed."""
    luck: random.Random = field(repr=False, compare=False)

    @classmethod
    def of(cls, name: str) -> Self:
        """Return what the name of a story says."""
        return cls._drawn(int(name)) if name.isdecimal() else cls._calm(name)

    @classmethod
    def _calm(cls, name: str) -> Self:
        kind, mode, *crash = name.split("/", 3)
        luck = random.Random(name)  # noqa: S311 - the same each time is what it is for
        return cls(
            name=name,
            kind=kind,
            deferrable=mode.startswith("deferrable"),
            is_late=mode.endswith(" late"),
            world="us-central1-stockout",
            faults=(),
            troubles=len(crash) // 2,
            pause=0.6,
            has_namesake=False,
            is_cleared=False,
            aim="",
            crash=(int(crash[0]), crash[1]) if crash else None,
            is_calm=True,
            absence=luck,
            luck=luck,
        )

    @classmethod
    def _drawn(cls, seed: int) -> Self:
        luck = random.Random(seed)  # noqa: S311 - the same each time is what it is for
        kind = luck.choice(KINDS[:4] if seed < REAL_SEEDS else KINDS)
        wrong = [*_OF_ALL, *_OF_KINDS[kind if kind in _OF_KINDS else "launched"]]
        return cls(
            name=str(seed),
            kind=kind,
            deferrable=luck.random() < 0.6,
            world=luck.choice(WORLDS),
            faults=[
                (method, luck.choice([1, 1, 2]), action)
                for method, action in luck.sample(wrong, luck.choice([0, 0, 1, 2]))
            ],
            troubles=luck.choice([0, 1, 1, 2, 2, 3]),
            pause=luck.choice([0.0, 0.0, 0.6]),
            has_namesake=luck.random() < 0.3,
            is_cleared=luck.random() < 0.2,
            aim=luck.choice(["worker", "trigger"]),
            has_real_launcher=seed < REAL_SEEDS,
            absence=random.Random(-1 - seed),  # noqa: S311 - likewise
            luck=luck,
        )

    @property
    def retries(self) -> int:
        """How often the task is tried again: at least as often as it is harmed."""
        return max(self.troubles, 1) if self.world in HOPELESS else 6

    def trouble(self, who: str, step: int) -> tuple[str, int | str] | None:
        """Return what happens in the next step, which is one of a worker or a trigger, and at which of its points."""
        if self.is_calm:
            return ("killed", self.crash[1]) if self.crash and self.crash[0] == step else None
        is_aimed_at = not self.deferrable or who == self.aim
        if self.luck.random() < (0.25 if is_aimed_at else 0.8):
            return None
        what = self.luck.choice(OF_WORKER if who == "worker" else OF_TRIGGER)
        return what, self.luck.randrange(_POINTS[who])
