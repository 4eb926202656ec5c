"""Decides where a batch's machines come up, or why they don't. They lie in a project of Google's, which nobody sees.

They hold stock and quota of the user's project all the same. Sources: https://cloud.google.com/dataproc-serverless/quotas
for the quotas by tier, https://cloud.google.com/dataproc-serverless/docs/guides/dws-serverless for queued batches.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from airflow_accel_provider.emulator.compute.instances import TENANT, Instance
from airflow_accel_provider.emulator.compute.quotas import draws, global_draws, project_usage, region_usage
from airflow_accel_provider.emulator.compute.tables import ACCELERATORS, ZONES
from airflow_accel_provider.emulator.dataproc import texts
from airflow_accel_provider.emulator.dataproc.tables import SPARK_ACCELERATORS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from airflow_accel_provider.emulator.dataproc.batches import Batch
    from airflow_accel_provider.emulator.dataproc.wishes import Wish
    from airflow_accel_provider.emulator.worlds import Quota, World

INVALID_ARGUMENT, UNAVAILABLE = 3, 14
"""Codes of google.rpc."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Why no machine came up. ``is_stock`` is whether there may be some later."""

    text: str
    kind: str
    code: int
    is_stock: bool = False


def allocate(batch: Batch, existing: Sequence[Instance], world: World) -> tuple[Instance, ...] | Refusal:
    """Return all machines of a batch, or why it gets none: region, quota and stock are asked in that order."""
    wish = batch.wish
    zones = _offering(wish, batch.location)
    if not zones:
        text = texts.not_offered(accelerator=wish.accelerator or "", region=batch.location)
        return Refusal(text=text, kind="not_offered", code=INVALID_ARGUMENT)
    short = list(_shortages(_machines(batch, [zones[0]] * wish.executors), existing, world, batch.location))
    if short:
        return Refusal(text=texts.several(short), kind="quota", code=INVALID_ARGUMENT)
    places = _places(wish, zones, existing, world)
    if places is None:
        text = texts.out_of_stock(project=batch.project, zone=zones[0])
        return Refusal(text=text, kind="stockout", code=UNAVAILABLE, is_stock=True)
    return _machines(batch, places)


def machines_of(batch: Batch, existing: Sequence[Instance]) -> tuple[Instance, ...]:
    """Return the machines of a batch that there are."""
    return tuple(vm for vm in existing if vm.project == TENANT and vm.description == batch.uuid)


def _offering(wish: Wish, region: str) -> tuple[str, ...]:
    if wish.accelerator is None:
        return ZONES[region]
    offered = ACCELERATORS[SPARK_ACCELERATORS[wish.accelerator].type].zones
    return tuple(zone for zone in ZONES[region] if zone in offered)


def _places(wish: Wish, zones: Sequence[str], existing: Sequence[Instance], world: World) -> list[str] | None:
    """Return a zone for each executor, or None. Older runtimes keep a batch in one zone."""
    if wish.accelerator is None:
        return [zones[0]] * wish.executors
    kind = SPARK_ACCELERATORS[wish.accelerator].type
    room = {zone: _left(kind, zone, existing, world) // wish.gpus for zone in zones}
    if not wish.names_types:
        zone = next((zone for zone in zones if room[zone] >= wish.executors), None)
        return [zone] * wish.executors if zone else None
    spread = [zone for zone in zones for _ in range(min(room[zone], wish.executors))][: wish.executors]
    return spread if len(spread) == wish.executors else None


def _left(kind: str, zone: str, existing: Sequence[Instance], world: World) -> int:
    taken = sum(vm.count for vm in existing if (vm.zone, vm.accelerator, vm.reservation) == (zone, kind, None))
    return world.free(kind, zone=zone) - taken


def _shortages(wanted: Sequence[Instance], existing: Sequence[Instance], world: World, region: str) -> Iterator[str]:
    needs: Counter[str] = Counter()
    total: Counter[str] = Counter()
    for vm in wanted:
        needs.update(draws(vm))
        total.update(global_draws(vm))
    yield from _short(needs, region_usage(region, existing, world))
    yield from _short(total, project_usage(existing, world))


def _short(needs: Mapping[str, float], quotas: Mapping[str, Quota]) -> Iterator[str]:
    for metric, need in sorted(needs.items()):
        quota = quotas.get(metric)
        if need and quota and quota.usage + need > quota.limit:
            yield texts.quota_short(metric, needed=need, available=quota.limit - quota.usage)


def _machines(batch: Batch, places: Sequence[str]) -> tuple[Instance, ...]:
    wish = batch.wish
    driver = _machine(batch, "driver", places[0], machine_type=f"n2-standard-{wish.driver_cores}")
    return (driver, *(_executor(batch, number, zone) for number, zone in enumerate(places)))


def _executor(batch: Batch, number: int, zone: str) -> Instance:
    wish = batch.wish
    known = SPARK_ACCELERATORS.get(wish.accelerator or "")
    taken: dict[str, float] = {
        "N2_CPUS" if wish.premium_compute else "CPUS": wish.cores,
        "LOCAL_SSD_TOTAL_GB" if wish.premium_disk else "DISKS_TOTAL_GB": wish.disk_gb,
    }
    if known is None:
        return _machine(batch, f"e{number}", zone, machine_type=f"n2-standard-{wish.cores}", taken=taken)
    metric = ACCELERATORS[known.type].metric
    taken[f"PREEMPTIBLE_{metric}" if wish.queued else f"{metric}"] = wish.gpus
    return _machine(
        batch,
        f"e{number}",
        zone,
        machine_type=known.shapes[wish.cores].machine,
        taken=taken,
        accelerator=known.type,
        count=wish.gpus,
    )


def _machine(
    batch: Batch,
    role: str,
    zone: str,
    *,
    machine_type: str,
    taken: Mapping[str, float] | None = None,
    accelerator: str | None = None,
    count: int = 0,
) -> Instance:
    return Instance(
        name=f"srvls-{batch.uuid}-{role}",
        project=TENANT,
        zone=zone,
        machine_type=machine_type,
        status="RUNNING",
        created=batch.created,
        accelerator=accelerator,
        count=count,
        description=batch.uuid,
        own_draws=taken if taken is not None else {"CPUS": batch.wish.driver_cores},
    )
