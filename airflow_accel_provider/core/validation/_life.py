"""Whether the parameters that all kinds of jobs share make sense: identity, waiting, falling back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any

from airflow_accel_provider.core.failures import FailureKind
from airflow_accel_provider.core.problems import Problem, error, nearest
from airflow_accel_provider.core.validation._templated import is_templated

ON_UNPROVEN = ("warn", "fail")

_TEXTS = ("project_id", "gcp_conn_id", "quota_project_id", "job_name", "region", "py_interpreter")
_SECONDS = ("poll_interval", "start_timeout", "cancel_timeout")
_LONGEST_SECONDS = 366 * 24 * 3600.0
# After somebody's cancel nothing is ever started elsewhere, whatever fallback_on says.
_MOVABLE = tuple(str(kind) for kind in FailureKind if kind is not FailureKind.CANCELLED)


def check_life(parameters: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield what is wrong with the parameters of these names, as far as it can be known; others are passed over."""
    for name in _TEXTS:
        yield from _check_text(name, parameters.get(name))
    yield from _check_texts("py_options", parameters.get("py_options"), or_one=False)
    yield from _check_texts("impersonation_chain", parameters.get("impersonation_chain"), or_one=True)
    yield from _check_kinds(parameters.get("fallback_on", ()))
    yield from _check_unproven(parameters.get("on_unproven", "warn"))
    for name in _SECONDS:
        if name in parameters:
            yield from _check_seconds(name, parameters[name])
    if not isinstance(parameters.get("deferrable", True), bool):
        yield error("not-a-switch", f"{parameters['deferrable']!r} does not do; give True or False.", "deferrable")


def _check_text(name: str, value: Any) -> Iterator[Problem]:
    if not (value is None or isinstance(value, str) or is_templated(value)):
        yield error("wrong-type", f"{value!r} does not do for {name}; give a text.", name)


def _check_texts(name: str, value: Any, *, or_one: bool) -> Iterator[Problem]:
    if value is None or is_templated(value) or (or_one and isinstance(value, str)):
        return
    if not isinstance(value, list | tuple) or not all(isinstance(item, str) or is_templated(item) for item in value):
        wanted = "a text or a list of texts" if or_one else 'a list of texts, such as ["-O"]'
        yield error("wrong-type", f"{value!r} does not do for {name}; give {wanted}.", name)


def _check_kinds(kinds: Any) -> Iterator[Problem]:
    if not isinstance(kinds, list | tuple | set | frozenset):
        yield error("not-a-list", f"{kinds!r} is not a list of kinds of failure, such as ['stockout'].", "fallback_on")
        return
    for kind in sorted(kinds, key=str) if isinstance(kinds, set | frozenset) else kinds:
        if kind == FailureKind.CANCELLED:
            text = "A job that somebody cancelled is never started again elsewhere; leave 'cancelled' out."
            yield error("unknown-kind", text, "fallback_on")
        elif kind not in _MOVABLE:
            yield error("unknown-kind", f"{kind!r} is no kind of failure. {_meant(kind, _MOVABLE)}", "fallback_on")


def _check_unproven(word: Any) -> Iterator[Problem]:
    if word not in ON_UNPROVEN:
        yield error("on-unproven", f"{word!r} does not do. {_meant(word, ON_UNPROVEN)}", "on_unproven")


def _check_seconds(name: str, value: Any) -> Iterator[Problem]:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    wanted = "give seconds" if name == "poll_interval" else "give seconds or a timedelta"
    if isinstance(value, timedelta) and name != "poll_interval":
        value, is_number = value.total_seconds(), True
    # Written so that nan fails it.
    if not is_number or not 0 < value <= _LONGEST_SECONDS:
        yield error("not-seconds", f"{value!r} does not do; {wanted}, more than 0 and at most a year.", name)


def _meant(word: Any, known: tuple[str, ...]) -> str:
    near = nearest(str(word), known)
    return f"Did you mean {near!r}?" if near else f"It is one of {', '.join(known)}."
