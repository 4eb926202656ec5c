"""When a failed task is worth another try: a retry policy for ``retry_policy=``."""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from airflow.sdk import RetryPolicy
from airflow.sdk.definitions.retry_policy import RetryDecision

from airflow_accel_provider.exceptions import (
    AcceleratorCancelledError,
    AcceleratorConfigurationError,
    AcceleratorKilledError,
    AcceleratorPermissionError,
    AcceleratorPipelineError,
    AcceleratorQuotaError,
    AcceleratorStockoutError,
    GoogleApiError,
)

if TYPE_CHECKING:
    from airflow.sdk import Context

_LONGEST_REASON = 500  # What Airflow keeps of a reason, in characters.
_POINTLESS: tuple[tuple[type[Exception], str], ...] = (
    (AcceleratorConfigurationError, "a person must set something right first"),
    (AcceleratorPermissionError, "a permission is missing"),
    (AcceleratorPipelineError, "the pipeline's own code or image failed, and would again"),
    (AcceleratorCancelledError, "somebody cancelled the job"),
)
_SHORTAGES = (AcceleratorStockoutError, AcceleratorQuotaError)
_jitter = random.SystemRandom()


@dataclass(frozen=True, kw_only=True)
class AcceleratorRetryPolicy(RetryPolicy):
    """Fail at once what would fail again, wait longer where nothing was to be had, and leave the rest to the task.

    Configuration, permissions, user code, images and jobs that somebody cancelled are not tried again. After a stockout
    or a full quota the next try comes ``capacity_delay`` later, twice that after the second and so on up to
    ``longest_delay``, each made up to a quarter longer by chance, so that tasks which failed together do not ask
    together. Anything else, such as errors of the service, ``execution_timeout`` and lost workers, is tried again as
    the task says (``retry_delay``, ``retry_exponential_backoff``). There are never more tries than ``retries`` allows.

    Raises :class:`AcceleratorConfigurationError` for delays that cannot be.
    """

    capacity_delay: timedelta = timedelta(minutes=10)
    longest_delay: timedelta = timedelta(hours=1)

    def __post_init__(self) -> None:
        """Check the delays, all of them at once."""
        said = {"capacity_delay": self.capacity_delay, "longest_delay": self.longest_delay}
        wrong = [
            f"- {name}={value!r} does not do; give a timedelta longer than nothing."
            for name, value in said.items()
            if not isinstance(value, timedelta) or value <= timedelta(0)
        ]
        if not wrong and self.longest_delay < self.capacity_delay:
            wrong = [f"- longest_delay={self.longest_delay} is shorter than capacity_delay={self.capacity_delay}."]
        if wrong:
            raise AcceleratorConfigurationError("\n".join(["This retry policy cannot be:", *wrong]))

    def evaluate(
        self,
        exception: BaseException,
        try_number: int,
        max_tries: int,  # noqa: ARG002 - Airflow gives it
        context: Context | None = None,  # noqa: ARG002 - Airflow gives it
    ) -> RetryDecision:
        """Decide what comes after a failure of this try, of which the first has number 1."""
        why = _pointless(exception)
        if why:
            return RetryDecision.fail(_reason(why, exception))
        if isinstance(exception, _SHORTAGES):
            return RetryDecision.retry(self._delay(try_number), _reason("nothing was to be had", exception))
        return RetryDecision.default()

    def _delay(self, try_number: int) -> timedelta:
        doubled = self.capacity_delay * 2.0 ** min(max(try_number - 1, 0), 20)
        return min(doubled, self.longest_delay) * _jitter.uniform(1.0, 1.25)

    def serialize(self) -> dict[str, Any]:
        """Return the policy as plain JSON, the delays in seconds."""
        return {
            "v": 1,
            "capacity_delay": self.capacity_delay.total_seconds(),
            "longest_delay": self.longest_delay.total_seconds(),
        }

    @classmethod
    def deserialize(cls, data: dict[str, Any]) -> AcceleratorRetryPolicy:
        """Return the policy that :meth:`serialize` wrote."""
        seconds = {name: timedelta(seconds=data[name]) for name in ("capacity_delay", "longest_delay")}
        return cls(**seconds)


def _pointless(exception: BaseException) -> str | None:
    """Return why another try would end in the same way, if it would."""
    if isinstance(exception, AcceleratorKilledError):
        # Its worker was shut down; where a person ended the task, Airflow does not ask.
        return None
    if isinstance(exception, GoogleApiError):
        return "a permission is missing" if exception.kind == "permission" else None
    return next((why for cls, why in _POINTLESS if isinstance(exception, cls)), None)


def _reason(why: str, exception: BaseException) -> str:
    first_line = str(exception).partition("\n")[0]
    return f"{why}: {first_line}"[:_LONGEST_REASON]
