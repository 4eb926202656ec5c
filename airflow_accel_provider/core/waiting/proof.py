"""Whether the accelerator of a job is really there."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from airflow_accel_provider.core.accelerators import Accelerator, Gpu, Tpu, parse_accelerator
from airflow_accel_provider.core.console import page_of
from airflow_accel_provider.core.failures import Failure, FailureKind, Scope
from airflow_accel_provider.core.jobs import Job, Service, Snapshot, Worker
from airflow_accel_provider.core.proof import Proof, ProofStatus, prove
from airflow_accel_provider.core.usage import prove_in_use, prove_spent
from airflow_accel_provider.core.waiting.answers import Answer, Met, Never, NotYet
from airflow_accel_provider.core.waiting.jobs import JobFacts, JobQuestion, no_such_job


@dataclass(frozen=True, slots=True, kw_only=True)
class ProofQuestion(JobQuestion):
    """A worker of the job carries the accelerator, or any GPU or TPU where none is named; a Spark batch uses it."""

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
    if facts.batch:
        return _answer_batch(question, facts, facts.batch, job, now)
    proof = _proof(question, facts.workers, now)
    if proof and proof.status is ProofStatus.SEEN:
        return Met(_value(facts.project, job, proof))
    if job.state.is_terminal:
        text = f"job {job.id} in {job.region} ended ({job.state}) and {question.wanted} was never seen on a worker"
        return Never(Failure(kind=FailureKind.ACCELERATOR_MISSING, scope=Scope.JOB, explanation=text))
    if proof is None:
        return NotYet(f"job {job.id} is {job.state} and none of its workers is up")
    return NotYet(f"worker {proof.machine_type} of job {job.id} in {proof.zone} runs without {question.wanted}")


def _answer_batch(question: ProofQuestion, facts: JobFacts, batch: Snapshot, job: Job, now: datetime) -> Answer:
    """Return whether the service's own figures have the accelerator; nobody sees a batch's workers."""
    spent, in_use = batch.spent, batch.in_use
    shown = [*(spent.gpu_seconds if spent else ()), *(in_use.gpus if in_use else ())]
    wanted = parse_accelerator(question.accelerator) if question.accelerator else Gpu(shown[0] if shown else "any")
    proof = prove_spent(wanted, spent, now) if spent else prove_in_use(wanted, in_use) if in_use else None
    if proof and proof.status is ProofStatus.SEEN:
        return Met(_value(facts.project, job, proof, service="dataproc"))
    if job.state.is_terminal:
        text = f"batch {job.id} in {job.region} ended ({job.state}) and {question.wanted} was never seen in use"
        return Never(Failure(kind=FailureKind.ACCELERATOR_MISSING, scope=Scope.JOB, explanation=text))
    if proof is None:
        return NotYet(f"batch {job.id} is {job.state} and shows nothing of what it uses")
    return NotYet(f"batch {job.id} is {job.state} without {question.wanted}")


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


def _value(project: str, job: Job, proof: Proof, *, service: Service = "dataflow") -> dict[str, Any]:
    return {
        "v": 1,
        "job_id": job.id,
        "job_name": job.name,
        "project": project,
        "region": job.region,
        "zone": proof.zone,
        "state": str(job.state),
        "proof": proof.to_json(),
        "url": page_of(service=service, project=project, region=job.region, job_id=job.id),
    }
