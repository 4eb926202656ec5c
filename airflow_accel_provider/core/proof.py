"""Is the accelerator really there? Judged from worker VMs, since a running job says nothing about its workers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from airflow_accel_provider.core.accelerators import Accelerator, Cpu, Gpu, Tpu
from airflow_accel_provider.core.jobs import Worker
from airflow_accel_provider.core.machines import family_of

if TYPE_CHECKING:
    from airflow_accel_provider.core.catalog import Catalog


class ProofStatus(StrEnum):
    """``seen``: the device is attached. ``absent``: VMs run without it. The other two: nobody can tell."""

    SEEN = "seen"
    ABSENT = "absent"
    FINISHED_UNSEEN = "finished_unseen"
    UNREADABLE = "unreadable"


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """What shows that the accelerator is there, or that it is not."""

    status: ProofStatus
    source: str
    at: datetime
    machine_type: str | None = None
    accelerator: str | None = None
    count: int | None = None
    zone: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the proof as plain JSON."""
        return asdict(self) | {"status": str(self.status), "at": self.at.isoformat()}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Proof:
        """Return the proof that :meth:`to_json` wrote."""
        return cls(**{**value, "status": ProofStatus(value["status"]), "at": datetime.fromisoformat(value["at"])})


SOURCE_VMS = "compute.instances"


def prove(wanted: Accelerator, workers: tuple[Worker, ...], now: datetime) -> Proof | None:
    """Return what the workers show, or ``None`` while none of them is up and can be read.

    A pipeline with several worker pools needs the device on one of them only, so a single carrier is proof; a job's VMs
    without it, or with another one, are ``absent``, which the caller believes only after a grace.
    """
    # A VM that is still being provisioned shows what was asked for, not what was got.
    running = [worker for worker in workers if worker.is_running and worker.is_legible]
    if not running:
        return None
    carrier = next((worker for worker in running if _carries(worker, wanted)), None)
    return _proof(ProofStatus.SEEN, carrier, now) if carrier else _proof(ProofStatus.ABSENT, running[0], now)


def unseen(now: datetime, *, readable: bool, source: str = SOURCE_VMS) -> Proof:
    """Return the proof of a job that ended before anybody saw its workers."""
    status = ProofStatus.FINISHED_UNSEEN if readable else ProofStatus.UNREADABLE
    return Proof(status=status, source=source, at=now)


def _carries(worker: Worker, wanted: Accelerator) -> bool:
    if isinstance(wanted, Cpu):
        return True
    if isinstance(wanted, Gpu):
        return dict(worker.accelerators).get(wanted.type, 0) >= wanted.count
    return _carries_tpu(worker, wanted)


def _catalog() -> Catalog:
    # Parsing a DAG loads this module; the tables wait until a worker is looked at.
    from airflow_accel_provider.core.catalog import load_catalog

    return load_catalog()


def _carries_tpu(worker: Worker, wanted: Tpu) -> bool:
    """Tell whether a VM is the host of such a slice: by its machine type, and by the chips it has."""
    if not worker.machine_type.startswith(_TPU_HOSTS):
        return False
    catalog = _catalog()
    known = catalog.tpu(wanted.type, wanted.topology)
    if known is None:
        # Of a slice that only a user's overlay has, nothing more is known.
        return True
    name = catalog.compute_name(wanted.type)
    chips = dict(_devices(worker)).get(name, 0 if worker.accelerators else known.chips)
    return family_of(worker.machine_type) == name and chips >= known.chips


def _devices(worker: Worker) -> tuple[tuple[str, int], ...]:
    """Return what a VM carries by Compute's names; the chips of a TPU's host come with its machine type."""
    if worker.accelerators or not worker.machine_type.startswith(_TPU_HOSTS):
        return worker.accelerators
    catalog = _catalog()
    machine = catalog.machine(worker.machine_type)
    return ((catalog.compute_name(machine.accelerator), machine.count),) if machine and machine.accelerator else ()


# Source: https://cloud.google.com/dataflow/docs/tpu/use-tpus ("the machine type starts with ct"), read 2026-11.
_TPU_HOSTS = "ct"


def _proof(status: ProofStatus, worker: Worker, now: datetime) -> Proof:
    accelerator, count = next(iter(_devices(worker)), (None, None))
    return Proof(
        status=status,
        source=SOURCE_VMS,
        at=now,
        machine_type=worker.machine_type,
        accelerator=accelerator,
        count=count,
        zone=worker.zone,
    )
