"""Google's JSON of what there is to be had, quotas and reservations, as the core's values.

Missing fields are tolerated, as in :mod:`._wire`. Sources: the discovery document compute v1 and the reference of Cloud
Quotas v1, read 2026-11.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_accel_provider.core.quota import Quota
from airflow_accel_provider.core.reservations import Reservation, ReservationState
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
    if value.get("quotaStatusWarning") or "quotas" not in value:
        return None
    quotas: dict[str, Quota] = {}
    for entry in value["quotas"]:
        limit, usage = number_from_wire(entry.get("limit")), number_from_wire(entry.get("usage", 0))
        if entry.get("metric") and limit is not None and usage is not None:
            quotas[str(entry["metric"])] = Quota(limit=limit, usage=usage)
    return quotas


def reservation_from_json(value: Mapping[str, Any], *, project: str | None = None) -> ReservationState:
    """Return what a reservation holds; what it does not tell of its machines stays empty."""
    aggregate = value.get("aggregateReservation")
    held = _reserved_chips(aggregate) if aggregate else _reserved_machines(value.get("specificReservation") or {})
    zone, name = last_segment(value.get("zone", "")), str(value.get("name", ""))
    return ReservationState(
        reservation=Reservation(project=project, zone=zone, name=name),
        status=str(value.get("status", "")).lower(),
        is_specific=bool(value.get("specificReservationRequired")),
        **held,
    )


def reservations_from_json(page: Mapping[str, Any], *, project: str | None = None) -> Iterable[ReservationState]:
    """Yield the reservations of one page of ``reservations.aggregatedList``."""
    for scoped in (page.get("items") or {}).values():
        yield from (reservation_from_json(value, project=project) for value in scoped.get("reservations") or ())


def on_demand_from_json(page: Mapping[str, Any]) -> Iterable[Worker]:
    """Yield the VMs of one page of ``instances.aggregatedList`` that draw the quota for machines on demand now."""
    for value in instances_from_json(page):
        model = (value.get("scheduling") or {}).get("provisioningModel", "STANDARD")
        taken = (value.get("resourceStatus") or {}).get("reservationConsumptionInfo") or {}
        # What comes out of a reservation was counted when that was made.
        if model == "STANDARD" and value.get("status") not in _NOT_ALLOCATED and not taken.get("consumedReservation"):
            yield worker_from_json(value)


def limit_from_json(info: Mapping[str, Any], dimensions: Mapping[str, str], location: str) -> float | None:
    """Return the limit that Cloud Quotas' ``QuotaInfo`` states for a place, or ``None`` where it states none.

    Its rows stand in order, the most specific first. A value of -1 says either that there is no limit or that none was
    ever set, so it says nothing. Source: Cloud Quotas API v1, DimensionsInfo, read 2026-11.
    """
    wanted = {**dimensions, "region": location, "zone": location}
    for entry in info.get("dimensionsInfos") or ():
        said, places = entry.get("dimensions") or {}, entry.get("applicableLocations") or (location,)
        if location in places and all(wanted.get(name) == text for name, text in said.items()):
            value = number_from_wire((entry.get("details") or {}).get("value"))
            return None if value is None or value < 0 else value
    return None


def _reserved_machines(specific: Mapping[str, Any]) -> dict[str, Any]:
    machine = specific.get("instanceProperties") or {}
    attached = machine.get("guestAccelerators") or ()
    # What was promised may be broken for a while: machines are to be had of what is assured.
    counts = [whole_from_wire(specific.get(name)) for name in ("count", "assuredCount")]
    return {
        "machine_type": last_segment(machine.get("machineType", "")),
        "accelerator": last_segment(attached[0].get("acceleratorType", "")) if attached else None,
        "accelerators_each": sum(whole_from_wire(each.get("acceleratorCount")) or 0 for each in attached),
        "count": min((each for each in counts if each is not None), default=0),
        "in_use": whole_from_wire(specific.get("inUseCount")) or 0,
    }


def _reserved_chips(aggregate: Mapping[str, Any]) -> dict[str, Any]:
    reserved = [each.get("accelerator") or {} for each in aggregate.get("reservedResources") or ()]
    used = [each.get("accelerator") or {} for each in aggregate.get("inUseResources") or ()]
    return {
        "machine_type": "",
        "accelerator": next((last_segment(each.get("acceleratorType", "")) for each in reserved), None),
        "accelerators_each": 1,
        "count": sum(whole_from_wire(each.get("acceleratorCount")) or 0 for each in reserved),
        "in_use": sum(whole_from_wire(each.get("acceleratorCount")) or 0 for each in used),
    }
