"""Questions about a job that anybody may have started: which one is meant, and what if there is none."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from airflow_accel_provider.core.failures import Failure, FailureKind, Scope
from airflow_accel_provider.core.jobs import Job, Snapshot, Worker
from airflow_accel_provider.core.problems import nearest
from airflow_accel_provider.core.waiting.answers import Never, NotYet

_MOST_SHOWN = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class JobQuestion:
    """A job by its id or by its exact name, or a Spark batch by its id.

    With ``awaited_since`` (a time in ISO form) a job that does not exist is waited for, and one of its name that had
    ended before that time is not the one that is meant.
    """

    region: str
    job_id: str | None = None
    job_name: str | None = None
    batch_id: str | None = None
    awaited_since: str | None = None

    @property
    def subject(self) -> str:
        """The job as a person names it."""
        if self.batch_id:
            return f"batch {self.batch_id}"
        return f"job {self.job_id}" if self.job_id else f"a job named {self.job_name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFacts:
    """What was read of a job.

    ``others`` are the active jobs of the region, read only where the job was not found. ``batch`` is all that a Spark
    batch shows.
    """

    project: str
    job: Job | None
    workers: tuple[Worker, ...] = ()
    others: tuple[Job, ...] = ()
    batch: Snapshot | None = None


def chosen(jobs: Sequence[Job], question: JobQuestion) -> Job | None:
    """Return which job of a name is meant: one that is active, else the newest. ``jobs`` are the newest first."""
    awaited_since = datetime.fromisoformat(question.awaited_since) if question.awaited_since else None
    active = next((job for job in jobs if not job.state.is_terminal), None)
    if active or awaited_since is None:
        return active or next(iter(jobs), None)
    return next((job for job in jobs if job.state_at and job.state_at >= awaited_since), None)


def no_such_job(question: JobQuestion, facts: JobFacts) -> NotYet | Never:
    """Return what it means that the job was not found."""
    text = f"{question.region} has no {question.subject.removeprefix('a ')} in project {facts.project}"
    if question.awaited_since:
        return NotYet(text)
    said = question.job_id or question.job_name or question.batch_id or ""
    explanation = text + _hint(said, question, facts.others)
    return Never(Failure(kind=FailureKind.CONFIGURATION, scope=Scope.JOB, explanation=explanation))


def _hint(said: str, question: JobQuestion, others: Iterable[Job]) -> str:
    by_name = {job.name: job.id for job in others}
    by_id = {id_: name for name, id_ in by_name.items()}
    if question.job_id and said in by_name:
        return f"; that is the name of job {by_name[said]}, so give it as job_name="
    if question.job_name and said in by_id:
        return "; that is the id of a job, so give it as job_id="
    known = by_name if question.job_name else by_id
    if not known:
        return f"; no {'batch' if question.batch_id else 'job'} is active there"
    near = nearest(said, known)
    if near:
        return f"; did you mean {near}?"
    shown = ", ".join(sorted(known)[:_MOST_SHOWN])
    more = f" and {len(known) - _MOST_SHOWN} more" if len(known) > _MOST_SHOWN else ""
    return f"; active there: {shown}{more}"
