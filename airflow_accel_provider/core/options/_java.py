"""The argument list of a Beam Java launcher."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from airflow_accel_provider.core.beam_options import load_options
from airflow_accel_provider.core.options._said import own_options, plain_text, users_options

if TYPE_CHECKING:
    from airflow_accel_provider.core.placement import Placement
    from airflow_accel_provider.core.request import BeamRequest


def java_flags(
    request: BeamRequest,
    placement: Placement,
    *,
    project: str,
    job_name: str,
    labels: Mapping[str, str],
    endpoint: str | None = None,
) -> tuple[str, ...]:
    """Return the launcher's arguments, always in the same order.

    ``request`` is what :meth:`BeamRequest.for_candidate` returned for Java. A worker has one Java process however many
    CPUs it has, so there is none to limit.
    """
    table = load_options("java")
    own = own_options(request, placement, project=project, job_name=job_name, labels=labels, endpoint=endpoint)
    options = {"runner": "DataflowRunner", **own, **users_options(request)}
    named = ((table.name_of(name) or name, value) for name, value in options.items())
    return tuple(flag for name, value in named for flag in _flags(name, value))


def _flags(name: str, value: Any) -> tuple[str, ...]:
    """Return the arguments that say one option: Java says no as ``=false``, and maps as JSON."""
    if value is None:
        return ()
    if isinstance(value, list | tuple):
        return tuple(f"--{name}={plain_text(item)}" for item in value)
    return (f"--{name}={plain_text(value)}",)
