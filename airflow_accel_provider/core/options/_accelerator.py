"""Dataflow's ``worker_accelerator``, as a text."""

from __future__ import annotations

from dataclasses import dataclass

from airflow_accel_provider.core.accelerators import Accelerator, Cpu, Gpu, Tpu

_DRIVER = "install-nvidia-driver"
_MPS = "use_nvidia_mps"


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceleratorText:
    """What a text such as ``type:nvidia-l4;count:1;install-nvidia-driver`` asks for.

    ``accelerator`` is ``None`` when it does not name one wholly; ``unknown`` are the tokens that no page documents.
    ``machine_type`` occurs in resource hints only.
    """

    accelerator: Accelerator | None
    machine_type: str | None = None
    unknown: tuple[str, ...] = ()


def worker_accelerator(accelerator: Accelerator, *, driver_version: str | None = None, use_mps: bool = False) -> str:
    """Return the value of Dataflow's ``worker_accelerator``, its tokens in the order that the service documents.

    Raises :class:`ValueError` for CPUs, which ask for none.
    """
    if isinstance(accelerator, Cpu):
        raise ValueError("a placement on CPUs asks for no accelerator")  # noqa: TRY004 - a wrong value of a right type
    if not isinstance(accelerator, Gpu):
        return f"type:{accelerator.type};topology:{accelerator.topology}"
    driver = f"{_DRIVER}:{driver_version}" if driver_version else _DRIVER
    mps = f";{_MPS}" if use_mps else ""
    return f"type:{accelerator.type};count:{accelerator.count};{driver}{mps}"


def read_worker_accelerator(text: str) -> AcceleratorText:
    """Read a value of ``worker_accelerator``, or of an ``accelerator`` hint, that somebody else wrote."""
    tokens = [token.strip() for token in text.split(";") if token.strip()]
    said = {key: value for key, colon, value in (token.partition(":") for token in tokens) if colon}
    known = {"type", "count", "topology", "machine_type", _DRIVER, _MPS}
    return AcceleratorText(
        accelerator=_accelerator(said.get("type"), said.get("count"), said.get("topology")),
        machine_type=said.get("machine_type"),
        unknown=tuple(token for token in tokens if token.partition(":")[0] not in known),
    )


def _accelerator(type_: str | None, count: str | None, topology: str | None) -> Accelerator | None:
    if type_ and topology and not count:
        return Tpu(type_, topology.replace("×", "x"))
    if type_ and count and not topology and count.isascii() and count.isdigit():
        return Gpu(type_, int(count))
    return None
