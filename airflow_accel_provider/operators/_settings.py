"""What an Airflow deployment says, read when a DAG is parsed."""

from __future__ import annotations

import os

from airflow.sdk.configuration import conf


def default_deferrable() -> bool:
    """Return Airflow's ``[operators] default_deferrable`` where the environment sets it, else ``[accel]``'s own.

    Airflow's built-in default is to hold a worker slot, which a job of hours must not do unasked. Airflow also writes
    that default into the configuration file it makes, so a value in the file does not tell that anybody chose it.
    """
    chosen = any(name.startswith("AIRFLOW__OPERATORS__DEFAULT_DEFERRABLE") for name in os.environ)
    section = "operators" if chosen else "accel"
    return bool(conf.getboolean(section, "default_deferrable", fallback=True))


def poll_interval() -> float:
    """Return the seconds between two looks at a job, ``[accel] poll_interval``."""
    return float(conf.getfloat("accel", "poll_interval", fallback=10.0))


def allowed_regions() -> frozenset[str]:
    """Return the regions of ``[accel] allowed_regions``; empty means all."""
    said = conf.get("accel", "allowed_regions", fallback="") or ""
    return frozenset(region.strip() for region in said.split(",") if region.strip())
