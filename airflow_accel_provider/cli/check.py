"""Say what is wrong with jobs before anything starts: of requests, or of a folder of DAGs."""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow_accel_provider.cli._deployment import add_deployment, allowed_regions, catalog, today
from airflow_accel_provider.cli._lines import STDIN, answer_lines, print_json, read_requests
from airflow_accel_provider.cli._tables import aligned, problem_rows, show, verdict

if TYPE_CHECKING:
    from collections.abc import Callable

    from airflow_accel_provider.core.checking import Checked

_EPILOG = """\
A request is the keyword arguments of an operator and its name, as JSON:
  {"operator": "BeamGpuPipelineOperator", "placement": "nvidia-l4 in us-central1", "py_file": "score.py", ...}
With --json, - takes one request a line and gives one answer a line.
Exit code: 0 nothing but warnings, 1 errors, 2 wrong usage."""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare ``accel check``."""
    parser = subparsers.add_parser(
        "check",
        help="say what is wrong with requests or DAGs",
        description=__doc__,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "target", metavar="TARGET", help="a file of requests, - for stdin, a DAG file or a folder of DAGs"
    )
    parser.add_argument("--json", action="store_true", help="answer as JSON")
    add_deployment(parser)
    parser.set_defaults(run=run, wrong=parser.error)


def run(arguments: argparse.Namespace) -> int:
    """Check what is asked for and print what was found."""
    target: str = arguments.target
    if target != STDIN and not Path(target).exists():
        arguments.wrong(f"there is no file or folder {target}")
    if Path(target).is_dir() or target.endswith((".py", ".zip")):
        from airflow_accel_provider.cli import _folder

        return _folder.run(arguments)
    check = _checker(arguments)
    if arguments.json and target == STDIN:
        return answer_lines(lambda request: check(request).to_json())
    try:
        requests = read_requests(target)
    except (ValueError, OSError) as wrong:
        arguments.wrong(f"{target}: {wrong}")
    answers = [check(request) for request in requests]
    if arguments.json:
        for answer in answers:
            print_json(answer.to_json())
    else:
        show("\n\n".join(_told(request, answer) for request, answer in zip(requests, answers, strict=True)))
    return 0 if all(answer.is_ok for answer in answers) else 1


def _checker(arguments: argparse.Namespace) -> Callable[[Any], Checked]:
    from airflow_accel_provider.core.checking import check_request

    regions = allowed_regions(arguments)
    return partial(check_request, catalog=catalog(arguments), today=today(), allowed_regions=regions)


def _told(request: Any, answer: Checked) -> str:
    name = request.get("task_id") or request.get("placement") if isinstance(request, dict) else None
    head = f"{name or 'request'}: {verdict(answer.problems)}"
    parts = [head]
    if answer.problems:
        parts.append(aligned(problem_rows(answer.problems), indent="  "))
    if answer.rendered:
        parts.append("\n".join(f"  {flag}" for flag in answer.rendered))
    return "\n".join(parts)
