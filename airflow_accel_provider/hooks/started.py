"""Finding what this provider started in a project, wherever it runs, by its labels.

Dataflow lists jobs of all regions at once, but without labels: those whose name has the form of ours are read one by
one, many at a time. Spark lists batches with labels, region by region.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from airflow_accel_provider.core.ownership import Started, may_be_ours, started
from airflow_accel_provider.exceptions import GoogleApiError
from airflow_accel_provider.hooks import _wire
from airflow_accel_provider.hooks._fields import Fields
from airflow_accel_provider.hooks._together import ask_together
from airflow_accel_provider.hooks.dataflow import DataflowHook
from airflow_accel_provider.hooks.spark import SparkHook

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence

    from airflow_accel_provider.core.jobs import Job, Service
    from airflow_accel_provider.hooks.session import GoogleSession

_SECONDS = 60.0
_SECONDS_EACH = 0.5
_DISABLED = frozenset({"SERVICE_DISABLED", "accessNotConfigured"})
_EVERYWHERE = "all regions"


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """What was found, the newest last, and a sentence for each part that could not be read."""

    started: tuple[Started, ...] = ()
    unread: tuple[str, ...] = ()

    def __add__(self, other: Listing) -> Listing:
        return Listing(started=self.started + other.started, unread=self.unread + other.unread)


def list_started(
    session: GoogleSession,
    *,
    services: Iterable[Service],
    regions: Sequence[str] | None,
    spark_regions: Sequence[str],
    ended: bool,
) -> Listing:
    """Return what this provider started in a project and has not ended yet, with ``ended`` all that is still known.

    ``regions`` narrows it down; without, Spark is asked in ``spark_regions``, since it cannot tell of all at once. A
    service that is not enabled in the project runs nothing. Nothing is raised.
    """
    found = Listing()
    if "dataflow" in services:
        found += _on_dataflow(session, regions, ended=ended)
    if "dataproc" in services:
        found += _on_spark(session, regions or spark_regions, ended=ended)
    return Listing(started=tuple(sorted(found.started, key=_age)), unread=found.unread)


def _on_dataflow(session: GoogleSession, regions: Sequence[str] | None, *, ended: bool) -> Listing:
    listings = {region: partial(_summaries, session, region, ended=ended) for region in regions or (None,)}
    summaries, unread = _asked(listings, "Dataflow jobs of {}")
    missing = [f"Dataflow did not answer for {where}." for _, failed in summaries.values() for where in failed]
    ours = [job for jobs, _ in summaries.values() for job in jobs if may_be_ours(job.name)]
    hook = DataflowHook(session)
    whole, more = _asked({job.id: partial(hook.get, job.id, job.region) for job in ours}, "Dataflow job {}")
    return Listing(started=tuple(_ours(whole.values(), "dataflow")), unread=(*unread, *missing, *more))


def _summaries(session: GoogleSession, region: str | None, *, ended: bool) -> tuple[list[Job], list[str]]:
    """Return the summaries of a region's jobs, or of all regions', and the regions that did not answer."""
    params = {"filter": "ALL" if ended else "ACTIVE", "pageSize": 1000}
    place = f"locations/{region}/jobs" if region else "jobs:aggregated"
    jobs: list[Job] = []
    failed: list[str] = []
    for page in session.pages("dataflow", f"projects/{session.project}/{place}", params=params):
        jobs += _wire.jobs_from_json(page, region or "")
        locations = Fields(page, "dataflow", "jobs").objects("failedLocation")
        failed += [_wire.last_segment(each.text("name")) for each in locations]
    return jobs, failed


def _on_spark(session: GoogleSession, regions: Sequence[str], *, ended: bool) -> Listing:
    hook = SparkHook(session)
    read = hook.list_all if ended else hook.list_active
    batches, unread = _asked({region: partial(read, region) for region in regions}, "Spark batches of {}")
    jobs = [batch.job for each in batches.values() for batch in each]
    return Listing(started=tuple(_ours(jobs, "dataproc")), unread=tuple(unread))


def _ours(jobs: Iterable[Job | None], service: Service) -> Iterator[Started]:
    return (ours for job in jobs if job and (ours := started(job, service)))


def _asked(calls: Mapping[Any, Callable[[], Any]], what: str) -> tuple[dict[Any, Any], list[str]]:
    """Return the answers of calls made at once, by their keys, and what is to be told of those that failed."""
    limit = _SECONDS + _SECONDS_EACH * len(calls)
    answers = ask_together({key: partial(_or_error, call) for key, call in calls.items()}, seconds=limit)
    unread = [f"{what.format(_where(key))}: no answer in {limit:.0f} seconds" for key in calls if key not in answers]
    errors = {key: each for key, each in answers.items() if isinstance(each, GoogleApiError)}
    unread += [f"{what.format(_where(key))}: {each}" for key, each in errors.items() if each.reason not in _DISABLED]
    return {key: each for key, each in answers.items() if key not in errors}, unread


def _or_error(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except GoogleApiError as error:
        return error


def _where(key: Hashable) -> str:
    return _EVERYWHERE if key is None else str(key)


def _age(each: Started) -> float:
    return each.job.created_at.timestamp() if each.job.created_at else 0.0
