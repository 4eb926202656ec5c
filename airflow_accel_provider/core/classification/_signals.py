"""What is known about an attempt when it must be judged, and how it is read from JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal, get_args

from airflow_accel_provider.core.jobs import Importance, JobState, Message, Service
from airflow_accel_provider.core.locations import is_region
from airflow_accel_provider.core.problems import nearest

_SERVICES: tuple[Service, ...] = get_args(Service)
_CANCELLERS = ("user", "operator")
_FLAGS = ("workers_seen", "accelerator_confirmed", "start_timeout", "grace_passed", "reservation_requested")
_SIGNALS = ("messages", "state", "http_status", "cancelled_by", "runtime_version", "region", *_FLAGS)
_STATES = {str(state): state for state in JobState} | {"succeeded": JobState.DONE}
_NO_TIME = datetime.fromtimestamp(0, UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Signals:
    """What is known about an attempt when it must be judged; what was not looked for keeps its default.

    ``messages`` stand oldest first. ``state`` is ``None`` when nothing was created; then ``http_status`` may say why.
    ``start_timeout`` means that the time for a first worker is over, ``grace_passed`` that workers ran long enough for
    an accelerator to show. ``runtime_version`` is a Spark runtime such as ``3.0``.
    """

    service: Service = "dataflow"
    messages: Sequence[Message] = ()
    state: JobState | None = None
    http_status: int | None = None
    region: str | None = None
    workers_seen: bool = False
    accelerator_confirmed: bool = False
    start_timeout: bool = False
    grace_passed: bool = False
    cancelled_by: Literal["user", "operator"] | None = None
    runtime_version: str | None = None
    reservation_requested: bool = False

    @property
    def has_failed(self) -> bool:
        """Tell whether nothing more will come: the job failed, or was ended by us, or was never made."""
        if self.state is None:
            return bool(self.messages) or (self.http_status or 0) >= 400
        ended_by_us = self.state is JobState.CANCELLED and self.cancelled_by == "operator"
        return self.state is JobState.FAILED or ended_by_us

    @property
    def queues_for_accelerators(self) -> bool:
        """Tell whether the service waits for stock in a queue: Spark runtimes from 3.0 on do."""
        major = (self.runtime_version or "").partition(".")[0]
        return self.service == "dataproc" and major.isdigit() and int(major) >= 3

    @classmethod
    def from_json(cls, value: Any) -> Signals:
        """Return the signals of a request ``{"service": …, "signals": {…}}``.

        :raises ValueError: naming everything that is wrong with it, and the nearest right thing.
        """
        problems: list[str] = []
        request = _object(value, 'a request is an object {"service": …, "signals": {…}}', problems)
        problems += _unknown(request, ("service", "signals"), "request")
        signals = _object(request.get("signals"), "signals: an object is needed", problems) if request else {}
        fields = _fields(request, signals, problems)
        if problems:
            raise ValueError("; ".join(problems))
        return cls(**fields)


def _fields(request: Mapping[str, Any], signals: Mapping[str, Any], problems: list[str]) -> dict[str, Any]:
    """Return what the signals say, adding what is wrong to the problems."""
    problems += _unknown(signals, _SIGNALS, "signals")
    fields: dict[str, Any] = {
        "service": _choice(request, "service", {name: name for name in _SERVICES}, problems) or "dataflow",
        "messages": _messages(signals.get("messages"), problems),
        "state": _choice(signals, "state", _STATES, problems, prefix="JOB_STATE_"),
        "cancelled_by": _choice(signals, "cancelled_by", {name: name for name in _CANCELLERS}, problems),
        "http_status": _status(signals.get("http_status"), problems),
        "region": _text(signals, "region", problems),
        "runtime_version": _text(signals, "runtime_version", problems),
    }
    if fields["region"] and not is_region(fields["region"]):
        problems.append(f"region: {fields['region']!r} is no region, which looks like europe-west4")
    return fields | {name: _flag(signals, name, problems) for name in _FLAGS}


def _object(value: Any, rule: str, problems: list[str]) -> Mapping[str, Any]:
    if isinstance(value, Mapping):
        return value
    problems.append(f"{rule}, not {_shown(value)}")
    return {}


def _unknown(value: Mapping[str, Any], known: Sequence[str], where: str) -> list[str]:
    return [f"{where}: unknown name {name!r}{_meant(name, known)}" for name in value if name not in known]


def _meant(word: object, known: Sequence[str]) -> str:
    near = nearest(str(word), known)
    return f", did you mean {near!r}?" if near else f"; known are {', '.join(known)}"


def _shown(value: Any) -> str:
    return "nothing" if value is None else f"{value!r:.60}"


def _choice(
    value: Mapping[str, Any], name: str, known: Mapping[str, Any], problems: list[str], *, prefix: str = ""
) -> Any:
    """Return what one of the known words stands for, in any case and with or without Google's prefix."""
    word = value.get(name)
    if word is None:
        return None
    plain = word.removeprefix(prefix).lower() if isinstance(word, str) else str(word)
    if plain not in known:
        problems.append(f"{name}: {_shown(word)} isn't known{_meant(plain, tuple(known))}")
        return None
    return known[plain]


def _text(value: Mapping[str, Any], name: str, problems: list[str]) -> str | None:
    text = value.get(name)
    if text is None or isinstance(text, str):
        return text
    problems.append(f'{name}: a text is needed ("{text}" in quotes), not {_shown(text)}')
    return None


def _flag(value: Mapping[str, Any], name: str, problems: list[str]) -> bool:
    flag = value.get(name)
    if not isinstance(flag, bool | None):
        problems.append(f"{name}: true or false is needed, not {_shown(flag)}")
    return flag is True


def _status(value: Any, problems: list[str]) -> int | None:
    if value is None or (isinstance(value, int) and not isinstance(value, bool) and 100 <= value <= 599):
        return value
    problems.append(f"http_status: a number from 100 to 599 is needed, not {_shown(value)}")
    return None


def _messages(value: Any, problems: list[str]) -> tuple[Message, ...]:
    if value is None:
        return ()
    if not isinstance(value, Sequence) or isinstance(value, str):
        problems.append(f'messages: a list of {{"importance", "text"}} is needed, not {_shown(value)}')
        return ()
    return tuple(_message(item, f"messages[{place}]", problems) for place, item in enumerate(value))


def _message(value: Any, where: str, problems: list[str]) -> Message:
    """Return one message; without an importance it counts as an error, as those are what people paste."""
    if not isinstance(value, Mapping):
        problems.append(f'{where}: {{"importance", "text"}} is needed, not {_shown(value)}')
        value = {"text": ""}
    wrong = _unknown(value, ("importance", "text"), where)
    known = {str(importance): importance for importance in Importance}
    importance = _choice(value, "importance", known, wrong, prefix="JOB_MESSAGE_") or Importance.ERROR
    text = value.get("text")
    if not isinstance(text, str):
        wrong.append(f"text: a text is needed, not {_shown(text)}")
    problems += [problem if problem.startswith(where) else f"{where}.{problem}" for problem in wrong]
    return Message(text=str(text), importance=importance, at=_NO_TIME)
