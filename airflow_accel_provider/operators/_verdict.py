"""What becomes of the problems that validation found: one error for all that is wrong, a warning for the rest."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

from airflow_accel_provider.core.problems import Problem
from airflow_accel_provider.exceptions import AcceleratorConfigurationError, AcceleratorWarning

# From a warning up to the line that makes the operator: warn, check, __init__, and Airflow's wrapper around that.
_LEVELS_UP = 5


def refuse(task_id: str, problems: Sequence[Problem]) -> list[Problem]:
    """Return the warnings, each once.

    Raises :class:`AcceleratorConfigurationError` when there are errors among the problems, naming all of them.
    """
    once = list(dict.fromkeys(problems))
    errors = [problem for problem in once if problem.is_error]
    if errors:
        lines = "\n".join(f"- {problem}" for problem in errors)
        count = "1 error" if len(errors) == 1 else f"{len(errors)} errors"
        raise AcceleratorConfigurationError(f"{task_id} cannot run, {count}:\n{lines}")
    return once


def warn(task_id: str, problems: Sequence[Problem]) -> None:
    """Warn of each problem at the line of the DAG that made the operator."""
    for problem in problems:
        warnings.warn(f"{task_id}: {problem}", AcceleratorWarning, stacklevel=_LEVELS_UP)
