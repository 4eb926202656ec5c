"""``airflow accel …``: the same commands below Airflow's own. Airflow loads this for each of its commands."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from airflow.cli.cli_config import CLICommand


def commands() -> list[CLICommand]:
    """Return what Airflow's parser gets."""
    from airflow.cli.cli_config import ActionCommand, Arg

    # Flags are ours to read, --help among them, so everything after the word accel is taken as it is.
    everything = Arg(
        ("arguments",), nargs=argparse.REMAINDER, help="what accel takes; see airflow accel COMMAND --help"
    )
    return [
        ActionCommand(
            name="accel",
            help="Accelerators on Google Cloud: check, plan, explain, clean up",
            description="The commands of accel: check, plan, classify, jobs, reap, catalog, dockerfile, emulator.",
            func=run,
            args=(everything,),
        )
    ]


def run(arguments: argparse.Namespace) -> None:
    """Run one of the commands and exit with its code."""
    from airflow_accel_provider.cli import main

    sys.exit(main(arguments.arguments, prog="airflow accel"))
