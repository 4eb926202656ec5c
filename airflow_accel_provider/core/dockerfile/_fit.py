"""Whether versions, accelerator and base image fit each other."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from airflow_accel_provider.core.accelerators import Cpu, Gpu, Tpu
from airflow_accel_provider.core.catalog import Catalog
from airflow_accel_provider.core.dockerfile._image import CUDA_BASE, Image, is_bare_cuda, minor_of, release_of
from airflow_accel_provider.core.placement import Placement
from airflow_accel_provider.core.problems import Problem, error, warning
from airflow_accel_provider.core.request import BeamRequest, Candidate
from airflow_accel_provider.core.validation import check_candidate

# From which Beam release on, which Python versions. Up to 2.71 from
# https://cloud.google.com/dataflow/docs/support/beam-runtime-support; 2.72 and later from the classifiers of the
# packages 2.72.0, 2.73.0 and 2.77.0. Read 2026-11-29.
_PYTHONS: Mapping[tuple[int, int], tuple[str, ...]] = {
    (2, 73): ("3.10", "3.11", "3.12", "3.13", "3.14"),
    (2, 70): ("3.10", "3.11", "3.12", "3.13"),
    (2, 69): ("3.9", "3.10", "3.11", "3.12", "3.13"),
    (2, 61): ("3.9", "3.10", "3.11", "3.12"),
    (2, 57): ("3.8", "3.9", "3.10", "3.11", "3.12"),
    (2, 49): ("3.8", "3.9", "3.10", "3.11"),
    (2, 47): ("3.7", "3.8", "3.9", "3.10", "3.11"),
    (2, 43): ("3.7", "3.8", "3.9", "3.10"),
    (2, 39): ("3.7", "3.8", "3.9"),
    (2, 37): ("3.6", "3.7", "3.8", "3.9"),
    (2, 25): ("3.6", "3.7", "3.8"),
}
_NEWEST_KNOWN = (2, 77)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Toolkits:
    """The first CUDA toolkit that knows a GPU, and the first that no longer does; ``source`` says where that stood."""

    first: tuple[int, int] = (0, 0)
    unfit: tuple[int, int] | None = None
    source: str


_AMPERE = _Toolkits(first=(11, 0), source="https://docs.nvidia.com/cuda/ampere-compatibility-guide, read 2026-11-29")
_HOPPER = _Toolkits(first=(11, 8), source="https://docs.nvidia.com/cuda/hopper-compatibility-guide, read 2026-11-29")
_DROPPED = _Toolkits(
    unfit=(13, 0),
    source=(
        "https://github.com/pytorch/pytorch/issues/157517, read 2026-11-29, quotes NVIDIA's release notes: the major "
        "version after 12 drops Pascal and Volta. Which toolkit knew them first was not looked up."
    ),
)
# T4 is in no row: its bounds were not looked up. That P100 and P4 are Pascal, V100 Volta, A100 Ampere and H100 Hopper
# is from memory.
_CUDA: Mapping[str, _Toolkits] = {
    "nvidia-l4": _Toolkits(
        first=(12, 0), source="https://cloud.google.com/dataflow/docs/gpu/use-l4-gpus, read 2026-11"
    ),
    "nvidia-tesla-a100": _AMPERE,
    "nvidia-a100-80gb": _AMPERE,
    "nvidia-h100-80gb": _HOPPER,
    "nvidia-h100-mega-80gb": _HOPPER,
    "nvidia-tesla-v100": _DROPPED,
    "nvidia-tesla-p100": _DROPPED,
    "nvidia-tesla-p4": _DROPPED,
}

_PYTHON = re.compile(r"^3\.\d+$")
_IMAGE = re.compile(r"^[a-z0-9][a-zA-Z0-9._:/@-]*$")
_PACKAGE = re.compile(r"^[A-Za-z0-9][A-Za-z0-9._\-\[\],<>=!~+@:/ ]*$")
_CUDA_TAG = re.compile(r"cuda:?(\d+)\.(\d+)")
_PYTHON_TAG = re.compile(r"(?:^|/)python:(3\.\d+)")
# Where the job will run is another question.
_OF_THE_PLACE = frozenset({"not-offered", "unknown-region", "unknown-zone", "not-on-demand"})


def check_placement(image: Image, placement: Placement, catalog: Catalog) -> Iterator[Problem]:
    """Yield what is wrong with the accelerator and its machine, and with Beam for them."""
    if isinstance(placement.accelerator, Cpu):
        sdk = f"apache/beam_python{image.python_version}_sdk:{image.beam_version}"
        yield error("no-accelerator", f"CPUs need no image of their own; {sdk} does.", "placement")
        return
    known = image.beam_version if release_of(image.beam_version) else None
    request = BeamRequest(beam_version=known)
    operator: Literal["gpu", "tpu"] = "tpu" if isinstance(placement.accelerator, Tpu) else "gpu"
    candidate = Candidate(placement=placement)
    for problem in check_candidate(request, candidate, catalog, operator=operator):
        if problem.where in {"placement", "beam_version"} and problem.code not in _OF_THE_PLACE:
            yield problem


def check_versions(image: Image) -> Iterator[Problem]:
    """Yield what is wrong with the versions of Beam and Python, each and together."""
    release = release_of(image.beam_version)
    if not release or image.beam_version.count(".") < 2:
        hint = f"; the release is {image.beam_version}.0" if release else " such as 2.77.0"
        yield error("beam-version", f"{image.beam_version!r} is not a Beam release{hint}.", "beam_version")
    if not _PYTHON.match(image.python_version):
        minor = ".".join(image.python_version.split(".")[:2])
        hint = f"give {minor}" if _PYTHON.match(minor) else "give major and minor version, such as 3.11"
        text = f"{image.python_version!r} does not do; {hint}, the one that launches the pipeline."
        yield error("python-version", text, "python_version")
        return
    if release:
        yield from _check_pair(release, image)


def _check_pair(release: tuple[int, int], image: Image) -> Iterator[Problem]:
    pythons = next((pythons for first, pythons in _PYTHONS.items() if release >= first), None)
    if pythons is None:
        text = (
            f"Beam {image.beam_version} has no images that a custom container could be made from; 2.25.0 is the first."
        )
        yield error("beam-too-old", text, "beam_version")
        return
    if release > _NEWEST_KNOWN:
        text = f"Beam {image.beam_version} is newer than our table; the Python versions of 2.77 are assumed."
        yield warning("beam-unknown", text, "beam_version")
    if image.python_version not in pythons:
        near = min(pythons, key=lambda each: abs(minor_of(each) - minor_of(image.python_version)))
        text = (
            f"Beam {image.beam_version} runs on Python {', '.join(pythons)}, not {image.python_version}; "
            f"the nearest is {near}."
        )
        yield error("python-version", text, "python_version")


def check_texts(image: Image) -> Iterator[Problem]:
    """Yield what cannot stand in a Dockerfile."""
    if image.base is not None and not _IMAGE.match(image.base):
        yield error("base-invalid", f"{image.base!r} is not an image such as {CUDA_BASE}.", "base")
    for package in image.packages:
        if not _PACKAGE.match(package):
            yield error("package-invalid", f"{package!r} is not a requirement such as torch==2.7.1.", "packages")


def check_base(image: Image, base: str, placement: Placement) -> Iterator[Problem]:
    """Yield why the base image does not fit Python or accelerator."""
    tagged = _PYTHON_TAG.search(base)
    if tagged and tagged[1] != image.python_version:
        text = f"{base} has Python {tagged[1]}, not {image.python_version}; take python:{image.python_version}-slim."
        yield error("base-python", text, "base")
    if is_bare_cuda(base) and "ubuntu" not in base:
        text = f"A Python is installed by apt, for which {base} is not known to do; take an ubuntu tag, {CUDA_BASE}."
        yield error("base-system", text, "base")
    cuda = _CUDA_TAG.search(base)
    if cuda and isinstance(placement.accelerator, Tpu):
        text = f"{base} is made for GPUs; a TPU wants python:{image.python_version}-slim."
        yield error("base-accelerator", text, "base")
    if cuda and isinstance(placement.accelerator, Gpu):
        yield from _check_cuda(base, (int(cuda[1]), int(cuda[2])), placement.accelerator)


def _check_cuda(base: str, toolkit: tuple[int, int], gpu: Gpu) -> Iterator[Problem]:
    known = _CUDA.get(gpu.type)
    if known and toolkit < known.first:
        yield error("cuda-too-old", f"{gpu.type} needs CUDA {_dotted(known.first)} or newer; {base} is older.", "base")
    if known and known.unfit and toolkit >= known.unfit:
        yield error("cuda-too-new", f"CUDA {_dotted(known.unfit)} dropped {gpu.type}; {base} is too new.", "base")


def _dotted(version: tuple[int, int]) -> str:
    return ".".join(map(str, version))
