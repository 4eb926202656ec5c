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


def parse_accelerator(text: str) -> Accelerator:
    """Return the accelerator that ``TYPE``, ``TYPE:COUNT``, ``TYPE:TOPOLOGY`` or ``cpu`` names.

    Localised pages print topologies with a multiplication sign; it is read as ``x``. Raises :class:`ValueError` with
    one sentence when the text has another form. Whether the type exists is for validation to say.
    """
    type_, colon, size = text.strip().lower().replace("×", "x").partition(":")
    if not re.fullmatch(r"[a-z][a-z0-9-]*", type_):
        raise ValueError(f"{text!r} does not start with an accelerator type such as nvidia-l4, tpu-v6e-slice or cpu")
    if type_ == "cpu":
        if colon:
            raise ValueError(f"{text!r}: cpu takes no count or topology")
        return Cpu()
    if not colon:
        if type_.startswith("tpu-"):
            raise ValueError(f"{text!r} lacks a topology, such as {type_}:1x1")
        return Gpu(type_)
    if _TOPOLOGY.match(size):
        return Tpu(type_, size)
    if size.isascii() and size.isdigit() and int(size) > 0:
        return Gpu(type_, int(size))
    raise ValueError(f"{text!r}: after the colon comes a count of 1 or more (GPU) or a topology such as 2x2 (TPU)")
