"""``accel catalog``: what is offered where, for people and programs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from airflow_accel_provider.cli import main
from airflow_accel_provider.core.catalog import load_catalog
from airflow_accel_provider.core.spark import spark_catalog

CATALOG = load_catalog()
SPARK = spark_catalog(CATALOG)
NAMES = [*CATALOG.accelerators, *CATALOG.tpu_types]


@pytest.fixture(autouse=True)
def _no_overlay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AIRFLOW__ACCEL__CATALOG_OVERLAY", raising=False)


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Return the exit code, what was printed and what was complained of."""
    code = main(["catalog", *arguments])
    said = capsys.readouterr()
    return code, said.out, said.err


def answer(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    code, out, _ = run(capsys, *arguments, "--json")
    assert code == 0
    return json.loads(out)


def test_all_accelerators_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    """The list has a line for each accelerator with its sizes, its default machine and its quota."""
    code, out, _ = run(capsys)
    lines = out.splitlines()
    assert code == 0
    of_pipelines, of_batches = (block.splitlines()[1:] for block in out.split("\n\n"))
    assert [line.split()[0] for line in of_pipelines] == NAMES
    assert [line.split()[0] for line in of_batches] == ["l4", "a100-40", "a100-80"]
    assert all(word in of_batches[0] for word in ("1 2 4 8", "4 8 12 16 24 48 96", "NVIDIA_L4_GPUS", "18"))
    l4 = next(line for line in lines if line.startswith("nvidia-l4"))
    assert all(word in l4 for word in ("1 2 4 8", "g2-standard-4", "NVIDIA_L4_GPUS", "44 (18)"))
    rows = answer(capsys)
    assert [row["accelerator"] for row in rows["accelerators"]] == NAMES
    assert [row["accelerator"] for row in rows["spark_accelerators"]] == list(SPARK.accelerators)


def test_the_list_is_narrowed(capsys: pytest.CaptureFixture[str]) -> None:
    """A region leaves the accelerators it has, with its zones by name; an accelerator leaves itself."""
    rows = answer(capsys, "--region", "us-south1")["accelerators"]
    assert {row["accelerator"]: row["zones"] for row in rows}["tpu-v6e-slice"] == [
        *("us-south1-a", "us-south1-ai1b", "us-south1-c"),
    ]
    assert "nvidia-l4" not in {row["accelerator"] for row in rows}
    assert len(answer(capsys, "--accelerator", "nvidia-l4")["accelerators"]) == 1
    code, _, err = run(capsys, "--accelerator", "nvidia-tesla-p4", "--region", "us-south1")
    assert code == 1
    assert "us-west2" in err


def test_spark_is_narrowed_alike(capsys: pytest.CaptureFixture[str]) -> None:
    """Regions of Spark's accelerators are those of Compute Engine's type; an accelerator leaves only itself."""
    said = answer(capsys, "--region", "us-east5")
    assert [row["accelerator"] for row in said["spark_accelerators"]] == ["a100-80"]
    only = answer(capsys, "--accelerator", "a100-40")
    assert (only["accelerators"], [row["accelerator"] for row in only["spark_accelerators"]]) == ([], ["a100-40"])
    assert only["spark_accelerators"][0]["regions"] == list(CATALOG.regions_of("nvidia-tesla-a100"))
    code, _, err = run(capsys, "--accelerator", "l4", "--region", "us-south1")
    assert code == 1
    assert "it has it in asia-east1" in err


@pytest.mark.parametrize("name", SPARK.accelerators)
def test_each_accelerator_of_spark_is_explained(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """An explanation has executors, runtimes with what GPUs need there, quotas, regions, and sources with dates."""
    said, known = answer(capsys, name), SPARK.accelerators[name]
    assert said["compute_type"] == known.compute_type
    assert [(row["cores"], row["gpus"], row["memory_mb"]) for row in said["executors"]] == [
        (each.cores, each.gpus, each.memory_mb) for each in SPARK.shapes_of(name)
    ]
    assert {row["version"]: row["gpu_properties"] for row in said["runtimes"]} == {
        version: runtime.gpu_properties for version, runtime in SPARK.runtimes.items()
    }
    assert [row["metric"] for row in said["quotas"]] == [known.quota_metric, known.queued_quota_metric]
    assert said["regions"] == list(CATALOG.regions_of(known.compute_type))
    assert {row["table"] for row in said["sources"]} == {
        *("zones", "spark_accelerators", "spark_executors", "spark_runtimes"),
    }
    assert all(row["source"] and row["date"] for row in said["sources"])
    code, out, _ = run(capsys, name)
    assert code == 0
    assert all(f"\n{head}" in out for head in ("Executors", "Runtimes", "Properties", "Quotas", "Published", "Sources"))


@pytest.mark.parametrize("name", NAMES)
def test_each_accelerator_is_explained(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """An explanation has machines, zones, quotas, prices with doubts, and of each table its source and date."""
    said = answer(capsys, name)
    assert said["accelerator"] == name
    assert said["zones"] == list(CATALOG.zones_of(name))
    assert len(said["sizes"]) == len(CATALOG.counts_of(name))
    assert said["quotas"]
    assert said["machines"] or said["n1_hosts"]
    assert all(row["low"] <= row["high"] for row in said["prices_usd_per_hour"])
    assert all(row["source"] and row["date"] for row in said["sources"])
    code, out, _ = run(capsys, name)
    assert code == 0
    assert all(f"\n{head}" in out for head in ("Sizes", "Quotas", "Published in", "Price of", "Sources"))


def test_a_machine_type_leads_to_what_it_carries(capsys: pytest.CaptureFixture[str]) -> None:
    """Asked for a machine type, the command explains the accelerator in it."""
    assert answer(capsys, "ct6e-standard-4t")["accelerator"] == "tpu-v6e-slice"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("nvidia-tesla-k80", "retired by Compute Engine on 2024-05-01"),
        ("a4-highgpu-8g", "the nearest is nvidia-h100-80gb"),
        ("v6e", "tpu-v6e-slice"),
        ("nvidia-l44", "Did you mean nvidia-l4?"),
        ("a100-60", "Did you mean a100-"),
        ("quantum", "There are nvidia-l4"),
    ],
)
def test_an_unknown_name_gets_the_nearest(name: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A name that is no accelerator is a problem that names the right one."""
    code, out, err = run(capsys, name)
    assert (code, out) == (1, "")
    assert said in err


def test_an_unknown_region_gets_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    """A misspelt region is a problem that names the right one."""
    code, _, err = run(capsys, "--region", "us-suth1")
    assert code == 1
    assert "Did you mean us-south1?" in err


def overlay_file(folder: Path) -> Path:
    path = folder / "overlay.json"
    table = {"source": "acme's own lists", "date": "2027-01-31", "rows": {"nvidia-l4": ["us-south1-a"]}}
    path.write_text(json.dumps({"zones": table}))
    return path


def test_an_overlay_shows(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """An overlay, named by a flag or by Airflow's variable, shows in lists, and its source in explanations."""
    path = overlay_file(tmp_path)
    said = answer(capsys, "nvidia-l4", "--overlay", str(path))
    assert said["zones"] == ["us-south1-a"]
    assert {"table": "zones", "date": "2027-01-31", "source": "acme's own lists"} in said["sources"]
    monkeypatch.setenv("AIRFLOW__ACCEL__CATALOG_OVERLAY", str(path))
    assert answer(capsys, "--accelerator", "nvidia-l4")["accelerators"][0]["zones"] == ["us-south1-a"]


def test_an_overlay_of_spark_shows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Rows for Spark in an overlay show in an explanation, with their own source and day."""
    path = tmp_path / "overlay.json"
    row = {"type": "l4", "cores": 24, "memory_mb": 80304, "disputed_above_mb": None}
    path.write_text(json.dumps({"spark_executors": {"source": "acme", "date": "2027-01-31", "rows": [row]}}))
    said = answer(capsys, "l4", "--overlay", str(path))
    (changed,) = [each for each in said["executors"] if each["cores"] == 24]
    assert (changed["memory_mb"], changed["disputed_above_mb"], changed["gpus"]) == (80304, None, 2)
    assert {"table": "spark_executors", "date": "2027-01-31", "source": "acme"} in said["sources"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("nvidia-l4", "--project", "acme"), "--project goes with refresh"),
        (("--out", "file"), "--out goes with refresh"),
        (("refresh", "--region", "us-east1"), "--region does not go with refresh"),
        (("nvidia-l4", "--accelerator", "nvidia-l4"), "give one of them"),
        (("nvidia-l4", "nvidia-tesla-t4"), "unrecognized arguments"),
        (("--overlay", "/nowhere/overlay.json"), "cannot be read"),
    ],
)
def test_wrong_usage_is_told(arguments: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Flags that do not go together get a usage line and exit code 2."""
    code, _, err = run(capsys, *arguments)
    assert code == 2
    assert "usage: accel" in err
    assert said in err
