"""What Dataflow takes, refuses and shows, before and beside running anything."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from dataflow_jobs import BUCKET, L4, Client, environment, fresh_name
from emulators import running

from airflow_accel_provider.emulator.dataflow.reading import read_message

if TYPE_CHECKING:
    from collections.abc import Iterator

    from emulators import Emulator
    from google.auth.transport.requests import AuthorizedSession


@pytest.fixture(scope="module")
def emulator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Emulator]:
    """Return an emulator where no accelerator is in stock and time is slow: jobs stay for as long as a test looks."""
    with running(tmp_path_factory.mktemp("requests"), world="nowhere", time_scale=20.0) as started:
        yield started


@pytest.fixture
def client(emulator: Emulator, session: AuthorizedSession) -> Iterator[Client]:
    """Return bare calls of airflow@; jobs that are left are cancelled."""
    client = Client(emulator=emulator, session=session)
    yield client
    client.clear()


ON_L4 = environment(machine="g2-standard-4", option=L4)


def _options(**options: Any) -> dict[str, Any]:
    return {"options": {"pipelineUrl": f"gs://{BUCKET}/x/pipeline.pb", **options}}


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "job name": ({"name": "Score_Digits"}, "job name 'Score_Digits' does not match"),
    "no name": ({"name": ""}, "job name"),
    "job type": ({"type": "JOB_TYPE_UNKNOWN"}, "JOB_TYPE_BATCH and JOB_TYPE_STREAMING can"),
    "label key": ({"labels": {"Team": "x"}}, "label key 'Team'"),
    "label value": ({"labels": {"team": "Ä"}}, "value 'Ä' of label 'team'"),
    "long label": ({"labels": {"team": "x" * 64}}, "is not valid"),
    "too many labels": ({"labels": {f"k{n}": "" for n in range(65)}}, "65 labels"),
    "no temp location": ({"environment": environment(tempStoragePrefix="")}, "temp location ''"),
    "local temp location": ({"environment": environment(tempStoragePrefix="/tmp/x")}, "names no Cloud Storage bucket"),  # noqa: S108
    "local staging": (
        {"environment": environment(sdkPipelineOptions=_options(staging_location="/staging"))},
        "staging_location must be a Cloud Storage path",
    ),
    "no pipeline": ({"environment": environment(sdkPipelineOptions={"options": {}})}, "pipelineUrl must be"),
    "zone of another region": (
        {"environment": environment(workerZone="europe-west4-a")},
        "worker zone 'europe-west4-a' is not in region us-central1",
    ),
    "zone and region": (
        {"environment": environment(workerZone="us-central1-a", workerRegion="us-central1")},
        "mutually exclusive",
    ),
    "worker region": ({"environment": environment(workerRegion="us-centrl1")}, "Did you mean 'us-central1'?"),
    "service option": (
        {"environment": environment(option="worker_acelerator=type:nvidia-l4;count:1")},
        "Did you mean 'worker_accelerator'?",
    ),
    "accelerator type": (
        {"environment": environment(option="worker_accelerator=type:nvidia-tesla-l4;count:1")},
        "unknown accelerator type 'nvidia-tesla-l4'. Did you mean 'nvidia-",
    ),
    "accelerator count": (
        {"environment": environment(option="worker_accelerator=type:nvidia-l4;count:two")},
        "count must be a positive number, not 'two'",
    ),
    "accelerator without count": (
        {"environment": environment(option="worker_accelerator=type:nvidia-l4")},
        "count is missing",
    ),
    "accelerator token": (
        {"environment": environment(option="worker_accelerator=type:nvidia-l4;count:1;install-driver")},
        "unexpected 'install-driver'",
    ),
    "prime": (
        {"environment": environment(serviceOptions=[L4, "enable_prime"])},
        "cannot be combined with enable_prime",
    ),
    "two accelerators": (
        {"environment": environment(option=L4, experiments=["worker_accelerator=type:nvidia-tesla-t4;count:1"])},
        "more than one worker_accelerator",
    ),
    "more workers than the most": (
        {
            "environment": environment(
                workerPools=[{"numWorkers": 5, "autoscalingSettings": {"maxNumWorkers": 2}}],
            )
        },
        "num_workers (5) must not exceed max_num_workers (2)",
    ),
    "subnetwork elsewhere": (
        {"environment": environment(workerPools=[{"subnetwork": "regions/europe-west4/subnetworks/default"}])},
        "is not in region us-central1",
    ),
    "unknown field": ({"environmint": {}}, 'Unknown name "environmint"'),
    "unknown number": ({"type": 9}, "Invalid value at 'type', 9"),
    "wrong kind": ({"labels": ["team"]}, "Invalid value at 'labels'"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_wrong_request_is_refused_and_says_why(client: Client, case: str) -> None:
    """What Beam's skipped validators and the service would refuse is a 400, and no job comes of it."""
    changes, words = REFUSED[case]
    name = changes.get("name", fresh_name())
    answer = client.post({"name": name, "environment": environment(), **changes})
    assert answer.status_code == 400
    assert words in answer.json()["error"]["message"]
    assert "jobs" not in client.session.get(client.url(), params={"name": name or "-"}, timeout=30).json()


def test_everything_that_is_wrong_is_said_at_once(client: Client) -> None:
    """One answer names the bad name, the bad label and the bad zone."""
    body = {"name": "X", "labels": {"A": "b"}, "environment": environment(workerZone="mars-1a")}
    message = client.post(body).json()["error"]["message"]
    assert all(word in message for word in ("'X'", "'A'", "'mars-1a'"))


def test_an_unknown_region_is_unreachable(client: Client) -> None:
    """The service's words for a region that there is not come with the nearest one."""
    answer = client.post({"name": fresh_name(), "environment": environment()}, "us-centrl1")
    assert answer.status_code == 400
    assert "invalid or unreachable region" in answer.text
    assert "us-central1" in answer.text


def test_numbers_of_enumerations_become_names() -> None:
    """A typed client's numbers are stored and shown as names, 64-bit numbers as strings."""
    pool = {"ipConfiguration": 2, "diskProvisionedIops": 3000, "autoscalingSettings": {"algorithm": 1}}
    read = read_message({"type": 1, "environment": {"workerPools": [pool]}}, "Job")
    assert read["type"] == "JOB_TYPE_BATCH"
    assert read["environment"]["workerPools"][0] == {
        "ipConfiguration": "WORKER_IP_PRIVATE",
        "diskProvisionedIops": "3000",
        "autoscalingSettings": {"algorithm": "AUTOSCALING_ALGORITHM_NONE"},
    }


def test_a_second_job_of_an_active_name_is_the_first_one(client: Client) -> None:
    """Names are unique among a region's active jobs: a second create answers the first job, with its request id."""
    name, env = fresh_name(), ON_L4
    first = client.create(env, name=name, clientRequestId=f"{name}-1")
    second = client.create(env, name=name, clientRequestId=f"{name}-2")
    elsewhere = client.create(env, "europe-west4", name=name, clientRequestId=f"{name}-3")
    assert (second["id"], second["clientRequestId"]) == (first["id"], f"{name}-1")
    assert elsewhere["id"] != first["id"]
    client.clear()
    third = client.create(env, name=name, clientRequestId=f"{name}-4")
    assert third["id"] != first["id"]


def test_a_repeated_request_id_is_refused(client: Client) -> None:
    """The same client request id for the same name makes the request fail, whether or not the job still runs."""
    body = {
        "name": fresh_name(),
        "clientRequestId": "the-same",
        "environment": ON_L4,
    }
    client.post(body).json()
    assert client.post(body).status_code == 409
    client.clear()
    assert client.post(body).status_code == 409


def test_views_show_more_and_more(client: Client) -> None:
    """A summary has neither labels nor environment; a description has both; a pending job has no pools yet."""
    job = client.create(ON_L4, labels={"accel-owner": "abc"})
    assert "labels" not in client.get(job, "JOB_VIEW_SUMMARY")
    assert "environment" not in client.get(job, "1")
    described = client.get(job, "JOB_VIEW_DESCRIPTION")
    assert described["labels"] == {"accel-owner": "abc"}
    whole = client.wait(job, "RUNNING")
    assert whole["environment"]["workerPools"][0]["machineType"] == "g2-standard-4"
    assert whole["environment"]["serviceOptions"] == [L4]
    assert whole["jobMetadata"]["sdkVersion"]["version"] == "2.77.0"


def test_jobs_are_found_by_name_and_state_in_pages(client: Client) -> None:
    """A list filters by exact name and by activity, newest first, page by page, in summaries."""
    name, env = fresh_name(), ON_L4
    first = client.create(env, name=name)
    client.clear()
    second = client.create(env, name=name)

    def ids(**query: Any) -> list[str]:
        answer = client.session.get(client.url(), params={"name": name, **query}, timeout=30).json()
        assert all("environment" not in job for job in answer.get("jobs", []))
        return [job["id"] for job in answer.get("jobs", [])]

    assert ids() == [second["id"], first["id"]]
    assert ids(filter="ACTIVE") == [second["id"]]
    assert ids(filter="2") == [first["id"]]
    assert ids(name=name[:-1]) == []
    page = client.session.get(client.url(), params={"name": name, "pageSize": 1}, timeout=30).json()
    assert [job["id"] for job in page["jobs"]] == [second["id"]]
    assert ids(pageSize=1, pageToken=page["nextPageToken"]) == [first["id"]]


def test_the_aggregated_list_has_every_region(client: Client) -> None:
    """Jobs of different regions stand in one list; a call without a location is about us-central1."""
    name, env = fresh_name(), ON_L4
    client.create(env, name=name)
    client.create(env, "europe-west4", name=name)
    base = f"{client.emulator.url}/v1b3/projects/{client.emulator.project}/jobs"
    every = client.session.get(f"{base}:aggregated", params={"name": name}, timeout=30).json()["jobs"]
    default = client.session.get(base, params={"name": name}, timeout=30).json()["jobs"]
    assert {job["location"] for job in every} == {"us-central1", "europe-west4"}
    assert [job["location"] for job in default] == ["us-central1"]


def test_labels_change_with_an_update_mask(client: Client) -> None:
    """An update mask replaces labels, and cannot come with a requested state."""
    job = client.create(ON_L4, labels={"a": "1"})
    url = client.url(job["location"], job["id"])
    client.session.put(url, params={"updateMask": "labels"}, json={"labels": {"b": "2"}}, timeout=30)
    assert client.get(job)["labels"] == {"b": "2"}
    both = {"labels": {}, "requestedState": "JOB_STATE_CANCELLED"}
    assert client.session.put(url, params={"updateMask": "labels"}, json=both, timeout=30).status_code == 400


def test_a_job_is_known_only_where_it_is(client: Client, emulator: Emulator) -> None:
    """A job asked for in another region, and one that never was, are not found; another project is forbidden."""
    job = client.create(ON_L4)
    assert client.session.get(client.url("europe-west4", job["id"]), timeout=30).status_code == 404
    assert client.session.get(client.url(job_id="2026-01-01_00_00_00-1"), timeout=30).status_code == 404
    foreign = client.url().replace(emulator.project, "somebody-elses")
    assert client.session.get(foreign, timeout=30).status_code == 403


def test_only_a_cancel_can_be_asked_of_a_batch_job(client: Client) -> None:
    """Draining a batch job is refused, and so is cancelling one that is over."""
    job = client.create(ON_L4)
    url = client.url(job["location"], job["id"])
    drain = client.session.put(url, json={"requestedState": "JOB_STATE_DRAINED"}, timeout=30)
    assert drain.status_code == 400
    assert client.cancel(job).status_code == 200
    assert client.cancel(job).status_code == 200
    client.wait(job, "CANCELLED")
    assert "already in terminal state" in client.cancel(job).json()["error"]["message"]


def test_a_pending_job_can_be_cancelled(client: Client, emulator: Emulator) -> None:
    """A job that never ran is cancelled without ever having asked for a VM."""
    job = client.create(ON_L4)
    client.cancel(job)
    client.wait(job, "CANCELLED")
    events = [event for event in emulator.events() if event.get("job_id") == job["id"]]
    assert [event["state"] for event in events if event["kind"] == "dataflow.job.state"] == [
        "JOB_STATE_CANCELLING",
        "JOB_STATE_CANCELLED",
    ]
    assert not [event for event in events if event["kind"] == "dataflow.workers.refused"]
