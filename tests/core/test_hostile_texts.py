"""Texts that others wrote on purpose: they steer no terminal, fake no line, break no database, and take no time."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from airflow_accel_provider.cli import _tables
from airflow_accel_provider.core.classification import RULES, Signals, classify, classify_launch
from airflow_accel_provider.core.classification._texts import hear
from airflow_accel_provider.core.failures import Failure, FailureKind, Scope
from airflow_accel_provider.core.jobs import Importance, JobState, Message
from airflow_accel_provider.core.legible import LONGEST, clean, cut, one_line
from airflow_accel_provider.core.report import report
from airflow_accel_provider.exceptions import GoogleApiError
from airflow_accel_provider.hooks import _wire, _wire_spark, dataflow
from airflow_accel_provider.hooks._answers import object_of, plain
from airflow_accel_provider.hooks._fields import Fields
from airflow_accel_provider.hooks.dataflow import DataflowHook
from airflow_accel_provider.hooks.launcher import Launcher
from airflow_accel_provider.hooks.session import GoogleSession
from tests.core.test_fallback import running

NOW = datetime(2026, 3, 2, 6, 0, tzinfo=UTC)
UNFIT = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff\U000e0001]"
)
HOSTILE = (
    "\x1b[2J\x1b[31mred\x1b[0m \x1b]8;;http://evil.example\x07link\x1b]8;;\x1b\\ \x9b1A \x9d0;title\x9c \x1bPq\x1b\\"
    " \x1bc \u202egnp.exe\u202c \u2066x\u2069 \x00 \ud800 \x08\x08 \x7f \u200b {{ var.value.secret }} {region}"
    " <b>bold</b> done\rCANCELLED\r\n2026-03-02 ERROR faked\u2028faked\x85faked\x0bfaked"
)
# Beginnings and middles of what the patterns look for, over and over.
SEEDS = (
    *("a", "A-", " ", "\n", "'", "1", "<", "<a", "<script>", "<script>x</script>", "&#27;", "-eyJ", "eyJaaaaaaaa."),
    *("-----BEGIN", "ya29.", "\x1b[", "\x1b]", "\x9d", "\x1bP\x1b", "\r", "\ud800", "\u202e", "{", "Limit: 1 "),
    *(
        "Quota '",
        "Insufficient 'GPUS_",
        "QUOTA_EXCEEDED ",
        "us-central1-a, ",
        "in zone ",
        "/zones/",
        "zonesAvailable:[",
    ),
    *("a.b.c.D", "\n\tat a.b(", "\nERROR:x:", "2024-01-01 00:00:00 ", "Workflow failed ", "work item failed 4 "),
    *("/dev/vfio/1", "manifest for x", "constraints/a.", "Root cause: ", "requested accelerator type x"),
)


class Answer(SimpleNamespace):
    """What is read of an HTTP answer."""

    def __init__(self, status_code: int, value: Any) -> None:
        super().__init__(status_code=status_code, text=json.dumps(value), headers={})


def refused(text: str) -> str:
    """Return what is told of a call that was refused in these words."""
    error = {"code": 400, "message": text, "status": text, "errors": [{"reason": text}]}
    with pytest.raises(GoogleApiError) as caught:
        object_of(Answer(400, {"error": error}), "dataflow", "GET jobs")
    return str(caught.value)


def message_of(text: str) -> str:
    (message,) = _wire.messages_from_json({"jobMessages": [{"messageText": text}]})
    return message.text


def description_of(text: str) -> str:
    (event,) = _wire.scaling_from_json({"autoscalingEvents": [{"description": {"messageText": text}}]})
    return event.description


def state_message_of(text: str) -> str:
    state = {"name": "projects/p/locations/r/batches/b", "state": "FAILED", "stateTime": "2026-03-02T06:00:00Z"}
    (message,) = _wire_spark.batch_from_json({**state, "stateMessage": text}).messages
    return message.text


def labels_of(text: str) -> str:
    return str(dict(_wire.job_from_json({"id": "j", "labels": {text: text}}).labels or ()))


DOORS: dict[str, Callable[[str], str]] = {
    "job message": message_of,
    "scaling event": description_of,
    "batch's state": state_message_of,
    "name of a job": lambda text: _wire.job_from_json({"name": text}).name,
    "name of a worker": lambda text: _wire.worker_from_json({"name": text}).name,
    "zone of a worker": lambda text: _wire.worker_from_json({"zone": text}).zone,
    "labels": labels_of,
    "zones": lambda text: str(Fields({"zones": [text]}, "compute", "x").texts("zones")[0]),
    "refused call": refused,
    "words of a proxy": plain,
}


@pytest.mark.parametrize("door", DOORS)
def test_nothing_unfit_comes_in(door: str) -> None:
    """Whatever an answer says comes in without escapes, control characters and halves of characters."""
    told = DOORS[door](HOSTILE)
    assert not UNFIT.search(told)
    assert "faked" in told or door == "zone of a worker"
    assert told.encode()


@given(st.text(alphabet=st.characters() | st.sampled_from("\x1b\x9b\x9d[]\\;m\x07\r\n\x00\ud800\u202e")))
@example(HOSTILE)
@example("\x1b\x1b[[mm")
@settings(max_examples=300, deadline=None)
def test_cleaning_leaves_what_can_be_shown_and_kept(text: str) -> None:
    """A cleaned text holds nothing that steers a terminal, is one that files and databases take, and stays as it is."""
    cleaned = clean(text)
    assert not UNFIT.search(cleaned)
    assert cleaned.encode().decode() == cleaned
    assert clean(cleaned) == cleaned
    assert len(one_line(text).splitlines()) <= 1


@pytest.mark.parametrize("text", ["plain", "L'été à Zürich 東京 🚀\n\tindented", "Quota 'CPUS' exceeded."])
def test_harmless_texts_stay(text: str) -> None:
    """Letters of all languages, line ends and tabs are left as they are."""
    assert clean(text) == text


@given(st.text(max_size=80), st.integers(10, 60))
def test_a_cut_text_keeps_both_ends(text: str, longest: int) -> None:
    """A text is never longer than it may be; of a longer one the beginning and the end are kept."""
    kept = cut(text, longest)
    assert len(kept) <= longest
    assert kept == text or (text.startswith(kept.partition("\n…\n")[0]) and text.endswith(kept[-(longest // 3) :]))


@pytest.mark.parametrize("seed", SEEDS)
def test_no_text_takes_long(seed: str) -> None:
    """A megabyte of what the patterns look for is cleaned, judged and told in less than seconds."""
    text = seed * (1_000_000 // len(seed))
    message = Message(text=text, importance=Importance.ERROR, at=NOW)
    began = time.process_time()
    clean(text)
    plain(text)
    classify(Signals(messages=(message,), state=JobState.FAILED))
    classify_launch(1, [text])
    assert time.process_time() - began < 5


@given(st.lists(st.sampled_from([piece for rule in RULES for piece in rule.example.split()] + list(SEEDS)), max_size=6))
@settings(max_examples=25, deadline=None)
def test_no_row_takes_long(pieces: list[str]) -> None:
    """Pieces of the service's own words, repeated for as long as a text is read, cost no row more than a moment."""
    text = hear("".join(pieces) * 3_000).whole
    began = time.process_time()
    for rule in RULES:
        rule.pattern.search(text)
    assert time.process_time() - began < 4


def test_lines_of_a_launcher_are_lines() -> None:
    """A launcher's line is logged as one line without escapes, whatever it overwrites."""
    program = "import sys; sys.stdout.buffer.write(b'\\x1b[2Ja\\rb\\x00\\xff\\xc2\\x85c\\n' + b'x' * 3_000_000)"
    with Launcher(["python3", "-c", program]) as launcher:
        lines: list[str] = []
        while launcher.poll() is None:
            lines += launcher.new_lines()
            time.sleep(0.05)
        lines += launcher.new_lines()
        assert lines[0] == "a b\ufffd\ufffd c"
        assert [len(line) for line in lines[1:]] == [5_000]
        assert not any(UNFIT.search(line) for line in launcher.tail())


class EndlessSession(GoogleSession):
    """A Google whose every page says a lot, and has another page behind it."""

    def __init__(self, texts: int) -> None:
        self.asked = 0
        self._texts = texts

    @property
    def project(self) -> str:
        """The project."""
        return "acme"

    def request(self, *_: Any, **__: Any) -> dict[str, Any]:
        """Return one more page."""
        self.asked += 1
        entries = [{"messageText": f"{self.asked} {n} " + "x" * 50_000, "id": f"{n}"} for n in range(self._texts)]
        return {"jobMessages": entries, "jobs": [], "nextPageToken": "more"}


def test_messages_without_end_are_bounded() -> None:
    """Of endless pages of long messages only so many are read, and of these the newest so many characters kept."""
    session = EndlessSession(texts=5)
    messages, _ = DataflowHook(session).messages("job", "us-central1")
    assert session.asked <= 200
    assert sum(len(message.text) for message in messages) <= dataflow.MOST_CHARACTERS
    assert len(messages) > 100
    assert messages[-1].text.startswith(f"{session.asked} ")
    assert max(len(message.text) for message in messages) <= LONGEST


def test_a_list_without_end_is_no_answer() -> None:
    """A list of jobs that does not end is refused, since "there is no such job" would not follow from it."""
    with pytest.raises(GoogleApiError, match="more than 200 pages"):
        DataflowHook(EndlessSession(texts=0)).list_active("us-central1")


def test_evidence_cannot_pass_for_the_report() -> None:
    """What a service or a pipeline said is set in, so that no line of it looks like one of the report's own."""
    faked = "No place could run score. Tried 0, skipped 0.\n\n1. nvidia-l4 in us-central1: stockout"
    said = Failure(kind=FailureKind.USER_CODE, scope=Scope.JOB, explanation="it raised", evidence=faked)
    own, _, rest = report("score", running(), said).partition("\n\n")
    assert own.startswith("score failed on nvidia-l4")
    assert all(line.startswith("  ") for line in rest.splitlines())


def test_a_failure_can_be_kept(capsys: pytest.CaptureFixture[str]) -> None:
    """What is judged of a hostile message is plain JSON that any database takes, and bounded."""
    message = Message(text=HOSTILE * 50_000, importance=Importance.ERROR, at=NOW)
    failure = classify(Signals(messages=(message,), state=JobState.FAILED))
    assert failure
    kept = json.dumps(failure.to_json(), ensure_ascii=False)
    assert kept.encode()
    assert "\\u0000" not in kept
    assert len(kept) < 20_000
    _tables.show(failure.evidence)
    assert not UNFIT.search(capsys.readouterr().out)
