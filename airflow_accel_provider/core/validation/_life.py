"""Whether the parameters that all kinds of jobs share make sense: identity, waiting, falling back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any

from airflow_accel_provider.core.failures import FailureKind
from airflow_accel_provider.core.problems import Problem, error, nearest
from airflow_accel_provider.core.validation._templated import is_templated

_WORDS = {"on_unproven": ("warn", "fail"), "wait_until": ("done", "proven")}
_SWITCHES = ("deferrable", "drain_pipeline")
_TEXTS = ("project_id", "gcp_conn_id", "quota_project_id", "job_name", "region")
_SECONDS = ("poll_interval", "start_timeout", "cancel_timeout", "proof_grace")
_LONGEST_SECONDS = 366 * 24 * 3600.0
# After these nothing is ever started elsewhere, whatever fallback_on says.
_FINAL: Mapping[str, str] = {
    FailureKind.CANCELLED: "A job that somebody cancelled is never started again elsewhere; leave 'cancelled' out.",
    FailureKind.TIMEOUT: "When execution_timeout has passed nothing is started elsewhere; leave 'timeout' out.",
}
_MOVABLE = tuple(str(kind) for kind in FailureKind if kind not in _FINAL)


def check_life(parameters: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield what is wrong with the parameters of these names, as far as it can be known; others are passed over."""
    for name in _TEXTS:
        yield from _check_text(name, parameters.get(name))
    yield from _check_chain(parameters.get("impersonation_chain"))
    yield from _check_kinds(parameters.get("fallback_on", ()))
    for name, words in _WORDS.items():
        if name in parameters:
            yield from _check_word(name, parameters[name], words)
    for name in _SECONDS:
        if name in parameters:
            yield from _check_seconds(name, parameters[name])
    for name in _SWITCHES:
        if not isinstance(parameters.get(name, True), bool):
            yield error("not-a-switch", f"{parameters[name]!r} does not do; give True or False.", name)


def _check_text(name: str, value: Any) -> Iterator[Problem]:
    if not (value is None or isinstance(value, str) or is_templated(value)):
        yield error("wrong-type", f"{value!r} does not do for {name}; give a text.", name)


def _check_chain(value: Any) -> Iterator[Problem]:
    if value is None or is_templated(value) or isinstance(value, str):
        return
    if not isinstance(value, list | tuple) or not all(isinstance(item, str) or is_templated(item) for item in value):
        text = f"{value!r} does not do for impersonation_chain; give a text or a list of texts."
        yield error("wrong-type", text, "impersonation_chain")


def _check_kinds(kinds: Any) -> Iterator[Problem]:
    if not isinstance(kinds, list | tuple | set | frozenset):
        yield error("not-a-list", f"{kinds!r} is not a list of kinds of failure, such as ['stockout'].", "fallback_on")
        return
    for kind in sorted(kinds, key=str) if isinstance(kinds, set | frozenset) else kinds:
        if isinstance(kind, str) and kind in _FINAL:
            yield error("unknown-kind", _FINAL[kind], "fallback_on")
        elif kind not in _MOVABLE:
            yield error("unknown-kind", f"{kind!r} is no kind of failure. {_meant(kind, _MOVABLE)}", "fallback_on")


def _check_word(name: str, word: Any, words: tuple[str, ...]) -> Iterator[Problem]:
    if word not in words:
        yield error(name.replace("_", "-"), f"{word!r} does not do. {_meant(word, words)}", name)


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
