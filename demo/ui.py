"""``make ui``: the demo's Airflow and local Google, left running to be looked at."""

from __future__ import annotations

import argparse
import signal
import sys

from demo.examples import EXAMPLES
from demo.home import STATE, raise_on_termination, running
from demo.show import console
from demo.stack import USER


def main() -> int:
    """Start both, say where they are, and wait for Ctrl-C."""
    parser = argparse.ArgumentParser(prog="python -m demo.ui", description=__doc__)
    worlds = sorted({world for example in EXAMPLES.values() for world in example.worlds})
    parser.add_argument("--world", choices=["", *worlds], default="", metavar="WORLD", help=", ".join(worlds))
    world = parser.parse_args().world or EXAMPLES["gpu"].usual_world
    raise_on_termination()
    try:
        console.print("Starting a local Google and an Airflow; about 20 seconds.")
        with running(STATE / "ui", world=world) as home:
            admin = f"{home.emulator.url}/_emulator/world"
            console.print(f"Airflow   {home.airflow.url}   user {USER}, password {home.airflow.password}")
            console.print(f"Google    {home.emulator.url}, in the world {world}")
            console.print("\nBackfill a DAG from 2026-03-02 to 2026-03-04: its page, Trigger, Backfill.")
            for example in EXAMPLES.values():
                console.print(f"  {example.dag_id:<20} {example.about}")
            console.print(f'Another world: curl -X PUT -d \'{{"name": "plenty"}}\' {admin}', soft_wrap=True)
            console.print(f"Worlds: {', '.join(worlds)}.\nCtrl-C stops both.")
            signal.pause()
    except KeyboardInterrupt:
        console.print("\nBoth are stopped.")
    except (RuntimeError, TimeoutError) as error:
        console.print(f"[red]{error}[/]\nThe logs are in {STATE / 'ui'}.")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
