"""What an image must hold."""

from __future__ import annotations

import re
from dataclasses import dataclass

CUDA_BASE = "nvidia/cuda:12.2.2-cudnn8-runtime-ubuntu22.04"
"""The base of GPU images unless the user says otherwise: no GPU's known bounds exclude it.

That the driver which Dataflow installs by default runs it is from memory; the pages that were read do not say.
"""

_CUDA_IMAGE = re.compile(r"(?:^|/)nvidia/cuda(?:[:@]|$)")
_RELEASE = re.compile(r"^(\d+)\.(\d+)(?:\.\d+(?:rc\d+)?)?$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    """What an image must hold. ``placement`` may leave its location out; ``packages`` are pip requirements."""

    placement: str
    beam_version: str
    python_version: str
    base: str | None = None
    packages: tuple[str, ...] = ()


def is_bare_cuda(base: str) -> bool:
    """Tell whether an image is one of NVIDIA's that bring CUDA and no Python."""
    return bool(_CUDA_IMAGE.search(base))


def release_of(beam_version: str) -> tuple[int, int] | None:
    """Return major and minor number of a Beam release, or ``None`` for what is none."""
    release = _RELEASE.match(beam_version)
    return (int(release[1]), int(release[2])) if release else None


def minor_of(python_version: str) -> int:
    """Return 11 for ``3.11``."""
    return int(python_version.partition(".")[2])
