"""Say where jobs would be tried, over the quotas as they are now. Starts nothing."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from airflow_accel_provider.cli._connections import logs_apart
from airflow_accel_provider.cli._deployment import add_deployment, allowed_regions, catalog, today
from airflow_accel_provider.cli._lines import STDIN, answer_lines, print_error, print_json, read_requests
from airflow_accel_provider.cli._tables import aligned, problem_rows, show

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from airflow_accel_provider.cli._planned import Planned
    from airflow_accel_provider.core.record import PlannedPlace

_EPILOG = """\
A request is what accel check takes. The connection comes from AIRFLOW_CONN_… in the environment; without one,
Google's default credentials are used.
With --json, - takes one request a line and gives one answer a line.
Exit code: 0 every request has a place, 1 one has none or is wrong, 2 wrong usage."""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare ``accel plan``."""
    parser = subparsers.add_parser(
        "plan",
        help="say where a job would be tried, over live quotas",
        description=__doc__,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("target", metavar="TARGET", help="a file of requests, or - for stdin")
    parser.add_argument("--json", action="store_true", help="answer as JSON")
    parser.add_argument("--conn-id", help="an Airflow connection in the environment (default: the request's own)")
    parser.add_argument("--project", help="project whose quotas are read (default: the request's, the connection's)")
    parser.add_argument("--endpoint-url", metavar="URL", help="where Google is, for a local one")
    add_deployment(parser)
    parser.set_defaults(run=run, wrong=parser.error)


def run(arguments: argparse.Namespace) -> int:
    """Plan what is asked for and print the plans."""
    with logs_apart():
        # What it needs of Airflow takes seconds to import.
        from airflow_accel_provider.cli._planned import Planner
        from airflow_accel_provider.exceptions import AcceleratorConfigurationError

    planner = Planner(
        conn_id=arguments.conn_id,
        project=arguments.project,
        endpoint_url=arguments.endpoint_url,
        allowed_regions=allowed_regions(arguments),
        catalog=catalog(arguments),
        today=today(),
    )
    if arguments.json and arguments.target == STDIN:
        return answer_lines(logs_apart()(planner.answer))
    try:
        requests = read_requests(arguments.target)
    except (ValueError, OSError) as wrong:
        arguments.wrong(f"{arguments.target}: {wrong}")
    try:
        with logs_apart():
            answers = [planner.plan(request) for request in requests]
    except AcceleratorConfigurationError as unusable:
        return print_error(str(unusable))
    for answer in answers:
        print_json(answer.to_json()) if arguments.json else show(_told(answer))
    return 0 if all(answer.is_ok for answer in answers) else 1


def _told(answer: Planned) -> str:
    from airflow_accel_provider.core.report import plan_table

    parts: list[Any] = []
    if answer.problems:
        parts.append(aligned(problem_rows(answer.problems), indent="  "))
    if answer.places:
        parts += [f"In project {answer.project}:", plan_table(answer.places), *_advice(answer.places)]
    return "\n".join(parts)


def _advice(places: Sequence[PlannedPlace]) -> Iterator[str]:
    """Yield what a person can do about places that were put aside, each thing once."""
    shortages = {place.rejected.advice: n for n, place in reversed([*enumerate(places, 1)]) if place.rejected}
    yield from (f"For place {n}: {advice}." for advice, n in reversed(shortages.items()) if advice)
