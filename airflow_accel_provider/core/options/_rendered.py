"""What is sent for a request, as lines that a person can read and compare."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from airflow_accel_provider.core.beam_options import Sdk
from airflow_accel_provider.core.options._go import go_flags
from airflow_accel_provider.core.options._java import java_flags
from airflow_accel_provider.core.options._python import beam_flags
from airflow_accel_provider.core.options._said import plain_text
from airflow_accel_provider.core.options._templates import classic_template_launch, flex_template_launch
from airflow_accel_provider.core.ways import sdk_of, way_of

if TYPE_CHECKING:
    from airflow_accel_provider.core.placement import Placement
    from airflow_accel_provider.core.request import BeamRequest

FLAGS: Mapping[Sdk, Callable[..., tuple[str, ...]]] = {"python": beam_flags, "java": java_flags, "go": go_flags}
"""Who writes a launcher's arguments, by the SDK of the pipeline."""


# The name is minted for each attempt, and a project that nobody named is the connection's.
_OF_A_RUN = frozenset({"--job_name=", "--jobName=", "--project="})


def rendered(request: BeamRequest, placement: Placement, *, project: str) -> tuple[str, ...]:
    """Return what the way that the request names would send, always in the same order.

    A launcher's lines are its arguments, a template's are ``field=value`` of the launch's body, an item of a list a
    line. The job's name and the labels of its task are known only to a run. Raises :class:`ValueError` for a request
    that names no way, or several.
    """
    way = way_of(request)
    if way.parameter == "flex_template":
        body = flex_template_launch(
            request,
            placement,
            container_spec_gcs_path=str(request.flex_template),
            job_name="",
            labels={},
            sdk=sdk_of(request),
        )
        return tuple(_lines("", _without_name(body["launchParameter"])))
    if way.parameter == "template":
        launch = classic_template_launch(request, placement, job_name="", labels={}, sdk=sdk_of(request))
        return tuple(_lines("", {"gcsPath": request.template, **_without_name(launch)}))
    flags = FLAGS[way.sdk](request, placement, project=project, job_name="", labels={})
    return tuple(flag for flag in flags if flag not in _OF_A_RUN)


def _without_name(launch: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in launch.items() if name != "jobName"}


def _lines(name: str, value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _lines(f"{name}.{key}" if name else key, item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _lines(name, item)
    else:
        yield f"{name}={plain_text(value)}"
