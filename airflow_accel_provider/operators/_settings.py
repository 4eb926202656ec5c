"""What an Airflow deployment says, read when a DAG is parsed."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from airflow.sdk.configuration import conf

if TYPE_CHECKING:
    from airflow_accel_provider.core.catalog import Catalog


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


def catalog() -> Catalog:
    """Return the packaged catalogue with the file of ``[accel] catalog_overlay`` laid over it.

    Raises :class:`~airflow_accel_provider.core.catalog.CatalogError` saying everything that is wrong with the file.
    """
    # Not before an operator is made: importing its module stays cheap.
    from airflow_accel_provider.core.catalog import load_catalog

    return load_catalog(conf.get("accel", "catalog_overlay", fallback="") or None)
