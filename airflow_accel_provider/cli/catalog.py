"""Say what is offered where, explain one accelerator, or write an overlay of what a project lists."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow_accel_provider.cli._deployment import add_overlay, catalog, today
from airflow_accel_provider.cli._lines import print_error, print_json
from airflow_accel_provider.cli._offers import (
    accelerator_names,
    explain,
    explain_text,
    find_accelerator,
    overview,
    overview_text,
)
from airflow_accel_provider.cli._spark_offers import (
    explain_spark,
    explain_spark_text,
    spark_overview,
    spark_overview_text,
)
from airflow_accel_provider.cli._tables import show
from airflow_accel_provider.core.catalog import Catalog
from airflow_accel_provider.core.problems import nearest

if TYPE_CHECKING:
    from airflow_accel_provider.core.spark import SparkCatalog

_REFRESH = "refresh"
_OF_REFRESH = ("project", "out", "endpoint_url")
_EPILOG = """\
accel catalog                           every accelerator with its sizes, quota and zones
accel catalog nvidia-l4                 all about one: machines, quotas, zones, prices and where they are from
accel catalog l4                        the same for a GPU of Spark batches: executors, runtimes, quotas, zones
accel catalog refresh --project acme    an overlay of what the project lists, read with default credentials

Tables are a dated picture: being published in a zone is not being in stock there, and prices are hints with doubts.
Exit code: 0 well, 1 there is no such thing or Google gave no answer, 2 wrong usage."""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare ``accel catalog``."""
    parser = subparsers.add_parser(
        "catalog",
        help="say what is offered where",
        description=__doc__,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("name", metavar="NAME", nargs="?", help=f"an accelerator or machine type, or {_REFRESH!r}")
    parser.add_argument("--accelerator", metavar="TYPE", help="list this accelerator alone")
    parser.add_argument("--region", help="list what this region has")
    parser.add_argument("--json", action="store_true", help="answer as JSON")
    add_overlay(parser)
    refresh = parser.add_argument_group(f"with {_REFRESH}")
    refresh.add_argument("--project", help="project whose lists are read (default: that of the credentials)")
    refresh.add_argument("--out", metavar="FILE", help="where to write the overlay (default: stdout)")
    refresh.add_argument("--endpoint-url", metavar="URL", help="where Google is, for a local one")
    parser.set_defaults(run=run, wrong=parser.error)


def run(arguments: argparse.Namespace) -> int:
    """List, explain or refresh."""
    if arguments.name == _REFRESH:
        return _refresh(arguments)
    for name in _OF_REFRESH:
        if getattr(arguments, name) is not None:
            arguments.wrong(f"--{name.replace('_', '-')} goes with {_REFRESH}")
    known = catalog(arguments)
    try:
        _require_region(arguments.region, known)
        return _explain(arguments, known) if arguments.name else _list(arguments, known)
    except ValueError as unknown:
        return print_error(str(unknown))


def _list(arguments: argparse.Namespace, known: Catalog) -> int:
    spark, region = _spark(known), arguments.region
    accelerator = find_accelerator(arguments.accelerator, known, spark.accelerators) if arguments.accelerator else None
    rows = overview(known, accelerator=accelerator, region=region)
    of_spark = spark_overview(spark, known, accelerator=accelerator, region=region)
    if arguments.json:
        print_json({"accelerators": rows, "spark_accelerators": of_spark})
    elif rows or of_spark:
        tables = (overview_text(rows, region) if rows else "", spark_overview_text(of_spark) if of_spark else "")
        show("\n\n".join(filter(None, tables)))
    else:
        regions = ", ".join(known.regions_of(_compute_type(accelerator or "", spark)))
        elsewhere = f"; it has it in {regions}" if regions else ""
        return print_error(f"The catalogue has no {accelerator or 'accelerator'} in {region}{elsewhere}.")
    return 0 if rows or of_spark else 1


def _explain(arguments: argparse.Namespace, known: Catalog) -> int:
    if arguments.accelerator:
        arguments.wrong("--accelerator lists; a NAME is explained: give one of them")
    spark = _spark(known)
    accelerator = find_accelerator(arguments.name, known, spark.accelerators)
    if accelerator in spark.accelerators:
        said, text = explain_spark(accelerator, spark, known, region=arguments.region), explain_spark_text
    else:
        said, text = explain(accelerator, known, region=arguments.region), explain_text
    print_json(said) if arguments.json else show(text(said))
    return 0


def _spark(known: Catalog) -> SparkCatalog:
    from airflow_accel_provider.core.spark import spark_catalog

    return spark_catalog(known)


def _compute_type(accelerator: str, spark: SparkCatalog) -> str:
    of_spark = spark.accelerators.get(accelerator)
    return of_spark.compute_type if of_spark else accelerator


def _require_region(region: str | None, known: Catalog) -> None:
    if region is None or region in known.regions:
        return
    near = nearest(region, known.regions)
    raise ValueError(f"The catalogue has no region {region}.{f' Did you mean {near}?' if near else ''}")


def _refresh(arguments: argparse.Namespace) -> int:
    for name in ("accelerator", "region"):
        if getattr(arguments, name) is not None:
            arguments.wrong(f"--{name} does not go with {_REFRESH}, which reads everything")
    known = catalog(arguments)

    # Google's libraries take longer to import than everything else here to run.
    from airflow_accel_provider.exceptions import AcceleratorConfigurationError, GoogleApiError
    from airflow_accel_provider.hooks.offers import default_session, read_offers

    try:
        session = default_session(arguments.project, arguments.endpoint_url)
        overlay = read_offers(session, known, day=today().isoformat())
        return _write(overlay, arguments, known)
    except (AcceleratorConfigurationError, GoogleApiError, OSError) as failed:
        return print_error(str(failed))


def _write(overlay: dict[str, Any], arguments: argparse.Namespace, known: Catalog) -> int:
    text = json.dumps(overlay, indent=2)
    if arguments.out is None:
        show(text)
        return 0
    Path(arguments.out).write_text(text + "\n", encoding="utf-8")
    counts = {name: len(table["rows"]) for name, table in overlay.items()}
    merged = known.merged(overlay)
    offered = sum(bool(merged.zones_of(type_)) for type_ in accelerator_names(merged))
    if arguments.json:
        print_json({"out": arguments.out, "rows": counts})
    else:
        rows = ", ".join(f"{count} of {name}" for name, count in counts.items()) or "none"
        show(f"Wrote {arguments.out}: rows {rows}; {offered} accelerators are offered somewhere.")
    return 0
