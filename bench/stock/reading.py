"""Whose jobs are in the ledger, and how many of them lived at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bench.stock.subjects import subject_in

if TYPE_CHECKING:
    from collections.abc import Iterable

    from demo.jobs import Job


def subject_of(job: Job) -> str:
    """Return the key of the subject whose job it is, nothing if it is nobody's here."""
    return subject_in(f"{job.name} {job.labels}") or ""


def most_at_once(jobs: Iterable[Job]) -> int:
    """Return how many jobs lived at the same moment."""
    # Where one ends at the moment in which another begins, they did not live together.
    moments = sorted([(job.made, 1) for job in jobs] + [(job.ended, -1) for job in jobs if job.ended is not None])
    most = alive = 0
    for _, step in moments:
        alive += step
        most = max(most, alive)
    return most
