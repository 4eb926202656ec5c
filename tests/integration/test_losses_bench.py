"""The comparison with the stock operators: its way to the emulator, and its reading of the ledger."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from bench.stock.front import Front
from bench.stock.reading import most_at_once, subject_of
from bench.stock.subjects import SUBJECTS, subject_in
from bench.stock.world import bearer_of
from demo.jobs import Job, jobs_of
from tests.integration.batches import BUCKET, PROGRAMS

if TYPE_CHECKING:
    from tests.integration.local_google import LocalGoogle

KEY = "stock-batch-wait"
REGION = "projects/acme-ml-prod/regions/us-central1"


def test_a_stock_client_reaches_the_emulator_and_meets_its_own_fault_alone(google: LocalGoogle) -> None:
    """A batch that is made over gRPC is in the ledger under its subject, and one look at it is refused, once."""
    import grpc
    from google.api_core.exceptions import ServiceUnavailable
    from google.cloud.dataproc_v1 import BatchControllerClient
    from google.cloud.dataproc_v1.services.batch_controller.transports import BatchControllerGrpcTransport

    google.bucket(BUCKET).blob("jobs/etl.py").upload_from_filename(PROGRAMS / "etl.py")
    since = google.mark()
    front = Front(google.emulator.url, bearer=bearer_of(google.keys["airflow"]))
    front.start()
    transport = BatchControllerGrpcTransport(channel=grpc.insecure_channel(front.grpc))
    client = BatchControllerClient(transport=transport)
    batch = {
        "pyspark_batch": {"main_python_file_uri": f"gs://{BUCKET}/jobs/etl.py"},
        "labels": {"airflow-task-id": KEY},
    }
    made = client.create_batch(parent=REGION, batch=batch, batch_id="seen-over-grpc")
    name = f"{REGION}/batches/seen-over-grpc"
    front.arm("stock-flex-wait", "get")
    fault = front.arm(KEY, "get")
    with pytest.raises(ServiceUnavailable):
        client.get_batch(name=name, retry=None)
    assert fault.came.is_set()
    assert client.get_batch(name=name).name.endswith("seen-over-grpc")
    made.cancel()
    [job] = jobs_of(google.emulator.ledger(since=since))
    assert (subject_of(job), job.region, len(job.asked_by)) == (KEY, "us-central1", 1)


def test_a_batch_is_known_by_its_region_and_its_id() -> None:
    """Two batches of one id in two regions are two, and the end of one is not the end of the other."""
    time = "2026-03-02T06:00:00Z"
    about = {"batch_id": "etl", "time": time, "labels": {"airflow-task-id": KEY}}
    made, over = {**about, "kind": "dataproc.batch.created"}, {**about, "kind": "dataproc.batch.state"}
    events = [
        {**made, "seq": 1, "location": "us-east1"},
        {**over, "seq": 2, "location": "us-east1", "state": "FAILED"},
        {**made, "seq": 3, "location": "us-west1"},
    ]
    assert [(job.region, job.state) for job in jobs_of({"events": events})] == [
        ("us-east1", "failed"),
        ("us-west1", "made"),
    ]


def test_jobs_that_live_together_are_counted() -> None:
    """Of three jobs of which the second begins before the first ends, two lived at once."""
    spans = [(0.0, 5.0), (4.0, 6.0), (6.0, None)]
    jobs = [
        Job(id="", name=KEY, region="us-central1", labels={}, states=("made",), born=born, made=made, ended=ended)
        for born, (made, ended) in enumerate(spans)
    ]
    assert most_at_once(jobs) == 2


def test_a_job_is_told_by_its_name_or_its_labels() -> None:
    """Each subject is found in what is said of its job, and no other is."""
    for subject in SUBJECTS:
        assert subject_in(json.dumps({"jobName": f"{subject.key}-0a1b2c3d"})) == subject.key
        assert subject_in(f"batch-7 {{'accel-task': '{subject.key}'}}") == subject.key
    assert subject_in("somebody-elses-job") is None
