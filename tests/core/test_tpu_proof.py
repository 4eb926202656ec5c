"""A TPU is proven by a VM that is up, whose machine type is a TPU's host, and whose chips are enough."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from airflow_accel_provider.core.accelerators import Accelerator, Cpu, Gpu, Tpu
from airflow_accel_provider.core.catalog import load_catalog
from airflow_accel_provider.core.jobs import Worker
from airflow_accel_provider.core.offers import TpuSlice
from airflow_accel_provider.core.proof import ProofStatus, prove

NOW = datetime(2026, 11, 29, 12, tzinfo=UTC)
V6E = Tpu("tpu-v6e-slice", "2x2")


def vm(machine_type: str, *accelerators: tuple[str, int], status: str = "running") -> Worker:
    return Worker(
        name="w", status=status, machine_type=machine_type, zone="us-east5-b", accelerators=tuple(accelerators)
    )


@pytest.mark.parametrize("known", load_catalog().tpu_slices.values(), ids=lambda known: known.machine_type)
def test_every_slice_is_proven_by_its_own_machine(known: TpuSlice) -> None:
    """Each documented slice is seen on its machine type, its chips counted under Compute's own name."""
    name = load_catalog().compute_name(known.type)
    wanted = Tpu(known.type, known.topology)
    proof = prove(wanted, (vm(known.machine_type, (name, known.chips)),), NOW)

    assert proof is not None
    assert (proof.status, proof.accelerator, proof.count) == (ProofStatus.SEEN, name, known.chips)


@pytest.mark.parametrize(
    ("worker", "status"),
    [
        (vm("ct6e-standard-4t", ("ct6e", 4)), ProofStatus.SEEN),
        (vm("ct6e-standard-8t", ("ct6e", 8)), ProofStatus.SEEN),
        # The chips come with the machine, so a VM need not list them.
        (vm("ct6e-standard-4t"), ProofStatus.SEEN),
        (vm("ct6e-standard-1t", ("ct6e", 1)), ProofStatus.ABSENT),
        (vm("ct6e-standard-1t"), ProofStatus.ABSENT),
        (vm("ct5lp-hightpu-4t", ("ct5lp", 4)), ProofStatus.ABSENT),
        (vm("ct6e-standard-4t", ("ct5lp", 4)), ProofStatus.ABSENT),
        (vm("n1-standard-4"), ProofStatus.ABSENT),
        (vm("g2-standard-8", ("nvidia-l4", 1)), ProofStatus.ABSENT),
    ],
)
def test_another_machine_is_no_proof(worker: Worker, status: ProofStatus) -> None:
    """A TPU host of another type, or with fewer chips, shows that the asked slice is not there."""
    proof = prove(V6E, (worker,), NOW)

    assert proof is not None
    assert proof.status is status


def test_a_machine_that_is_not_up_proves_nothing() -> None:
    """A TPU's host that is still being provisioned is neither proof nor its opposite."""
    assert prove(V6E, (vm("ct6e-standard-4t", ("ct6e", 4), status="staging"),), NOW) is None


def test_chips_are_counted_where_the_machine_alone_tells_them() -> None:
    """A host that lists no accelerator is proof of the chips its machine type has."""
    proof = prove(V6E, (vm("ct6e-standard-8t"),), NOW)

    assert proof is not None
    assert (proof.accelerator, proof.count) == ("ct6e", 8)


def test_a_slice_of_an_overlay_needs_a_tpu_host() -> None:
    """Of a slice that the packaged tables lack, any TPU's host is proof and no other machine is."""
    seen, absent = (prove(Tpu("tpu-v7-slice", "1x1"), (vm(each),), NOW) for each in ("ct7-a-1t", "n2-standard-8"))

    assert seen is not None
    assert absent is not None
    assert (seen.status, absent.status) == (ProofStatus.SEEN, ProofStatus.ABSENT)


@pytest.mark.parametrize(
    ("wanted", "worker"),
    [(Gpu("nvidia-l4"), vm("g2-standard-8", ("nvidia-l4", 1))), (Cpu(), vm("n2-standard-8"))],
)
def test_the_last_resorts_of_a_tpu_task_prove_themselves(wanted: Accelerator, worker: Worker) -> None:
    """A GPU that a TPU task falls back to is proven by its own device, CPUs by any worker that is up."""
    proof = prove(wanted, (worker,), NOW)

    assert proof is not None
    assert proof.status is ProofStatus.SEEN


def test_a_tpu_host_is_no_proof_of_a_gpu() -> None:
    """A TPU's VM left over from another place does not stand for a GPU."""
    proof = prove(Gpu("nvidia-l4"), (vm("ct6e-standard-4t", ("ct6e", 4)),), NOW)

    assert proof is not None
    assert proof.status is ProofStatus.ABSENT
