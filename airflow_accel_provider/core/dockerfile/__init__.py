"""A container image whose environment fits an accelerator, as the text of a Dockerfile.

Google's pages show two ways to a GPU image, both followed here: NVIDIA's CUDA images, which get a Python, and images of
frameworks, which bring theirs. TPU images are a plain Python with JAX and the variables that describe the slice.
Sources: https://cloud.google.com/dataflow/docs/gpu/use-gpus and https://cloud.google.com/dataflow/docs/tpu/use-tpus,
read 2026-11.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from airflow_accel_provider.core.accelerators import Tpu
from airflow_accel_provider.core.catalog import Catalog
from airflow_accel_provider.core.checking import problem_json
from airflow_accel_provider.core.dockerfile._fit import check_base, check_placement, check_texts, check_versions
from airflow_accel_provider.core.dockerfile._image import CUDA_BASE, Image
from airflow_accel_provider.core.dockerfile._text import gpu_blocks, tpu_blocks
from airflow_accel_provider.core.placement import Placement, PlacementError
from airflow_accel_provider.core.problems import Problem, error

__all__ = ["CUDA_BASE", "Image", "Written", "write_dockerfile"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """The Dockerfile, ``None`` when there are errors among the problems."""

    problems: tuple[Problem, ...]
    dockerfile: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the answer of ``accel dockerfile``."""
        problems = [problem_json(problem) for problem in self.problems]
        return {"ok": self.dockerfile is not None, "problems": problems, "dockerfile": self.dockerfile}


def write_dockerfile(image: Image, *, catalog: Catalog) -> Written:
    """Return the Dockerfile of an image, or all that is wrong with it. Nothing is raised."""
    try:
        placement = Placement.parse(image.placement, region="us-central1")
    except PlacementError as wrong:
        text = f"{str(wrong)[:1].upper()}{str(wrong)[1:]}."
        return Written(problems=(error("placement-invalid", text, "placement"), *check_versions(image)))
    problems = (*check_placement(image, placement, catalog), *check_versions(image), *check_texts(image))
    base = image.base or _default_base(image, placement)
    if image.base:
        problems += tuple(check_base(image, base, placement))
    if any(problem.is_error for problem in problems):
        return Written(problems=problems)
    blocks = (
        tpu_blocks(image, base, placement, catalog)
        if isinstance(placement.accelerator, Tpu)
        else gpu_blocks(image, base)
    )
    return Written(problems=problems, dockerfile="\n\n".join(blocks) + "\n")


def _default_base(image: Image, placement: Placement) -> str:
    is_tpu = isinstance(placement.accelerator, Tpu)
    return f"python:{image.python_version}-slim" if is_tpu else CUDA_BASE
