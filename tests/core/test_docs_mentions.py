"""What the documentation names is there: commands with their flags, modules, targets of make."""

from __future__ import annotations

import re
import shlex
from importlib import import_module
from pathlib import Path

import pytest

from airflow_accel_provider.cli import build_parser, commands

ROOT = Path(__file__).parents[2]
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
TEXT = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
# A mention ends with its code span, its line, a redirection, a comment, or the columns beside it.
MENTIONS = sorted({text.strip() for text in re.findall(r"\baccel( [a-z]+(?:(?!  |[`\n|;&<>#]| #|\)\").)*)", TEXT)})
ARCHITECTURE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")


def test_commands_are_mentioned() -> None:
    """Each command stands in the documentation, and every command in it exists."""
    names = {command.__name__.rpartition(".")[2] for command in commands()}
    assert {mention.split()[0] for mention in MENTIONS} == names


@pytest.mark.parametrize("mention", [each for each in MENTIONS if len(each.split()) > 1])
def test_a_mentioned_command_is_taken(mention: str) -> None:
    """Every command line in the documentation is one that the command takes, flags included."""
    _, unknown = build_parser().parse_known_args(shlex.split(mention))
    assert unknown == []


@pytest.mark.parametrize("module", sorted(set(re.findall(r"`((?:core|hooks|triggers)\.\w+)", ARCHITECTURE))))
def test_a_mentioned_module_exists(module: str) -> None:
    """Every module in the description of the architecture can be imported."""
    assert import_module(f"airflow_accel_provider.{module}")


def test_every_part_of_the_house_is_described() -> None:
    """The tree in the description of the architecture has all parts of the package and no others."""
    tree = re.findall(r"^  (\w+)(?:/|\.py)? ", ARCHITECTURE.partition("```\n")[2].partition("```")[0], re.MULTILINE)
    package = ROOT / "airflow_accel_provider"
    parts = {path.stem for path in package.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
    assert set(tree) == parts - {"__init__"}


def test_mentioned_targets_exist() -> None:
    """Every ``make`` target in the documentation is in the Makefile."""
    targets = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    assert set(re.findall(r"(?:`|\$ )make (\w+)", TEXT)) <= targets
