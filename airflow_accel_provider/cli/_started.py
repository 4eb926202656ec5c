"""The jobs that this provider started, for a program and for a person; ``accel jobs`` and ``accel reap`` list alike."""

from __future__ import annotations

import argparse
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from airflow_accel_provider.cli._connections import add_connection
from airflow_accel_provider.cli._deployment import add_overlay, catalog
from airflow_accel_provider.core.console import page_of

if TYPE_CHECKING:
    from airflow_accel_provider.core.jobs import Service
    from airflow_accel_provider.core.ownership import Started
    from airflow_accel_provider.hooks.session import GoogleSession
    from airflow_accel_provider.hooks.started import Listing

SERVICES: tuple[Service, ...] = ("dataflow", "dataproc")


def add_listing(parser: argparse.ArgumentParser) -> None:
    """Declare the flags that say which jobs are looked at."""
    parser.add_argument("--json", action="store_true", help="answer as JSON, one job a line")
    parser.add_argument("--region", action="append", metavar="REGION", help="look there alone; may be given again")
    parser.add_argument("--service", choices=SERVICES, help="look at Dataflow's jobs or at Spark's batches alone")
    add_connection(parser)
    add_overlay(parser)


def listed(arguments: argparse.Namespace, session: GoogleSession, *, ended: bool) -> Listing:
    """Return the jobs that the flags ask for; tell on stderr what could not be read."""
    from airflow_accel_provider.hooks.started import list_started

    found = list_started(
        session,
        services=(arguments.service,) if arguments.service else SERVICES,
        regions=arguments.region,
        spark_regions=tuple(catalog(arguments).regions),
        ended=ended,
    )
    for sentence in found.unread:
        sys.stderr.write(f"Not read: {printable(sentence)}\n")
    return found


def job_json(each: Started, project: str, now: datetime) -> dict[str, Any]:
    """Return a job as JSON; ids of Airflow's stand as the labels hold them."""
    job, claim = each.job, each.claim
    return {
        "service": each.service,
        "job_id": job.id,
        "job_name": job.name,
        "region": job.region,
        "state": str(job.state),
        "created_at": job.created_at.isoformat() if job.created_at else None,
        "age_seconds": round((now - job.created_at).total_seconds()) if job.created_at else None,
        "owner": claim.owner,
        "life": claim.life,
        "attempt": claim.attempt,
        "dag": claim.dag,
        "task": claim.task,
        "run": claim.run,
        "map_index": claim.map_index if claim.map_index >= 0 else None,
        "url": page_of(service=each.service, project=project, region=job.region, job_id=job.id),
    }


def task_of(each: Started) -> str:
    """Return the task instance that a job's labels name, for a person."""
    index = f" [{each.claim.map_index}]" if each.claim.map_index >= 0 else ""
    return f"{each.claim.dag} {each.claim.task}{index}"


def age_of(each: Started, now: datetime) -> str:
    """Return how long ago a job was created, in its largest unit."""
    if each.job.created_at is None:
        return "-"
    seconds = max(round((now - each.job.created_at).total_seconds()), 0)
    units = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))
    size, unit = next((size, unit) for size, unit in units if seconds >= size or size == 1)
    return f"{seconds // size} {unit}"


def printable(text: str) -> str:
    """Return a text that others wrote without what would steer a terminal."""
    return "".join(sign if sign.isprintable() else "\N{REPLACEMENT CHARACTER}" for sign in text)


def now() -> datetime:
    """Return the moment at which jobs are looked at."""
    return datetime.now(UTC)
