"""What the documentation lists of Spark batches is what the operator takes."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

from airflow_accel_provider.core.spark import SPARK_OVERRIDABLE
from airflow_accel_provider.operators._job import AcceleratorJobOperator
from airflow_accel_provider.operators.dataproc import DataprocGpuBatchOperator

PAGE = (Path(__file__).parents[2] / "docs" / "spark.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| `(?P<name>\w+)` \| .+? \| (?P<default>.+?) \| (?P<templated>yes|no) \|", re.MULTILINE)
ROWS = {row["name"]: row for row in ROW.finditer(PAGE)}


def signature() -> dict[str, inspect.Parameter]:
    classes = [each for each in DataprocGpuBatchOperator.__mro__ if issubclass(each, AcceleratorJobOperator)]
    said = {name: p for cls in reversed(classes) for name, p in inspect.signature(cls.__init__).parameters.items()}
    return {name: p for name, p in said.items() if name not in {"self", "kwargs", "args"}}


def test_the_table_is_complete_and_true() -> None:
    """Every parameter has a row with its default, and every row is a parameter."""
    shown = {name: row["default"].replace("`", "") for name, row in ROWS.items()}
    assert shown == {name: _default(parameter) for name, parameter in signature().items()}


def _default(parameter: inspect.Parameter) -> str:
    if parameter.default is parameter.empty:
        return "required"
    return (
        ", ".join(map(str, parameter.default)) or "()"
        if parameter.default.__class__ is tuple
        else str(parameter.default)
    )


def test_templated_is_true() -> None:
    """A parameter is marked as templated exactly when Airflow renders it."""
    templated = {name for name, row in ROWS.items() if row["templated"] == "yes"}
    assert templated == set(DataprocGpuBatchOperator.template_fields)


def test_what_a_candidate_may_say_is_told() -> None:
    """The page lists what a candidate may say differently."""
    told = PAGE.partition("whatever of ")[2].partition(" differs there")[0]
    assert set(re.findall(r"`(\w+)`", told)) == SPARK_OVERRIDABLE
