"""``accel dockerfile``: images that fit an accelerator, and combinations that cannot."""

from __future__ import annotations

from typing import Any

import pytest
from command import accel, lines

from airflow_accel_provider.core.catalog import load_catalog


def dockerfile(*arguments: str) -> list[str]:
    ended = accel("dockerfile", *arguments)
    assert ended.code == 0, ended.err
    return ended.out.splitlines()


def answer(**request: Any) -> dict[str, Any]:
    said = {"beam_version": "2.77.0", "python_version": "3.11", **request}
    found: dict[str, Any] = accel("dockerfile", "--json", "-", stdin=lines(said)).answer
    return found


def test_a_cuda_base_gets_its_python() -> None:
    """An image from CUDA's installs the launcher's Python, Beam and packages, and starts Beam's own boot."""
    text = dockerfile(
        *("nvidia-l4", "--beam-version", "2.66.0", "--python-version", "3.11", "--package", "torch==2.7.1")
    )
    assert text[0].startswith("FROM nvidia/cuda:12.")
    assert any("python3.11-dev" in line for line in text)
    assert "RUN python -m venv /tmp/venv \\" in text
    assert "RUN pip install --no-cache-dir 'apache-beam[gcp]==2.66.0' 'torch==2.7.1' \\" in text
    assert "COPY --from=apache/beam_python3.11_sdk:2.66.0 /opt/apache/beam /opt/apache/beam" in text
    assert any(line.startswith("ENV LD_LIBRARY_PATH=/usr/local/nvidia/lib64:") for line in text)
    assert text[-1] == 'ENTRYPOINT ["/opt/apache/beam/boot"]'


def test_a_framework_base_brings_its_python() -> None:
    """An image from a framework's installs no Python but makes sure that it is the launcher's."""
    text = answer(
        placement="nvidia-tesla-t4 in us-central1",
        base="tensorflow/tensorflow:2.5.0-gpu",
        beam_version="2.29.0",
        python_version="3.6",
    )["dockerfile"]
    assert text.startswith("FROM tensorflow/tensorflow:2.5.0-gpu\n")
    assert "apt-get" not in text
    assert "sys.version_info[:2] != (3, 6)" in text
    assert "ln -s" in text
    newer = answer(placement="nvidia-tesla-t4", base="pytorch/pytorch:2.7.1-cuda12.6-cudnn9-runtime")["dockerfile"]
    assert "ln -s" not in newer


@pytest.mark.parametrize("slice_", sorted(load_catalog().tpu_slices), ids=":".join)
def test_a_tpu_image_describes_its_slice(slice_: tuple[str, str]) -> None:
    """An image for a TPU sets all variables of its slice and installs JAX for it."""
    text = answer(placement=":".join(slice_))["dockerfile"].splitlines()
    environment = load_catalog().tpu_slices[slice_].environment
    assert text[0] == "FROM python:3.11-slim"
    assert {f"ENV {name}={value}" for name, value in environment.items()} <= set(text)
    assert len(environment) == 6
    assert any("'jax[tpu]' 'apache-beam[gcp]==2.77.0'" in line for line in text)


def test_versions_default_to_those_installed_here() -> None:
    """Without versions the image has the Beam and the Python that run the command, which launch the pipeline."""
    import platform
    from importlib.metadata import version

    python = ".".join(platform.python_version_tuple()[:2])
    assert f"COPY --from=apache/beam_python{python}_sdk:{version('apache-beam')}" in "\n".join(dockerfile("nvidia-l4"))


WRONG: list[tuple[dict[str, Any], str, str]] = [
    ({"placement": "nvidia-l4", "beam_version": "2.77"}, "beam-version", "2.77.0"),
    ({"placement": "nvidia-l4", "beam_version": "latest"}, "beam-version", "such as 2.77.0"),
    ({"placement": "nvidia-l4", "beam_version": "2.40.0", "python_version": "3.9"}, "beam-too-old", "2.46"),
    ({"placement": "nvidia-tesla-t4", "beam_version": "2.20.0", "python_version": "3.7"}, "beam-too-old", "2.25.0"),
    ({"placement": "nvidia-l4", "python_version": "3.11.7"}, "python-version", "give 3.11"),
    ({"placement": "nvidia-l4", "python_version": "3.9"}, "python-version", "the nearest is 3.10"),
    ({"placement": "nvidia-l4", "python_version": "2.7"}, "python-version", "such as 3.11"),
    ({"placement": "nvidia-l4", "base": "nvidia/cuda:11.0.3-cudnn8-runtime-ubuntu20.04"}, "cuda-too-old", "12.0"),
    ({"placement": "nvidia-tesla-v100", "base": "nvidia/cuda:13.0.1-runtime-ubuntu24.04"}, "cuda-too-new", "13.0"),
    ({"placement": "nvidia-l4", "base": "nvidia/cuda:12.2.2-runtime-ubi9"}, "base-system", "ubuntu"),
    ({"placement": "nvidia-l4", "base": "python:3.12-slim"}, "base-python", "python:3.11-slim"),
    ({"placement": "nvidia-l4", "base": "x\nRUN y"}, "base-invalid", "not an image"),
    ({"placement": "nvidia-l4", "packages": ["torch'; rm -rf /"]}, "package-invalid", "not a requirement"),
    (
        {"placement": "tpu-v6e-slice:2x2", "base": "nvidia/cuda:12.2.2-runtime-ubuntu22.04"},
        "base-accelerator",
        "python:3.11-slim",
    ),
    ({"placement": "cpu"}, "no-accelerator", "apache/beam_python3.11_sdk:2.77.0"),
    ({"placement": "nvidia-l5"}, "unknown-accelerator", "nvidia-l4"),
    ({"placement": "nvidia-l4:3"}, "count-invalid", "nvidia-l4:4"),
    ({"placement": "nvidia l4 please"}, "placement-invalid", "not a placement"),
]


@pytest.mark.parametrize(("request_", "code", "said"), WRONG, ids=[f"{row[1]} {row[2]}" for row in WRONG])
def test_what_cannot_fit(request_: dict[str, Any], code: str, said: str) -> None:
    """What cannot fit is an error that names the nearest that does, and there is no Dockerfile."""
    found = answer(**request_)
    assert (found["ok"], found["dockerfile"]) == (False, None)
    assert [problem["code"] for problem in found["problems"] if problem["severity"] == "error"] == [code]
    assert said in " ".join(problem["message"] for problem in found["problems"])


@pytest.mark.parametrize(
    ("request_", "said"),
    [
        ([], "an object"),
        ({"place": "nvidia-l4"}, "did you mean placement?"),
        ({"placement": 4}, "must be a text"),
        ({"placement": "nvidia-l4", "packages": "torch"}, "a list of texts"),
    ],
)
def test_wrong_requests(request_: Any, said: str) -> None:
    """A request that is none gets one sentence."""
    ended = accel("dockerfile", "--json", "-", stdin=lines(request_))
    assert ended.code == 1
    assert said in ended.answer["error"]


def test_what_nobody_looked_up_is_not_judged() -> None:
    """A toolkit is refused only where a source bounds the GPU's; for a T4 there is none."""
    found = answer(placement="nvidia-tesla-t4", base="nvidia/cuda:10.1-cudnn7-runtime-ubuntu18.04")
    assert (found["ok"], found["problems"]) == (True, [])


def test_a_newer_beam_is_only_warned_of() -> None:
    """A Beam release after those known is taken, with a warning."""
    found = answer(placement="nvidia-l4", beam_version="2.99.0")
    assert found["ok"]
    assert [problem["code"] for problem in found["problems"]] == ["beam-unknown"]


def test_problems_go_to_stderr() -> None:
    """What is wrong does not end up in a file that stdout is sent to."""
    ended = accel("dockerfile", "nvidia-l4", "--python-version", "2.7")
    assert (ended.code, ended.out) == (1, "")
    assert "python_version" in ended.err
