"""Submitting a Beam pipeline: one protocol, a class for each way."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from airflow_accel_provider.core.ways import way_of
from airflow_accel_provider.hooks.submission._pipeline import Pipeline, Place, Submission, Submitting
from airflow_accel_provider.hooks.submission._programs import GoBinary, JavaJar, PythonFile, PythonModule
from airflow_accel_provider.hooks.submission._templates import ClassicTemplate, FlexTemplate

if TYPE_CHECKING:
    from airflow_accel_provider.core.request import BeamRequest

__all__ = ["Pipeline", "Place", "Submission", "Submitting", "pipeline_of"]

_BY_WAY: Mapping[str, Callable[[BeamRequest], Pipeline]] = {
    "py_file": PythonFile,
    "py_module": PythonModule,
    "jar": JavaJar,
    "go_binary": GoBinary,
    "template": ClassicTemplate,
    "flex_template": FlexTemplate,
}


def pipeline_of(request: BeamRequest) -> Pipeline:
    """Return the pipeline of a request that names exactly one. Raises :class:`ValueError` for others."""
    return _BY_WAY[way_of(request).parameter](request)
