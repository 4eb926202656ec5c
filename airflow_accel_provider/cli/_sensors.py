"""What is wrong with the sensors that a mapped one will become."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from airflow_accel_provider.core.problems import Problem, error
from airflow_accel_provider.core.validation import LATER


def is_sensor(cls: type) -> bool:
    """Tell whether a class is one of the sensors, or made from one."""
    from airflow_accel_provider.sensors._base import AcceleratorSensor

    return issubclass(cls, AcceleratorSensor)


def parameters_of_sensor(cls: type) -> frozenset[str]:
    """Return the names of a sensor's parameters, those that only Airflow judges apart."""
    from airflow_accel_provider.sensors._base import AcceleratorSensor

    kinds = [kind for kind in cls.__mro__ if issubclass(kind, AcceleratorSensor)]
    named = [name for kind in kinds if "__init__" in vars(kind) for name in inspect.signature(kind).parameters]
    return frozenset(named) - {"self", "args", "kwargs", "task_id"}


def of_sensor(cls: type, keywords: Mapping[str, Any]) -> tuple[Problem, ...]:
    """Return the problems of the sensor that these keyword arguments make."""
    from airflow_accel_provider.operators._verdict import collecting

    lacking = [name for name in _required(cls) if name not in keywords]
    with collecting() as verdicts:
        sensor = cls(task_id="mapped", **keywords, **dict.fromkeys(lacking, LATER))
    missing = [error("parameter-missing", f"{name} is required.", name) for name in lacking]
    return (*missing, *verdicts.on(sensor))


def _required(cls: type) -> list[str]:
    """Return what a sensor of this provider must be given; what a user's own kind of it must be is not known."""
    from airflow_accel_provider import sensors

    ours = next(kind for kind in cls.__mro__ if kind.__module__.startswith(sensors.__name__))
    parameters = inspect.signature(ours).parameters.items()
    return [name for name, each in parameters if each.default is each.empty and each.kind is each.KEYWORD_ONLY]
