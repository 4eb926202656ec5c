"""One row of the table: the service's words, and what they mean."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from airflow_accel_provider.core.failures import FailureKind, Resource, Scope

ZONE = r"[a-z]{2,20}-[a-z]{2,20}\d{1,2}-[a-z0-9]{1,6}"
REGION = r"[a-z]{2,20}-[a-z]{2,20}\d{1,2}"
"""Names of places inside a sentence. Bounded, so that no text makes a search slow."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Meaning:
    """What words mean: the kind of failure, how far it reaches, what was short, and what a person should do."""

    kind: FailureKind
    scope: Scope
    explanation: str
    advice: str
    resource: Resource | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One row: words and what they mean.

    Named groups of the pattern are taken over: ``zone``, ``region``, ``metric`` (or ``code``, where it stands without a
    sentence), ``limit``, ``left``, ``machine`` and ``policy``. They fill the blanks of the explanation and the advice,
    where ``{room}`` stands for limit or left. ``example`` is a text that this row, and no earlier one, must catch.

    ``when_started`` is what the same words mean once a worker was there, ``when_reserved`` what they mean when the job
    asked for a reservation. ``from_workers`` marks words that a worker's own processes print: they are looked for
    inside user code's output too, and are never a reason to try another place. They, and bare codes
    (``only_at_end``), count once the job has failed: before that it may get over them. ``ambiguous`` marks words that
    have more than one cause.
    """

    code: str
    words: str
    meaning: Meaning
    example: str
    source: str
    when_started: Meaning | None = None
    when_reserved: Meaning | None = None
    from_workers: bool = False
    only_at_end: bool = False
    ambiguous: bool = False

    @property
    def pattern(self) -> re.Pattern[str]:
        """The words as a pattern that may run over line ends."""
        return _compiled(self.words)

    @property
    def kind(self) -> FailureKind:
        """The kind of failure, when nothing else is known."""
        return self.meaning.kind

    @property
    def scope(self) -> Scope:
        """How far the failure reaches, when nothing else is known."""
        return self.meaning.scope


@cache
def _compiled(words: str) -> re.Pattern[str]:
    """Compile at the first use: a DAG that only imports an operator needs none of the table."""
    return re.compile(_PIECES.sub(_loosely, words), re.DOTALL)


# Classes and escapes stay as they are; so does a blank with a quantifier of its own.
_PIECES = re.compile(r"\[\^?\]?(?:\\.|[^\]\\])*\]|\\.|(?P<blank> )(?![?*+{])|(?P<quote>')", re.DOTALL)


def _loosely(piece: re.Match[str]) -> str:
    """Return what any white space does for, where a blank stands, and any quotation mark where one does."""
    if piece["blank"]:
        # A log may have broken the line there, and indented the next.
        return r"\s{1,12}"
    return "[\"'\u2018\u2019\u201c\u201d]" if piece["quote"] else piece[0]


def row(
    words: str,
    *,
    code: str,
    kind: FailureKind,
    scope: Scope,
    explanation: str,
    advice: str,
    example: str,
    source: str,
    resource: Resource | None = None,
    when_started: Meaning | None = None,
    when_reserved: Meaning | None = None,
    from_workers: bool = False,
    only_at_end: bool = False,
    ambiguous: bool = False,
) -> Rule:
    """Return a rule with its meaning put together."""
    return Rule(
        code=code,
        words=words,
        meaning=Meaning(kind=kind, scope=scope, explanation=explanation, advice=advice, resource=resource),
        example=example,
        source=source,
        when_started=when_started,
        when_reserved=when_reserved,
        from_workers=from_workers,
        only_at_end=only_at_end or from_workers,
        ambiguous=ambiguous,
    )
