"""The command ``accel``: one module a command, none of which needs Airflow to be set up.

Every command exits 0 when all is well, 1 when a problem was found, 2 on wrong usage. A module of a command has
``add_parser(subparsers)``, which sets the defaults ``run`` and ``wrong`` (the error of its parser), and
``run(arguments) -> int``; what is heavy is imported when it runs.
"""

from __future__ import annotations

import argparse
import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType


def commands() -> tuple[ModuleType, ...]:
    """Return the modules of all commands. Airflow loads this package for each of its own, so they wait until here."""
    from airflow_accel_provider.cli import catalog, check, classify, dockerfile, emulator, jobs, plan, reap

    return (check, plan, classify, jobs, reap, catalog, dockerfile, emulator)


def build_parser(prog: str = "accel") -> argparse.ArgumentParser:
    """Return the parser of all commands."""
    parser = argparse.ArgumentParser(prog=prog, description="Accelerators on Google Cloud for Apache Airflow.")
    subparsers = parser.add_subparsers(metavar="COMMAND", required=True)
    for command in commands():
        command.add_parser(subparsers)
    return parser


def main(argv: Sequence[str] | None = None, *, prog: str = "accel") -> int:
    """Run one command and return its exit code."""
    try:
        arguments, unknown = build_parser(prog).parse_known_args(argv)
        if unknown:
            # Told by the command's own parser, so that its usage is shown and not that of all commands.
            arguments.wrong(f"unrecognized arguments: {' '.join(unknown)}")
        code: int = arguments.run(arguments)
    except SystemExit as stop:
        # argparse has said what is wrong, or what was asked for.
        return stop.code if isinstance(stop.code, int) else 0
    except BrokenPipeError:
        # Whoever read the output has seen enough; what Python still holds for them goes nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        return 130
    return code
