"""``accel check`` over requests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from command import accel, lines

GOOD: dict[str, Any] = {
    "operator": "BeamGpuPipelineOperator",
    "placement": "nvidia-l4 on g2-standard-8 in europe-west3",
    "py_file": "gs://acme-ml/pipelines/score.py",
    "sdk_container_image": "europe-docker.pkg.dev/acme/beam/gpu:2.77.0",
    "pipeline_options": {"temp_location": "gs://acme-ml/tmp", "query": "a;b,c 'd'\n\"é\""},
}
BAD = {**GOOD, "placement": "nvidia-l4 on n1-standard-4 in europe-west3", "task_id": "score"}


def test_one_line_one_answer() -> None:
    """Each line gets one answer line in its order, and one wrong request makes the exit code 1."""
    ended = accel("check", "--json", "-", stdin=lines(GOOD, BAD, GOOD))
    assert [answer["ok"] for answer in ended.answers] == [True, False, True]
    assert ended.code == 1
    assert ended.answers[1]["problems"][0] == {
        "severity": "error",
        "code": "machine-family",
        "message": ended.answers[1]["problems"][0]["message"],
        "where": "placement",
    }
    assert "g2-standard" in ended.answers[1]["problems"][0]["message"]


def test_all_well_is_0() -> None:
    """Good requests end with 0, warnings or not."""
    warned = {**GOOD, "sdk_container_image": None}
    ended = accel("check", "--json", "-", stdin=lines(GOOD, warned))
    assert ended.code == 0
    assert [problem["severity"] for problem in ended.answers[1]["problems"]] == ["warning"]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b"nonsense", "no JSON"),
        (b'{"operator": ', "no JSON"),
        (b"\xff\xfe", "UTF-8"),
        (b"[" * 100_000, "deep"),
        (b"1" * 5_000, "digits"),
    ],
    ids=["words", "cut off", "bytes", "deep", "long number"],
)
def test_a_bad_line_does_not_stop_the_others(line: bytes, said: str) -> None:
    """A line that cannot be read gets an answer with an error; the lines after it get theirs."""
    ended = accel("check", "--json", "-", stdin=lines(GOOD).encode() + line + b"\n\n" + lines(GOOD).encode())
    assert [answer["ok"] for answer in ended.answers] == [True, False, True]
    assert said in ended.answers[1]["error"]
    assert ended.code == 1


def test_nothing_in_nothing_out() -> None:
    """No lines are no problem."""
    assert accel("check", "--json", "-") == accel("check", "--json", "-", stdin="\n\n")
    assert accel("check", "--json", "-").code == 0


def test_flags_are_exact() -> None:
    """What is rendered is one argument a string, whatever the characters."""
    rendered = accel("check", "--json", "-", stdin=lines(GOOD)).answer["rendered"]
    assert "--query=a;b,c 'd'\n\"é\"" in rendered
    assert "--dataflow_service_options=worker_accelerator=type:nvidia-l4;count:1;install-nvidia-driver" in rendered


@pytest.mark.parametrize("form", ["one", "list", "lines"])
def test_a_file_of_requests(tmp_path: Path, form: str) -> None:
    """A file holds one request, spread over lines or not, a list of them, or one a line."""
    text = {"one": json.dumps(GOOD, indent=2), "list": json.dumps([GOOD, BAD]), "lines": lines(GOOD, BAD)}[form]
    path = tmp_path / "requests.json"
    path.write_text(text, encoding="utf-8")
    ended = accel("check", str(path), "--json")
    assert [answer["ok"] for answer in ended.answers] == ([True] if form == "one" else [True, False])
    assert ended.code == (0 if form == "one" else 1)


def test_a_person_reads_a_table() -> None:
    """Without --json each problem is a line with its place, after a line that counts them."""
    ended = accel("check", "-", stdin=json.dumps(BAD))
    head, problem = ended.out.splitlines()
    assert head == "score: 1 error"
    assert problem.split()[:2] == ["error", "placement"]
    assert ended.code == 1


def test_a_person_sees_the_flags() -> None:
    """A good request is shown with what would be sent."""
    ended = accel("check", "-", stdin=json.dumps({**GOOD, "pipeline_options": {"temp_location": "gs://acme-ml/tmp"}}))
    assert ended.out.splitlines()[0] == f"{GOOD['placement']}: well"
    assert "  --machine_type=g2-standard-8" in ended.out.splitlines()


def test_odd_characters_can_be_printed() -> None:
    """A lone surrogate in a request does not break the table."""
    ended = accel("check", "-", stdin=json.dumps({**BAD, "task_id": "\ud800"}))
    assert ended.code == 1
    assert "\\ud800" in ended.out


def test_regions_come_from_flag_or_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Allowed regions are those of the flag, else those that Airflow's variable holds."""
    monkeypatch.setenv("AIRFLOW__ACCEL__ALLOWED_REGIONS", "us-central1, us-east4")
    refused = accel("check", "--json", "-", stdin=lines(GOOD)).answer
    assert [problem["code"] for problem in refused["problems"]] == ["region-not-allowed"]
    assert accel("check", "--json", "-", "--allowed-regions", "europe-west3", stdin=lines(GOOD)).code == 0
    assert accel("check", "--json", "-", "--allowed-regions", "", stdin=lines(GOOD)).code == 0


def test_a_broken_line_of_a_file_is_named(tmp_path: Path) -> None:
    """A file of lines that has a broken one is wrong usage, and the line is named."""
    path = tmp_path / "requests.jsonl"
    path.write_text(lines(GOOD) + "oops\n", encoding="utf-8")
    ended = accel("check", str(path))
    assert ended.code == 2
    assert "usage: accel check" in ended.err
    assert "Line 2" in ended.err
