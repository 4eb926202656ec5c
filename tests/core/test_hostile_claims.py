"""User code that prints the service's words: no place is left, and nothing cancelled, because of them."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from airflow_accel_provider.core.classification import RULES, SHORTAGES, Rule, Signals, classify, classify_launch
from airflow_accel_provider.core.decisions import GiveUp, Wait
from airflow_accel_provider.core.failures import FailureKind
from airflow_accel_provider.core.fallback import decide
from airflow_accel_provider.core.identity import label_value
from airflow_accel_provider.core.jobs import Importance, JobState, Message, ScalingEvent, Service, Snapshot
from airflow_accel_provider.core.legible import cut
from airflow_accel_provider.core.policy import Policy
from tests.core.drawn_records import MOMENT
from tests.core.test_fallback import after, running

POLICY = Policy(fallback_on=(*SHORTAGES, FailureKind.PERMISSION, FailureKind.SERVICE))
STARTED = ScalingEvent(kind="current_num_workers_changed", at=MOMENT, current_workers=1)
FRAMES = "\n\tat com.acme.Score.parse(Score.java:12)\n\tat java.lang.Thread.run(Thread.java:1)"
PYTHON = 'Traceback (most recent call last):\n  File "score.py", line 3, in parse\nRuntimeError: {0}'
FOUR_TIMES = "Workflow failed. Causes: S01:Score failed., The job failed because a work item has failed 4 times. "
SAID = {
    "python": PYTHON,
    "python, in the workflow's name": "Error message from worker: "
    + PYTHON.replace("{0}", "Workflow failed. Causes: {0}"),
    "before the traceback": "Error processing instruction process_bundle-1. Original traceback is\n{0}\n" + PYTHON,
    "java": "java.lang.RuntimeException: {0}" + FRAMES,
    "java, longer than is kept": "java.lang.RuntimeException: {0}" + "x" * 50_000 + "\n{0}" + FRAMES * 200,
    "java, caused by": "com.acme.Failed: it failed" + FRAMES + "\nCaused by: java.io.IOException: {0}" + FRAMES,
    "four times": FOUR_TIMES + "Look in previous log entries. Root cause: {0}",
    "as a sentence of the service": "Workflow failed. Causes: S01 failed., Root cause: " + PYTHON,
    "of a batch's driver": 'Job failed with message [Exception in thread "main" java.lang.Exception: {0}]',
    "of a batch's python": "Batch failed. Job failed with message [" + PYTHON + "]",
}
MEANT = [rule for rule in RULES if not rule.from_workers]


def claims(how: str) -> list[tuple[Rule, Message]]:
    """Return every row's words as user code says them."""
    # As a hook lets them in.
    texts = [(rule, cut(SAID[how].replace("{0}", rule.example))) for rule in MEANT]
    return [(rule, Message(text=text, importance=Importance.ERROR, at=MOMENT)) for rule, text in texts]


def seen(state: JobState, message: Message, *, service: Service, started: bool) -> Snapshot:
    """Return a look at a job that says this, of which a worker was or was not seen."""
    job = running().open
    assert job
    snapshot = Snapshot(job=None, messages=(message,), workers=())
    shown = replace(_job(state), runtime_version="2.3" if service == "dataproc" else None)
    scaling = (STARTED,) if started else ()
    return replace(snapshot, job=shown, scaling=scaling, has_run=started and service == "dataproc")


def _job(state: JobState):  # type: ignore[no-untyped-def]
    from tests.core.test_fallback import seen as shown

    return shown(state).job


@pytest.mark.parametrize("how", SAID)
@pytest.mark.parametrize("service", ["dataflow", "dataproc"])
@pytest.mark.parametrize("started", [True, False], ids=["worker-seen", "no-worker-seen"])
def test_words_of_user_code_end_no_running_job(service: Service, how: str, *, started: bool) -> None:
    """A job that runs goes on whatever its code prints, also in the service's own words."""
    record = replace(running(), service=service)
    wrong = {
        rule.code: decision
        for rule, message in claims(how)
        if not isinstance(
            decision := decide(
                record, seen(JobState.RUNNING, message, service=service, started=started), POLICY, after(1)
            ),
            Wait,
        )
    }
    assert wrong == {}


@pytest.mark.parametrize("how", SAID)
@pytest.mark.parametrize("service", ["dataflow", "dataproc"])
@pytest.mark.parametrize("state", [JobState.FAILED, JobState.CANCELLED])
def test_words_of_user_code_move_no_job(service: Service, state: JobState, how: str) -> None:
    """After a job that failed, or that somebody cancelled, no other place is tried because of what its code printed."""
    record = replace(running(), service=service)
    wrong = {
        rule.code: decision
        for rule, message in claims(how)
        if not isinstance(
            decision := decide(record, seen(state, message, service=service, started=False), POLICY, after(1)), GiveUp
        )
    }
    assert wrong == {}


@pytest.mark.parametrize("how", SAID)
def test_what_user_code_says_is_its_own(how: str) -> None:
    """A job that failed in its own code failed by user code, whatever the code says of stock, quotas and rights."""
    kinds = {
        rule.code: failure.kind if (failure := classify(Signals(messages=(message,), state=JobState.FAILED))) else None
        for rule, message in claims(how)
        if not any(each.from_workers and each.pattern.search(message.text) for each in RULES)
    }
    assert set(kinds.values()) == {FailureKind.USER_CODE}


def test_names_and_labels_say_nothing() -> None:
    """No name or label that a job can have holds the words of any row."""
    alphabet = re.compile(r"[^a-z0-9_-]")
    names = [alphabet.sub("-", rule.example.lower()) for rule in RULES] + [label_value(rule.example) for rule in RULES]
    found = {(rule.code, name) for name in names for rule in RULES if rule.pattern.search(f"Workflow {name} failed.")}
    assert found == set()


def test_a_launcher_is_judged_by_its_last_error() -> None:
    """What a pipeline printed of refused calls before its own error says nothing of why its launcher ended."""
    lines = [
        "google.api_core.exceptions.Forbidden: 403 POST",
        "HttpBadRequestError",
        "status: 503",
        *PYTHON.split("\n"),
    ]
    assert classify_launch(1, lines).kind is FailureKind.USER_CODE
    assert classify_launch(1, [*lines, "google.api_core.exceptions.Forbidden: 403 POST"]).kind is FailureKind.PERMISSION


@pytest.mark.parametrize("text", [rule.example for rule in MEANT if rule.kind in SHORTAGES])
def test_a_launcher_never_speaks_of_places(text: str) -> None:
    """Nothing that a launcher writes is a reason to try another place."""
    assert classify_launch(1, [text, *PYTHON.replace("{0}", text).split("\n")]).kind not in SHORTAGES
