"""What all ways of submitting have in common: one protocol, and the values that go in and come out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from airflow_accel_provider.core.failures import Failure
    from airflow_accel_provider.core.jobs import Job
    from airflow_accel_provider.core.placement import Placement
    from airflow_accel_provider.core.problems import Problem
    from airflow_accel_provider.core.request import BeamRequest
    from airflow_accel_provider.hooks.session import GoogleSession


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A place to run in, with its machine type, and the request as it is meant there."""

    request: BeamRequest
    placement: Placement


@dataclass(frozen=True, slots=True, kw_only=True)
class Submitting:
    """One submission: the job's name and labels, and what the one who asks for it does meanwhile.

    ``find`` looks the job up on the server; ``say`` is handed every line that is worth a log; ``hide`` takes secrets
    out of a text; ``stopped`` tells that the job is not wanted any more. ``seconds`` bound the whole.
    """

    job_name: str
    labels: Mapping[str, str]
    find: Callable[[], Job | None]
    say: Callable[[str], None]
    hide: Callable[[str], str]
    stopped: Callable[[], bool]
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """How a submission ended: with a job or with why there is none; one that was stopped or took too long has neither.

    ``last_lines`` are the last that a launcher wrote.
    """

    job: Job | None = None
    failure: Failure | None = None
    last_lines: tuple[str, ...] = ()


class Pipeline(Protocol):
    """A pipeline, and the one way in which it is submitted.

    What is fetched or built is kept, so that every further place costs only its own submission.
    """

    def missing(self, session: GoogleSession, places: Sequence[Place]) -> Sequence[Problem]:
        """Return what cannot be reached from here, or does not fit what is there. Raises :class:`GoogleApiError`."""

    def prepare(self, session: GoogleSession, place: Place) -> None:
        """Fetch and build what a submission there needs; does nothing where the same was needed before.

        Raises :class:`AcceleratorLaunchError` when something cannot be built, :class:`GoogleApiError` when something
        cannot be fetched.
        """

    def submit(self, session: GoogleSession, place: Place, submitting: Submitting) -> Submission:
        """Submit a job in one place, once. Needs :meth:`prepare` to have been called for it.

        Raises :class:`AcceleratorLaunchError` when nobody can tell whether there is a job; it can be found by its name.
        """


def addresses(request: BeamRequest, name: str, places: Sequence[Place]) -> dict[str, list[Place]]:
    """Return the pipeline's addresses, of which each region may have its own, with the places that each is for.

    Where no place is known, because something else is wrong, the address is the request's own if it is whole.
    """
    if not places:
        said = getattr(request, name)
        return {said: []} if isinstance(said, str) and "{" not in said else {}
    found: dict[str, list[Place]] = {}
    for place in places:
        found.setdefault(str(getattr(place.request, name)), []).append(place)
    return found
