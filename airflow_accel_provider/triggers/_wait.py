"""Asking a question again and again until it is settled: the loop that both modes share."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import count

from airflow.sdk.configuration import conf

from airflow_accel_provider.core.catalog import Catalog, CatalogError, load_catalog
from airflow_accel_provider.core.failures import Failure, FailureKind, Scope
from airflow_accel_provider.core.waiting.answers import Answer, Met, Never, NotYet
from airflow_accel_provider.core.waiting.pace import Pace
from airflow_accel_provider.core.waiting.questions import Question
from airflow_accel_provider.exceptions import AcceleratorConfigurationError, GoogleApiError
from airflow_accel_provider.hooks.asking import ask
from airflow_accel_provider.hooks.session import GoogleSession
from airflow_accel_provider.triggers._follow import PATIENCE, Log


@dataclass(frozen=True, slots=True)
class TimedOut:
    """It did not become so in time; ``reason`` is why not, as of the last look."""

    reason: str


Settled = Met | Never | TimedOut

Look = Callable[[], Awaitable[Answer]]
"""One look at the matter. Raises :class:`GoogleApiError` and :class:`AcceleratorConfigurationError`."""


@dataclass(slots=True)
class Listener:
    """Takes what a look gives; an error is waited out for as long as ``patience`` (for ever when it is ``None``).

    ``unanswered_since`` is when the services first failed to answer, ``None`` while they do.
    """

    patience: timedelta | None = PATIENCE
    unanswered_since: datetime | None = field(default=None)

    async def hear(self, look: Look, now: datetime) -> Answer:
        """Return the answer of a look; one that failed is a reason to wait, or one to give up."""
        try:
            answer = await look()
        except AcceleratorConfigurationError as error:
            return _unanswered(FailureKind.CONFIGURATION, str(error))
        except GoogleApiError as error:
            return self._failed(error, now)
        self.unanswered_since = None
        return answer

    def _failed(self, error: GoogleApiError, now: datetime) -> Answer:
        self.unanswered_since = self.unanswered_since or now
        if self.patience is None or (error.is_transient and now - self.unanswered_since <= self.patience):
            return NotYet(f"nobody could be asked: {error}")
        return _unanswered(error.kind, str(error))


def _unanswered(kind: FailureKind, text: str) -> Never:
    return Never(Failure(kind=kind, scope=Scope.NONE, explanation=f"nobody could be asked: {text.rstrip('.')}"))


async def wait(
    look: Look, listener: Listener, *, pace: Pace, deadline: datetime, now: Callable[[], datetime], log: Log
) -> Settled:
    """Look until the question is settled or the deadline has passed, with a last look at the deadline itself."""
    told = ""
    for looks in count(1):
        answer = await listener.hear(look, now())
        if not isinstance(answer, NotYet):
            return answer
        if answer.reason != told:
            log.info("wait reason=%s", answer.reason)
            told = answer.reason
        left = (deadline - now()).total_seconds()
        if left <= 0:
            return TimedOut(answer.reason)
        await asyncio.sleep(min(pace.pause(looks), left))
    raise AssertionError("counting ends never")


def look_now(session: GoogleSession, question: Question) -> Answer:
    """Return what the services answer now, by the deployment's own catalogue."""
    return ask(session, question, catalog=_catalog, now=datetime.now(UTC))


def _catalog() -> Catalog:
    try:
        return load_catalog(conf.get("accel", "catalog_overlay", fallback="") or None)
    except CatalogError as error:
        raise AcceleratorConfigurationError(str(error)) from error
