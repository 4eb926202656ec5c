"""What a deployment says in its environment, read without Airflow so that a command starts at once."""

from __future__ import annotations

import argparse
import os
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from airflow_accel_provider.core.catalog import Catalog

ALLOWED_REGIONS = "AIRFLOW__ACCEL__ALLOWED_REGIONS"
OVERLAY = "AIRFLOW__ACCEL__CATALOG_OVERLAY"


def add_deployment(parser: argparse.ArgumentParser) -> None:
    """Declare the flags that stand for settings of the ``[accel]`` section."""
    parser.add_argument(
        "--allowed-regions",
        metavar="REGIONS",
        help=f"regions in which jobs may run, separated by commas (default: ${ALLOWED_REGIONS}, else all)",
    )
    add_overlay(parser)


def add_overlay(parser: argparse.ArgumentParser) -> None:
    """Declare the flag that names a file laid over the catalogue."""
    parser.add_argument(
        "--overlay", metavar="FILE", help=f"rows laid over the packaged catalogue (default: ${OVERLAY}, else none)"
    )


def catalog(arguments: argparse.Namespace) -> Catalog:
    """Return the catalogue; ends the command when the overlay is wrong."""
    from airflow_accel_provider.core.catalog import CatalogError, load_catalog

    try:
        return load_catalog(arguments.overlay or os.environ.get(OVERLAY) or None)
    except CatalogError as wrong:
        arguments.wrong(str(wrong))
        raise


def allowed_regions(arguments: argparse.Namespace) -> frozenset[str]:
    """Return the regions in which jobs may run; empty means all."""
    said: str | None = arguments.allowed_regions
    if said is None:
        said = os.environ.get(ALLOWED_REGIONS, "")
    return frozenset(region.strip() for region in said.split(",") if region.strip())


def today() -> date:
    """Return the date that decides what has ended."""
    return datetime.now(UTC).date()
