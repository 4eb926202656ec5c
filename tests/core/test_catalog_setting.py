"""``[accel] catalog_overlay``: the operators know what a deployment adds to the catalogue."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from airflow_accel_provider.core.catalog import CatalogError
from airflow_accel_provider.exceptions import AcceleratorConfigurationError
from airflow_accel_provider.operators.beam import BeamGpuPipelineOperator

SETTING = "AIRFLOW__ACCEL__CATALOG_OVERLAY"
TABLES = {
    "accelerators": [{"type": "nvidia-x900", "memory_gb": 180}],
    "machines": [{"name": "x9-gpu-8", "vcpus": 8, "memory_gb": 256, "accelerator": "nvidia-x900", "count": 1}],
    "zones": {"nvidia-x900": ["us-central1-b"]},
}


def operator() -> BeamGpuPipelineOperator:
    return BeamGpuPipelineOperator(
        task_id="score",
        placement="nvidia-x900 on x9-gpu-8 in us-central1",
        py_file="gs://acme-ml/score.py",
        project_id="acme-ml",
        sdk_container_image="us-docker.pkg.dev/acme-ml/beam/gpu:2.77.0",
        pipeline_options={"temp_location": "gs://acme-ml/tmp"},
    )


def test_an_overlay_lets_a_new_accelerator_through(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A GPU type that only the deployment's overlay has is an error without it, and none with it."""
    with pytest.raises(AcceleratorConfigurationError, match="nvidia-x900"):
        operator()
    path = tmp_path / "overlay.json"
    path.write_text(
        json.dumps({name: {"source": "acme", "date": "2027-01-31", "rows": rows} for name, rows in TABLES.items()})
    )
    monkeypatch.setenv(SETTING, str(path))
    assert operator().placement.startswith("nvidia-x900")


def test_a_faulty_overlay_is_told_at_parse(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An overlay that cannot be used is one clear error when the DAG is parsed."""
    path = tmp_path / "overlay.json"
    path.write_text('{"zone": {}}')
    monkeypatch.setenv(SETTING, str(path))
    with pytest.raises(CatalogError, match="did you mean zones"):
        operator()
