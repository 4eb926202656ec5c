"""What the documentation lists is what the operator takes."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

from airflow_accel_provider.operators._job import AcceleratorJobOperator
from airflow_accel_provider.operators.beam import BeamGpuPipelineOperator

DOCS = Path(__file__).parents[2] / "docs"
ROW = re.compile(r"^\| `(?P<name>\w+)` \| .+? \| (?P<default>.+?) \| (?P<templated>yes|no) \|", re.MULTILINE)


def rows() -> dict[str, re.Match[str]]:
    return {row["name"]: row for row in ROW.finditer((DOCS / "parameters.md").read_text(encoding="utf-8"))}


def signature() -> dict[str, inspect.Parameter]:
    classes = [each for each in BeamGpuPipelineOperator.__mro__ if issubclass(each, AcceleratorJobOperator)]
    parameters = {
        name: p for cls in reversed(classes) for name, p in inspect.signature(cls.__init__).parameters.items()
    }
    return {name: p for name, p in parameters.items() if name not in {"self", "kwargs", "args"}}


def test_the_table_is_complete() -> None:
    """Every parameter has a row, and every row is a parameter."""
    assert set(rows()) == set(signature())


def test_defaults_are_true() -> None:
    """The defaults in the table are those of the code."""
    for name, parameter in signature().items():
        shown = rows()[name]["default"].replace("`", "")
        if parameter.default is inspect.Parameter.empty:
            assert shown == "required", name
        elif isinstance(parameter.default, tuple):
            assert shown in {", ".join(map(str, parameter.default)), "()"}, name
        else:
            assert shown == str(parameter.default), name


def test_templated_is_true() -> None:
    """A parameter is marked as templated exactly when Airflow renders it."""
    templated = {name for name, row in rows().items() if row["templated"] == "yes"}

    assert templated == set(BeamGpuPipelineOperator.template_fields)
