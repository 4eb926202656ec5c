"""Apache Beam pipelines on Dataflow, with GPUs or TPUs."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from airflow_accel_provider.operators._beam import BeamPipelineOperator

__all__ = ["BeamGpuPipelineOperator", "BeamTpuPipelineOperator"]


class BeamGpuPipelineOperator(BeamPipelineOperator):
    """Run a Beam pipeline on Dataflow workers with GPUs.

    The parameters of :class:`~airflow_accel_provider.operators._beam.BeamPipelineOperator` come on top.

    :param driver_version: branch of the NVIDIA driver, such as ``535``
    :param use_mps: let several processes share a GPU by NVIDIA MPS
    """

    accelerators: ClassVar[Literal["gpu", "tpu"]] = "gpu"

    def __init__(
        self, *, placement: str, driver_version: str | None = None, use_mps: bool = False, **kwargs: Any
    ) -> None:
        super().__init__(placement=placement, **kwargs)
        self.driver_version = driver_version
        self.use_mps = use_mps
        self.check()


class BeamTpuPipelineOperator(BeamPipelineOperator):
    """Run a Beam pipeline on Dataflow workers with TPUs, with GPUs as a fallback where they are listed.

    The parameters are those of :class:`~airflow_accel_provider.operators._beam.BeamPipelineOperator`. What is for GPUs
    alone, ``driver_version`` and ``use_mps``, is said in the fallback's mappings.
    """

    ui_color = "#fef7e0"
    accelerators: ClassVar[Literal["gpu", "tpu"]] = "tpu"

    def __init__(self, *, placement: str, **kwargs: Any) -> None:
        super().__init__(placement=placement, **kwargs)
        self.check()
