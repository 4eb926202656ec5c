"""Whether there is exactly one pipeline, and nothing beside it that goes with another way of submitting."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from airflow_accel_provider.core.beam_options import SDKS
from airflow_accel_provider.core.problems import Problem, error, nearest, warning
from airflow_accel_provider.core.request import read_text
from airflow_accel_provider.core.validation._templated import is_templated
from airflow_accel_provider.core.ways import (
    WAY_NAMES,
    WAY_PARAMETERS,
    Way,
    either,
    takers_of,
    ways_of,
)

if TYPE_CHECKING:
    from airflow_accel_provider.core.request import BeamRequest

_MODULE = re.compile(r"^[^\W\d]\w*(\.[^\W\d]\w*)*$")
_CLASS = re.compile(r"^[^\W\d][\w$]*(\.[^\W\d][\w$]*)*$")
_OBJECT = re.compile(r"^gs://[^/\s]+/[^\r\n]*[^/\r\n]$")


def check_pipeline(request: BeamRequest) -> Iterator[Problem]:
    """Yield what is wrong with the choice of the pipeline itself."""
    ways = ways_of(request)
    if not ways:
        choice = either(f"{name}=" for name in WAY_NAMES)
        yield error("pipeline-missing", f"There is no pipeline; give {choice}.", WAY_NAMES[0])
    elif len(ways) > 1:
        count = "two" if len(ways) == 2 else str(len(ways))
        names = either(way.parameter for way in ways).replace(" or ", " and ")
        yield error("pipeline-twice", f"There are {count} pipelines, {names}; give one.", ways[0].parameter)
    for way in ways:
        value = getattr(request, way.parameter)
        if isinstance(value, str) and not is_templated(value):
            yield from _check_name(way, value)
    yield from _check_sdk(request)
    yield from _check_class(request.job_class)
    yield from _check_environment(request)
    if len(ways) == 1:
        yield from _check_beside(request, ways[0])


def check_parameters(request: BeamRequest, overrides: Mapping[str, Any], where: str) -> Iterator[Problem]:
    """Yield that a candidate has parameters of a template where there is none."""
    ways = ways_of(request)
    if len(ways) == 1 and overrides.get("parameters") and "parameters" not in ways[0].takes:
        yield _of_another_way("parameters", ways[0], f"{where}.parameters")


def check_streaming(request: BeamRequest, wait_until: Any) -> Iterator[Problem]:
    """Yield that a pipeline which says that it streams would be waited for until it is done."""
    if wait_until != "done":
        return
    both = {name: getattr(request, name) for name in ("default_pipeline_options", "pipeline_options", "parameters")}
    said = {where: options for where, options in both.items() if "streaming" in options}
    # The last of them is the one that holds.
    for where, options in list(said.items())[-1:]:
        if read_text(options["streaming"]) is True:
            text = "A streaming pipeline is never done; with wait_until='proven' the task ends once its device is seen."
            yield error("streaming-until-done", text, f"{where}.streaming")


def _check_name(way: Way, value: str) -> Iterator[Problem]:
    name = way.parameter
    if name in ("py_file", "jar", "go_binary") and "://" in value and not value.startswith("gs://"):
        yield error("file-address", f"{value!r} is neither a local path nor in a bucket, gs://BUCKET/PATH.", name)
    elif name == "py_file" and not value.endswith(".py"):
        yield error("py-file", f"{value!r} is not a Python file; its name must end in .py.", name)
    elif name == "py_module" and not _MODULE.match(value):
        yield error("py-module", f"{value!r} is not a module such as acme.pipelines.score.", name)
    elif name == "jar" and not value.endswith(".jar"):
        yield error("jar", f"{value!r} is not a jar; its name must end in .jar.", name)
    elif way.is_template and not _OBJECT.match(value):
        text = f"{value!r} is not the address of a template, such as gs://BUCKET/templates/score.json."
        yield error("template-address", text, name)


def _check_sdk(request: BeamRequest) -> Iterator[Problem]:
    said = request.sdk
    if said is None or is_templated(said):
        return
    if said not in SDKS:
        near = nearest(str(said), SDKS)
        hint = f"Did you mean {near!r}?" if near else f"It is {either(map(repr, SDKS))}."
        yield error("sdk", f"{said!r} is not an SDK of Beam's. {hint}", "sdk")


def _check_class(job_class: Any) -> Iterator[Problem]:
    if isinstance(job_class, str) and not is_templated(job_class) and not _CLASS.match(job_class):
        yield error("job-class", f"{job_class!r} is not a class such as com.acme.Score.", "job_class")


def _check_environment(request: BeamRequest) -> Iterator[Problem]:
    """Yield what is wrong with the environment that ``py_requirements`` would make."""
    if request.py_requirements is None and read_text(request.py_system_site_packages) is True:
        text = "It is about the environment that py_requirements makes; without py_requirements it does nothing."
        yield warning("no-environment", text, "py_system_site_packages")
    elif (
        request.py_requirements is not None
        and not request.py_requirements
        and not read_text(request.py_system_site_packages)
    ):
        text = "An empty environment has no Beam; name apache-beam[gcp], or give py_system_site_packages=True."
        yield error("empty-environment", text, "py_requirements")


def _check_beside(request: BeamRequest, way: Way) -> Iterator[Problem]:
    for name in WAY_PARAMETERS:
        value = getattr(request, name)
        # A launcher's SDK may be said, where it is said rightly.
        is_right = name == "sdk" and value == way.sdk
        if name not in way.takes and not is_right and value not in (None, (), [], {}, False):
            yield _of_another_way(name, way, name)


def _of_another_way(name: str, way: Way, where: str) -> Problem:
    instead = "; options of its own go into pipeline_options" if name == "parameters" else ""
    if name == "sdk":
        instead = f", which is {way.sdk}"
    text = f"{name} goes with {either(takers_of(name))}, not with {way.parameter}{instead}."
    return error("parameter-of-another-way", text, where)
