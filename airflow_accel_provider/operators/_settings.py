"""What an Airflow deployment says, read when a DAG is parsed."""

from __future__ import annotations

import os
from configparser import RawConfigParser

from airflow.sdk.configuration import conf

_SECTION, _OPTION = "operators", "default_deferrable"


def default_deferrable() -> bool:
    """Return Airflow's ``[operators] default_deferrable`` where the deployment sets it, else ``True``.

    Airflow's own default is to block a worker slot, which a job of hours must not do unasked; so only a value that
    somebody wrote down counts.
    """
    in_environment = any(name.startswith("AIRFLOW__OPERATORS__DEFAULT_DEFERRABLE") for name in os.environ)
    # The stdlib's own method: Airflow's answers yes for its built-in defaults as well.
    in_file = RawConfigParser.has_option(conf, _SECTION, _OPTION)
    return conf.getboolean(_SECTION, _OPTION) if in_environment or in_file else True


def poll_interval() -> float:
    """Return the seconds between two looks at a job, ``[accel] poll_interval``."""
    return float(conf.getfloat("accel", "poll_interval", fallback=10.0))


def allowed_regions() -> frozenset[str]:
    """Return the regions of ``[accel] allowed_regions``; empty means all."""
    said = conf.get("accel", "allowed_regions", fallback="") or ""
    return frozenset(region.strip() for region in said.split(",") if region.strip())
