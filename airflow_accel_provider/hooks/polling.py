"""One look at many jobs: as few calls as the question allows, however many wait for the answer."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, TypeVar

from airflow_accel_provider.core.jobs import Importance, Job, JobState, Snapshot, Worker
from airflow_accel_provider.exceptions import GoogleApiError
from airflow_accel_provider.hooks.dataflow import DataflowHook
from airflow_accel_provider.hooks.workers import WorkersHook

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from airflow_accel_provider.hooks.session import GoogleSession

log = logging.getLogger(__name__)

T = TypeVar("T")


def look(session: GoogleSession, region: str, wanted: Mapping[str, bool]) -> dict[str, Snapshot]:
    """Return what the service shows of each wanted job of a region.

    ``wanted`` maps a job id to whether its accelerator is still to be proven: only then are messages and worker VMs
    read. One job is asked for by id; several are taken from one listing of the active ones, and only those that left
    it are asked for. Errors of messages and VMs degrade that part alone; errors of the jobs themselves raise
    :class:`~airflow_accel_provider.exceptions.GoogleApiError`.
    """
    hook = DataflowHook(session)
    listed = {job.id: job for job in hook.list_active(region)} if len(wanted) > 1 else {}
    jobs = {id_: listed.get(id_) or hook.get(id_, region) for id_ in wanted}
    unproven = [id_ for id_, to_prove in wanted.items() if to_prove and jobs[id_] is not None]
    workers = _workers(session, unproven, region)
    return {id_: _snapshot(hook, job, workers.get(id_), to_prove=wanted[id_]) for id_, job in jobs.items()}


def _workers(session: GoogleSession, unproven: list[str], region: str) -> Mapping[str, tuple[Worker, ...] | None]:
    if not unproven:
        return {}
    hook = WorkersHook(session)
    if len(unproven) == 1:
        only = unproven[0]
        return {only: _or_none(lambda: hook.workers_of(only, region=region))}
    everything = _or_none(hook.all_workers)
    return {id_: None if everything is None else everything.get(id_, ()) for id_ in unproven}


def _snapshot(hook: DataflowHook, job: Job | None, workers: tuple[Worker, ...] | None, *, to_prove: bool) -> Snapshot:
    if job is None:
        return Snapshot(job=None)
    ended_badly = job.state.is_terminal and job.state is not JobState.DONE
    if not (to_prove or ended_badly):
        return Snapshot(job=job, workers=workers)
    said = _or_none(lambda: hook.messages(job.id, job.region, minimum=Importance.WARNING))
    messages, scaling = said or ((), ())
    return Snapshot(job=job, messages=messages, scaling=scaling, workers=workers, messages_read=said is not None)


def _or_none(read: Callable[[], T]) -> T | None:
    try:
        return read()
    except GoogleApiError as error:
        log.info("part=unreadable error=%s", error)
        return None
