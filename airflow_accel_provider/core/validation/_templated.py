"""What cannot be judged yet: texts that Jinja will fill in, and values that another task will give."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

LATER = "{{ later }}"
"""Stands for a text that is known only when the task starts."""

_MARKS = ("{{", "{%", "{#")
# Asked of every value, so what is quick to tell comes first.
_PLAIN = (str, bool, int, float, type(None), dict, list, tuple, Mapping)


def is_templated(value: Any) -> bool:
    """Tell whether a value is known only when the task starts.

    True for a text with Jinja in it and for anything that is not plain data, such as the output of another task. A
    mapping or list is not, even if some of what it holds is.
    """
    if isinstance(value, str):
        return any(mark in value for mark in _MARKS)
    return not isinstance(value, _PLAIN)


def texts_in(value: Any, where: str) -> Iterator[tuple[str, str]]:
    """Yield every text inside a nested value, with the path to it."""
    if isinstance(value, str):
        yield where, value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from texts_in(item, f"{where}.{key}")
    elif isinstance(value, list | tuple):
        for item in value:
            yield from texts_in(item, where)
