"""Cloud Monitoring through Google's own client, and the hook that reads it."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from connections import google_session
from dataflow_jobs import L4, Client, environment, until
from emulators import running
from google.cloud.monitoring_v3 import ListTimeSeriesResponse
from google.oauth2 import service_account
from googleapiclient import discovery
from googleapiclient.errors import HttpError

from airflow_accel_provider.emulator.monitoring.descriptors import METRIC_TYPES
from airflow_accel_provider.exceptions import GoogleApiError
from airflow_accel_provider.hooks.monitoring import gpu_utilization

if TYPE_CHECKING:
    from collections.abc import Iterator

    from emulators import Emulator
    from google.auth.transport.requests import AuthorizedSession

SCOPES = ["https://www.googleapis.com/auth/cloud-platform"]
GPU = "dataflow.googleapis.com/job/gpu_utilization"
GPU_MEMORY = "dataflow.googleapis.com/job/gpu_memory_utilization"
USAGE = "serviceruntime.googleapis.com/quota/allocation/usage"
LIMIT = "serviceruntime.googleapis.com/quota/limit"
REGION = "us-central1"


@pytest.fixture(scope="module")
def emulator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Emulator]:
    """Return an emulator of this module's own, in which nothing was ever measured."""
    with running(tmp_path_factory.mktemp("emulator"), time_scale=600.0) as started:
        yield started


@pytest.fixture
def client(emulator: Emulator, session: AuthorizedSession) -> Iterator[Client]:
    """Return a client of airflow@ in the world of plenty, whose jobs are gone after the test."""
    client = Client(emulator=emulator, session=session)
    yield client
    emulator.admin("DELETE", "faults")
    emulator.enter("plenty")
    client.clear()


@pytest.fixture(scope="module")
def monitoring(emulator: Emulator) -> Any:
    """Return google-api-python-client's service, unmodified."""
    credentials = service_account.Credentials.from_service_account_file(str(emulator.keys["airflow"]), scopes=SCOPES)
    options = {"api_endpoint": f"{emulator.url}/"}
    return discovery.build("monitoring", "v3", credentials=credentials, client_options=options, static_discovery=True)


@pytest.fixture
def ask(emulator: Emulator, monitoring: Any) -> Any:
    """Return what lists time series of the last hour."""

    def listed(wanted: str, **more: Any) -> dict[str, Any]:
        now = datetime.now(UTC)
        said = {
            "name": f"projects/{emulator.project}",
            "filter": wanted,
            "interval_startTime": (now - timedelta(hours=1)).isoformat(),
            "interval_endTime": now.isoformat(),
            **more,
        }
        answer: dict[str, Any] = monitoring.projects().timeSeries().list(**said).execute()
        # The typed client's own message takes the answer too, unknown fields being errors.
        ListTimeSeriesResponse.from_json(json.dumps(answer), ignore_unknown_fields=False)
        return answer

    return listed


def of_job(job: dict[str, Any], metric: str = GPU) -> str:
    """Return the filter for a job's series."""
    return f'metric.type = "{metric}" AND resource.type = "dataflow_job" AND metric.labels.job_id = "{job["id"]}"'


def points(answer: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the points of all series of an answer."""
    return [point for one in answer.get("timeSeries", ()) for point in one.get("points", ())]


def wait_for_all_points(client: Client, job: dict[str, Any]) -> None:
    """Wait until a job has failed, and until everything that was measured of it can be read."""
    failed = datetime.fromisoformat(client.wait(job, "FAILED")["currentStateTime"])
    delay = timedelta(seconds=240 / client.emulator.google.time_scale)
    until(lambda: datetime.now(UTC), lambda now: now > failed + delay)


def values(answer: dict[str, Any]) -> list[int]:
    """Return the whole numbers of all points."""
    return [int(point["value"]["int64Value"]) for point in points(answer)]


def times(answer: dict[str, Any]) -> list[datetime]:
    """Return the times of all points."""
    return [datetime.fromisoformat(point["interval"]["endTime"]) for point in points(answer)]


def test_a_gpu_job_is_measured_while_its_workers_are_up(client: Client, ask: Any) -> None:
    """A GPU job has no series at first, then one that grows, with the newest point first, and keeps it when it ends."""
    job = client.create(environment(machine="g2-standard-8", option=L4, workers=2))
    assert ask(of_job(job)) == {}
    seen = until(lambda: ask(of_job(job)), lambda answer: len(points(answer)) >= 3)
    (series,) = seen["timeSeries"]
    assert series["metric"] == {"type": GPU, "labels": {"job_id": job["id"]}}
    resource = {"project_id": client.emulator.project, "job_name": job["name"], "region": REGION}
    assert series["resource"] == {"type": "dataflow_job", "labels": resource}
    assert (series["metricKind"], series["valueType"], seen["unit"]) == ("GAUGE", "INT64", "%")
    assert times(seen) == sorted(times(seen), reverse=True)
    assert 60 <= min(values(seen)) < max(values(seen)) <= 75
    wait_for_all_points(client, job)
    ended = ask(of_job(job))
    assert set(times(seen)) <= set(times(ended))
    assert ask(of_job(job)) == ended


def test_points_come_late(client: Client, ask: Any) -> None:
    """A point is not to be seen before four of Google's minutes after it was measured."""
    job = client.create(environment(machine="g2-standard-8", option=L4))
    until(lambda: client.get(job), lambda _: bool(points(ask(of_job(job)))))
    newest = max(times(ask(of_job(job))))
    assert datetime.now(UTC) - newest >= timedelta(seconds=240 / client.emulator.google.time_scale)


def test_memory_is_measured_too(client: Client, ask: Any) -> None:
    """The share of time in which memory is accessed is a metric of its own."""
    job = client.create(environment(machine="g2-standard-8", option=L4))
    seen = until(lambda: ask(of_job(job, GPU_MEMORY)), lambda answer: len(points(answer)) >= 3)
    assert all(30 <= value <= 50 for value in values(seen))


def test_an_idle_gpu_is_measured_as_zero(client: Client, ask: Any) -> None:
    """In a world of idle GPUs a job's points are there and are zero."""
    client.emulator.enter("gpu-idle")
    job = client.create(environment(machine="g2-standard-8", option=L4))
    seen = until(lambda: ask(of_job(job)), lambda answer: len(points(answer)) >= 3)
    assert set(values(seen)) == {0}


@pytest.mark.parametrize(
    ("world", "machine", "image"),
    [("plenty", None, None), ("gpu-missing", "g2-standard-8", None), ("plenty", "g2-standard-8", "acme/score:missing")],
)
def test_what_never_ran_on_a_gpu_has_no_series(
    client: Client, ask: Any, world: str, machine: str | None, image: str | None
) -> None:
    """A job on CPUs, one whose GPU isn't there and one whose container never starts end without a single point."""
    client.emulator.enter(world)
    wanted = environment(machine=machine, option=L4 if machine else None)
    if image:
        wanted["workerPools"][0]["sdkHarnessContainerImages"] = [{"containerImage": image}]
    job = client.create(wanted)
    wait_for_all_points(client, job)
    assert ask(of_job(job)) == {}


def test_points_are_aligned_and_reduced(client: Client, ask: Any) -> None:
    """Mean, peak and count of an hour are what its points say, and two jobs can be put into one series."""
    jobs = [client.create(environment(machine="g2-standard-8", option=L4)) for _ in range(2)]
    for job in jobs:
        wait_for_all_points(client, job)
    now = datetime.now(UTC)
    frame = {"interval_startTime": (now - timedelta(hours=1)).isoformat(), "interval_endTime": now.isoformat()}
    hour = {**frame, "aggregation_alignmentPeriod": "3600s"}
    raw = [values(ask(of_job(job), **frame)) for job in jobs]
    for aligner, expected in (
        ("MAX", max(raw[0])),
        ("MIN", min(raw[0])),
        ("NEXT_OLDER", raw[0][0]),
        ("COUNT", len(raw[0])),
    ):
        answer = ask(of_job(jobs[0]), aggregation_perSeriesAligner=f"ALIGN_{aligner}", **hour)
        assert values(answer) == [expected]
        assert times(answer) == [now]
    (mean,) = points(ask(of_job(jobs[0]), aggregation_perSeriesAligner="ALIGN_MEAN", **hour))
    assert mean["value"] == {"doubleValue": pytest.approx(sum(raw[0]) / len(raw[0]))}
    both = f'metric.type = "{GPU}" AND metric.labels.job_id = one_of("{jobs[0]["id"]}", "{jobs[1]["id"]}")'
    peaks = {"aggregation_perSeriesAligner": "ALIGN_MAX", "aggregation_crossSeriesReducer": "REDUCE_SUM", **hour}
    assert values(ask(both, **peaks)) == [max(raw[0]) + max(raw[1])]
    by_job = ask(both, **peaks, aggregation_groupByFields=["metric.label.job_id"])
    assert [one["metric"]["labels"] for one in by_job["timeSeries"]] == [{"job_id": job["id"]} for job in jobs]


def test_pages_hold_together_while_time_passes(emulator: Emulator, client: Client, monitoring: Any) -> None:
    """Points that come while somebody turns pages neither repeat others nor shift them."""
    job = client.create(environment(machine="g2-standard-8", option=L4))
    series = monitoring.projects().timeSeries()
    said = {
        "name": f"projects/{emulator.project}",
        "filter": of_job(job),
        "interval_startTime": "2026-01-01T00:00:00.123456789Z",
        "interval_endTime": (datetime.now(UTC) + timedelta(hours=1)).isoformat(),
        "pageSize": 2,
    }
    until(lambda: series.list(**said).execute(), lambda answer: "nextPageToken" in answer)
    request, found = series.list(**said), []
    while request is not None:
        answer = request.execute()
        assert len(points(answer)) <= 2
        found += times(answer)
        request = series.list_next(request, answer)
    assert len(found) > 2
    assert found == sorted(set(found), reverse=True)


def test_headers_have_no_points(client: Client, ask: Any) -> None:
    """Where only headers are asked for, series come without points, so many a page."""
    limits = f'metric.type = "{LIMIT}" AND resource.labels.location = "{REGION}"'
    whole = until(lambda: ask(limits, view="HEADERS"), bool)
    assert len(whole["timeSeries"]) > 3
    assert points(whole) == []
    page = ask(limits, view="HEADERS", pageSize=3)
    assert page["timeSeries"] == whole["timeSeries"][:3]
    assert page["nextPageToken"]


def test_limits_are_the_worlds(client: Client, ask: Any) -> None:
    """The limit of each quota shows where it applies, under the names that Monitoring has for it."""
    wanted = f'metric.type = "{LIMIT}" AND metric.labels.quota_metric = "compute.googleapis.com/nvidia_l4_gpus"'
    answer = until(lambda: ask(f'{wanted} AND resource.labels.location = "{REGION}"'), bool)
    (series,) = answer["timeSeries"]
    assert series["metric"]["labels"]["limit_name"] == "NVIDIA-L4-GPUS-per-project-region"
    assert series["resource"]["labels"]["service"] == "compute.googleapis.com"
    assert values(answer)[-1] == 64
    everywhere = f'metric.type = "{LIMIT}" AND metric.labels.limit_name = "GPUS-ALL-REGIONS-per-project"'
    assert [one["resource"]["labels"]["location"] for one in ask(everywhere)["timeSeries"]] == ["global"]


def test_usage_follows_the_vms(client: Client, ask: Any) -> None:
    """What a job's VMs take of a quota is added when they come and taken away when they go, some time later."""
    metric = 'metric.labels.quota_metric = "compute.googleapis.com/nvidia_l4_gpus"'
    wanted = f'metric.type = "{USAGE}" AND resource.labels.location = "europe-west4" AND {metric}'
    until(lambda: ask(wanted), lambda answer: values(answer)[:1] == [0])
    job = client.create(environment(machine="g2-standard-24", option=L4.replace("count:1", "count:2")), "europe-west4")
    until(lambda: ask(wanted), lambda answer: 2 in values(answer))
    client.cancel(job)
    until(lambda: ask(wanted), lambda answer: values(answer)[0] == 0)


@pytest.mark.parametrize(
    ("changes", "status", "why"),
    [
        ({"filter": 'resource.type = "dataflow_job"'}, 400, "metric.type"),
        ({"filter": f'metric.type = "{GPU}" OR metric.type = "{USAGE}"'}, 400, "to one type"),
        ({"filter": f"metric.type = '{GPU}' AND ="}, 400, "left-hand side"),
        ({"filter": 'metric.type = "dataflow.googleapis.com/job/gpu"'}, 404, "Cannot find metric.s. that match type"),
        ({"filter": f'metric.type = "{GPU}" AND metric.labels.job = "x"'}, 404, 'label = "job"'),
        ({"filter": f'metric.type = "{GPU}" AND resource.labels.zone = "x"'}, 400, "valid combination"),
        ({"interval_endTime": None}, 400, "end time is required"),
        ({"interval_endTime": "yesterday"}, 400, "Timestamp"),
        ({"interval_startTime": "2026-11-30T01:00:00Z", "interval_endTime": "2026-11-30T00:00:00Z"}, 400, "later than"),
        ({"aggregation_perSeriesAligner": "ALIGN_MEAN"}, 400, "alignmentPeriod"),
        ({"aggregation_perSeriesAligner": "ALIGN_MEAN", "aggregation_alignmentPeriod": "30s"}, 400, "60 seconds"),
        ({"aggregation_perSeriesAligner": "ALIGN_MEAN", "aggregation_alignmentPeriod": "1m"}, 400, "Duration"),
        ({"aggregation_crossSeriesReducer": "REDUCE_SUM"}, 400, "aligned"),
        ({"aggregation_perSeriesAligner": "ALIGN_STDDEV", "aggregation_alignmentPeriod": "60s"}, 501, "ALIGN_STDDEV"),
        ({"secondaryAggregation_perSeriesAligner": "ALIGN_MEAN"}, 501, "secondary"),
        ({"orderBy": "time"}, 400, "left blank"),
        ({"pageToken": "2"}, 400, "none that was given"),
        ({"pageSize": -1}, 400, "positive"),
        ({"name": "projects/other"}, 403, "monitoring.timeSeries.list denied"),
    ],
)
def test_a_wrong_question_is_refused(ask: Any, changes: dict[str, Any], status: int, why: str) -> None:
    """What the service would refuse is refused with its status and says what is wrong."""
    said = {"wanted": f'metric.type = "{GPU}"', **changes}
    with pytest.raises(HttpError, match=why) as caught:
        ask(said.pop("filter", said.pop("wanted")), **{k: v for k, v in said.items() if k != "wanted"})
    assert caught.value.resp.status == status


def test_descriptors_tell_units_and_delays(emulator: Emulator, monitoring: Any) -> None:
    """Metric types can be found by how they begin, and say in which unit and how late they come."""
    descriptors = monitoring.projects().metricDescriptors()
    name = f"projects/{emulator.project}"
    assert [found["type"] for found in descriptors.list(name=name).execute()["metricDescriptors"]] == list(METRIC_TYPES)
    starting = 'metric.type = starts_with("dataflow.googleapis.com/job/gpu_u")'
    (found,) = descriptors.list(name=name, filter=starting).execute()["metricDescriptors"]
    assert (found["unit"], found["metadata"]["ingestDelay"]) == ("%", "240s")
    assert descriptors.list(name=name, filter='metric.type = "none"').execute() == {}


def test_the_hook_waits_for_data(client: Client) -> None:
    """A job's utilisation is unknown until it is measured, and then says how many points it rests on."""
    session = google_session(client.emulator)
    begun = datetime.now(UTC)
    job = client.create(environment(machine="g2-standard-8", option=L4))

    def read() -> Any:
        return gpu_utilization(session, job_id=job["id"], region=REGION, since=begun, now=datetime.now(UTC))

    assert read() is None
    found = until(read, lambda use: use is not None and use.points >= 3)
    assert 60 <= found.mean <= found.highest <= 75
    assert found.series == 1
    assert begun < found.newest_at < datetime.now(UTC)
    elsewhere = {"since": begun, "now": datetime.now(UTC)}
    assert gpu_utilization(session, job_id=job["id"], region="us-east1", **elsewhere) is None
    assert gpu_utilization(session, job_id='x" OR "', region=REGION, **elsewhere) is None
    assert gpu_utilization(session, job_id=job["id"], region=REGION, since=begun, now=begun) is None


def test_the_hook_tells_idle_from_unknown(client: Client) -> None:
    """An idle GPU's utilisation is zero."""
    client.emulator.enter("gpu-idle")
    begun = datetime.now(UTC)
    job = client.create(environment(machine="g2-standard-8", option=L4))
    session = google_session(client.emulator)
    found = until(
        lambda: gpu_utilization(session, job_id=job["id"], region=REGION, since=begun, now=datetime.now(UTC)),
        lambda use: use is not None,
    )
    assert (found.mean, found.highest) == (0, 0)


def test_what_cannot_be_read_is_an_error(client: Client) -> None:
    """Without the right to read metrics nothing is known, and the error says so."""
    method = "monitoring.projects.timeSeries.list"
    session = google_session(client.emulator)
    now = datetime.now(UTC)
    asked = {"job_id": "2026-01-01_00_00_00-1", "region": REGION, "since": now - timedelta(hours=1), "now": now}
    client.emulator.fail(method, status=403, message="Permission monitoring.timeSeries.list denied")
    with pytest.raises(GoogleApiError, match="list denied"):
        gpu_utilization(session, **asked)
    client.emulator.fail(method, status=404, message="The project does not exist.")
    with pytest.raises(GoogleApiError, match="404"):
        gpu_utilization(session, **asked)
    client.emulator.fail(method, status=404, message='Cannot find metric(s) that match type = "x".')
    assert gpu_utilization(session, **asked) is None
