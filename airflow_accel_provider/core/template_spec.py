"""What a template says of itself: its image, its SDK, and the parameters that it takes.

Source: Dataflow API v1b3, ContainerSpec, TemplateMetadata and ParameterMetadata, read 2026-11.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from airflow_accel_provider.core.beam_options import SDKS, Sdk, load_options
from airflow_accel_provider.core.problems import Problem, error, nearest

# Of Beam's options a launch may give most beside the template's own; that a job streams the template itself must say.
_REFUSED = frozenset({"streaming"})
_SDK_NAMES = {"python": "Python", "java": "Java", "go": "Go"}


class TemplateSpecError(ValueError):
    """A file that is not what a template says of itself; the message says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TemplateSpec:
    """What of it matters to a launch.

    ``needs`` tells of each parameter by name whether it must be given; it is ``None`` where the template is silent.
    """

    sdk: Sdk | None = None
    needs: Mapping[str, bool] | None = None


def read_flex_spec(text: str) -> TemplateSpec:
    """Return what a Flex template's container spec says. Raises :class:`TemplateSpecError`."""
    spec = _object(text)
    if not isinstance(spec.get("image"), str) or not spec["image"]:
        raise TemplateSpecError("it has no image, which a Flex template's container spec names")
    told = spec.get("sdkInfo")
    language = str(told.get("language") or "").lower() if isinstance(told, Mapping) else ""
    if not language:
        # Launches of such a spec are refused: "No SDK language information is provided."
        raise TemplateSpecError("it does not say what it is written in, as sdkInfo.language")
    sdk = next((each for each in SDKS if each == language), None)
    return TemplateSpec(sdk=sdk, needs=_needs(spec.get("metadata")))


def read_metadata(text: str) -> TemplateSpec:
    """Return what the metadata beside a classic template says. Raises :class:`TemplateSpecError`."""
    return TemplateSpec(needs=_needs(_object(text)))


def check_spec(spec: TemplateSpec, given: Iterable[str], *, own: Iterable[str], sdk: Sdk) -> Iterator[Problem]:
    """Yield what the template would refuse.

    ``given`` are the parameters of the launch, of which the user's ``own`` stand in ``parameters=`` and the others in
    ``pipeline_options=``. ``sdk`` is what the launch takes the template to be written in.
    """
    if spec.sdk and spec.sdk != sdk:
        text = (
            f"The template is written in {_SDK_NAMES[spec.sdk]}; give sdk={spec.sdk!r}, so that options have its names."
        )
        yield error("sdk-contradicted", text, "sdk")
        return
    if spec.needs is None:
        return
    names = list(given)
    for name in spec.needs:
        if spec.needs[name] and name not in names:
            yield error(
                "template-parameter-missing", f"The template needs {name!r}; give it in parameters=.", "parameters"
            )
    for name in names:
        if name not in spec.needs and (name in _REFUSED or name not in load_options(sdk).options):
            where = "parameters" if name in set(own) else "pipeline_options"
            yield error("template-parameter-unknown", _unknown(name, spec.needs), f"{where}.{name}")


def _unknown(name: str, known: Iterable[str]) -> str:
    near = nearest(name, known)
    hint = f"Did you mean {near!r}?" if near else f"It has {', '.join(known) or 'none'}."
    return f"The template has no parameter {name!r}. {hint}"


def _object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError as wrong:
        raise TemplateSpecError("it is not JSON") from wrong
    if not isinstance(value, dict):
        raise TemplateSpecError("it is not a JSON object")
    return value


def _needs(metadata: Any) -> dict[str, bool] | None:
    """Return which of the parameters must be given; what has a default need not."""
    rows = metadata.get("parameters") if isinstance(metadata, Mapping) else None
    if not isinstance(rows, list):
        return None
    named = [row for row in rows if isinstance(row, Mapping) and isinstance(row.get("name"), str)]
    return {row["name"]: not row.get("isOptional") and row.get("defaultValue") is None for row in named}
