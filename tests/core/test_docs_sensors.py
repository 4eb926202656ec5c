"""What the documentation lists of sensors is what they take."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from airflow_accel_provider.get_provider_info import get_provider_info
from airflow_accel_provider.sensors._base import AcceleratorSensor
from airflow_accel_provider.sensors.proof import AcceleratorProofSensor
from airflow_accel_provider.sensors.quota import AcceleratorQuotaSensor
from airflow_accel_provider.sensors.reservation import AcceleratorReservationSensor
from airflow_accel_provider.sensors.utilization import AcceleratorUtilizationSensor

if TYPE_CHECKING:
    from collections.abc import Mapping

PAGE = (Path(__file__).parents[2] / "docs" / "sensors.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| `(?P<name>\w+)` \| .+? \| (?P<default>.+?) \| (?P<templated>yes|no) \|", re.MULTILINE)
SENSORS = (
    AcceleratorQuotaSensor,
    AcceleratorProofSensor,
    AcceleratorReservationSensor,
    AcceleratorUtilizationSensor,
)
SECTIONS = {"All sensors": AcceleratorSensor, **{cls.__name__: cls for cls in SENSORS}}


def section(title: str) -> str:
    return PAGE.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def rows(title: str) -> Mapping[str, re.Match[str]]:
    return {row["name"]: row for row in ROW.finditer(section(title))}


def signature(cls: type) -> dict[str, inspect.Parameter]:
    parameters = inspect.signature(vars(cls)["__init__"]).parameters
    return {name: each for name, each in parameters.items() if name not in {"self", "args", "kwargs"}}


@pytest.mark.parametrize("title", SECTIONS)
def test_tables_are_complete_and_true(title: str) -> None:
    """Every parameter of a sensor has a row with its default, and every row is a parameter."""
    parameters = signature(SECTIONS[title])
    shown = {name: row["default"].replace("`", "") for name, row in rows(title).items()}
    assert shown == {
        name: "required" if each.default is each.empty else str(each.default) for name, each in parameters.items()
    }


@pytest.mark.parametrize("cls", SENSORS)
def test_templated_is_true(cls: type[AcceleratorSensor]) -> None:
    """A parameter is marked as templated exactly when Airflow renders it."""
    both = {**rows("All sensors"), **rows(cls.__name__)}
    assert {name for name, row in both.items() if row["templated"] == "yes"} == set(cls.template_fields)


@pytest.mark.parametrize("cls", SENSORS)
def test_docstrings_have_every_parameter(cls: type[AcceleratorSensor]) -> None:
    """A sensor's docstring explains every parameter of its own."""
    assert set(re.findall(r":param (\w+):", cls.__doc__ or "")) == set(signature(cls))


@pytest.mark.parametrize("cls", SENSORS)
def test_modules_are_named_and_registered(cls: type[AcceleratorSensor]) -> None:
    """The page names the module that a sensor is imported from, and the provider's metadata lists it."""
    (listed,) = get_provider_info()["sensors"]
    assert f"`{cls.__module__}`" in section(cls.__name__)
    assert cls.__module__ in listed["python-modules"]
