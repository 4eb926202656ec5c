"""What a person reads in a terminal: columns that line up."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from airflow_accel_provider.core.legible import clean
from airflow_accel_provider.core.problems import Problem


def aligned(rows: Sequence[Sequence[str]], *, indent: str = "") -> str:
    """Return rows as lines whose columns line up; the last column is as long as it is."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    padded = ([cell.ljust(width) for cell, width in zip(row, widths, strict=True)] for row in rows)
    return "\n".join(f"{indent}{'  '.join(cells)}".rstrip() for cells in padded)


def problem_rows(problems: Sequence[Problem]) -> list[tuple[str, str, str]]:
    """Return one row a problem: how bad, where, and what."""
    return [(problem.severity, problem.where or "-", problem.message) for problem in problems]


def verdict(problems: Sequence[Problem]) -> str:
    """Return how many errors and warnings there are, in words."""
    errors = sum(problem.is_error for problem in problems)
    counts = ((errors, "error"), (len(problems) - errors, "warning"))
    return ", ".join(f"{n} {word}{'' if n == 1 else 's'}" for n, word in counts if n) or "well"


def show(text: str) -> None:
    """Print lines of text, whatever characters others put into it."""
    sys.stdout.write(clean(text.encode("utf-8", "backslashreplace").decode()) + "\n")
