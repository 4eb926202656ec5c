"""Asking a question of Google's services: what it needs is read here, what it is answered with the core decides."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_accel_provider.core.planning import questions
from airflow_accel_provider.core.reservations import Reservation
from airflow_accel_provider.core.waiting.jobs import JobFacts, JobQuestion, chosen
from airflow_accel_provider.core.waiting.proof import ProofQuestion, answer_proof
from airflow_accel_provider.core.waiting.quota import QuotaQuestion, answer_quota
from airflow_accel_provider.core.waiting.reservation import ReservationQuestion, answer_reservation
from airflow_accel_provider.core.waiting.utilization import Use, answer_utilization
from airflow_accel_provider.exceptions import GoogleApiError
from airflow_accel_provider.hooks.dataflow import DataflowHook
from airflow_accel_provider.hooks.monitoring import gpu_utilization
from airflow_accel_provider.hooks.quota import read_quotas
from airflow_accel_provider.hooks.reservations import list_reservations, read_reservation
from airflow_accel_provider.hooks.spark import SparkHook
from airflow_accel_provider.hooks.workers import WorkersHook

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from airflow_accel_provider.core.catalog import Catalog
    from airflow_accel_provider.core.jobs import Job, Worker
    from airflow_accel_provider.core.waiting.answers import Answer
    from airflow_accel_provider.core.waiting.questions import Question
    from airflow_accel_provider.core.waiting.utilization import UtilizationQuestion
    from airflow_accel_provider.hooks.session import GoogleSession


def ask(session: GoogleSession, question: Question, *, catalog: Callable[[], Catalog], now: datetime) -> Answer:
    """Return what the services answer now. Raises :class:`GoogleApiError` when they cannot be asked."""
    if isinstance(question, QuotaQuestion):
        known = catalog()
        wanted = questions(question.request, question.candidates, catalog=known)
        return answer_quota(question, read_quotas(session, wanted.regions, further=wanted.further), known)
    if isinstance(question, ReservationQuestion):
        named = Reservation.parse(question.reservation)
        state = read_reservation(session, named)
        others = () if state else _reservations(session, named.project)
        return answer_reservation(question, state, project=session.project, others=others)
    if isinstance(question, ProofQuestion):
        return answer_proof(question, _facts(session, question, read_workers=True), now)
    return _utilization(session, question, now)


def _utilization(session: GoogleSession, question: UtilizationQuestion, now: datetime) -> Answer:
    facts = _facts(session, question, read_workers=False)
    # Figures and states carry the service's times, whatever this machine's clock says.
    now = session.told_at or now
    if facts.job is None:
        return answer_utilization(question, facts, None, now)
    since = question.since(facts.job, now)
    seen = gpu_utilization(session, job_id=facts.job.id, region=facts.job.region, since=since, now=now)
    use = Use(mean=seen.mean, highest=seen.highest, points=seen.points, newest_at=seen.newest_at) if seen else None
    return answer_utilization(question, facts, use, now)


def _facts(session: GoogleSession, question: JobQuestion, *, read_workers: bool) -> JobFacts:
    if question.batch_id:
        return _batch_facts(session, question.batch_id, question)
    hook = DataflowHook(session)
    if question.job_id:
        job = hook.get(question.job_id, question.region)
    else:
        job = chosen(hook.find(question.job_name or "", question.region), question)
    if job is None:
        others = () if question.awaited_since else _active(hook, question.region)
        return JobFacts(project=session.project, job=None, others=others)
    return JobFacts(project=session.project, job=job, workers=_workers(session, job) if read_workers else ())


def _batch_facts(session: GoogleSession, batch_id: str, question: JobQuestion) -> JobFacts:
    hook = SparkHook(session)
    batch = hook.get(batch_id, question.region)
    if batch.job:
        return JobFacts(project=session.project, job=batch.job, batch=batch)
    others = () if question.awaited_since else _active_batches(hook, question.region)
    return JobFacts(project=session.project, job=None, others=others)


def _active_batches(hook: SparkHook, region: str) -> tuple[Job, ...]:
    """Return the region's active batches, which only make an error clearer, so that failing to read them is none."""
    try:
        return tuple(each.job for each in hook.list_active(region) if each.job)
    except GoogleApiError:
        return ()


def _workers(session: GoogleSession, job: Job) -> tuple[Worker, ...]:
    return WorkersHook(session).workers_of(job.id, region=job.region)


def _reservations(session: GoogleSession, project: str | None) -> tuple[Reservation, ...]:
    """Return a project's reservations, which only make an error clearer, so that failing to read them is none."""
    try:
        return tuple(each.reservation for each in list_reservations(session, project))
    except GoogleApiError:
        return ()


def _active(hook: DataflowHook, region: str) -> tuple[Job, ...]:
    """Return the region's active jobs, which only make an error clearer, so that failing to read them is none."""
    try:
        return hook.list_active(region)
    except GoogleApiError:
        return ()
