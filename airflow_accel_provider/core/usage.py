"""What a Spark batch uses, by the service's own figures, and what that shows of its accelerator.

Nobody sees a batch's VMs: they are in a project of the service's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from airflow_accel_provider.core.accelerators import Accelerator, Cpu, Gpu
from airflow_accel_provider.core.proof import Proof, ProofStatus

SOURCE_NOW = "dataproc.currentUsage"
SOURCE_END = "dataproc.approximateUsage"

UNNAMED = ""
"""Stands for a type whose name is not known; a batch has GPUs of the one type that it asked for."""

_THOUSAND = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class InUse:
    """What a batch has at one moment, ``at`` by the service's clock: GPUs by Spark's name, in thousandths of one."""

    at: datetime
    gpus: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """What a batch used until its end: seconds of GPUs by Spark's name, of compute units, of GB of shuffle storage."""

    gpu_seconds: Mapping[str, float] = field(default_factory=dict)
    dcu_seconds: float = 0.0
    storage_gb_seconds: float = 0.0

    def to_json(self) -> dict[str, Any]:
        """Return the figures as plain JSON."""
        return {
            "gpu_seconds": dict(self.gpu_seconds),
            "dcu_seconds": self.dcu_seconds,
            "storage_gb_seconds": self.storage_gb_seconds,
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Spent:
        """Return the figures that :meth:`to_json` wrote."""
        return cls(**value)


def prove_in_use(wanted: Accelerator, in_use: InUse) -> Proof:
    """Return what a running batch shows: a single GPU of the wanted type is proof, none is ``absent`` at that moment.

    How many there should be is not asked: executors come and go.
    """
    thousandths = _of(wanted, in_use.gpus)
    if thousandths or isinstance(wanted, Cpu):
        count = max(round(thousandths / _THOUSAND), 1) if thousandths else None
        return _proof(ProofStatus.SEEN, SOURCE_NOW, in_use.at, wanted, count)
    return _proof(ProofStatus.ABSENT, SOURCE_NOW, in_use.at, wanted, 0)


def prove_spent(wanted: Accelerator, spent: Spent, now: datetime) -> Proof:
    """Return what a batch that has ended shows: it used the wanted GPU for a while, or it never did."""
    seen = bool(_of(wanted, spent.gpu_seconds)) or isinstance(wanted, Cpu)
    return _proof(ProofStatus.SEEN if seen else ProofStatus.ABSENT, SOURCE_END, now, wanted, None)


def _of(wanted: Accelerator, by_type: Mapping[str, Any]) -> Any:
    return by_type.get(wanted.type, 0) + by_type.get(UNNAMED, 0) if isinstance(wanted, Gpu) else 0


def _proof(status: ProofStatus, source: str, at: datetime, wanted: Accelerator, count: int | None) -> Proof:
    type_ = wanted.type if isinstance(wanted, Gpu) and status is ProofStatus.SEEN else None
    return Proof(status=status, source=source, at=at, accelerator=type_, count=count)
