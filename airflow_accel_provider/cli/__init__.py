"""The command ``accel``: one module a command, none of which needs Airflow to be installed or set up.

Every command exits 0 when all is well, 1 when a problem was found, 2 on wrong usage.
"""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from airflow_accel_provider.cli import emulator

if TYPE_CHECKING:
    from collections.abc import Sequence

COMMANDS = (emulator,)
"""The modules of the commands. Each has ``NAME``, ``HELP``, ``add_arguments(parser)`` and ``run(arguments) -> int``."""


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of all commands."""
    parser = argparse.ArgumentParser(prog="accel", description="Accelerators on Google Cloud for Apache Airflow.")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    for command in COMMANDS:
        sub = commands.add_parser(command.NAME, help=command.HELP, description=command.__doc__)
        command.add_arguments(sub)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    arguments = build_parser().parse_args(argv)
    try:
        code: int = arguments.run(arguments)
    except BrokenPipeError:
        # Whoever read the output has seen enough.
        sys.stderr.close()
        return 0
    return code
