"""What the service said, without what user code printed: cleaned, cut and bounded texts, and the places in them."""

from __future__ import annotations

import re
from typing import NamedTuple

from airflow_accel_provider.core.classification._rule import ZONE
from airflow_accel_provider.core.legible import clean

_LONGEST = 24_000
_EDGE = 8_000
_AROUND = 1_000
_EVIDENCE_LENGTH = 2_000

_CODES = (
    *("ZONE_RESOURCE_POOL_EXHAUSTED", "QUOTA_EXCEEDED", "does not have enough resources", "' exceeded", "' quota"),
    *("Workflow failed", "Startup of the worker pool", "rejected by the service", "was not found", "do not support"),
    *("no worker activity", "container image", "used for launching", "quota may have been exceeded", "DENIED"),
)
"""Words near which a message too long to be read whole is read."""

# After any of these a message carries what a worker's own process printed.
_USER_MARKS = (
    *("Traceback (most recent call last)", "Error message from worker:", "Error processing instruction"),
    *("Root cause:", "failed with message [", "\nCaused by:"),
)
_JAVA_FRAME = re.compile(r"\n[ \t]{1,16}at [\w$.<>/@ -]{1,300}\(")
_JAVA_EXCEPTION = re.compile(r"\b(?:[a-z]\w{0,40}\.){1,8}[A-Z]\w{0,80}(?:Exception|Error)\b")
_WORK_ITEM = re.compile(r"work\s+item\s+(?:has\s+)?failed\s+4\s+times|failed\s+4\s+times,\s+most\s+recent\s+failure")
_SERVICE_OPENING = re.compile(r"\W{0,4}(?:Workflow failed|Startup of the worker|Failed to start the VM|Batch failed)")
_USER_LOG_LINE = re.compile(
    r"^(?!.{0,200}JOB_MESSAGE_)(?:(?:DEBUG|INFO|WARNING|ERROR|CRITICAL):[\w.]{1,80}:|"
    r"\[?\d{2,4}[-/]\d\d[-/]\d\d[ T]\d\d:\d\d:\d\d\S{0,12} .{0,60}?\b(?:DEBUG|INFO|WARN|WARNING|ERROR|CRITICAL)\b).*$",
    re.MULTILINE,
)

_ZONES = re.compile(
    rf"\bin zone '?(?P<pool>{ZONE})\b|/zones/(?P<path>{ZONE})\b|"
    rf"\bzone: (?P<field>{ZONE})\b|\bin the\s+(?P<prose>{ZONE})\s+zone\b(?!\()"
)
_ZONE_LIST = rf"{ZONE}(?:[\"'\s]{{0,4}}(?:,|\band\b)[\"'\s]{{0,8}}{ZONE}){{0,20}}"
_HINTS = re.compile(
    rf"zonesAvailable[\"']?\s{{0,4}}[:=]\s{{0,4}}\[?[\"'\s]{{0,4}}(?P<field>{_ZONE_LIST})|"
    rf"\bin\s+the\s+(?P<prose>{_ZONE_LIST})\s+zone\(s\)"
)
_ONE_ZONE = re.compile(ZONE)


class Heard(NamedTuple):
    """One message: ``whole`` as it was said, ``service`` the part that the service itself said.

    ``ran_user_code`` tells that a worker's own process printed the rest, ``gave_up`` that the service says so by
    counting four failures of one work item.
    """

    whole: str
    service: str
    ran_user_code: bool
    gave_up: bool


def hear(text: str) -> Heard:
    """Return a message's text, cleaned and bounded, with the service's own words apart."""
    plain = _clean(text)
    mark = _user_mark(plain)
    gave_up = bool(_WORK_ITEM.search(_bounded(plain)))
    said = plain if mark is None else plain[:mark] if _SERVICE_OPENING.match(plain) else ""
    return Heard(
        whole=_bounded(plain),
        service="" if gave_up else _USER_LOG_LINE.sub("", _bounded(said)),
        ran_user_code=mark is not None or gave_up,
        gave_up=gave_up,
    )


def _clean(text: str) -> str:
    """Return the text cleaned and with plain blanks; one that did not come through a hook may still need it."""
    return clean(text).replace("\xa0", " ")


def _user_mark(text: str) -> int | None:
    """Return where user code's output begins, if it does."""
    found = [place for place in (text.find(mark) for mark in _USER_MARKS) if place >= 0]
    frame = _JAVA_FRAME.search(text)
    if frame:
        start = max(0, frame.start() - 4_000)
        exception = _JAVA_EXCEPTION.search(text, start, frame.start())
        found.append(exception.start() if exception else start)
    return min(found, default=None)


def _bounded(text: str) -> str:
    """Return the text, or of a very long one its ends and what stands around the codes that matter."""
    if len(text) <= _LONGEST:
        return text
    middle = [place for code in _CODES if (place := text.find(code, _EDGE, len(text) - _EDGE)) >= 0]
    parts = [text[max(0, place - _AROUND) : place + _AROUND] for place in sorted(middle)]
    return "\n".join([text[:_EDGE], *parts, text[-_EDGE:]])


def zone_near(text: str, place: int) -> str | None:
    """Return the zone that a sentence at this place speaks of: the last named before it, else the next one."""
    named = list(_ZONES.finditer(text))
    before = [match for match in named if match.start() <= place]
    match = before[-1] if before else named[0] if named else None
    return next((zone for zone in match.groups() if zone), None) if match else None


def hinted_zones(text: str) -> tuple[str, ...]:
    """Return the zones that the service says have stock, each once, in its order."""
    lists = (match["field"] or match["prose"] for match in _HINTS.finditer(text))
    return tuple(dict.fromkeys(zone for names in lists for zone in _ONE_ZONE.findall(names)))


def around(text: str, match: re.Match[str]) -> str:
    """Return the line the words stand in (or the words with what is near), so that evidence can be read."""
    start = text.rfind("\n", 0, match.start()) + 1
    end = text.find("\n", match.end())
    end = end if end >= 0 else len(text)
    if end - start > _EVIDENCE_LENGTH:
        start = max(start, match.start() - _EVIDENCE_LENGTH // 4)
    return text[start:end].strip()[:_EVIDENCE_LENGTH]


def tail(text: str) -> str:
    """Return the last lines of a text: those of a traceback say what happened."""
    text = text.strip()
    if len(text) <= _EVIDENCE_LENGTH:
        return text
    cut = text[-_EVIDENCE_LENGTH:]
    _, newline, whole_lines = cut.partition("\n")
    return f"…\n{whole_lines}" if newline else cut
