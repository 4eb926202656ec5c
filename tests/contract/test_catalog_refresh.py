"""``accel catalog refresh`` against the emulator, and quota names against Google's own list of them."""

from __future__ import annotations

import json
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from airflow_accel_provider.cli import main
from airflow_accel_provider.core.catalog import load_catalog

if TYPE_CHECKING:
    from emulators import Emulator

CATALOG = load_catalog()


@pytest.mark.usefixtures("google_environment")
def test_refresh_writes_an_overlay_that_is_taken(
    emulator: Emulator, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The file that refresh writes is an overlay: laid over the catalogue it has the project's zones."""
    path = tmp_path / "overlay.json"
    flags = ["--endpoint-url", emulator.url, "--out", str(path)]
    assert main(["catalog", "refresh", "--project", emulator.project, *flags]) == 0
    assert "12 accelerators are offered" in capsys.readouterr().out
    merged = load_catalog(path)
    assert "us-central1-ai1" in merged.zones_of("tpu-v6e-slice")
    assert main(["catalog", "refresh", "--endpoint-url", emulator.url]) == 0
    assert json.loads(capsys.readouterr().out).keys() == json.loads(path.read_text()).keys()


@pytest.mark.usefixtures("google_environment")
def test_refresh_says_why_it_cannot(emulator: Emulator, capsys: pytest.CaptureFixture[str]) -> None:
    """A project that may not be read, and an address that is none, are each one clear problem."""
    assert main(["catalog", "refresh", "--project", "other", "--endpoint-url", emulator.url]) == 1
    assert "projects/other" in capsys.readouterr().err
    assert main(["catalog", "refresh", "--endpoint-url", "localhost"]) == 1
    assert "is not an address" in capsys.readouterr().err


def test_refresh_without_credentials_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without usable default credentials the problem names them."""
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "missing.json"))
    assert main(["catalog", "refresh", "--project", "acme"]) == 1
    assert "default credentials" in capsys.readouterr().err


def test_quota_metrics_are_compute_engines() -> None:
    """Each metric is in Compute Engine's list, and a type without one has no metric of its name there."""
    documents = resources.files("googleapiclient") / "discovery_cache" / "documents"
    document = json.loads((documents / "compute.v1.json").read_text())
    metrics = set(document["schemas"]["Quota"]["properties"]["metric"]["enum"])
    assert {quota.metric for quota in CATALOG.quotas.values() if quota.metric} <= metrics
    for type_ in ("nvidia-h100-80gb", "nvidia-h100-mega-80gb", "tpu-v6e-slice", "tpu-v5p-slice"):
        assert CATALOG.quota_metric(type_) is None
    assert not {"NVIDIA_H100_GPUS", "NVIDIA_H100_MEGA_GPUS", "TPU_PODSLICE_V6E", "TPU_PODSLICE_V5P"} & metrics
