"""Whether the GPUs of a job are really used."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from airflow_accel_provider.core.console import metrics_url
from airflow_accel_provider.core.failures import Failure, FailureKind, Scope
from airflow_accel_provider.core.jobs import Job
from airflow_accel_provider.core.waiting.answers import Answer, Met, Never, NotYet
from airflow_accel_provider.core.waiting.jobs import JobFacts, JobQuestion, no_such_job


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """What was recorded of a job's GPUs in a window of time: percent from 0 to 100."""

    mean: float
    highest: float
    points: int
    newest_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class UtilizationQuestion(JobQuestion):
    """The mean utilisation of the job's GPUs over a window is at least a threshold.

    ``threshold`` is in percent, ``window`` and ``delay`` in seconds; ``delay`` is how late a figure may come.
    """

    threshold: float
    window: float
    delay: float

    def since(self, job: Job, now: datetime) -> datetime:
        """Return where the window begins: it is the last one of a job that ended, else the newest there may be."""
        if job.state.is_terminal and job.state_at:
            return min(job.state_at, now) - timedelta(seconds=self.window)
        # The newest figures of a job that runs are not there yet, which must not empty a short window.
        return now - timedelta(seconds=self.window + self.delay)


def answer_utilization(question: UtilizationQuestion, facts: JobFacts, use: Use | None, now: datetime) -> Answer:
    """Return whether the GPUs are used enough; ``use`` is ``None`` where nothing was recorded, which is not zero."""
    job = facts.job
    if job is None:
        return no_such_job(question, facts)
    if use and use.mean >= question.threshold:
        return Met(_value(question, facts.project, job, use))
    reason = _why_not(question, use)
    if not job.state.is_terminal:
        return NotYet(f"job {job.id} is {job.state} and {reason}")
    ended = f"job {job.id} in {job.region} ended ({job.state}) and {reason}"
    if job.state_at and now < job.state_at + timedelta(seconds=question.delay):
        return NotYet(f"{ended}, but figures may still come")
    # That a GPU is there and idle is the doing of the pipeline.
    kind = FailureKind.USER_CODE if use else FailureKind.ACCELERATOR_MISSING
    return Never(Failure(kind=kind, scope=Scope.JOB, explanation=ended))


def _why_not(question: UtilizationQuestion, use: Use | None) -> str:
    if use is None:
        return "nothing was recorded of any GPU"
    figures = f"{use.points} figure" if use.points == 1 else f"{use.points} figures"
    used = f"{use.mean:.0f} % on average and {use.highest:.0f} % at most ({figures})"
    return f"its GPUs were used {used}, not the {question.threshold:g} % that are asked for"


def _value(question: UtilizationQuestion, project: str, job: Job, use: Use) -> dict[str, Any]:
    return {
        "v": 1,
        "job_id": job.id,
        "job_name": job.name,
        "project": project,
        "region": job.region,
        "state": str(job.state),
        "threshold": question.threshold,
        "window": question.window,
        "mean": round(use.mean, 2),
        "highest": round(use.highest, 2),
        "points": use.points,
        "newest_at": use.newest_at.isoformat(),
        "url": metrics_url(project=project, region=job.region, job_id=job.id),
    }
