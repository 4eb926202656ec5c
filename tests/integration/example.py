"""The examples' files as modules, as Airflow's dag-processor would load them."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

DAGS = Path(__file__).parents[2] / "dags"
PIPELINE = DAGS / "pipelines" / "score_digits.py"


def digits() -> Any:
    """Load ``dags/digits.py``."""
    if str(DAGS) not in sys.path:
        sys.path.append(str(DAGS))
    return importlib.import_module("digits")
