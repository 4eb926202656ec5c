"""What becomes of the problems that validation found: one error for all that is wrong, a warning for the rest."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

from airflow_accel_provider.core.problems import Problem
from airflow_accel_provider.exceptions import AcceleratorConfigurationError, AcceleratorWarning

if TYPE_CHECKING:
    from airflow.sdk import BaseOperator

# From a warning up to the line that makes the operator: judge, check, __init__, and Airflow's wrapper around that.
_LEVELS_UP = 5


class Verdicts:
    """What was found wrong with operators, by operator."""

    def __init__(self) -> None:
        # By identity, since operators compare by their parameters; each is held, so that no id is given twice.
        self._found: dict[int, tuple[BaseOperator, tuple[Problem, ...]]] = {}

    def add(self, operator: BaseOperator, problems: Sequence[Problem]) -> None:
        """Keep the problems of an operator in place of those known of it."""
        self._found[id(operator)] = operator, tuple(dict.fromkeys(problems))

    def on(self, operator: BaseOperator) -> tuple[Problem, ...]:
        """Return the problems of an operator, each once; none when it was not judged."""
        _, problems = self._found.get(id(operator), (operator, ()))
        return problems


_collected: ContextVar[Verdicts | None] = ContextVar("collected", default=None)


@contextmanager
def collecting() -> Iterator[Verdicts]:
    """Collect what is wrong with the operators that are made meanwhile, in place of raising and warning.

    So a DAG file is parsed to its end, and all its tasks can be told of and not only the first wrong one.
    """
    verdicts = Verdicts()
    token = _collected.set(verdicts)
    try:
        yield verdicts
    finally:
        _collected.reset(token)


def judge(operator: BaseOperator, problems: Sequence[Problem]) -> None:
    """Warn, at the line of the DAG that makes the operator, of each problem that is no error.

    Raises :class:`AcceleratorConfigurationError` naming all errors, if there are any.
    """
    collected = _collected.get()
    if collected is not None:
        collected.add(operator, problems)
        return
    for problem in refuse(operator.task_id, problems):
        warnings.warn(f"{operator.task_id}: {problem}", AcceleratorWarning, stacklevel=_LEVELS_UP)


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
