"""Whether what a sensor asks about can be at all: places, jobs, accelerators, reservations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from airflow_accel_provider.core.accelerators import Cpu, Tpu, parse_accelerator
from airflow_accel_provider.core.locations import is_region, is_zone, region_of
from airflow_accel_provider.core.placement import Placement, PlacementError
from airflow_accel_provider.core.problems import Problem, error, nearest, warning
from airflow_accel_provider.core.reservations import Reservation, ReservationError
from airflow_accel_provider.core.spark.catalog import spark_catalog
from airflow_accel_provider.core.validation import check_offer, check_region, check_shape, is_templated

if TYPE_CHECKING:
    from airflow_accel_provider.core.accelerators import Accelerator
    from airflow_accel_provider.core.catalog import Catalog


def read_places(
    placements: Any, *, region: Any, catalog: Catalog, allowed_regions: frozenset[str]
) -> tuple[tuple[Placement, ...], tuple[Problem, ...]]:
    """Read what a sensor was given as ``placements``: the places with their machine types, and what is wrong.

    A place that a template will fill in is left out.
    """
    if is_templated(placements):
        return (), ()
    if not isinstance(placements, list | tuple) or not placements:
        text = f"{placements!r} does not do; give a list of placements such as ['nvidia-l4 in us-central1']."
        return (), (error("not-a-list", text, "placements"),)
    places: list[Placement] = []
    problems: list[Problem] = []
    for n, said in enumerate(placements):
        place = _read(said, region, f"placements[{n}]", problems)
        if place:
            problems += _check_place(place, catalog, f"placements[{n}]", allowed_regions)
            places.append(_with_machine(place, catalog))
    return tuple(places), tuple(problems)


def _read(said: Any, region: Any, where: str, problems: list[Problem]) -> Placement | None:
    if is_templated(said) or is_templated(region):
        return None
    if not isinstance(said, str):
        text = f"{said!r} is not a placement such as 'nvidia-l4 in us-central1'."
        problems.append(error("placement-invalid", text, where))
        return None
    try:
        return Placement.parse(said, region=region if isinstance(region, str) else None)
    except PlacementError as wrong:
        problems.append(error("placement-invalid", f"{wrong}.", where))
        return None


def _check_place(place: Placement, catalog: Catalog, where: str, allowed_regions: frozenset[str]) -> Iterator[Problem]:
    operator = _kind(place.accelerator, catalog)
    yield from check_shape(place, catalog, operator=operator, where=where, first=True)
    yield from check_region(place, catalog, where=where, allowed_regions=allowed_regions)
    yield from check_offer(place, catalog, where=where)


def _kind(accelerator: Accelerator, catalog: Catalog) -> Literal["gpu", "tpu"]:
    type_ = getattr(accelerator, "type", "cpu")
    known_name = catalog.names.get(type_)
    return "tpu" if (known_name.meant if known_name else type_).startswith("tpu-") else "gpu"


def _with_machine(place: Placement, catalog: Catalog) -> Placement:
    machine = place.machine_type or catalog.default_machine(place.accelerator)
    return place.on(machine) if machine else place


def check_job(names: Mapping[str, Any], region: Any, catalog: Catalog) -> Iterator[Problem]:
    """Yield what is wrong with how a job is named: one of the names that a parameter each gives."""
    said = [name for name, value in names.items() if value]
    first = next(iter(names))
    if len(said) > 1:
        yield error("two-jobs", f"There are {_COUNTS[len(said)]} jobs, {_listed(said, 'and')}; give one.", said[0])
    elif not said:
        yield error("job-missing", f"There is no job; give {_listed([f'{each}=' for each in names], 'or')}.", first)
    ids = [(name, value) for name, value in names.items() if name != "job_name"]
    for name, value in (*ids, ("region", region)):
        if not (value is None or isinstance(value, str) or is_templated(value)):
            yield error("wrong-type", f"{value!r} does not do for {name}; give a text.", name)
    yield from _check_job_region(region, catalog)


def _check_job_region(region: Any, catalog: Catalog) -> Iterator[Problem]:
    if not isinstance(region, str) or is_templated(region) or region in catalog.regions:
        return
    if is_zone(region) and region_of(region) in catalog.regions:
        text = f"{region} is a zone; jobs are found by their region, {region_of(region)}."
        yield error("region-invalid", text, "region")
        return
    near = nearest(region, catalog.regions)
    hint = f" Did you mean {near}?" if near else ""
    if is_region(region) and catalog.may_be_new(region):
        yield warning("unknown-region", f"The catalogue has no region {region}.{hint}", "region")
    else:
        yield error("unknown-region", f"There is no region {region}.{hint}", "region")


_COUNTS = {2: "two", 3: "three"}


def _listed(words: Sequence[str], last: str) -> str:
    *first, end = words
    return f"{', '.join(first)} {last} {end}" if first else end


def check_batch_accelerator(said: Any, catalog: Catalog) -> Iterator[Problem]:
    """Yield what is wrong with the accelerator that a Spark batch is expected to have."""
    known = spark_catalog(catalog).accelerators
    if said is None or is_templated(said) or (isinstance(said, str) and said.partition(":")[0] in known):
        return
    right = next((each.type for each in known.values() if each.compute_type == said), None)
    near = right or nearest(str(said), known)
    hint = f" Did you mean {near}?" if near else f" It takes {_listed(list(known), 'or')}."
    yield error("unknown-accelerator", f"Spark has no accelerator {said}.{hint}", "accelerator")


def check_accelerator(said: Any, catalog: Catalog) -> Iterator[Problem]:
    """Yield what is wrong with the accelerator that a job is expected to have."""
    if said is None or is_templated(said):
        return
    try:
        accelerator = parse_accelerator(said)
    except (ValueError, AttributeError) as wrong:
        text = str(wrong) if isinstance(said, str) else f"{said!r} is not an accelerator such as nvidia-l4"
        yield error("accelerator-invalid", f"{text}.", "accelerator")
        return
    if isinstance(accelerator, Cpu):
        yield error("nothing-to-prove", "A cpu needs no proof; name a GPU or TPU, or leave it out.", "accelerator")
        return
    known = catalog.accelerator(accelerator.type) or catalog.tpus_of(accelerator.type)
    if not known:
        yield _unknown(accelerator.type, catalog)
    elif isinstance(accelerator, Tpu) and not catalog.tpu(accelerator.type, accelerator.topology):
        shown = ", ".join(each.topology for each in catalog.tpus_of(accelerator.type))
        yield error("topology", f"{accelerator.type} has no {accelerator.topology}; it has {shown}.", "accelerator")


def _unknown(type_: str, catalog: Catalog) -> Problem:
    name = catalog.names.get(type_)
    near = name.meant if name else nearest(type_, [*catalog.accelerators, *catalog.tpu_types])
    hint = f" Did you mean {near}?" if near else ""
    return error("unknown-accelerator", f"Dataflow has no accelerator {type_}.{hint}", "accelerator")


def read_reservation(said: Any, zone: Any) -> tuple[Reservation | None, tuple[Problem, ...]]:
    """Read what a sensor was given as ``reservation`` and ``zone``: it is ``None`` while it cannot be known."""
    if is_templated(said) or is_templated(zone):
        return None, ()
    if not isinstance(said, str):
        text = f"{said!r} is not a reservation such as projects/P/zones/Z/reservations/NAME."
        return None, (error("reservation-invalid", text, "reservation"),)
    if zone is not None and not (isinstance(zone, str) and is_zone(zone)):
        return None, (error("zone-invalid", f"{zone!r} is not a zone such as europe-west4-a.", "zone"),)
    text = f"zones/{zone}/reservations/{said}" if zone and "/" not in said else said
    try:
        reservation = Reservation.parse(text)
    except ReservationError as wrong:
        hint = ", or give zone=" if "/" not in said else ""
        return None, (error("reservation-invalid", f"{wrong}{hint}.", "reservation"),)
    if zone and reservation.zone != zone:
        text = f"{said} is in {reservation.zone}, not in zone={zone!r}; give the zone once."
        return None, (error("reservation-zone", text, "zone"),)
    return reservation, ()
