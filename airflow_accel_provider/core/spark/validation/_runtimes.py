"""Whether a runtime version exists and is still maintained."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from airflow_accel_provider.core.problems import Problem, error, nearest, warning
from airflow_accel_provider.core.spark.catalog import is_release
from airflow_accel_provider.core.validation._templated import is_templated

if TYPE_CHECKING:
    from datetime import date

    from airflow_accel_provider.core.spark.catalog import Runtime, SparkCatalog

_WHERE = "runtime_version"


def check_runtime(version: str | None, tables: SparkCatalog, today: date) -> Iterator[Problem]:
    """Yield what is wrong with a version, or what a person should know of it."""
    if version is None or is_templated(version):
        return
    if not is_release(version):
        yield error("runtime-form", f"{version!r} is not a runtime. {_meant(version, tables)}", _WHERE)
    elif version in tables.runtimes:
        yield from _check_ends(tables.runtimes[version], tables, today)
    elif tables.may_be_new(version):
        text = f"The catalogue has no runtime {version}; the rules of {_rules(version, tables)} are applied."
        yield warning("runtime-unknown", text, _WHERE)
    else:
        yield error("runtime-unknown", f"There is no runtime {version}. {_meant(version, tables)}", _WHERE)


def _check_ends(runtime: Runtime, tables: SparkCatalog, today: date) -> Iterator[Problem]:
    instead = f"take {tables.default_runtime}"
    if runtime.usable_until and today > runtime.usable_until:
        yield error("runtime-ended", f"{runtime.version} can be used until {runtime.usable_until}; {instead}.", _WHERE)
    elif runtime.support_ends and today > runtime.support_ends:
        ended = f"Support of {runtime.version} ended on {runtime.support_ends}"
        usable = f", it can be used until {runtime.usable_until}" if runtime.usable_until else ""
        yield warning("runtime-ended", f"{ended}{usable}; {instead}.", _WHERE)
    elif runtime.support_ends is None:
        yield warning("runtime-ended", f"{runtime.version} is no longer supported; {instead}.", _WHERE)


def _rules(version: str, tables: SparkCatalog) -> str:
    known = tables.rules_of(version)
    return known.version if known else tables.default_runtime


def _meant(version: str, tables: SparkCatalog) -> str:
    short = ".".join(version.split(".")[:2])
    if short != version and short in tables.runtimes:
        return f"Its third number cannot be chosen; write {short}."
    near = nearest(version, tables.runtimes)
    return f"Did you mean {near}?" if near else f"It is one of {', '.join(tables.runtimes)}."
