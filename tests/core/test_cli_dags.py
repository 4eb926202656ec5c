"""``accel check`` over a folder of DAGs, in processes of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
HEAD = """
from datetime import datetime
from airflow.sdk import DAG, task, task_group
from airflow_accel_provider.operators.beam import BeamGpuPipelineOperator
print("what a DAG file prints")
SAID = dict(
    py_file="gs://acme-ml/score.py",
    sdk_container_image="europe-docker.pkg.dev/acme/beam/gpu:2.77.0",
    pipeline_options={"temp_location": "gs://acme-ml/tmp"},
)
"""
FILES = {
    "good.py": """
with DAG("good", schedule=None):
    BeamGpuPipelineOperator(task_id="score", placement="nvidia-l4 in europe-west3", **SAID)
""",
    "bad.py": """
with DAG("bad", schedule=None, default_args={"project_id": "Acme Prod"}):
    BeamGpuPipelineOperator(task_id="first", placement="nvidia-l4 on n1-standard-4 in europe-west3", **SAID)
    BeamGpuPipelineOperator(task_id="second", placement="nvidia-l4:3 in europe-west3", **SAID)
""",
    "mapped.py": """
with DAG("mapped", schedule=None):
    @task
    def places():
        return ["nvidia-l4 in europe-west3"]

    some = BeamGpuPipelineOperator.partial(task_id="some", **SAID)
    some.expand(placement=["nvidia-l4 in europe-west3", "l4 in europe-west3", "l4 in europe-west3"])
    kinds = BeamGpuPipelineOperator.partial(task_id="kinds", **SAID)
    kinds.expand_kwargs([{"placement": "nvidia-l4 in europe-west3", "num_workers": 0}])
    late = BeamGpuPipelineOperator.partial(task_id="late", num_workers=0, **SAID)
    late.expand(placement=places())
    BeamGpuPipelineOperator.partial(task_id="whole", num_workers=0, **SAID).expand_kwargs(places())
""",
    "watched.py": """
from airflow_accel_provider.sensors.proof import AcceleratorProofSensor
from airflow_accel_provider.sensors.quota import AcceleratorQuotaSensor

with DAG("watched", schedule=None):
    AcceleratorProofSensor(task_id="proof", region="us-central1")
    room = AcceleratorQuotaSensor.partial(task_id="room", num_workers=2, poke_interval=30)
    room.expand(placements=[["nvidia-l4 in us-central1"], ["nvidia-l5 in us-central1"]])

    @task
    def rooms():
        return [{"placements": ["nvidia-l4 in us-central1"]}]

    AcceleratorQuotaSensor.partial(task_id="others", on_unknown="block").expand_kwargs(rooms())
""",
    "grouped.py": """
class Ours(BeamGpuPipelineOperator):
    def __init__(self, *, team, **kwargs):
        super().__init__(labels={"team": team}, **kwargs)

with DAG("grouped", schedule=None):
    @task_group
    def each(place):
        BeamGpuPipelineOperator(task_id="score", placement=place, **SAID)

    each.expand(place=["nvidia-l4 in europe-west3", "nvidia-l4:3 in europe-west3"])
    Ours.partial(task_id="ours", team="ml", **SAID).expand(placement=["nvidia-l4:5 in europe-west3"])
""",
    "misspelt.py": """
with DAG("misspelt", schedule=None):
    BeamGpuPipelineOperator(task_id="score", placement="nvidia-l4 in europe-west3", max_worker=3, **SAID)
""",
    "broken.py": """
import a_module_that_nobody_has
dag = DAG("broken", schedule=None)
""",
}


def check(target: Path, *arguments: str, home: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "airflow_accel_provider.cli", "check", str(target), *arguments]
    env = {**os.environ, "HOME": str(home), "AIRFLOW_HOME": str(home / "airflow"), **environment}
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=120, check=False)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder of DAG files, good and bad."""
    folder = tmp_path_factory.mktemp("dags")
    for name, text in FILES.items():
        (folder / name).write_text(HEAD + text, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a home in which Airflow was never set up."""
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def ended(folder: Path, home: Path) -> subprocess.CompletedProcess[str]:
    """Return a check of the folder that has ended."""
    return check(folder, "--json", home=home)


@pytest.fixture(scope="module")
def answer(ended: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    """Return the answer to the folder."""
    found: dict[str, Any] = json.loads(ended.stdout)
    return found


def problems(answer: dict[str, Any], file: str) -> list[tuple[Any, ...]]:
    names = ("task", "map_index", "code")
    return [tuple(each.get(name) for name in names) for each in answer["problems"] if each["file"] == file]


def test_the_folder_is_counted(ended: subprocess.CompletedProcess[str], answer: dict[str, Any]) -> None:
    """The answer says how much was looked at, errors make the exit code 1, and what DAGs print is kept apart."""
    assert (answer["ok"], answer["files"], answer["tasks"], ended.returncode) == (False, 7, 12, 1)
    assert "what a DAG file prints" in ended.stderr


def test_every_task_of_a_file_is_told(answer: dict[str, Any]) -> None:
    """One wrong task does not hide another of the same file, and what a DAG gives its tasks counts."""
    assert problems(answer, "bad.py") == [
        ("first", None, "project-invalid"),
        ("first", None, "machine-family"),
        ("second", None, "project-invalid"),
        ("second", None, "count-invalid"),
    ]
    assert problems(answer, "good.py") == []


def test_mapped_tasks_are_told_as_far_as_they_are_known(answer: dict[str, Any]) -> None:
    """Each mapped task is checked, its index given, and what another task will give is left alone."""
    assert problems(answer, "mapped.py") == [
        ("some", 1, "unknown-accelerator"),
        ("kinds", 0, "not-a-number"),
        ("late", 0, "not-a-number"),
        ("whole", 0, "not-a-number"),
    ]


def test_tasks_of_mapped_groups_and_of_users_own_kinds_are_told(answer: dict[str, Any]) -> None:
    """A task in a mapped group is checked with each of the group's values; a user's own operator as what it is."""
    assert problems(answer, "grouped.py") == [("each.score", 1, "count-invalid"), ("ours", 0, "count-invalid")]


def test_sensors_are_told_of(answer: dict[str, Any]) -> None:
    """What is wrong with a sensor is told like what is wrong with an operator, mapped ones included."""
    assert problems(answer, "watched.py") == [
        ("proof", None, "job-missing"),
        ("room", 1, "unknown-accelerator"),
        ("others", 0, "on-unknown"),
    ]


def test_a_misspelt_parameter_is_told_with_the_right_one(answer: dict[str, Any]) -> None:
    """A parameter that the operator does not have is an error at its line, with the nearest one."""
    (misspelt,) = [each for each in answer["problems"] if each["file"] == "misspelt.py"]
    lines = (HEAD + FILES["misspelt.py"]).splitlines()
    (at,) = [n for n, line in enumerate(lines, 1) if "max_worker" in line]
    assert (misspelt["code"], misspelt["where"]) == ("import-error", f"line {at}")
    assert "'max_worker'" in misspelt["message"]
    assert misspelt["message"].endswith("Did you mean max_num_workers?")


def test_a_file_that_cannot_be_imported_is_told(answer: dict[str, Any]) -> None:
    """A file that does not import is one error with Python's reason."""
    (broken,) = [each for each in answer["problems"] if each["file"] == "broken.py"]
    assert broken["code"] == "import-error"
    assert "a_module_that_nobody_has" in broken["message"]


def test_nothing_is_left_behind(ended: subprocess.CompletedProcess[str], home: Path) -> None:
    """A check sets up no Airflow and no database in the user's home."""
    assert ended.returncode == 1
    assert list(home.rglob("*")) == []


def test_a_person_reads_it_by_file_and_task(folder: Path, home: Path) -> None:
    """Problems stand under their file, DAG and task; a single file can be checked."""
    told = check(folder / "bad.py", home=home)
    assert told.returncode == 1
    assert told.stdout.splitlines()[0] == "1 file, 2 accelerated tasks: 4 errors"
    assert "bad.py bad second" in told.stdout.splitlines()


def test_a_wrong_overlay_is_wrong_usage(home: Path) -> None:
    """An overlay that cannot be read is told before any DAG is parsed."""
    ended = check(ROOT / "dags", "--overlay", "no-such-file.json", home=home)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "no-such-file.json" in ended.stderr


def test_the_examples_are_well(home: Path) -> None:
    """The project's own DAGs have no problem, and regions may be restricted by a flag."""
    assert check(ROOT / "dags", home=home).returncode == 0
    refused = check(ROOT / "dags", "--json", "--allowed-regions", "us-central1", home=home)
    assert {each["code"] for each in json.loads(refused.stdout)["problems"]} == {"region-not-allowed"}
