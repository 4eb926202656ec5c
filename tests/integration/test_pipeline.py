"""The example's pipeline as a program in a shell, with local paths and Beam's own runner."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.integration.example import PIPELINE, digits

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Put the example's model and images into a directory."""
    directory = tmp_path_factory.mktemp("bucket")
    for name, content in digits().make_objects():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return directory / "digits"


def score(data: Path, images: Path, output: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(PIPELINE), "--input", str(images), "--output", str(output)]
    return subprocess.run(
        [*command, "--model", str(data / "model.pickle")], capture_output=True, text=True, check=False, timeout=300
    )


def test_three_days_are_disjoint_and_make_1200(data: Path) -> None:
    """The three days hold 400 images each and no image twice."""
    days = [path.read_text().splitlines() for path in sorted((data / "images").iterdir())]
    assert [len(day) for day in days] == [400, 400, 400]
    assert len({json.loads(line)["id"] for day in days for line in day}) == 1200


def test_scores_a_day_locally(data: Path, tmp_path: Path) -> None:
    """The pipeline writes one prediction for each image of a day, and the day's check accepts them."""
    images = data / "images" / "2026-03-02.jsonl"
    done = score(data, images, tmp_path / "out.jsonl")
    assert done.returncode == 0, done.stderr
    predictions = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert {each["id"] for each in predictions} == {json.loads(line)["id"] for line in images.read_text().splitlines()}
    summary = digits().summarise("2026-03-02", predictions)
    assert summary["count"] == 400
    assert summary["accuracy"] >= 0.9


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("not json", "Not an image record: 'not json'"),
        ('{"id": "digit-1", "label": 1}', "KeyError: 'pixels'"),
        ('{"id": "digit-1", "label": 1, "pixels": [0, 1]}', "Image digit-1 has 2 pixels, not 64."),
    ],
)
def test_names_a_malformed_record(data: Path, tmp_path: Path, line: str, said: str) -> None:
    """A malformed input line fails the pipeline with words that name it, and leaves no output."""
    images = tmp_path / "bad.jsonl"
    images.write_text(line + "\n")
    done = score(data, images, tmp_path / "out.jsonl")
    assert done.returncode != 0
    assert said in done.stderr
    assert not (tmp_path / "out.jsonl").exists()
