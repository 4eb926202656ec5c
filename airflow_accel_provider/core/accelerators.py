"""What a worker is asked to carry: GPUs, a TPU slice, or nothing but CPUs."""

from __future__ import annotations

import re
from dataclasses import dataclass

_TOPOLOGY = re.compile(r"^\d+(?:x\d+)+$")


@dataclass(frozen=True, slots=True)
class Gpu:
    """GPUs of one type on each worker, such as one ``nvidia-l4``."""

    type: str
    count: int = 1

    def __str__(self) -> str:
        return self.type if self.count == 1 else f"{self.type}:{self.count}"


@dataclass(frozen=True, slots=True)
class Tpu:
    """A TPU slice on each worker, such as ``tpu-v6e-slice`` in a 2x2 topology."""

    type: str
    topology: str

    def __str__(self) -> str:
        return f"{self.type}:{self.topology}"


@dataclass(frozen=True, slots=True)
class Cpu:
    """No accelerator: the last resort of a fallback list."""

    def __str__(self) -> str:
        return "cpu"


Accelerator = Gpu | Tpu | Cpu

_TYPE = re.compile(r"[a-z][a-z0-9-]*")


def parse_accelerator(text: str) -> Accelerator:
    """Return the accelerator that ``TYPE``, ``TYPE:COUNT``, ``TYPE:TOPOLOGY`` or ``cpu`` names.

    Localised pages print topologies with a multiplication sign; it is read as ``x``. Raises :class:`ValueError` with
    one sentence when the text has another form. Whether the type exists is for validation to say.
    """
    type_, colon, size = text.strip().lower().replace("×", "x").partition(":")
    if not _TYPE.fullmatch(type_):
        meant = re.sub(r"[_ ]", "-", type_)
        hint = f"; {meant} would be one" if _TYPE.fullmatch(meant) else ""
        known = "such as nvidia-l4, tpu-v6e-slice or cpu"
        raise ValueError(f"{text!r} does not start with an accelerator type {known}{hint}")
    if type_ == "cpu":
        if colon:
            raise ValueError(f"{text!r}: cpu takes no count or topology")
        return Cpu()
    if not colon:
        if type_.startswith("tpu-"):
            # The chips of these stand in three dimensions.
            least = "2x2x1" if type_.startswith(("tpu-v4", "tpu-v5p")) else "1x1"
            raise ValueError(f"{text!r} lacks a topology, such as {type_}:{least}")
        return Gpu(type_)
    if _TOPOLOGY.match(size):
        return Tpu(type_, size)
    if size.isascii() and size.isdigit() and int(size) > 0:
        return Gpu(type_, int(size))
    raise ValueError(f"{text!r}: after the colon comes a count of 1 or more (GPU) or a topology such as 2x2 (TPU)")
