"""Reading quotas: of all places at once, each once, within a time limit."""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from airflow_accel_provider.core.cloud_quotas import machine_families
from airflow_accel_provider.core.quota import GLOBAL, Readings, with_estimates
from airflow_accel_provider.exceptions import GoogleApiError
from airflow_accel_provider.hooks import _wire_supply
from airflow_accel_provider.hooks._together import ask_together

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from airflow_accel_provider.core.cloud_quotas import CloudQuota
    from airflow_accel_provider.hooks.session import GoogleSession

log = logging.getLogger(__name__)

T = TypeVar("T")

_MACHINES = "machines"
_NOT_FOUND = 404


def read_quotas(
    session: GoogleSession,
    regions: Iterable[str],
    *,
    further: Iterable[tuple[CloudQuota, str]] = (),
    seconds: float = 10.0,
) -> Readings:
    """Return the quotas of the project (under :data:`GLOBAL`) and of each region.

    ``further`` are quotas that Cloud Quotas alone tells, each with the region or zone it is wanted for. What can't be
    read within ``seconds`` (forbidden, failing, late, or the service says that it doesn't know) is ``None``. Nothing is
    raised.
    """
    regions, further = tuple(dict.fromkeys(regions)), tuple(further)
    calls = quota_calls(session, regions, further, seconds=seconds)
    return readings_of(ask_together(calls, seconds=seconds), regions, further)


def quota_calls(
    session: GoogleSession, regions: Sequence[str], further: Sequence[tuple[CloudQuota, str]], *, seconds: float
) -> dict[str, Callable[[], Any]]:
    """Return the calls that together tell the quotas, for :func:`readings_of`; each ends within ``seconds``."""
    # Half the time for trying again: what is given up must also end by itself.
    limits: dict[str, Any] = {"timeout": seconds, "retry_seconds": seconds / 2}
    project = f"projects/{session.project}"
    calls: dict[str, Callable[[], Any]] = {GLOBAL: partial(session.request, "compute", "GET", project, **limits)}
    for region in regions:
        calls[region] = partial(session.request, "compute", "GET", f"{project}/regions/{region}", **limits)
    infos = f"{project}/locations/global/services/compute.googleapis.com/quotaInfos"
    for id_, is_zonal in dict.fromkeys((quota.quota_id, quota.is_zonal) for quota, _ in further):
        ask = partial(_zonal_info, session) if is_zonal else session.request
        calls[id_] = partial(ask, "cloudquotas", "GET", f"{infos}/{id_}", **limits)
    if further:
        families = machine_families(quota for quota, _ in further)
        calls[_MACHINES] = partial(_running_machines, session, families, limits)
    return calls


def readings_of(
    answers: Mapping[Any, Any], regions: Sequence[str], further: Sequence[tuple[CloudQuota, str]]
) -> Readings:
    """Return the readings that the answers to :func:`quota_calls` make."""
    places = (GLOBAL, *regions)
    told = {place: _or_none(_wire_supply.quotas_from_json, answers.get(place, {})) for place in places}
    limits = {
        (quota, location): limit
        for quota, location in further
        if (limit := _or_none(_limit, quota, answers.get(quota.quota_id, {}), location)) is not None
    }
    return with_estimates(told, limits, answers.get(_MACHINES))


def _limit(quota: CloudQuota, info: Mapping[str, Any], location: str) -> float | None:
    return _wire_supply.limit_from_json(info, dict(quota.dimensions), location)


def _or_none(read: Callable[..., T], *said: Any) -> T | None:
    """Return what an answer says, nothing where it cannot be read."""
    try:
        return read(*said)
    except GoogleApiError as error:
        log.info("unknown what=quotas error=%s", error)
        return None


def _zonal_info(session: GoogleSession, *request: str, **limits: Any) -> Any:
    """Return a quota of zones, nothing where the project has none: then its region's is all there is."""
    try:
        return session.request(*request, **limits)
    except GoogleApiError as error:
        if error.status == _NOT_FOUND:
            return {}
        raise


def _running_machines(session: GoogleSession, families: Sequence[str], limits: Mapping[str, Any]) -> Any:
    """Return the machines on demand that run in the project, of families that carry an accelerator in question."""
    params = {
        "filter": f'machineType eq ".*/({"|".join(families)})-.*"',
        "returnPartialSuccess": "true",
        "maxResults": 500,
    }
    path = f"projects/{session.project}/aggregated/instances"
    pages = session.pages("compute", path, params=params, **limits)
    return [machine for page in pages for machine in _wire_supply.on_demand_from_json(page)]
