"""Whether each property exists in the runtime, has a value that does, and agrees with the placement."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from airflow_accel_provider.core.accelerators import Gpu
from airflow_accel_provider.core.problems import Problem, error, nearest, warning
from airflow_accel_provider.core.request import read_text
from airflow_accel_provider.core.spark.catalog import Property, Runtime, SparkCatalog, release
from airflow_accel_provider.core.spark.properties import (
    ACCELERATOR,
    ROLES,
    derived_properties,
    mode_property,
    property_text,
    runtime_of,
    timeout_property,
)
from airflow_accel_provider.core.spark.sizes import megabytes
from airflow_accel_provider.core.spark.validation._words import either
from airflow_accel_provider.core.validation._templated import is_templated

if TYPE_CHECKING:
    from airflow_accel_provider.core.placement import Placement
    from airflow_accel_provider.core.spark.request import SparkRequest

_OURS = "spark.dataproc."
_STARTS = tuple(f"{_OURS}{role}." for role in ROLES)
_PLUGIN = "com.nvidia.spark.SQLPlugin"
_SHUFFLE = "com.nvidia.spark.rapids.RapidsShuffleManager"
# Google's page has the name without a version, NVIDIA's has one of a Spark release; both are in use.
_SHUFFLES = re.compile(r"com\.nvidia\.spark\.rapids(?:\.spark(?P<digits>[0-9]{3})\w*)?\.RapidsShuffleManager")


def check_properties(request: SparkRequest, tables: SparkCatalog, runtime: Runtime | None) -> Iterator[Problem]:
    """Yield what is wrong with each property by itself; ``runtime`` is ``None`` where it cannot be known yet."""
    for name, value in request.properties.items():
        where = f"properties.{name}"
        known = tables.property_named(name)
        if is_templated(name):
            yield error("property-name", f"{name!r} stays as it is, since Airflow fills no template in a name.", where)
        elif name != name.strip() or name.startswith(("spark:", "dataproc:", "--")):
            right = re.sub(r"^(?:spark:|dataproc:|--(?:conf )?)", "", name.strip()).strip()
            yield error("property-name", f"{name!r} is not a property's name; write {right!r}.", where)
        elif known is None:
            yield from _check_unknown(name, tables, where)
        else:
            yield from _check_known(known, name, value, runtime, where)
    yield from _check_shuffle(request.properties.get("spark.shuffle.manager"), runtime)
    yield from _check_plugins(request.properties.get("spark.plugins"))


def check_conflicts(request: SparkRequest, placement: Placement, tables: SparkCatalog) -> Iterator[Problem]:
    """Yield where the user's properties differ from what the placement, the runtime and the parameters say."""
    gpu = placement.accelerator
    derived = derived_properties(request, placement, tables)
    runtime = runtime_of(request, tables)
    required = runtime.gpu_properties if runtime and isinstance(gpu, Gpu) else {}
    chosen = {name for role in ROLES for name in (mode_property(role), timeout_property(role))}
    for name, value in request.properties.items():
        where, said = f"properties.{name}", property_text(value)
        if is_templated(value):
            continue
        if name == ACCELERATOR and said != derived.get(name):
            text = f"The accelerator comes from the placement, {placement}; leave {said!r} out here."
            yield error("accelerator-pinned", text, where)
        elif name in required and said != required[name] and _is_word(tables.property_named(name), said):
            text = f"A batch with GPUs needs {name}={required[name]} on {_version(runtime)}, not {said!r}."
            yield error("property-required", text, where)
        elif name in chosen and said != derived.get(name, said):
            parameter = "provisioning" if name.endswith("mode") else "allocation_timeout"
            text = f"This says {said!r} where {parameter} says {derived[name]!r}; the property wins."
            yield warning("property-wins", text, where)


def _check_unknown(name: str, tables: SparkCatalog, where: str) -> Iterator[Problem]:
    if not name.startswith(_OURS):
        return
    start = next((each for each in _STARTS if name.startswith(each)), _OURS)
    known = [each.removeprefix(start) for each in tables.properties if each.startswith(start)]
    near = nearest(name.removeprefix(start), known)
    if near:
        yield error("property-unknown", f"The service has no {name}. Did you mean {start}{near}?", where)
    elif start != _OURS:
        yield error("property-unknown", f"The service has no {name}; leave it out.", where)
    else:
        yield warning("property-unknown", f"The catalogue has no {name}; the service refuses unknown names.", where)


def _check_known(known: Property, name: str, value: Any, runtime: Runtime | None, where: str) -> Iterator[Problem]:
    if known.refused:
        yield error("property-refused", f"{name}: {known.refused}.", where)
        return
    if runtime and _is_outside(known, runtime):
        instead = f"; write {known.instead}" if known.instead else "; leave it out"
        text = f"{name} is not a property of runtime {runtime.version}{instead}."
        tell = error if known.outside == "error" else warning
        yield tell("property-of-other-runtime", text, where)
        return
    if not is_templated(value):
        wanted = _wanted(known, property_text(value).strip())
        if wanted:
            yield error("property-value", f"{property_text(value)!r} does not do; give {wanted}.", where)
    if known.advice:
        yield warning("property-advice", known.advice, where)


def _is_outside(known: Property, runtime: Runtime) -> bool:
    version = release(runtime.version)
    too_old = known.since is not None and version < release(known.since)
    return too_old or (known.before is not None and version >= release(known.before))


def _is_word(known: Property | None, said: str) -> bool:
    return known is None or not known.words or said in known.words


def _wanted(known: Property, text: str) -> str | None:
    """Return what the property takes, if the text is not that."""
    if text.lower() in known.refused_words:
        return "another value, batches do not run on YARN, or leave it out"
    if known.kind == "word":
        near = nearest(text, known.words)
        return None if text in known.words else repr(near) if near else either(known.words)
    if known.kind == "flag":
        return None if isinstance(read_text(text), bool) else "true or false"
    if known.kind == "size":
        return None if megabytes(text) is not None else "a whole number and a unit, such as 375g or 9560m"
    if known.kind in ("number", "ratio", "seconds"):
        return None if _is_number(known, text) else _number(known)
    return None


def _is_number(known: Property, text: str) -> bool:
    forms = {"number": r"(\d+)", "ratio": r"(\d+(?:\.\d+)?|\.\d+)", "seconds": r"(\d+)s"}
    form = re.fullmatch(forms[known.kind], text)
    if not form or not text.isascii():
        return False
    number = float(form[1])
    fits = number in known.choices if known.choices else True
    return fits and (known.least or 0) <= number and (known.most is None or number <= known.most)


def _number(known: Property) -> str:
    if known.choices:
        return either(tuple(str(each) for each in known.choices))
    unit = "s" if known.kind == "seconds" else ""
    whole = "a number" if known.kind == "ratio" else "a whole number"
    if known.most is None:
        return f"{whole} of {known.least} or more"
    return f"{whole} from {known.least}{unit} to {known.most}{unit}" + (", with the 's'" if unit else "")


def _check_shuffle(manager: Any, runtime: Runtime | None) -> Iterator[Problem]:
    where = "properties.spark.shuffle.manager"
    if not isinstance(manager, str) or is_templated(manager):
        return
    form = _SHUFFLES.fullmatch(manager)
    if not form and ("rapids" in manager.lower() or nearest(manager, [_SHUFFLE])):
        yield error("shuffle-manager", f"{manager!r} is not RAPIDS' shuffle manager; it is {_SHUFFLE}.", where)
    elif form and form["digits"] and runtime and runtime.spark:
        spark = ".".join(form["digits"][:2])
        if spark != runtime.spark:
            text = f"This shuffle manager is for Spark {spark}, but runtime {runtime.version} has {runtime.spark}."
            yield warning("shuffle-manager-version", f"{text} Without the version it is {_SHUFFLE}.", where)


def _check_plugins(plugins: Any) -> Iterator[Problem]:
    if isinstance(plugins, str) and not is_templated(plugins) and _PLUGIN not in plugins:
        text = f"This replaces the service's own {_PLUGIN}, so that SQL would not run on GPUs; add it to the list."
        yield warning("plugin-missing", text, "properties.spark.plugins")


def _version(runtime: Runtime | None) -> str:
    return f"runtime {runtime.version}" if runtime else "this runtime"
