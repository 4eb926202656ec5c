"""What a mapped task was expanded over: its map index is only a position, and may mean another item by the next try."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from airflow.sdk import BaseOperator, Context


def item_of(operator: BaseOperator, context: Context) -> str | None:
    """Return the item of a mapped task, or of the mapped group that it is in, as a text; ``None`` of any other.

    The same item gives the same text, whatever its templates render to by now.
    """
    index = context["ti"].map_index
    if index is None or index < 0 or not operator.has_dag():
        return None
    values = [expanded.resolve(context)[0] for expanded in _expansions(operator)]
    return json.dumps(values, sort_keys=True, default=_plain) if values else None


def _expansions(operator: BaseOperator) -> Iterator[Any]:
    """Yield what the task and the groups around it are expanded over."""
    # The operator that runs is a plain one; the one in the DAG knows what it came from.
    declared = operator.dag.task_dict[operator.task_id]
    expanded = getattr(declared, "expand_input", None)
    if expanded is not None:
        yield expanded
    for group in declared.iter_mapped_task_groups():
        yield group._expand_input  # noqa: SLF001 - a mapped operator shows it, a mapped group does not


def _plain(value: object) -> str:
    """Return a text for a value that JSON does not have, the same in every process."""
    shown = str(value)
    return type(value).__qualname__ if " at 0x" in shown else shown
