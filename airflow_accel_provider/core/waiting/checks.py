"""Whether how long, how often and how much a sensor asks makes sense."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any

from airflow_accel_provider.core.problems import Problem, error, nearest
from airflow_accel_provider.core.validation import is_templated

MODES = ("poke", "reschedule")
ON_UNKNOWN = ("pass", "wait")

_SWITCHES = ("soft_fail", "never_fail")
_LONGEST_SECONDS = 366 * 24 * 3600.0


def check_waiting(said: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield what is wrong with how long and how often a sensor looks; what is not among ``said`` is passed over."""
    yield from check_seconds("poke_interval", said.get("poke_interval", 1), zero=False)
    yield from check_seconds("timeout", said.get("timeout"), zero=True)
    yield from check_seconds("max_wait", said.get("max_wait"), zero=False)
    if said.get("mode", "poke") not in MODES:
        yield error("mode", f"{said['mode']!r} does not do; it is 'poke' or 'reschedule'.", "mode")
    for name in _SWITCHES:
        if not isinstance(said.get(name, False), bool):
            yield error("not-a-switch", f"{said[name]!r} does not do; give True or False.", name)
    if said.get("soft_fail") is True and said.get("never_fail") is True:
        yield error("soft-and-never-fail", "With never_fail it is of no effect; give one of the two.", "soft_fail")


def check_seconds(name: str, value: Any, *, zero: bool) -> Iterator[Problem]:
    """Yield an error unless the value is a time; ``None`` and what a template will fill in are passed over."""
    if value is None or (is_templated(value) and not isinstance(value, timedelta)):
        return
    seconds = value.total_seconds() if isinstance(value, timedelta) else value
    is_number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
    # Written so that nan fails it.
    if not (is_number and (0 < seconds <= _LONGEST_SECONDS or (zero and seconds == 0))):
        least = "0 or more" if zero else "more than 0"
        yield error(
            "not-seconds", f"{value!r} does not do; give seconds or a timedelta, {least}, at most a year.", name
        )


def check_whole(name: str, value: Any) -> Iterator[Problem]:
    """Yield an error unless the value is a whole number of 1 or more."""
    if is_templated(value):
        return
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        yield error("not-a-number", f"{value!r} does not do; give a whole number of 1 or more.", name)


def check_on_unknown(value: Any) -> Iterator[Problem]:
    """Yield an error unless the value says what to make of an unknown quota."""
    if value not in ON_UNKNOWN:
        near = nearest(str(value), ON_UNKNOWN)
        hint = f" Did you mean {near!r}?" if near else ""
        yield error("on-unknown", f"{value!r} does not do; it is 'pass' or 'wait'.{hint}", "on_unknown")


def check_switch(name: str, value: Any, *, or_none: bool = False) -> Iterator[Problem]:
    """Yield an error unless the value is true or false."""
    if not (isinstance(value, bool) or (or_none and value is None) or is_templated(value)):
        yield error("not-a-switch", f"{value!r} does not do; give True or False.", name)


def check_percent(name: str, value: Any) -> Iterator[Problem]:
    """Yield an error unless the value is more than 0 and at most 100."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not 0 < value <= 100:
        yield error("not-percent", f"{value!r} does not do; give percent, more than 0 and at most 100.", name)
