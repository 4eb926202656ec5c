"""Whether the accelerator of a job is really there."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from airflow_accel_provider.core.accelerators import Accelerator, Gpu, Tpu, parse_accelerator
from airflow_accel_provider.core.console import job_url
from airflow_accel_provider.core.failures import Failure, FailureKind, Scope
from airflow_accel_provider.core.jobs import Job, Worker
from airflow_accel_provider.core.proof import Proof, ProofStatus, prove
from airflow_accel_provider.core.waiting.answers import Answer, Met, Never, NotYet
from airflow_accel_provider.core.waiting.jobs import JobFacts, JobQuestion, no_such_job


@dataclass(frozen=True, slots=True, kw_only=True)
class ProofQuestion(JobQuestion):
    """A worker of the job carries the accelerator, or any GPU or TPU where none is named."""

    accelerator: str | None = None

    @property
    def wanted(self) -> str:
        """The accelerator as a person names it."""
        return self.accelerator or "a GPU or TPU"


def answer_proof(question: ProofQuestion, facts: JobFacts, now: datetime) -> Answer:
    """Return whether the accelerator was seen on a worker that is up."""
    job = facts.job
    if job is None:
        return no_such_job(question, facts)
    proof = _proof(question, facts.workers, now)
    if proof and proof.status is ProofStatus.SEEN:
        return Met(_value(facts.project, job, proof))
    if job.state.is_terminal:
        text = f"job {job.id} in {job.region} ended ({job.state}) and {question.wanted} was never seen on a worker"
        return Never(Failure(kind=FailureKind.ACCELERATOR_MISSING, scope=Scope.JOB, explanation=text))
    if proof is None:
        return NotYet(f"job {job.id} is {job.state} and none of its workers is up")
    return NotYet(f"worker {proof.machine_type} of job {job.id} in {proof.zone} runs without {question.wanted}")


def _proof(question: ProofQuestion, workers: tuple[Worker, ...], now: datetime) -> Proof | None:
    """Return the proof of the named accelerator, or of the first one that any worker carries."""
    if question.accelerator:
        return prove(parse_accelerator(question.accelerator), workers, now)
    kinds = [kind for worker in workers if (kind := _carried(worker))]
    return prove(kinds[0] if kinds else Gpu("any"), workers, now)


def _carried(worker: Worker) -> Accelerator | None:
    if not worker.is_running:
        return None
    if worker.machine_type.startswith("ct"):
        return Tpu("any", "any")
    type_, count = worker.accelerators[0] if worker.accelerators else ("", 0)
    return Gpu(type_, count) if count else None


def _value(project: str, job: Job, proof: Proof) -> dict[str, Any]:
    return {
        "v": 1,
        "job_id": job.id,
        "job_name": job.name,
        "project": project,
        "region": job.region,
        "zone": proof.zone,
        "state": str(job.state),
        "proof": proof.to_json(),
        "url": job_url(project=project, region=job.region, job_id=job.id),
    }
