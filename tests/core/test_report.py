"""What a person reads when nothing worked, and what the next task reads when something did."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta

from hypothesis import given

from airflow_accel_provider.core.catalog import load_catalog
from airflow_accel_provider.core.failures import Failure, FailureKind, Resource, Scope
from airflow_accel_provider.core.jobs import JobState
from airflow_accel_provider.core.placement import Placement
from airflow_accel_provider.core.planning import plan
from airflow_accel_provider.core.policy import Policy
from airflow_accel_provider.core.quota import Quota
from airflow_accel_provider.core.record import Outcome, PlannedPlace, Record, begin
from airflow_accel_provider.core.report import duration, plan_table, report
from airflow_accel_provider.core.request import BeamRequest, Candidate
from airflow_accel_provider.core.result import result
from airflow_accel_provider.core.search import exhausted
from tests.core.drawn_records import MOMENT, records
from tests.core.test_fallback import WITH_L4, after, decide, running, seen

PLACES = (
    "nvidia-l4 on g2-standard-8 in europe-west3",
    "nvidia-l4 on g2-standard-8 in europe-west4",
    "nvidia-tesla-a100 on a2-highgpu-1g in europe-west3",
)


def tried_one() -> Record:
    """Return a record whose first place was out of stock after four minutes, the others put aside by the plan."""
    places = plan(
        BeamRequest(py_file="score.py", max_num_workers=4),
        [Candidate.parse(text) for text in PLACES],
        catalog=load_catalog(),
        readings={"europe-west4": {"NVIDIA_L4_GPUS": Quota(1, 1)}},
    )
    record = begin(owner="f" * 32, max_tries=0, now=MOMENT, project="acme-ml-prod", prefix="score")
    record = replace(record, plan=places).intend(0, places[0].placement, MOMENT)
    stockout = Failure(
        kind=FailureKind.STOCKOUT,
        scope=Scope.ZONE,
        zone="europe-west3-a",
        resource=Resource.ACCELERATOR,
        explanation="zone pool exhausted",
    )
    ended = replace(
        record.attempts[0],
        outcome=Outcome.FAILED,
        failure=stockout,
        submitted_at=MOMENT,
        ended_at=MOMENT + timedelta(minutes=4),
    )
    return record.with_attempt(ended)


def test_the_report() -> None:
    """The report names every place in order, with what was tried, what was skipped, why, and what to do."""
    record = tried_one()

    assert report("score", record, exhausted(record)) == (
        "No place could run score. Tried 1, skipped 2.\n"
        "\n"
        "1. nvidia-l4 on g2-standard-8 in europe-west3: stockout in europe-west3-a"
        " (zone pool exhausted, after 4 min).\n"
        "2. nvidia-l4 on g2-standard-8 in europe-west4: skipped,"
        " needs at least 1 (up to 4) of NVIDIA_L4_GPUS; 0 of 1 left.\n"
        "3. nvidia-tesla-a100 on a2-highgpu-1g in europe-west3: skipped,"
        " not offered there (europe-west4 has it).\n"
        "\n"
        "Raise a quota above, or add a place to fallback=."
    )


def test_the_plan_table() -> None:
    """The plan shows each candidate, whether it is ready, and why not."""
    table = plan_table(tried_one().plan)

    assert table.splitlines()[0] == " 1. nvidia-l4 on g2-standard-8 in europe-west3          ready"
    assert "skipped, needs at least 1" in table.splitlines()[1]


def test_user_code() -> None:
    """A pipeline that raised is reported with its job and its traceback, not as a missing place."""
    failure = Failure(
        kind=FailureKind.USER_CODE, scope=Scope.JOB, explanation="the pipeline's own code raised", evidence="ValueError"
    )

    text = report("score", running(), failure)

    assert text.startswith(
        "score failed on nvidia-l4 on g2-standard-8 in us-central1 (job job-1), user code:"
        " the pipeline's own code raised."
    )
    assert text.endswith("ValueError")


def test_the_result() -> None:
    """The value handed on holds the winner, its proof and every attempt, as plain JSON."""
    proven = decide(running(), seen(workers=(WITH_L4,)), Policy(), after(2)).record
    done = decide(proven, seen(JobState.DONE, workers=()), Policy(), after(9)).record

    value = json.loads(json.dumps(result(done)))

    assert (value["v"], value["state"], value["region"], value["zone"]) == (1, "done", "us-central1", "us-central1-a")
    assert value["placement"] == "nvidia-l4 on g2-standard-8 in us-central1"
    assert value["proof"]["status"] == "seen"
    assert value["attempts"][0]["url"].endswith("/dataflow/jobs/us-central1/job-1?project=acme-ml-prod")
    assert set(value["attempts"][0]) == {
        *("n", "placement", "region", "job_id", "job_name", "submitted_at", "ended_at", "outcome", "failure", "url")
    }


@given(records())
def test_every_record_can_be_told(record: Record) -> None:
    """Whatever the record holds, the report is one text that names every place of the plan."""
    text = report("score", record, exhausted(record))

    assert text
    if text.startswith("No place"):
        assert all(str(place.placement) in text for place in record.plan)


def test_durations() -> None:
    """Spans are said as people say them."""
    spans = [timedelta(seconds=s) for s in (40, 240, 7500)]

    assert [duration(span) for span in spans] == ["40 s", "4 min", "2 h 5 min"]


def test_warnings_are_in_the_plan() -> None:
    """A candidate that may not grow to its ceiling is ready, and the table says so."""
    places = plan(
        BeamRequest(py_file="score.py", max_num_workers=4),
        [Candidate(placement=Placement.parse(PLACES[1]))],
        catalog=load_catalog(),
        readings={"europe-west4": {"NVIDIA_L4_GPUS": Quota(2, 0)}},
    )

    assert isinstance(places[0], PlannedPlace)
    assert "ready; cannot grow to 4" in plan_table(places)
