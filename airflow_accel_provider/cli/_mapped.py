"""The keyword arguments of the tasks that one mapped task will become, as far as they stand in the DAG file.

What another task will give stands for itself: validation passes over whatever is not plain data.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice, product
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from airflow.sdk.definitions.mappedoperator import MappedOperator

MOST = 1000
"""How many of the tasks that one mapped task becomes are looked at."""


def of_mapped(task: MappedOperator) -> Iterator[dict[str, Any]]:
    """Yield the keyword arguments of each task of ``.partial().expand()`` or ``.expand_kwargs()``."""
    for expanded in islice(_expansions(task.expand_input.value), MOST):
        yield {**task.partial_kwargs, **expanded}


def of_grouped(task: Any, names: Iterable[str]) -> Iterator[dict[str, Any]]:
    """Yield the keyword arguments, of these names, of a task in each of the groups that its group becomes."""
    from airflow.sdk.definitions._internal.expandinput import MappedArgument

    said = {name: getattr(task, name) for name in names if hasattr(task, name)}
    for expanded in islice(_expansions(task.get_closest_mapped_task_group()._expand_input.value), MOST):  # noqa: SLF001
        yield {
            name: expanded.get(value._key, value) if isinstance(value, MappedArgument) else value  # noqa: SLF001
            for name, value in said.items()
        }


def is_known(value: Any) -> bool:
    """Tell whether the names of all keyword arguments stand in the DAG file, in what a task is expanded with."""
    return isinstance(value, Mapping) or (
        isinstance(value, list | tuple) and all(isinstance(each, Mapping) for each in value)
    )


def _expansions(value: Any) -> Iterable[Mapping[str, Any]]:
    """Return what differs in each, whether one mapping of lists was given or a list of mappings."""
    if not isinstance(value, Mapping):
        known = value if isinstance(value, list | tuple) else [{}]
        return ((each if isinstance(each, Mapping) else {}) for each in known)
    choices = [_choices(each) for each in value.values()]
    return (dict(zip(value, chosen, strict=True)) for chosen in product(*choices))


def _choices(value: Any) -> list[Any]:
    if isinstance(value, Mapping):
        return list(value.items())
    return list(value) if isinstance(value, list | tuple) else [value]
