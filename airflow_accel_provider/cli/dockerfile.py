"""Write a Dockerfile whose environment fits an accelerator."""

from __future__ import annotations

import argparse
import platform
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

from airflow_accel_provider.cli._deployment import add_overlay, catalog
from airflow_accel_provider.cli._lines import STDIN, answer_lines, print_error, print_json
from airflow_accel_provider.cli._tables import aligned, problem_rows, show

if TYPE_CHECKING:
    from airflow_accel_provider.core.catalog import Catalog
    from airflow_accel_provider.core.dockerfile import Written

_EPILOG = """\
  accel dockerfile nvidia-l4 --beam-version 2.77.0 --python-version 3.11 --package torch > Dockerfile
  accel dockerfile tpu-v6e-slice:2x2

With --json, - takes one request a line and gives one answer a line:
  {"placement": "nvidia-l4", "beam_version": "2.77.0", "python_version": "3.11", "base": ..., "packages": [...]}
Exit code: 0 well, 1 it cannot fit, 2 wrong usage."""
_NAMES = ("placement", "beam_version", "python_version", "base", "packages")


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare ``accel dockerfile``."""
    parser = subparsers.add_parser(
        "dockerfile",
        help="write a Dockerfile that fits an accelerator",
        description=__doc__,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("placement", metavar="PLACEMENT", help="such as nvidia-l4, or - for requests on stdin")
    parser.add_argument("--beam-version", metavar="X.Y.Z", help="Beam release (default: the one installed here)")
    parser.add_argument("--python-version", metavar="X.Y", help="Python that launches the pipeline (default: this one)")
    parser.add_argument("--base", metavar="IMAGE", help="image of CUDA or of a framework to start from")
    parser.add_argument("--package", metavar="REQUIREMENT", action="append", dest="packages", help="repeatable")
    parser.add_argument("--json", action="store_true", help="answer as JSON")
    add_overlay(parser)
    parser.set_defaults(run=run, wrong=parser.error)


def run(arguments: argparse.Namespace) -> int:
    """Print the Dockerfile, problems to stderr."""
    tables = catalog(arguments)
    if arguments.placement == STDIN:
        if not arguments.json:
            arguments.wrong("- needs --json")
        return answer_lines(lambda request: _written(request, tables).to_json())
    written = _written(
        {name: getattr(arguments, name) for name in _NAMES if getattr(arguments, name) is not None}, tables
    )
    if arguments.json:
        print_json(written.to_json())
        return 0 if written.dockerfile else 1
    if written.problems:
        print_error(aligned(problem_rows(written.problems)))
    if written.dockerfile is None:
        return 1
    show(written.dockerfile.rstrip("\n"))
    return 0


def _written(request: Any, tables: Catalog) -> Written:
    """Return the Dockerfile of a request. Raises :class:`ValueError` for what is none."""
    from airflow_accel_provider.core.dockerfile import Image, write_dockerfile

    said = {"beam_version": _installed_beam(), "python_version": _this_python(), **_read(request)}
    return write_dockerfile(Image(**said), catalog=tables)


def _read(request: Any) -> dict[str, Any]:
    from airflow_accel_provider.core.problems import nearest

    if not isinstance(request, Mapping):
        raise ValueError('A request is an object such as {"placement": "nvidia-l4"}.')  # noqa: TRY004 - bad text
    wrong = []
    for name in request:
        if name not in _NAMES:
            near = nearest(name, _NAMES)
            wrong.append(f"there is no {name!r}" + (f", did you mean {near}?" if near else ""))
    if "placement" not in request:
        wrong.append("a placement is required")
    texts = {name: request[name] for name in _NAMES[:4] if request.get(name) is not None}
    wrong += [f"{name} must be a text" for name, value in texts.items() if not isinstance(value, str)]
    packages = request.get("packages") or []
    if not isinstance(packages, list) or not all(isinstance(each, str) for each in packages):
        wrong.append("packages must be a list of texts")
    if wrong:
        raise ValueError(f"{'; '.join(wrong)[:1].upper()}{'; '.join(wrong)[1:]}.")
    return {**texts, "packages": tuple(packages)}


def _installed_beam() -> str:
    try:
        return version("apache-beam")
    except PackageNotFoundError:
        return ""


def _this_python() -> str:
    return ".".join(platform.python_version_tuple()[:2])
