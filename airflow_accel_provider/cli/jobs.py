"""List what this provider started in a project, and which task each job belongs to."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from airflow_accel_provider.cli._connections import logs_apart, session_of
from airflow_accel_provider.cli._lines import print_error, print_json
from airflow_accel_provider.cli._started import add_listing, age_of, job_json, listed, now, printable, task_of
from airflow_accel_provider.cli._tables import aligned, show

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from airflow_accel_provider.core.ownership import Started

_EPILOG = """\
The connection comes from AIRFLOW_CONN_… in the environment; without one, Google's default credentials are used.
Exit code: 0 all was read, 1 a part could not be read (stderr says which), 2 wrong usage."""
_HEAD = ("STATE", "AGE", "REGION", "JOB", "TASK", "RUN", "TRY", "OWNER")


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare ``accel jobs``."""
    parser = subparsers.add_parser(
        "jobs",
        help="list what this provider started, and whose it is",
        description=__doc__,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--all", action="store_true", help="list jobs that have ended, too")
    add_listing(parser)
    parser.set_defaults(run=run, wrong=parser.error)


def run(arguments: argparse.Namespace) -> int:
    """List the jobs."""
    with logs_apart():
        from airflow_accel_provider.exceptions import AcceleratorConfigurationError

        try:
            session = session_of(arguments)
        except AcceleratorConfigurationError as unusable:
            return print_error(str(unusable))
        found = listed(arguments, session, ended=arguments.all)
    if arguments.json:
        for each in found.started:
            print_json(job_json(each, session.project, now()))
    else:
        show(_told(found.started, session.project, now()))
    return 1 if found.unread else 0


def _told(jobs: Sequence[Started], project: str, at: datetime) -> str:
    if not jobs:
        return f"In project {project} there is no such job."
    return f"In project {project}:\n{aligned([_HEAD, *(_row(each, at) for each in jobs)])}"


def _row(each: Started, at: datetime) -> tuple[str, ...]:
    job, claim = each.job, each.claim
    number = f"{claim.life}.{claim.attempt}"
    cells = (job.state, age_of(each, at), job.region, job.id, task_of(each), claim.run, number, claim.owner)
    return tuple(map(printable, cells))
