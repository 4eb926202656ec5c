"""Whether a TPU slice exists, and what its workers need.

Source: https://cloud.google.com/dataflow/docs/tpu/tpu-support and …/tpu/use-tpus, read 2026-11: the combinations of
type, topology and machine type are exact, and the service rejects all others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from airflow_accel_provider.core.accelerators import Gpu, Tpu
from airflow_accel_provider.core.locations import region_of
from airflow_accel_provider.core.problems import Problem, error, nearest, warning
from airflow_accel_provider.core.validation._templated import is_templated

if TYPE_CHECKING:
    from airflow_accel_provider.core.catalog import Catalog, TpuSlice
    from airflow_accel_provider.core.placement import Placement
    from airflow_accel_provider.core.request import BeamRequest

MANY_VCPUS = 100
"""Above so many the page advises fewer threads, which one of its editions calls optional. Source: …/tpu/use-tpus."""

ADVISED_THREADS = 50
"""Source: https://cloud.google.com/dataflow/docs/tpu/troubleshoot-tpus, read 2026-11 ("for example, 50")."""


def check_tpu(placement: Placement, catalog: Catalog, where: str) -> Iterator[Problem]:
    """Yield what is wrong with a placement on a TPU."""
    accelerator = placement.accelerator
    if not isinstance(accelerator, Gpu | Tpu):
        return
    slices = catalog.tpus_of(accelerator.type)
    if not slices:
        yield _unknown_type(accelerator.type, catalog, where)
    elif isinstance(accelerator, Gpu):
        meant = next((each for each in slices if each.chips == accelerator.count), slices[0])
        text = f"{accelerator.type} takes a topology and no count, such as {_spelled(meant)}."
        yield error("count-of-tpu", text, where)
    else:
        known = catalog.tpu(accelerator.type, accelerator.topology)
        if known is None:
            yield _unknown_topology(accelerator, slices, where)
        elif placement.machine_type not in (None, known.machine_type):
            text = f"{_spelled(known)} requires the machine type {known.machine_type}, not {placement.machine_type}."
            yield error("machine-of-tpu", text, where)


def check_tpu_zone(placement: Placement, catalog: Catalog, where: str) -> Iterator[Problem]:
    """Yield a warning where the machines are published, but Google's pages do not name the place for this TPU."""
    if not isinstance(placement.accelerator, Tpu):
        return
    type_ = placement.accelerator.type
    documented = catalog.documented_zones_of(type_)
    published = catalog.zones_of(type_)
    here = [zone for zone in (*documented, *published) if placement.location in (zone, region_of(zone))]
    if documented and here and not set(here) & set(documented):
        text = f"Google's pages do not name {placement.location} for {type_}; they name {', '.join(documented)}."
        yield warning("zone-undocumented", text, where)


def check_tpu_workers(request: BeamRequest, placement: Placement, catalog: Catalog) -> Iterator[Problem]:
    """Yield what the pages advise for the processes and threads on a TPU's host."""
    if not isinstance(placement.accelerator, Tpu):
        return
    if request.sdk_processes == "per_vcpu":
        text = "Only one process can use a TPU; without RunInference or a shared object, take sdk_processes='one'."
        yield warning("processes-on-tpu", text, "sdk_processes")
    known = catalog.tpu(placement.accelerator.type, placement.accelerator.topology)
    threads = request.number_of_worker_harness_threads
    if known and known.vcpus > MANY_VCPUS and not 0 < (threads or 0) <= ADVISED_THREADS:
        text = f"{known.machine_type} has {known.vcpus} vCPUs; fewer threads are advised, such as {ADVISED_THREADS}."
        yield warning("many-threads", text, "number_of_worker_harness_threads")


def check_slice_images(places: Iterable[tuple[str, BeamRequest, Placement]], catalog: Catalog) -> Iterator[Problem]:
    """Yield a warning for each place whose image is also that of another slice: its environment fits one alone.

    ``places`` are the names of parameters, each with the request as it is meant there and the place itself.
    """
    first: dict[str, tuple[str, TpuSlice]] = {}
    for where, request, placement in places:
        tpu, image = placement.accelerator, request.sdk_container_image
        known = catalog.tpu(tpu.type, tpu.topology) if isinstance(tpu, Tpu) else None
        if known is None or not isinstance(image, str) or is_templated(image):
            continue
        other_place, other = first.setdefault(image, (where, known))
        differing = [name for name, value in known.environment.items() if other.environment.get(name) != value]
        if differing:
            wanted = " and ".join(f"{name}={known.environment[name]}" for name in differing)
            text = (
                f"It has the image of {_spelled(other)} ({other_place}); an image carries the environment of one "
                f"slice, and {_spelled(known)} needs {wanted}. Give it an sdk_container_image of its own."
            )
            yield warning("image-of-another-slice", text, where)


def _unknown_type(type_: str, catalog: Catalog, where: str) -> Problem:
    known_name = catalog.names.get(type_)
    if known_name:
        return error("unknown-accelerator", f"{type_} {known_name.why} {known_name.meant}.", where)
    near = nearest(type_, catalog.tpu_types)
    hint = f"Did you mean {near}?" if near else f"It takes {', '.join(catalog.tpu_types)}."
    return error("unknown-accelerator", f"{type_} is not a TPU type that Dataflow takes. {hint}", where)


def _unknown_topology(tpu: Tpu, slices: Iterable[TpuSlice], where: str) -> Problem:
    chips = _chips(tpu.topology)
    fitting = [each for each in slices if each.chips >= chips]
    meant = fitting[0] if fitting else list(slices)[-1]
    only = ", ".join(each.topology for each in slices)
    why = "" if fitting else " A worker is a single host."
    text = f"{tpu.type} comes as {only}, not {tpu.topology}.{why} The nearest is {_spelled(meant)}."
    return error("topology-invalid", text, where)


def _chips(topology: str) -> int:
    chips = 1
    for size in topology.split("x"):
        chips *= int(size)
    return chips


def _spelled(known: TpuSlice) -> str:
    return f"{known.type}:{known.topology}"
