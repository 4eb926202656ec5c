"""The retry policy and the exceptions it tells apart."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from airflow.sdk.definitions.retry_policy import RetryAction
from airflow.sdk.exceptions import AirflowException, AirflowFailException
from hypothesis import given
from hypothesis import strategies as st

from airflow_accel_provider import exceptions
from airflow_accel_provider.core.failures import FailureKind
from airflow_accel_provider.exceptions import (
    AcceleratorConfigurationError,
    AcceleratorError,
    AcceleratorKilledError,
    AcceleratorLaunchError,
    AcceleratorStockoutError,
    GoogleApiError,
    job_error,
)
from airflow_accel_provider.retry import AcceleratorRetryPolicy

if TYPE_CHECKING:
    from collections.abc import Iterator

POLICY = AcceleratorRetryPolicy()
FAIL, RETRY, DEFAULT = RetryAction.FAIL, RetryAction.RETRY, RetryAction.DEFAULT

ACTIONS: dict[FailureKind, RetryAction] = {
    FailureKind.STOCKOUT: RETRY,
    FailureKind.QUOTA: RETRY,
    FailureKind.NOT_OFFERED: RETRY,
    FailureKind.PREEMPTED: RETRY,
    FailureKind.ACCELERATOR_MISSING: DEFAULT,
    FailureKind.IMAGE: FAIL,
    FailureKind.CONFIGURATION: FAIL,
    FailureKind.PERMISSION: FAIL,
    FailureKind.USER_CODE: FAIL,
    FailureKind.SERVICE: DEFAULT,
    FailureKind.CANCELLED: FAIL,
    FailureKind.TIMEOUT: DEFAULT,
    FailureKind.UNKNOWN: DEFAULT,
}


@pytest.mark.parametrize("kind", FailureKind)
def test_every_kind_has_its_decision(kind: FailureKind) -> None:
    """What would fail again fails at once, a shortage waits, and the rest is tried as the task says."""
    decision = POLICY.evaluate(job_error(kind, "score failed."), 1, 3)
    assert decision.action is ACTIONS[kind]
    assert (decision.retry_delay is not None) is (ACTIONS[kind] is RETRY)


def test_every_kind_has_its_class() -> None:
    """No two kinds of failure are raised as the same exception, and all are this provider's and Airflow's."""
    classes = [type(job_error(kind, "why")) for kind in FailureKind]
    assert len(set(classes)) == len(FailureKind)
    assert all(issubclass(each, AcceleratorError) and issubclass(each, AirflowException) for each in classes)


def test_configuration_is_never_retried() -> None:
    """Without any policy too, Airflow does not try again what a person must set right."""
    assert isinstance(job_error(FailureKind.CONFIGURATION, "why"), AirflowFailException)


def _errors() -> Iterator[AcceleratorError]:
    for cls in vars(exceptions).values():
        if isinstance(cls, type) and issubclass(cls, AcceleratorError) and cls is not GoogleApiError:
            yield cls("score failed.")
    yield GoogleApiError(503, "backendError", "later", "dataflow", "GET jobs")


@pytest.mark.parametrize("error", _errors(), ids=lambda error: type(error).__name__)
def test_errors_are_built_anew(error: AcceleratorError) -> None:
    """Each exception can be built anew from what Airflow keeps of it, with the same text."""
    path, args, kwargs = error.serialize()
    cls = getattr(exceptions, path.rpartition(".")[2])
    assert str(cls(*args, **kwargs)) == str(error)


@pytest.mark.parametrize(
    ("error", "action"),
    [
        (GoogleApiError(403, "forbidden", "no", "dataflow", "GET jobs"), FAIL),
        (GoogleApiError(403, "rateLimitExceeded", "slow down", "compute", "GET x"), DEFAULT),
        (GoogleApiError(503, "backendError", "later", "dataflow", "GET jobs"), DEFAULT),
        (AcceleratorKilledError("score was killed"), DEFAULT),
        (AcceleratorLaunchError("no job", ("a line",)), DEFAULT),
        (ValueError("not ours"), DEFAULT),
        (KeyboardInterrupt(), DEFAULT),
    ],
    ids=str,
)
def test_other_errors(error: BaseException, action: RetryAction) -> None:
    """A refusal by Google fails, a worker that was shut down and everything that is not ours is the task's matter."""
    assert POLICY.evaluate(error, 1, 3).action is action


@given(st.integers(1, 10_000), st.integers(1, 86_400), st.integers(1, 20))
def test_delays_grow_up_to_the_longest(try_number: int, seconds: int, times: int) -> None:
    """Each shortage doubles the delay up to the longest, and chance adds at most a quarter."""
    first = timedelta(seconds=seconds)
    policy = AcceleratorRetryPolicy(capacity_delay=first, longest_delay=first * times)
    delay = policy.evaluate(AcceleratorStockoutError("none"), try_number, 3).retry_delay
    meant = min(first * 2 ** min(try_number - 1, 20), first * times)
    assert delay is not None
    assert meant <= delay <= meant * 1.25 + timedelta(microseconds=1)


def test_reasons_fit_airflow() -> None:
    """The reason that Airflow keeps is one line of at most 500 characters."""
    reason = POLICY.evaluate(AcceleratorStockoutError("x" * 900 + "\nmore"), 1, 3).reason
    assert reason is not None
    assert (len(reason), "\n" in reason) == (500, False)


def test_a_policy_travels() -> None:
    """A policy reads back from its JSON as it was written."""
    policy = AcceleratorRetryPolicy(capacity_delay=timedelta(minutes=3), longest_delay=timedelta(hours=2))
    assert AcceleratorRetryPolicy.deserialize(json.loads(json.dumps(policy.serialize()))) == policy


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"capacity_delay": 60, "longest_delay": timedelta(0)}, ["capacity_delay=60", "longest_delay=datetime"]),
        ({"longest_delay": timedelta(minutes=1)}, ["longest_delay=0:01:00 is shorter than capacity_delay=0:10:00"]),
    ],
)
def test_wrong_delays_are_told(said: dict[str, timedelta], words: list[str]) -> None:
    """Delays that cannot be are one error that names all of them."""
    with pytest.raises(AcceleratorConfigurationError) as wrong:
        AcceleratorRetryPolicy(**said)
    for each in words:
        assert each in str(wrong.value)
