"""What an operator does with its problems: raise and warn, or let somebody collect them."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_accel_provider.exceptions import AcceleratorConfigurationError, AcceleratorWarning
from airflow_accel_provider.operators._verdict import collecting
from airflow_accel_provider.operators.beam import BeamGpuPipelineOperator

WRONG = "nvidia-l4:3 in europe-west3"
DOUBTFUL = "nvidia-l4 in us-south1"


def operator(placement: str, **parameters: Any) -> BeamGpuPipelineOperator:
    return BeamGpuPipelineOperator(
        task_id="score",
        placement=placement,
        py_file="gs://acme-ml/score.py",
        sdk_container_image="europe-docker.pkg.dev/acme/beam/gpu:2.77.0",
        pipeline_options={"temp_location": "gs://acme-ml/tmp"},
        **parameters,
    )


@pytest.mark.filterwarnings("error")
def test_collected_problems_neither_raise_nor_warn() -> None:
    """While somebody collects, operators are made whatever is wrong, and each one's problems can be asked for."""
    with collecting() as verdicts:
        made = [operator(WRONG), operator(DOUBTFUL), operator(WRONG, num_workers=0)]
    codes = [[problem.code for problem in verdicts.on(each)] for each in made]
    assert codes[0] == ["count-invalid"]
    assert codes[1] == ["not-offered"]
    assert set(codes[2]) == {"count-invalid", "not-a-number"}


def test_operators_raise_again_afterwards() -> None:
    """Collecting ends with its block, also when the block fails, and what was made outside of it is not in it."""
    with pytest.raises(KeyError), collecting() as verdicts:
        raise KeyError
    with pytest.raises(AcceleratorConfigurationError, match="score cannot run, 1 error"):
        operator(WRONG)
    with pytest.warns(AcceleratorWarning):
        outside = operator(DOUBTFUL)
    assert verdicts.on(outside) == ()
