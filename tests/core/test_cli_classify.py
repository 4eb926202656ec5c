"""``accel classify``: what a failure means, for a program and for a person."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command import accel, lines

STOCKOUT = (
    "Startup of the worker pool in zone europe-west4-a failed to bring up any of the desired 1 workers. "
    "ZONE_RESOURCE_POOL_EXHAUSTED: Instance 'score-1' creation failed: The zone "
    "'projects/acme-ml/zones/europe-west4-a' does not have enough resources available to fulfill the request."
)
REQUEST = {
    "service": "dataflow",
    "signals": {"messages": [{"importance": "error", "text": STOCKOUT}], "state": "failed", "region": "europe-west4"},
}
NAMES = ["kind", "scope", "next", "zone", "region", "metric", "hint_zones", "resource", "explanation"]


def test_one_line_one_answer() -> None:
    """Each request gets one answer with all names; what failed is no failure of the command."""
    ended = accel("classify", "--json", "-", stdin=lines(REQUEST, REQUEST))
    assert ended.code == 0
    assert [list(answer) for answer in ended.answers] == [NAMES, NAMES]
    assert {name: ended.answers[0][name] for name in ("kind", "scope", "next", "zone", "region")} == {
        "kind": "stockout",
        "scope": "zone",
        "next": "other_zone",
        "zone": "europe-west4-a",
        "region": "europe-west4",
    }


def test_a_wrong_request_does_not_stop_the_others() -> None:
    """A request with a misspelt name gets the nearest right one, the next request its answer."""
    wrong = {"service": "dataflow", "signals": {"mesages": []}}
    ended = accel("classify", "--json", "-", stdin=lines(wrong, "x", REQUEST))
    assert "did you mean 'messages'?" in ended.answers[0]["error"]
    assert "error" in ended.answers[1]
    assert ended.answers[2]["kind"] == "stockout"
    assert ended.code == 1


@pytest.mark.parametrize(
    ("arguments", "stdin"),
    [(("--message", STOCKOUT, "--region", "europe-west4"), ""), (("-", "--region", "europe-west4"), STOCKOUT)],
    ids=["flag", "stdin"],
)
def test_a_person_pastes_a_text(arguments: tuple[str, ...], stdin: str) -> None:
    """A text as it was found, by flag or on stdin, is explained in words."""
    ended = accel("classify", *arguments, stdin=stdin)
    assert ended.code == 0
    told = dict(line.split(maxsplit=1) for line in ended.out.splitlines())
    assert told["kind"] == "stockout"
    assert told["next"] == "other zone"
    assert "europe-west4-a" in told["explanation"]


@pytest.mark.parametrize(
    ("text", "kind", "name"),
    [
        ("Quota 'NVIDIA_L4_GPUS' exceeded.  Limit: 1.0 in region us-central1.", "quota", "NVIDIA_L4_GPUS"),
        ("Constraint constraints/compute.vmExternalIpAccess violated for project 1.", "permission", "use_public_ips"),
    ],
)
def test_names_are_told_as_they_are(text: str, kind: str, name: str) -> None:
    """The words of a verdict are spaced for a person; names of quotas and options stay as they are spelt."""
    out = accel("classify", "--message", text).out
    assert dict(line.split(maxsplit=1) for line in out.splitlines())["kind"] == kind
    assert name in out


def test_no_failure_is_told_too() -> None:
    """A job that did well has no kind of failure, and a person is told so."""
    ended = accel("classify", "--message", "Workers have started successfully.", "--state", "done")
    assert ended.code == 0
    assert "nothing here speaks of a failure" in ended.out


def test_flags_and_file_say_the_same(tmp_path: Path) -> None:
    """A request in a file and the same said by flags have the same answer."""
    path = tmp_path / "request.json"
    path.write_text(json.dumps(REQUEST, indent=1), encoding="utf-8")
    by_flags = accel("classify", "--json", "--message", STOCKOUT, "--region", "europe-west4")
    assert accel("classify", "--json", str(path)).answer == by_flags.answer


def test_a_wrong_word_is_told() -> None:
    """A state that there is none of is told with the nearest one, and is a problem."""
    ended = accel("classify", "--message", "x", "--state", "faild")
    assert (ended.code, ended.out) == (1, "")
    assert "failed" in ended.err
