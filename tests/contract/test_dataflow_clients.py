"""Google's own Dataflow clients, unmodified, against the emulator."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from dataflow_jobs import L4, environment, fresh_name
from emulators import running
from google.api_core.client_options import ClientOptions
from google.api_core.exceptions import BadRequest
from google.cloud import dataflow_v1beta3 as dataflow
from google.oauth2 import service_account
from googleapiclient import discovery
from googleapiclient.errors import HttpError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from emulators import Emulator

SCOPES = ["https://www.googleapis.com/auth/cloud-platform"]


@pytest.fixture(scope="module")
def emulator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Emulator]:
    """Return an emulator where no accelerator is in stock and time is slow: jobs stay for as long as a test looks."""
    with running(tmp_path_factory.mktemp("clients"), world="nowhere", time_scale=20.0) as started:
        yield started


def test_the_discovery_client_lives_through_a_job(emulator: Emulator) -> None:
    """google-api-python-client creates, finds, reads and cancels a job, and its list methods turn pages."""
    credentials = service_account.Credentials.from_service_account_file(str(emulator.keys["airflow"]), scopes=SCOPES)
    options = {"api_endpoint": emulator.url}
    service = discovery.build(
        "dataflow", "v1b3", credentials=credentials, client_options=options, static_discovery=True
    )
    jobs = service.projects().locations().jobs()
    place = {"projectId": emulator.project, "location": "us-central1"}
    body = {
        "name": fresh_name(),
        "type": "JOB_TYPE_BATCH",
        "environment": environment(machine="g2-standard-4", option=L4),
    }
    job = jobs.create(**place, body=body).execute()
    second = jobs.create(**place, body={**body, "name": fresh_name()}).execute()
    request, found = jobs.list(**place, filter="ACTIVE", pageSize=1), []
    while request is not None:
        page = request.execute()
        found += [entry["id"] for entry in page["jobs"]]
        request = jobs.list_next(request, page)
    assert found == [second["id"], job["id"]]
    assert jobs.get(**place, jobId=job["id"], view="JOB_VIEW_ALL").execute()["name"] == body["name"]
    assert "metrics" in jobs.getMetrics(**place, jobId=job["id"]).execute()
    assert isinstance(jobs.messages().list(**place, jobId=job["id"]).execute(), dict)
    every = service.projects().jobs().aggregated(projectId=emulator.project).execute()
    assert {entry["id"] for entry in every["jobs"]} == set(found)
    for each in found:
        cancel = {"requestedState": "JOB_STATE_CANCELLED"}
        assert jobs.update(**place, jobId=each, body=cancel).execute()["requestedState"] == "JOB_STATE_CANCELLED"
    with pytest.raises(HttpError, match="could not be created"):
        jobs.create(**place, body={**body, "name": "No Name"}).execute()


def test_the_typed_client_lives_through_a_job(emulator: Emulator) -> None:
    """google-cloud-dataflow over REST, which sends enumerations as numbers and a JWT of its own, does the same."""
    credentials = service_account.Credentials.from_service_account_file(str(emulator.keys["airflow"]))
    settings = {
        "credentials": credentials,
        "client_options": ClientOptions(api_endpoint=emulator.url),
        "transport": "rest",
    }
    jobs, messages = dataflow.JobsV1Beta3Client(**settings), dataflow.MessagesV1Beta3Client(**settings)
    place = {"project_id": emulator.project, "location": "europe-west4"}
    wanted = dataflow.Job.from_json(
        dataflow.Job.to_json(dataflow.Job(name=fresh_name(), type_=dataflow.JobType.JOB_TYPE_BATCH))
    )
    wanted.environment = dataflow.Environment(
        temp_storage_prefix="storage.googleapis.com/bucket/temp",
        worker_pools=[
            dataflow.WorkerPool(
                machine_type="g2-standard-4",
                num_workers=1,
                ip_configuration=dataflow.WorkerIPAddressConfiguration.WORKER_IP_PRIVATE,
            )
        ],
        service_options=[L4],
        sdk_pipeline_options={"options": {"pipelineUrl": "gs://bucket/pipeline.pb"}},
    )
    job = jobs.create_job(request=dataflow.CreateJobRequest(**place, job=wanted))
    assert job.current_state == dataflow.JobState.JOB_STATE_PENDING
    read = jobs.get_job(
        request=dataflow.GetJobRequest(**place, job_id=job.id, view=dataflow.JobView.JOB_VIEW_DESCRIPTION)
    )
    assert list(read.environment.service_options) == [L4]
    active = dataflow.ListJobsRequest.Filter.ACTIVE
    assert [j.id for j in jobs.list_jobs(request=dataflow.ListJobsRequest(**place, filter=active))] == [job.id]
    importance = dataflow.JobMessageImportance.JOB_MESSAGE_BASIC
    pager = messages.list_job_messages(
        request=dataflow.ListJobMessagesRequest(**place, job_id=job.id, minimum_importance=importance)
    )
    assert all(message.message_importance == importance for message in pager)
    cancelled = dataflow.Job(requested_state=dataflow.JobState.JOB_STATE_CANCELLED)
    answer = jobs.update_job(request=dataflow.UpdateJobRequest(**place, job_id=job.id, job=cancelled))
    assert answer.requested_state == dataflow.JobState.JOB_STATE_CANCELLED
    with pytest.raises(BadRequest, match="job name"):
        jobs.create_job(request=dataflow.CreateJobRequest(**place, job=dataflow.Job(name="No Name")))
