"""The example DAG's file as a module, as Airflow's dag-processor would load it."""

from __future__ import annotations

import importlib.util
from functools import cache
from pathlib import Path
from typing import Any

DAGS = Path(__file__).parents[2] / "dags"
PIPELINE = DAGS / "pipelines" / "score_digits.py"


@cache
def example_dag_module() -> Any:
    """Load ``dags/score_digits.py``."""
    spec = importlib.util.spec_from_file_location("example_score_digits", DAGS / "score_digits.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
