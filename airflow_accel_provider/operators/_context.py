"""What a task keeps in Airflow while it runs: its record, the current job's id and its pages."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from http import HTTPStatus
from typing import TYPE_CHECKING

from airflow.sdk.exceptions import AirflowRuntimeError

from airflow_accel_provider.core.console import urls
from airflow_accel_provider.core.identity import job_labels
from airflow_accel_provider.core.notes import NOTE_KEY, heard, recall
from airflow_accel_provider.core.record import RECORD_KEY, Attempt, Record, begin, resume
from airflow_accel_provider.exceptions import AcceleratorSupersededError
from airflow_accel_provider.links import LINKS

if TYPE_CHECKING:
    from airflow.sdk import Context

    from airflow_accel_provider.core.jobs import Service


def open_record(
    context: Context, *, project: str, prefix: str | None, service: Service, item: str | None
) -> tuple[Record, Sequence[Attempt]]:
    """Return the record as this try must see it, and the attempts of an earlier life whose jobs must end first."""
    ti = context["ti"]
    stored = context["task_state_store"].get(RECORD_KEY)
    prefix = prefix or f"{ti.dag_id}-{ti.task_id}"
    now = datetime.now(UTC)
    if isinstance(stored, dict):
        known = Record.from_json(stored)
        left = _left_by_last_try(context)
        record = heard(known, left)
        record = replace(record, killed=record.killed or CLEARED_KEY in left)
        if record != known:
            # What tells of it is gone by the next try.
            store(context, record)
        return resume(record, max_tries=ti.max_tries, now=now, project=project, prefix=prefix, item=item)
    fresh = begin(
        owner=uuid.uuid4().hex,
        max_tries=ti.max_tries,
        now=now,
        project=project,
        prefix=prefix,
        service=service,
        item=item,
    )
    return fresh, ()


def noted(context: Context, record: Record) -> Record:
    """Return the record with what the trigger noted that was not heard of any more."""
    if record.open is None:
        return record
    ti = context["ti"]
    index = -1 if ti.map_index is None else ti.map_index
    note = ti.xcom_pull(task_ids=ti.task_id, key=NOTE_KEY, map_indexes=index)
    return record.with_attempt(recall(record.open, note))


def alive_attempt(context: Context) -> Attempt | None:
    """Return the attempt whose job may be alive by what is written down, if any."""
    stored = context["task_state_store"].get(RECORD_KEY)
    return Record.from_json(stored).alive if isinstance(stored, dict) else None


def store(context: Context, record: Record) -> None:
    """Write the record where it survives retries, clears and crashes of the worker.

    Raises :class:`AcceleratorSupersededError` on a worker whose task has another try by now, or was cleared: Airflow
    gives the task instance a new id then, and knows the old one no more.
    """
    try:
        context["task_state_store"].set(RECORD_KEY, record.to_json())
    except AirflowRuntimeError as refused:
        if (refused.error.detail or {}).get("status_code") == HTTPStatus.NOT_FOUND:
            raise AcceleratorSupersededError(_SUPERSEDED) from refused
        raise


def mark_cleared(context: Context) -> bool:
    """Leave word for the next try, where this worker's task was cleared while it ran; tell whether it was.

    Airflow then takes no record any more, and tells the next try nothing of the clear. It does take an XCom.
    """
    ti = context["ti"]
    index = -1 if ti.map_index is None else ti.map_index
    try:
        states = ti.get_task_states(dag_id=ti.dag_id, task_ids=[ti.task_id], run_ids=[ti.run_id], map_index=index)
        if "restarting" not in states.get(ti.run_id, {}).values():
            return False
        ti.xcom_push(key=CLEARED_KEY, value=True)
    except AirflowRuntimeError:
        return False
    return True


def _left_by_last_try(context: Context) -> Sequence[str]:
    """Return the keys of the XComs that the try before left, which Airflow deletes just now; none after a deferral."""
    said = getattr(context["ti"], "_ti_context_from_server", None)
    return getattr(said, "xcom_keys_to_clear", None) or ()


def check_current(context: Context) -> None:
    """Raise :class:`AcceleratorSupersededError` where Airflow no longer shows this worker the record it has written."""
    if not isinstance(context["task_state_store"].get(RECORD_KEY), dict):
        raise AcceleratorSupersededError(_SUPERSEDED)


_SUPERSEDED = "this worker's try is over: another try of the task has begun, or it was cleared; its job is left to that"


def labels_for(context: Context, record: Record, attempt: Attempt) -> dict[str, str]:
    """Return the labels that tie the attempt's job to this task instance."""
    ti = context["ti"]
    return job_labels(
        owner=record.owner,
        life=record.life,
        attempt=attempt.n,
        dag_id=ti.dag_id,
        task_id=ti.task_id,
        run_id=ti.run_id,
        map_index=-1 if ti.map_index is None else ti.map_index,
    )


def pages_of(record: Record) -> dict[str, str]:
    """Return the console pages of the open attempt's job by link, none before there is a job."""
    attempt = record.open
    if attempt is None or attempt.job_id is None:
        return {}
    job = {"project": record.project, "region": attempt.placement.region, "job_id": attempt.job_id}
    return dict(urls(service=record.service, **job))


def publish(context: Context, service: Service, job_id: str, pages: dict[str, str]) -> None:
    """Push a job's id and pages, so that other tasks and the UI have them while it runs."""
    ti = context["ti"]
    ti.xcom_push(key=_ID_KEYS[service], value=job_id)
    for link in LINKS:
        if link.page in pages:
            ti.xcom_push(key=link.xcom_key, value=pages[link.page])


CLEARED_KEY = "accel_cleared"
"""The key of the XCom in which a worker says that its task was cleared while it ran."""

_ID_KEYS: Mapping[Service, str] = {"dataflow": "dataflow_job_id", "dataproc": "dataproc_batch_id"}
