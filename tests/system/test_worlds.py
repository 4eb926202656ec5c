"""The example through a real Airflow, deferrable and synchronous, in each world; the emulator's ledger is the judge."""

from __future__ import annotations

import json
import pickle
import re
import time
from typing import TYPE_CHECKING, Any

import pytest

from demo.waiting import wait_for
from tests.system.driver import DAY, Driver, Run

if TYPE_CHECKING:
    from google.cloud.storage import Bucket

L4_US, L4_EUROPE, T4_US = (
    "nvidia-l4 on g2-standard-8 in us-central1",
    "nvidia-l4 on g2-standard-8 in europe-west4",
    "nvidia-tesla-t4 on n1-standard-8 in us-central1",
)
IMAGES = f"digits/images/{DAY}.jsonl"
MODEL = "digits/model.pickle"
RESULT_KEYS = {
    "v", "job_id", "job_name", "project", "region", "zone", "state", "placement", "proof", "attempts"
}  # fmt: skip
ATTEMPT_KEYS = {
    "n", "placement", "region", "job_id", "job_name", "submitted_at", "ended_at", "outcome", "failure", "url"
}  # fmt: skip


class SlowToLoad:
    """A model that takes its time to be loaded, so that its job is still running when something happens to it."""

    def __reduce__(self) -> tuple[Any, ...]:
        return time.sleep, (200,)


@pytest.fixture
def bucket(google_and_airflow: Driver, request: pytest.FixtureRequest) -> Bucket:
    """Make a bucket for the run of one test."""
    name = re.sub(r"[^a-z0-9]+", "-", request.node.name.lower())
    return google_and_airflow.bucket(name[:50].strip("-"))


@pytest.mark.parametrize(
    ("world", "made", "winner"),
    [
        ("plenty", [("us-central1", "done")], L4_US),
        (
            "l4-stockout",
            [("us-central1", "stockout"), ("europe-west4", "stockout"), ("us-central1", "done")],
            T4_US,
        ),
        (
            "stockout-then-quota-then-stock",
            [("us-central1", "stockout"), ("us-central1", "done")],
            T4_US,
        ),
    ],
)
def test_finishes_where_there_is_room(
    google_and_airflow: Driver,
    bucket: Bucket,
    world: str,
    made: list[tuple[str, str]],
    winner: str,
) -> None:
    """The job moves on for the world's reasons, in the user's order, and finishes proven in the first good place."""
    run = google_and_airflow.run(bucket, world=world)
    assert run.state == "success", run.log
    assert [(job.region, job.ending) for job in run.jobs] == made
    result = run.xcom("score")
    assert set(result) == RESULT_KEYS
    assert all(set(attempt) == ATTEMPT_KEYS for attempt in result["attempts"])
    assert [attempt["job_id"] for attempt in result["attempts"]] == [job.id for job in run.jobs]
    assert [kind_of(attempt) for attempt in result["attempts"]] == [ending for _, ending in made]
    assert (result["placement"], result["state"], result["job_id"]) == (winner, "done", run.jobs[-1].id)
    assert (result["proof"]["status"], result["proof"]["accelerator"]) == ("seen", winner.split(maxsplit=1)[0])
    zones = {each["zone"] for each in run.events if each["kind"] == "compute.instance.created"}
    assert zones == {result["proof"]["zone"]}
    assert len(predictions(run)) == 400
    assert run.xcom("check")["count"] == 400


def test_no_quota_starts_nothing(google_and_airflow: Driver, bucket: Bucket) -> None:
    """Without quota anywhere no job is ever made, and the report says of each place what is missing."""
    run = google_and_airflow.run(bucket, world="no-quota")
    assert run.tasks == {"prepare": "success", "score": "failed", "check": "upstream_failed"}
    assert run.jobs == []
    assert "No place could run score. Tried 0, skipped 3." in run.log
    for n, place in enumerate((L4_US, L4_EUROPE, T4_US), start=1):
        assert re.search(rf"{n}\. {place}: skipped, needs at least 1 .*; 0 of 0 left", run.log)


def test_nowhere_reports_every_place(google_and_airflow: Driver, bucket: Bucket) -> None:
    """Without stock anywhere each place is tried once, in order, and the report says where and after how long."""
    run = google_and_airflow.run(bucket, world="nowhere")
    assert run.tasks == {"prepare": "success", "score": "failed", "check": "upstream_failed"}
    assert [(job.region, job.ending) for job in run.jobs] == [
        ("us-central1", "stockout"),
        ("europe-west4", "stockout"),
        ("us-central1", "stockout"),
    ]
    assert "No place could run score. Tried 3, skipped 0." in run.log
    for n, place in enumerate((L4_US, L4_EUROPE, T4_US), start=1):
        zone = place.split(" in ")[1] + "-[a-f]"
        assert re.search(rf"{n}\. {place}: stockout in {zone} \(zone pool exhausted, after \d+ s\)\.", run.log)
    assert "Add a place to fallback=" in run.log


def test_a_missing_gpu_cancels_the_job(google_and_airflow: Driver, bucket: Bucket) -> None:
    """A job whose workers run without their GPU is cancelled, no other place is tried, and the reason is said."""
    bucket.blob(MODEL).upload_from_string(pickle.dumps(SlowToLoad()))
    run = google_and_airflow.run(bucket, world="gpu-missing")
    assert run.tasks == {"prepare": "success", "score": "failed", "check": "upstream_failed"}
    assert [(job.region, job.ending) for job in run.jobs] == [("us-central1", "cancelled")]
    cancels = [each for each in run.events if each["kind"] == "dataflow.job.requested"]
    assert [each["principal"] for each in cancels] == ["airflow@acme-ml-prod.iam.gserviceaccount.com"]
    assert re.search(r"g2-standard-8 in us-central1-[a-f] runs without nvidia-l4", run.log)


def test_user_code_that_raises_is_not_taken_elsewhere(google_and_airflow: Driver, bucket: Bucket) -> None:
    """A pipeline that raises fails the task with its own traceback, and no other place is tried."""
    bucket.blob(IMAGES).upload_from_string("this is no image\n")
    run = google_and_airflow.run(bucket, world="plenty")
    assert run.tasks == {"prepare": "success", "score": "failed", "check": "upstream_failed"}
    assert [(job.region, job.ending) for job in run.jobs] == [("us-central1", "failed")]
    assert "Not an image record: 'this is no image'" in run.log
    assert re.search(r'File ".*score_digits\.py", line \d+, in parse', run.log)


def test_a_killed_task_cancels_its_job(google_and_airflow: Driver, bucket: Bucket) -> None:
    """Marking the waiting task as failed cancels its job, and nothing is written."""
    bucket.blob(MODEL).upload_from_string(pickle.dumps(SlowToLoad()))
    run = google_and_airflow.start(bucket, world="plenty")
    waiting = "deferred" if google_and_airflow.mode == "deferrable" else "running"
    wait_for("the task to wait for its job", lambda: run.tasks["score"] == waiting and is_working(run), seconds=120)
    # Until a triggerer has taken the trigger up there is nobody to cancel anything.
    now = google_and_airflow.home.emulator.ledger()["last"]
    wait_for("somebody to look at the job", lambda: is_looked_at(run, since=now), seconds=60)
    google_and_airflow.home.airflow.api.set_task_state("score_digits", run.id, "score", "failed")
    wait_for("the job to be cancelled", lambda: [job.ending for job in run.jobs] == ["cancelled"], seconds=60)
    assert run.wait().state == "failed"
    assert not bucket.blob(f"digits/predictions/{DAY}.jsonl").exists()


def test_a_run_without_a_date_starts_nothing(google_and_airflow: Driver, bucket: Bucket) -> None:
    """A run without a logical date fails in its first task, which says what to do."""
    run = google_and_airflow.run(bucket, world="plenty", logical_date=None)
    assert run.tasks == {"prepare": "failed", "score": "upstream_failed", "check": "upstream_failed"}
    assert run.jobs == []
    assert "This run has no logical date" in run.log_of("prepare")


def is_working(run: Run) -> bool:
    return any(each["kind"] == "compute.instance.created" for each in run.events)


def is_looked_at(run: Run, *, since: int) -> bool:
    return any(call["method"].startswith("dataflow.") for call in run.home.emulator.ledger(since=since)["calls"])


def kind_of(attempt: dict[str, Any]) -> str:
    return str(attempt["failure"]["kind"] if attempt["failure"] else attempt["outcome"])


def predictions(run: Run) -> set[str]:
    lines = run.bucket.blob(f"digits/predictions/{DAY}.jsonl").download_as_text().splitlines()
    return {json.loads(line)["id"] for line in lines}
