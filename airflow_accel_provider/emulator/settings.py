"""What the emulator is started with: flags, or environment variables in their place."""

from __future__ import annotations

import argparse
import difflib
import math
import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from airflow_accel_provider.emulator.dataflow.templates import missing_files
from airflow_accel_provider.emulator.state import DEFAULT_PROJECT, DEFAULT_TIME_SCALE, DEFAULT_WORLD
from airflow_accel_provider.emulator.worlds import WORLD_NAMES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

DEFAULT_PORT = 8765
DEFAULT_STATE = ".accel"
TEMPLATE = "template"

PROJECT_ID = re.compile(r"[a-z][a-z0-9-]{4,28}[a-z0-9]")
"""Source: https://cloud.google.com/resource-manager/docs/creating-managing-projects (2026-11)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Checked settings; ``port`` 0 means any free one. ``templates`` maps template images to Python files."""

    port: int
    state: Path
    world: str
    project: str
    time_scale: float
    templates: Mapping[str, str] = field(default_factory=dict)


_FLAGS: Mapping[str, tuple[str, str]] = {
    "port": (str(DEFAULT_PORT), "port on 127.0.0.1, 0 for a free one"),
    "state": (DEFAULT_STATE, "directory for everything that survives a restart"),
    "world": (DEFAULT_WORLD, f"what Google has in stock: {', '.join(WORLD_NAMES)}"),
    "project": (DEFAULT_PROJECT, "id of the only project"),
    "time-scale": (f"{DEFAULT_TIME_SCALE:g}", "how many of Google's seconds pass in one real second"),
}


def variable(flag: str) -> str:
    """Return the environment variable that stands in for a flag."""
    return f"ACCEL_EMULATOR_{flag.upper().replace('-', '_')}"


def read_settings(arguments: Sequence[str], environment: Mapping[str, str] = os.environ) -> Settings:
    """Return the settings; a flag wins over its variable. Wrong ones exit with 2 and name everything wrong."""
    parser = argparse.ArgumentParser(prog="python -m airflow_accel_provider.emulator", description=__doc__)
    for flag, (usual, meaning) in _FLAGS.items():
        default = environment.get(variable(flag), usual)
        parser.add_argument(f"--{flag}", default=default, help=f"{meaning} ({variable(flag)}; default %(default)s)")
    own = environment.get(variable(TEMPLATE), "").split()
    meaning = f"IMAGE=FILE, the program a template image stands for ({variable(TEMPLATE)}: several, with blanks)"
    parser.add_argument(f"--{TEMPLATE}", action="append", default=None, metavar="IMAGE=FILE", help=meaning)
    values = parser.parse_args(arguments)
    templates = own if values.template is None else values.template
    problems = [
        *_number_problems(values.port, values.time_scale),
        *_world_problems(values.world),
        *_project_problems(values.project),
        *_template_problems(templates),
    ]
    if problems:
        parser.exit(2, f"The emulator cannot start: {'; '.join(problems)}.\n")
    return Settings(
        port=int(values.port),
        state=Path(values.state),
        world=values.world,
        project=values.project,
        time_scale=float(values.time_scale),
        templates=_templates(templates),
    )


def _number_problems(port: str, time_scale: str) -> list[str]:
    problems = []
    if not (port.isascii() and port.isdigit() and int(port) <= 65535):
        problems.append(f"port {port!r} is not a whole number from 0 to 65535")
    try:
        scale = float(time_scale)
    except ValueError:
        scale = math.nan
    if not 0 < scale < math.inf:
        problems.append(f"time scale {time_scale!r} is not a number above 0 (1 is real time)")
    return problems


def _world_problems(world: str) -> list[str]:
    if world in WORLD_NAMES:
        return []
    near = difflib.get_close_matches(world, WORLD_NAMES, n=1)
    hint = f" (did you mean {near[0]}?)" if near else ""
    return [f"there is no world {world!r}{hint}, there are {', '.join(WORLD_NAMES)}"]


def _templates(pairs: Sequence[str]) -> dict[str, str]:
    return {image: file for image, _, file in (pair.rpartition("=") for pair in pairs)}


def _template_problems(pairs: Sequence[str]) -> list[str]:
    wrong = [f"template {pair!r} is not IMAGE=FILE" for pair in pairs if not all(pair.rpartition("="))]
    return wrong or list(filter(None, [missing_files(_templates(pairs))]))


def _project_problems(project: str) -> list[str]:
    if PROJECT_ID.fullmatch(project):
        return []
    return [
        f"project {project!r} is not a project id (6 to 30 lower-case letters, digits and hyphens, as acme-ml-prod)"
    ]
