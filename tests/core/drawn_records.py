"""Hypothesis strategies for records and what they hold."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from hypothesis import strategies as st

from airflow_accel_provider.core.failures import Failure, FailureKind, Resource, Scope
from airflow_accel_provider.core.placement import Placement
from airflow_accel_provider.core.proof import Proof, ProofStatus
from airflow_accel_provider.core.record import Attempt, Outcome, PlannedPlace, Record

MOMENT = datetime(2026, 3, 2, 6, 0, tzinfo=UTC)

moments = st.timedeltas(timedelta(0), timedelta(days=3)).map(lambda span: MOMENT + span)
placements = st.sampled_from(
    [
        "nvidia-l4 on g2-standard-8 in us-central1",
        "nvidia-l4 on g2-standard-8 in europe-west4-a",
        "nvidia-l4:2 on g2-standard-24 in us-central1",
        "nvidia-tesla-t4 on n1-standard-8 in us-central1",
        "tpu-v6e-slice:2x2 on ct6e-standard-4t in us-east5-b",
        "cpu on n2-standard-8 in us-central1",
    ]
).map(Placement.parse)
zones = st.sampled_from(["us-central1-a", "us-central1-b", "europe-west4-a", None])
failures = st.builds(
    Failure,
    kind=st.sampled_from(FailureKind),
    scope=st.sampled_from(Scope),
    explanation=st.text(min_size=1, max_size=40),
    evidence=st.text(max_size=40),
    resource=st.none() | st.sampled_from(Resource),
    zone=zones,
    region=st.sampled_from(["us-central1", "europe-west4", None]),
    metric=st.none() | st.just("NVIDIA_L4_GPUS"),
    hint_zones=st.lists(st.sampled_from(["us-central1-b", "europe-west4-c"]), max_size=2).map(tuple),
)
proofs = st.builds(
    Proof,
    status=st.sampled_from(ProofStatus),
    source=st.just("compute.instances"),
    at=moments,
    machine_type=st.none() | st.just("g2-standard-8"),
    accelerator=st.none() | st.just("nvidia-l4"),
    count=st.none() | st.integers(1, 8),
    zone=zones,
)


@st.composite
def records(draw: st.DrawFn) -> Record:
    """Draw a record with a plan and some attempts, of which only the newest may be open."""
    plan = tuple(
        PlannedPlace(placement=place, rejected=draw(st.none() | failures))
        for place in draw(st.lists(placements, min_size=1, max_size=4))
    )
    record = Record(
        owner=draw(st.uuids()).hex,
        life=draw(st.integers(1, 5)),
        max_tries=draw(st.integers(0, 3)),
        started_at=draw(moments),
        project="acme-ml-prod",
        prefix="score",
        plan=plan,
        ended=draw(st.booleans()),
        killed=draw(st.booleans()),
    )
    tried = draw(st.integers(0, len(plan)))
    for index in range(tried):
        record = record.intend(index, plan[index].placement, draw(moments))
        if index < tried - 1 or draw(st.booleans()):
            record = record.with_attempt(_ended(draw, record.attempts[-1]))
    return record


def _ended(draw: st.DrawFn, attempt: Attempt) -> Attempt:
    return replace(
        attempt,
        outcome=draw(st.sampled_from([Outcome.RUNNING, Outcome.DONE, Outcome.FAILED, Outcome.CANCELLED])),
        job_id=draw(st.none() | st.just("2026-03-02_06_00_00-1")),
        zone=draw(zones),
        submitted_at=draw(st.none() | moments),
        ended_at=draw(moments),
        failure=draw(st.none() | failures),
        proof=draw(st.none() | proofs),
        bare_since=draw(st.none() | moments),
    )
