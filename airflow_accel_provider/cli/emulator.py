"""Run Google on loopback, or say how to reach the one that runs."""

from __future__ import annotations

import argparse
import json
import os
import shlex
import sys
import urllib.error
import urllib.request
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

MODULE = "airflow_accel_provider.emulator"
FLAGS: Mapping[str, str] = {
    "port": "port on 127.0.0.1, 0 for a free one",
    "state": "directory for everything that survives a restart (default .accel)",
    "world": "what Google has in stock, such as plenty or l4-stockout",
    "project": "id of the only project",
    "time-scale": "how many of Google's seconds pass in one real second",
}
TEMPLATE = "Python program that stands for a Flex Template's image; may be given again"
NEEDED = ("starlette", "uvicorn", "jwt", "cryptography", "apache_beam")
INSTALL = "pip install 'airflow-provider-accel[emulator]'"
STATE_VARIABLE = "ACCEL_EMULATOR_STATE"
ANSWER_SECONDS = 5


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare ``accel emulator`` and ``accel emulator env``."""
    parser = subparsers.add_parser("emulator", help="run Google on loopback", description=__doc__)
    for flag, meaning in FLAGS.items():
        parser.add_argument(f"--{flag}", help=meaning)
    parser.add_argument("--template", action="append", default=[], metavar="IMAGE=FILE", help=TEMPLATE)
    parser.set_defaults(run=run, wrong=parser.error)
    actions = parser.add_subparsers(metavar="env")
    env = actions.add_parser("env", help="print the exports that point a shell at the running emulator")
    # Not given is not None here, so that a --state before the word env still counts.
    env.add_argument("--state", default=argparse.SUPPRESS, help=FLAGS["state"])
    env.add_argument("--json", action="store_true", help="print one JSON object instead of exports")
    env.set_defaults(run=print_environment, wrong=env.error)


def run(arguments: argparse.Namespace) -> int:
    """Become the emulator: this process is replaced, so signals reach it and nothing stays behind."""
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        return _fail(f"The emulator needs {', '.join(missing)}. Install the extra: {INSTALL}")
    command = [sys.executable, "-m", MODULE]
    for flag in FLAGS:
        value = getattr(arguments, flag.replace("-", "_"))
        if value is not None:
            command += [f"--{flag}", value]
    for template in arguments.template:
        command += ["--template", template]
    sys.stdout.flush()
    return os.execv(sys.executable, command)  # noqa: S606 (an argument list, no shell)


def print_environment(arguments: argparse.Namespace) -> int:
    """Print the variables for a running emulator."""
    state = Path(arguments.state or os.environ.get(STATE_VARIABLE) or ".accel")
    address = _address(state)
    if address is None:
        return _fail(f"No emulator runs with the state directory {state}. Start one: accel emulator --state {state}")
    variables = environment(address)
    if arguments.json:
        print(json.dumps(variables))  # noqa: T201
        return 0
    for name, value in variables.items():
        print(f"export {name}={shlex.quote(value)}")  # noqa: T201
    return 0


def environment(address: Mapping[str, Any]) -> dict[str, str]:
    """Return the variables that point Google's clients and Airflow's default connection at an emulator."""
    key_file = Path(address["keys"]["airflow"])
    extra = {"keyfile_dict": key_file.read_text(), "project": address["project"], "endpoint_url": address["url"]}
    connection = {"conn_type": "google_cloud_platform", "extra": extra}
    return {
        "GOOGLE_APPLICATION_CREDENTIALS": str(key_file),
        "STORAGE_EMULATOR_HOST": address["url"],
        "GOOGLE_CLOUD_PROJECT": address["project"],
        "AIRFLOW_CONN_GOOGLE_CLOUD_DEFAULT": json.dumps(connection),
    }


def _address(state: Path) -> dict[str, Any] | None:
    """Return what a running emulator left in its state directory, or None when none answers there."""
    try:
        address: dict[str, Any] = json.loads((state / "emulator.json").read_text())
        with urllib.request.urlopen(f"{address['url']}/_emulator/health", timeout=ANSWER_SECONDS) as answer:  # noqa: S310
            return address if json.load(answer)["pid"] == address["pid"] else None
    except (OSError, ValueError, KeyError):
        return None


def _fail(message: str) -> int:
    print(message, file=sys.stderr)  # noqa: T201
    return 1
