"""Cancel jobs that this provider started and no live task instance owns. Says what it would do unless told --yes."""

from __future__ import annotations

import argparse
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from airflow_accel_provider.cli._connections import logs_apart, session_of
from airflow_accel_provider.cli._lines import print_error, print_json
from airflow_accel_provider.cli._started import add_listing, age_of, job_json, listed, now, printable, task_of
from airflow_accel_provider.cli._tables import aligned, show
from airflow_accel_provider.core.ownership import VerdictKind, judge

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from airflow_accel_provider.core.ownership import Started, Verdict
    from airflow_accel_provider.hooks.airflow_tasks import AirflowApi
    from airflow_accel_provider.hooks.session import GoogleSession

_BASE_URL = "AIRFLOW__API__BASE_URL"
_TOKEN, _USER, _PASSWORD = "AIRFLOW_API_TOKEN", "AIRFLOW_API_USER", "AIRFLOW_API_PASSWORD"
_EPILOG = f"""\
Airflow's REST API says which tasks are alive: a token in {_TOKEN}, or {_USER} and {_PASSWORD}.
Whatever cannot be read there is left alone. Exit code: 0 nothing is left to do, 1 something is, or something could
not be read, 2 wrong usage."""
_HEAD = ("VERDICT", "AGE", "REGION", "JOB", "TASK", "REASON")


@dataclass(frozen=True, slots=True)
class _Judged:
    """A job and whose it is; ``error`` says why it could not be cancelled, ``is_cancelled`` that it was."""

    started: Started
    verdict: Verdict
    is_cancelled: bool = False
    error: str | None = None

    @property
    def is_orphan(self) -> bool:
        return self.verdict.kind is VerdictKind.ORPHAN

    @property
    def word(self) -> str:
        return "cancelled" if self.is_cancelled else str(self.verdict.kind)


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare ``accel reap``."""
    parser = subparsers.add_parser(
        "reap",
        help="cancel what no live task owns; a dry run unless told --yes",
        description=__doc__,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--yes", action="store_true", help="cancel them")
    parser.add_argument("--airflow-url", metavar="URL", help=f"where Airflow's API is (default: ${_BASE_URL})")
    parser.add_argument(
        "--owner",
        action="append",
        default=[],
        metavar="ID",
        help="an owner, as accel jobs shows it, whose jobs are nobody's where no task here knows them; may be given "
        "again",
    )
    add_listing(parser)
    parser.set_defaults(run=run, wrong=parser.error)


def run(arguments: argparse.Namespace) -> int:
    """Judge every active job, cancel what is nobody's if told so, and say of each what it is and why."""
    api = _airflow(arguments)
    with logs_apart():
        from airflow_accel_provider.exceptions import AcceleratorConfigurationError
        from airflow_accel_provider.hooks.airflow_tasks import known_of

        try:
            session = session_of(arguments)
        except AcceleratorConfigurationError as unusable:
            return print_error(str(unusable))
        # Jobs first: an intent is recorded before its job is made, so that each has a record by the time this is read.
        found = listed(arguments, session, ended=False)
        known = known_of(api, found.started) if found.started else {}
        given_up = frozenset(arguments.owner)
        judged = [_Judged(each, judge(each, known[each.job.id], given_up=given_up)) for each in found.started]
        if arguments.yes:
            judged = [_cancelled(session, each) if each.is_orphan else each for each in judged]
    _tell(arguments, session.project, judged)
    is_well = not found.unread and all(each.is_cancelled or not each.is_orphan for each in judged)
    return 0 if is_well and not any(each.verdict.kind is VerdictKind.UNKNOWN for each in judged) else 1


def _airflow(arguments: argparse.Namespace) -> AirflowApi:
    """Return the Airflow to ask; ends the command when it is not said where it is or how to be let in."""
    url = arguments.airflow_url or os.environ.get(_BASE_URL) or ""
    if urlsplit(url).scheme not in {"http", "https"} or not urlsplit(url).netloc:
        told = f"not {url!r}" if url else f"or export {_BASE_URL}"
        arguments.wrong(f"--airflow-url must be an address such as https://airflow.example.com, {told}")
    token, user, password = (os.environ.get(name) for name in (_TOKEN, _USER, _PASSWORD))
    if not token and not (user and password):
        arguments.wrong(f"export {_TOKEN}, or {_USER} and {_PASSWORD}, so that Airflow can be asked")
    from airflow_accel_provider.hooks.airflow_tasks import AirflowApi, Login

    return AirflowApi(url, Login(token=token or None, user=user, password=password))


def _cancelled(session: GoogleSession, each: _Judged) -> _Judged:
    from airflow_accel_provider.exceptions import GoogleApiError
    from airflow_accel_provider.hooks.dataflow import DataflowHook
    from airflow_accel_provider.hooks.spark import SparkHook

    job = each.started.job
    hook = SparkHook(session) if each.started.service == "dataproc" else DataflowHook(session)
    try:
        hook.cancel(job.id, job.region)
    except GoogleApiError as error:
        return _Judged(each.started, each.verdict, error=str(error))
    return _Judged(each.started, each.verdict, is_cancelled=True)


def _tell(arguments: argparse.Namespace, project: str, judged: Sequence[_Judged]) -> None:
    if arguments.json:
        for each in judged:
            print_json(_json(each, project))
    else:
        show("\n".join(_lines(project, judged)))


def _json(each: _Judged, project: str) -> dict[str, Any]:
    said = {"verdict": str(each.verdict.kind), "reason": each.verdict.reason}
    return {**job_json(each.started, project, now()), **said, "cancelled": each.is_cancelled, "error": each.error}


def _lines(project: str, judged: Sequence[_Judged]) -> Iterator[str]:
    if not judged:
        yield f"In project {project} nothing runs that this provider started."
        return
    yield f"In project {project}:"
    yield aligned([_HEAD, *map(_row, judged)])
    left = [each for each in judged if each.is_orphan and not each.is_cancelled]
    if any(each.error for each in judged):
        yield f"\n{len(left)} could not be cancelled."
    elif left:
        yield f"\nNobody owns {len(left)} of {len(judged)}. Nothing was cancelled; --yes does it."
    owners = {each.started.claim.owner for each in judged if each.verdict.kind is VerdictKind.UNCLAIMED}
    if owners:
        yield "\nWhat no task here knows is left alone. If you know that its run was deleted here, say so:"
        yield from (f"  accel reap --owner {printable(owner)}" for owner in sorted(owners))


def _row(each: _Judged) -> tuple[str, ...]:
    job = each.started.job
    reason = each.error or each.verdict.reason
    cells = (each.word, age_of(each.started, now()), job.region, job.id, task_of(each.started), reason)
    return tuple(map(printable, cells))
