"""Whether a placement is one for Spark, and whether everything that has a location agrees with it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

from airflow_accel_provider.core.accelerators import Accelerator, Gpu, Tpu
from airflow_accel_provider.core.problems import Problem, error, nearest, warning
from airflow_accel_provider.core.spark.request import inside
from airflow_accel_provider.core.spark.validation._words import either
from airflow_accel_provider.core.validation._places import check_region
from airflow_accel_provider.core.validation._templated import is_templated, texts_in

if TYPE_CHECKING:
    from airflow_accel_provider.core.catalog import Catalog
    from airflow_accel_provider.core.placement import Placement
    from airflow_accel_provider.core.spark.catalog import SparkCatalog
    from airflow_accel_provider.core.spark.request import SparkRequest

_SUBNETWORK = re.compile(r"(?:^|/)regions/(?P<region>[a-z0-9-]+)/subnetworks/(?P<name>[a-z0-9-]+)\Z")
_KEY = re.compile(r"projects/[^/]+/locations/(?P<location>[a-z0-9-]+)/keyRings/[^/]+/cryptoKeys/[^/]+")
_EXECUTION = ("environment_config", "execution_config")


def check_placement(
    placement: Placement, catalog: Catalog, tables: SparkCatalog, *, where: str, allowed_regions: frozenset[str]
) -> Iterator[Problem]:
    """Yield what is wrong with the accelerator and the place by themselves."""
    accelerator = placement.accelerator
    plain = replace(placement, zone=None, machine_type=None, accelerator=_in_sparks_words(accelerator, catalog, tables))
    if placement.zone:
        text = f"Spark's service has no knob for a zone, it chooses one in the region itself; write '{plain}'."
        yield error("zone-of-spark", text, where)
    if placement.machine_type:
        text = f"Spark's service takes no machine type; write '{plain}', and executors' cores as spark.executor.cores."
        yield error("machine-of-spark", text, where)
    yield from check_region(replace(placement, zone=None), catalog, where=where, allowed_regions=allowed_regions)
    if isinstance(accelerator, Tpu) or getattr(accelerator, "type", "").startswith("tpu-"):
        yield error("wrong-operator", "Spark has no TPUs; use BeamTpuPipelineOperator for it.", where)
    elif isinstance(accelerator, Gpu) and accelerator.type not in tables.accelerators:
        yield error("unknown-accelerator", _meant(accelerator.type, catalog, tables), where)
    elif isinstance(accelerator, Gpu):
        yield from _check_count(accelerator, tables, where)
        yield from _check_offer(accelerator, placement, catalog, tables, where)


def check_places(request: SparkRequest, placement: Placement) -> Iterator[Problem]:
    """Yield what is bound to another place than the candidate's, or to a zone."""
    for spec in fields(request):
        for where, text in texts_in(getattr(request, spec.name), spec.name):
            if "{zone}" in text and not is_templated(text):
                yield error("zone-not-pinned", "There is no zone to fill {zone} with; use {region}.", where)
    said = inside(request.batch, _EXECUTION)
    execution = said if isinstance(said, Mapping) else {}
    root = ".".join(("batch", *_EXECUTION))
    yield from _check_subnetwork(execution.get("subnetwork_uri"), placement, f"{root}.subnetwork_uri")
    yield from _check_key(execution.get("kms_key"), placement, f"{root}.kms_key")


def _in_sparks_words(accelerator: Accelerator, catalog: Catalog, tables: SparkCatalog) -> Accelerator:
    """Return an accelerator with Spark's name for its type, where that is clear."""
    if not isinstance(accelerator, Gpu):
        return accelerator
    return replace(accelerator, type=_right_name(accelerator.type, catalog, tables) or accelerator.type)


def _right_name(type_: str, catalog: Catalog, tables: SparkCatalog) -> str | None:
    """Return what Spark calls a type of Compute Engine's; nothing for what may mean several, or none."""
    if type_ in tables.accelerators or any(each.startswith(f"{type_}-") for each in tables.accelerators):
        return None
    known = catalog.names.get(type_)
    compute = known.meant if known else type_
    return next((each.type for each in tables.accelerators.values() if each.compute_type == compute), None)


def _meant(type_: str, catalog: Catalog, tables: SparkCatalog) -> str:
    right = _right_name(type_, catalog, tables)
    if right:
        return f"{type_} is not Spark's name for it; it is called {right}."
    starts = [each for each in tables.accelerators if each.startswith(f"{type_}-")]
    near = nearest(type_, tables.accelerators)
    hint = f"Did you mean {either(starts or [near])}?" if starts or near else f"It takes {either(tables.accelerators)}."
    return f"{type_} is not an accelerator that Spark batches take. {hint}"


def _check_count(gpu: Gpu, tables: SparkCatalog, where: str) -> Iterator[Problem]:
    counts = sorted({each.gpus for each in tables.shapes_of(gpu.type)})
    if gpu.count not in counts:
        near = Gpu(gpu.type, min(counts, key=lambda count: (abs(count - gpu.count), -count)))
        text = f"An executor has {either(counts)} of {gpu.type}, not {gpu.count}; the nearest is {near}."
        yield error("count-invalid", text, where)


def _check_offer(
    gpu: Gpu, placement: Placement, catalog: Catalog, tables: SparkCatalog, where: str
) -> Iterator[Problem]:
    compute = Gpu(tables.accelerators[gpu.type].compute_type, gpu.count)
    instead = catalog.offered_instead(replace(placement, accelerator=compute, zone=None))
    if instead:
        text = f"{gpu.type} is not offered in {placement.region}, by the catalogue; it is in {', '.join(instead)}."
        yield warning("not-offered", text, where)


def _check_subnetwork(subnetwork: Any, placement: Placement, where: str) -> Iterator[Problem]:
    if subnetwork is None or is_templated(subnetwork):
        return
    form = _SUBNETWORK.search(subnetwork)
    if form and form["region"] != placement.region:
        text = (
            f"The subnetwork is in {form['region']}, but {placement} needs one in {placement.region}: "
            f"regions/{{region}}/subnetworks/{form['name']} would follow the job."
        )
        yield error("subnetwork-region", text, where)
    elif not form and "/" in subnetwork:
        text = f"{subnetwork!r} is not a subnetwork: its name, or projects/P/regions/{{region}}/subnetworks/NAME."
        yield error("subnetwork-form", text, where)


def _check_key(key: Any, placement: Placement, where: str) -> Iterator[Problem]:
    if key is None or is_templated(key):
        return
    form = _KEY.fullmatch(key)
    if not form:
        text = f"{key!r} is not a key's full name: projects/P/locations/{{region}}/keyRings/R/cryptoKeys/K."
        yield error("kms-key-form", text, where)
    elif form["location"] not in (placement.region, "global"):
        text = (
            f"The key is in {form['location']}, but {placement} needs one in {placement.region}: "
            "locations/{region} would follow the job."
        )
        yield error("kms-key-region", text, where)
