"""The ways of submitting a Beam pipeline: which parameter names the pipeline, and what goes with it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from airflow_accel_provider.core.beam_options import SDKS, Sdk

_PYTHON = ("py_interpreter", "py_options", "py_requirements", "py_system_site_packages")
_TEMPLATE = ("parameters", "sdk")


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """One way, by the ``parameter`` that names the pipeline.

    ``sdk`` is what the pipeline is written in, of a template unless ``sdk=`` says otherwise. ``takes`` are the
    parameters that mean something for this way and not for every other.
    """

    parameter: str
    sdk: Sdk
    takes: tuple[str, ...] = ()
    is_template: bool = False


WAYS: tuple[Way, ...] = (
    Way(parameter="py_file", sdk="python", takes=_PYTHON),
    Way(parameter="py_module", sdk="python", takes=_PYTHON),
    Way(parameter="jar", sdk="java", takes=("job_class",)),
    Way(parameter="go_binary", sdk="go"),
    Way(parameter="template", sdk="java", takes=_TEMPLATE, is_template=True),
    Way(parameter="flex_template", sdk="python", takes=_TEMPLATE, is_template=True),
)

WAY_NAMES: tuple[str, ...] = tuple(way.parameter for way in WAYS)
WAY_PARAMETERS: tuple[str, ...] = tuple(dict.fromkeys(name for way in WAYS for name in way.takes))
"""What means something for some ways only."""


def ways_of(request: Any) -> tuple[Way, ...]:
    """Return the ways that a request names; a sound one names one."""
    return tuple(way for way in WAYS if getattr(request, way.parameter) is not None)


def way_of(request: Any) -> Way:
    """Return the one way that a request names. Raises :class:`ValueError` for none and for several."""
    (way,) = ways_of(request)
    return way


def sdk_of(request: Any) -> Sdk:
    """Return the SDK whose names the options of a request have; Python's while nobody says."""
    ways = ways_of(request)
    if request.sdk in SDKS and all(way.is_template for way in ways):
        said: Sdk = request.sdk
        return said
    return ways[0].sdk if ways else "python"


def takers_of(parameter: str) -> tuple[str, ...]:
    """Return the ways that a parameter goes with."""
    return tuple(way.parameter for way in WAYS if parameter in way.takes)


def either(names: Iterable[str]) -> str:
    """Return names as a choice: ``a, b or c``."""
    *most, last = names
    return f"{', '.join(most)} or {last}" if most else last
