"""How quotas stood: limits as the worlds had them, and how much of those for accelerators was taken."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING

from airflow_accel_provider.emulator.compute.quotas import GLOBAL_GPUS
from airflow_accel_provider.emulator.compute.tables import ACCELERATORS, ZONES, region_of
from airflow_accel_provider.emulator.monitoring.descriptors import DAY, MINUTE, QUOTA_LIMIT, QUOTA_USAGE
from airflow_accel_provider.emulator.monitoring.gpus import GPU_PREFIX
from airflow_accel_provider.emulator.monitoring.series import Identity, Interval, Sample
from airflow_accel_provider.emulator.worlds import Quota, World

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from datetime import datetime

    from airflow_accel_provider.emulator.monitoring.descriptors import MetricType
    from airflow_accel_provider.emulator.monitoring.history import History, Stay
    from airflow_accel_provider.emulator.state import Google

GLOBAL = "global"
_SERVICE = "compute.googleapis.com"


def quota_series(google: Google, history: History) -> Iterator[Identity]:
    """Yield the limit of every quota, and the usage of those that count accelerators."""
    accelerators = ACCELERATORS.values()
    counted = {GLOBAL_GPUS, *(one.metric for one in accelerators), *(one.cloud_quota for one in accelerators)}
    for location in (GLOBAL, *sorted(ZONES)):
        resource = {"project_id": google.project, "service": _SERVICE, "location": location}
        for quota in sorted(_quotas(google.world, location)):
            named = {"quota_metric": f"{_SERVICE}/{quota.lower()}"}
            limited = {**named, "limit_name": _limit_name(quota, location)}
            limits = partial(_limits, google, history, quota, location)
            yield Identity(metric=QUOTA_LIMIT, labels=limited, resource=resource, samples=limits)
            if quota in counted:
                usage = partial(_usage, google, history, quota, location)
                yield Identity(metric=QUOTA_USAGE, labels=named, resource=resource, samples=usage)


def _limits(google: Google, history: History, quota: str, location: str, interval: Interval) -> Iterator[Sample]:
    for at in _read(google, history.entered[:1], QUOTA_LIMIT, interval):
        found = _quotas(history.world_at(at), location).get(quota)
        if found:
            yield Sample(at=at, value=found.limit)


def _usage(google: Google, history: History, quota: str, location: str, interval: Interval) -> Iterator[Sample]:
    stays = [stay for stay in history.stays if _draws(stay, quota, location)]
    ends = {stay.ended for stay in stays if stay.ended}
    changes = {*history.entered, *(stay.begun for stay in stays), *ends}
    for at in _read(google, sorted(changes), QUOTA_USAGE, interval):
        found = _quotas(history.world_at(at), location).get(quota)
        if found:
            yield Sample(at=at, value=found.usage + sum(stay.count for stay in stays if stay.covers(at)))


def _read(google: Google, changes: Iterable[datetime], metric: MetricType, interval: Interval) -> Iterator[datetime]:
    """Yield the moments of an interval in which a value was written that can be read by now."""
    minute, day, delay = (timedelta(seconds=google.scaled(number)) for number in (MINUTE, DAY, metric.delay))
    last = min(interval.end, interval.visible_at - delay)
    return (at for at in _written(changes, minute, day, last) if at in interval and at <= last)


def _written(changes: Iterable[datetime], minute: timedelta, day: timedelta, until: datetime) -> Iterator[datetime]:
    """Yield when a value is written: with every change, though never twice in a minute, and once a day."""
    previous: datetime | None = None
    for change in changes:
        if previous is None:
            yield (previous := change)
        elif change > previous:
            at = max(change, previous + minute)
            while previous + day < at:
                yield (previous := previous + day)
            yield (previous := at)
    while previous and previous + day <= until:
        yield (previous := previous + day)


def _draws(stay: Stay, quota: str, location: str) -> bool:
    # The share of a reserved machine was taken when it was reserved.
    if not stay.accelerator or stay.is_reserved:
        return False
    if location == GLOBAL:
        return quota == GLOBAL_GPUS and stay.accelerator.startswith(GPU_PREFIX)
    known = ACCELERATORS.get(stay.accelerator)
    return known is not None and quota in {known.metric, known.cloud_quota} and region_of(stay.zone) == location


def _quotas(world: World, location: str) -> Mapping[str, Quota]:
    if location == GLOBAL:
        return world.project_quotas
    # How those by family would show is published nowhere.
    others = {quota: value for quota, value in world.cloud_quota(location).items() if "/" not in quota}
    return {**world.region_quota(location), **others}


def _limit_name(quota: str, location: str) -> str:
    name = quota.replace("_", "-")
    return f"{name}-per-project" if location == GLOBAL else f"{name}-per-project-region"
