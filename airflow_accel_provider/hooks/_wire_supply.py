"""Google's JSON of what there is to be had, quotas and reservations, as the core's values.

Missing fields are tolerated, as in :mod:`._wire`, but nothing is decided for lack of them: a reservation that does not
say how much it holds is unreadable. Sources: the discovery document compute v1 and the reference of Cloud Quotas v1,
read 2026-11.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_accel_provider.core.quota import Quota
from airflow_accel_provider.core.reservations import Reservation, ReservationState
from airflow_accel_provider.hooks._fields import Fields, unreadable
from airflow_accel_provider.hooks._wire import (
    instances_from_json,
    last_segment,
    number_from_wire,
    whole_from_wire,
    worker_from_json,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from airflow_accel_provider.core.jobs import Worker

# Statuses in which a VM holds neither machine nor quota. Source: https://cloud.google.com/compute/docs/instances/
# instance-lifecycle, read 2026-11.
_NOT_ALLOCATED = frozenset({"TERMINATED", "STOPPED", "SUSPENDED"})


def quotas_from_json(value: Mapping[str, Any]) -> dict[str, Quota] | None:
    """Return a region's or project's quotas by metric, or ``None`` where the service says that it can't know them."""
    if value.get("quotaStatusWarning") or value.get("quotas") is None:
        return None
    quotas: dict[str, Quota] = {}
    for entry in Fields(value, "compute", "quotas").objects("quotas"):
        metric, limit = entry.text("metric"), number_from_wire(entry.all.get("limit"))
        usage = number_from_wire(entry.all.get("usage", 0))
        if metric and limit is not None and usage is not None:
            quotas[metric] = Quota(limit=limit, usage=usage)
    return quotas


def reservation_from_json(value: Mapping[str, Any], *, project: str | None = None) -> ReservationState:
    """Return what a reservation holds; what it does not tell of its machines stays empty."""
    told = Fields(value, "compute", "reservation")
    is_aggregate = bool(value.get("aggregateReservation"))
    held = _reserved_chips(told) if is_aggregate else _reserved_machines(told.object("specificReservation"))
    status = told.text("status").lower()
    if not status:
        raise unreadable("compute", "reservation", "it has no status")
    return ReservationState(
        reservation=Reservation(project=project, zone=last_segment(told.text("zone")), name=told.text("name")),
        status=status,
        is_specific=bool(value.get("specificReservationRequired")),
        **held,
    )


def reservations_from_json(page: Mapping[str, Any], *, project: str | None = None) -> Iterable[ReservationState]:
    """Yield the reservations of one page of ``reservations.aggregatedList``."""
    items = Fields(page, "compute", "reservations").object("items")
    for scope in items.all:
        for each in items.object(scope).objects("reservations"):
            yield reservation_from_json(each.all, project=project)


def on_demand_from_json(page: Mapping[str, Any]) -> Iterable[Worker]:
    """Yield the VMs of one page of ``instances.aggregatedList`` that draw the quota for machines on demand now."""
    for value in instances_from_json(page):
        told = Fields(value, "compute", "instance")
        model = told.object("scheduling").text("provisioningModel", "STANDARD")
        taken = told.object("resourceStatus").object("reservationConsumptionInfo").all
        # What comes out of a reservation was counted when that was made.
        if model == "STANDARD" and told.text("status") not in _NOT_ALLOCATED and not taken.get("consumedReservation"):
            yield worker_from_json(value)


def limit_from_json(info: Mapping[str, Any], dimensions: Mapping[str, str], location: str) -> float | None:
    """Return the limit that Cloud Quotas' ``QuotaInfo`` states for a place, or ``None`` where it states none.

    Its rows stand in order, the most specific first. A value of -1 says either that there is no limit or that none was
    ever set, so it says nothing. Source: Cloud Quotas API v1, DimensionsInfo, read 2026-11.
    """
    wanted = {**dimensions, "region": location, "zone": location}
    for entry in Fields(info, "cloudquotas", "quotaInfo").objects("dimensionsInfos"):
        said, places = entry.object("dimensions").all, entry.texts("applicableLocations") or [location]
        if location in places and all(wanted.get(name) == text for name, text in said.items()):
            value = number_from_wire(entry.object("details").all.get("value"))
            return None if value is None or value < 0 else value
    return None


def _reserved_machines(specific: Fields) -> dict[str, Any]:
    machine = specific.object("instanceProperties")
    attached = machine.objects("guestAccelerators")
    # What was promised may be broken for a while: machines are to be had of what is assured.
    counts = [whole_from_wire(specific.all.get(name)) for name in ("count", "assuredCount")]
    if counts == [None, None]:
        raise unreadable("compute", "reservation", "it has no count")
    return {
        "machine_type": last_segment(machine.text("machineType")),
        "accelerator": last_segment(attached[0].text("acceleratorType")) if attached else None,
        "accelerators_each": sum(whole_from_wire(each.all.get("acceleratorCount")) or 0 for each in attached),
        "count": min(each for each in counts if each is not None),
        "in_use": whole_from_wire(specific.all.get("inUseCount")) or 0,
    }


def _reserved_chips(told: Fields) -> dict[str, Any]:
    aggregate = told.object("aggregateReservation")
    reserved = [each.object("accelerator") for each in aggregate.objects("reservedResources")]
    used = [each.object("accelerator") for each in aggregate.objects("inUseResources")]
    counts = [whole_from_wire(each.all.get("acceleratorCount")) for each in (*reserved, *used)]
    if not reserved or None in counts:
        raise unreadable("compute", "reservation", "it does not say how much it holds")
    return {
        "machine_type": "",
        "accelerator": last_segment(reserved[0].text("acceleratorType")) or None,
        "accelerators_each": 1,
        "count": sum(each or 0 for each in counts[: len(reserved)]),
        "in_use": sum(each or 0 for each in counts[len(reserved) :]),
    }
