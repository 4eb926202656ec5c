"""Say what a failure means, and where to try next."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from airflow_accel_provider.cli._lines import STDIN, answer_lines, print_error, print_json, read_requests
from airflow_accel_provider.cli._tables import aligned, show

_EPILOG = """\
  accel classify --message "ZONE_RESOURCE_POOL_EXHAUSTED: ..." --region europe-west4
  gcloud dataflow jobs describe ... | accel classify -

A file holds requests, as does - with --json, one a line:
  {"service": "dataflow", "signals": {"messages": [{"importance": "error", "text": "..."}], "state": "failed"}}
Exit code: 0 answered, 1 a request is wrong, 2 wrong usage."""
_SERVICES = ("dataflow", "dataproc")


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare ``accel classify``."""
    parser = subparsers.add_parser(
        "classify",
        help="say what a failure means and where to try next",
        description=__doc__,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("target", metavar="TARGET", nargs="?", help="a file of requests, or - for stdin")
    parser.add_argument("--message", metavar="TEXT", action="append", help="what the service said; repeatable")
    parser.add_argument("--state", default="failed", help="the job's state (default: failed)")
    parser.add_argument("--service", choices=_SERVICES, default="dataflow", help="default: dataflow")
    parser.add_argument("--region", help="region the job ran in")
    parser.add_argument("--json", action="store_true", help="answer as JSON")
    parser.set_defaults(run=run, wrong=parser.error)


def run(arguments: argparse.Namespace) -> int:
    """Classify what is given and print what it means."""
    if (arguments.target is None) == (arguments.message is None):
        arguments.wrong("give either --message TEXT or a TARGET")
    if arguments.target == STDIN and arguments.json:
        return answer_lines(_answer)
    try:
        answers = [_answer(request) for request in _requests(arguments)]
    except ValueError as wrong:
        return print_error(f"{str(wrong)[:1].upper()}{str(wrong)[1:]}")
    except OSError as wrong:
        arguments.wrong(str(wrong))
    for answer in answers:
        print_json(answer) if arguments.json else show(_told(answer))
    return 0


def _requests(arguments: argparse.Namespace) -> list[Any]:
    if arguments.target not in (None, STDIN):
        return read_requests(arguments.target)
    texts = arguments.message or [sys.stdin.buffer.read().decode("utf-8", "replace")]
    signals = {"messages": [{"text": text} for text in texts], "state": arguments.state, "region": arguments.region}
    return [{"service": arguments.service, "signals": signals}]


def _answer(request: Any) -> dict[str, Any]:
    """Return the answer to a request. Raises :class:`ValueError` naming everything that is wrong with it."""
    from airflow_accel_provider.core.classification import Signals, judge

    return judge(Signals.from_json(request)).to_json()


def _told(answer: dict[str, Any]) -> str:
    shown = {**answer, "hint_zones": ", ".join(answer["hint_zones"])}
    return aligned([(name.replace("_", " "), _in_words(name, value)) for name, value in shown.items() if value])


def _in_words(name: str, value: str) -> str:
    # Anything else may hold names, of quotas and options, that a person will look for as they are.
    return value.replace("_", " ") if name in ("kind", "next") else value
