"""The table of the service's words: each row catches its own example, and user code is not the service."""

from __future__ import annotations

import pytest

from airflow_accel_provider.core.classification import RULES, Rule, Signals, classify, classify_launch
from airflow_accel_provider.core.failures import FailureKind, Resource, Scope
from airflow_accel_provider.core.jobs import Importance, JobState, Message
from tests.core.drawn_records import MOMENT

STOCKOUT = (
    "Startup of the worker pool in zone us-central1-a failed to bring up any of the desired 1 workers. "
    "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS: Instance 'x' creation failed: The zone "
    "'projects/acme/zones/us-central1-a' does not have enough resources available to fulfill the request."
)
TRACEBACK = (
    "Error processing instruction process_bundle-1.\n"
    "Traceback (most recent call last):\n"
    '  File "score.py", line 12, in parse\n'
    "    raise ValueError('ZONE_RESOURCE_POOL_EXHAUSTED: Quota \\'CPUS\\' exceeded. Limit: 1.0 in region us-east1')\n"
    "ValueError: ZONE_RESOURCE_POOL_EXHAUSTED [while running 'Parse']"
)


def errors(*texts: str) -> tuple[Message, ...]:
    return tuple(Message(text=text, importance=Importance.ERROR, at=MOMENT) for text in texts)


def failed(*texts: str, **more: object) -> Signals:
    return Signals(messages=errors(*texts), state=JobState.FAILED, region="us-central1", **more)  # type: ignore[arg-type]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)
def test_no_row_is_shadowed(rule: Rule) -> None:
    """Each row's example is caught by that row and by none before it."""
    first = next(row for row in RULES if row.pattern.search(rule.example))

    assert first.code == rule.code


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)
def test_each_row_explains(rule: Rule) -> None:
    """Each row has a source, and an explanation whose blanks its own example fills."""
    failure = classify(failed(rule.example))

    assert rule.source
    assert failure is not None
    assert (failure.kind, failure.scope) == (rule.kind, rule.scope)
    assert "{" not in failure.explanation


def test_stockout_names_the_true_zone() -> None:
    """A stockout is told while the job still runs, with the zone the service used."""
    failure = classify(Signals(messages=errors(STOCKOUT), state=JobState.RUNNING, region="us-central1"))

    assert failure is not None
    assert (failure.kind, failure.scope, failure.zone) == (FailureKind.STOCKOUT, Scope.ZONE, "us-central1-a")
    assert failure.resource is Resource.ACCELERATOR


def test_hints() -> None:
    """Zones that the service says have stock are taken over."""
    failure = classify(failed(f'{STOCKOUT} "zonesAvailable": "us-central1-b,us-central1-f"'))

    assert failure is not None
    assert failure.hint_zones == ("us-central1-b", "us-central1-f")


def test_quota() -> None:
    """A quota's metric and region are taken from the text."""
    failure = classify(failed("QUOTA_EXCEEDED: Quota 'NVIDIA_L4_GPUS' exceeded. Limit: 1.0 in region europe-west4."))

    assert failure is not None
    assert (failure.metric, failure.region) == ("NVIDIA_L4_GPUS", "europe-west4")
    assert failure.explanation == "NVIDIA_L4_GPUS is used up in europe-west4 (limit 1.0)"


def test_user_code_can_print_anything() -> None:
    """A traceback that quotes the service's words is still user code, and its evidence is that traceback."""
    failure = classify(failed(TRACEBACK, "Workflow failed. Causes: a work item has failed 4 times."))

    assert failure is not None
    assert failure.kind is FailureKind.USER_CODE
    assert failure.evidence.endswith("[while running 'Parse']")


def test_a_confirmed_accelerator_rules_shortages_out() -> None:
    """Words of a shortage after the accelerator was seen mean nothing."""
    failure = classify(failed(STOCKOUT, accelerator_confirmed=True))

    assert failure is not None
    assert failure.kind is FailureKind.UNKNOWN


def test_a_partial_start_is_no_failure() -> None:
    """While some workers are up, a stockout of others is the autoscaler's business."""
    signals = Signals(messages=errors(STOCKOUT), state=JobState.RUNNING, workers_seen=True)

    assert classify(signals) is None


def test_nothing_wrong() -> None:
    """A running job without grave messages has no failure."""
    quiet = Message(text=STOCKOUT, importance=Importance.BASIC, at=MOMENT)

    assert classify(Signals(messages=(quiet,), state=JobState.RUNNING)) is None


def test_too_late() -> None:
    """No worker within the time allowed counts as a stockout of the zone."""
    failure = classify(Signals(state=JobState.RUNNING, region="us-central1", start_timeout=True))

    assert failure is not None
    assert failure.kind is FailureKind.STOCKOUT


def test_cancelled() -> None:
    """A cancelled job is somebody's decision, whatever its log says."""
    failure = classify(Signals(messages=errors(STOCKOUT), state=JobState.CANCELLED))

    assert failure is not None
    assert failure.kind is FailureKind.CANCELLED


def test_silence() -> None:
    """A job that failed without a word is unknown, not user code."""
    failure = classify(failed())

    assert failure is not None
    assert failure.kind is FailureKind.UNKNOWN


@pytest.mark.parametrize(
    ("exit_code", "lines", "kind"),
    [
        (1, ["HttpForbiddenError: HttpError accessing <…>: response: <{'status': '403'}>"], FailureKind.PERMISSION),
        (1, ["apitools.base.py.exceptions.HttpBadRequestError: …"], FailureKind.CONFIGURATION),
        (1, ["HttpError accessing <…>: response: <{'status': '503'}>"], FailureKind.SERVICE),
        (1, ["google.api_core.exceptions.Forbidden: 403 POST https://…: Missing …"], FailureKind.PERMISSION),
        (1, ["google.api_core.exceptions.BadRequest: 400 POST https://…: The workflow …"], FailureKind.CONFIGURATION),
        (1, ["google.api_core.exceptions.TooManyRequests: 429 POST https://…: …"], FailureKind.SERVICE),
        (1, ["Traceback (most recent call last):", "ZeroDivisionError: division by zero"], FailureKind.USER_CODE),
        (-9, [], FailureKind.USER_CODE),
        (0, ["bye"], FailureKind.CONFIGURATION),
    ],
)
def test_launchers(exit_code: int, lines: list[str], kind: FailureKind) -> None:
    """A launcher that left no job is judged by its last lines, and they are the evidence."""
    failure = classify_launch(exit_code, lines)

    assert failure.kind is kind
    assert failure.evidence == "\n".join(lines)
