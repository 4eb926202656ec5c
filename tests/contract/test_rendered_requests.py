"""What documented requests become: built into jobs by Beam itself, and handed to the service."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from dataflow_jobs import BUCKET, Client, fresh_name, until
from emulators import running

from airflow_accel_provider.core.accelerators import Cpu, Gpu, Tpu
from airflow_accel_provider.core.catalog import load_catalog
from airflow_accel_provider.core.options import beam_flags, flex_template_launch
from airflow_accel_provider.core.request import BeamRequest, Candidate
from airflow_accel_provider.core.validation import resolve
from tests.core.full_request import WORKERS
from tests.core.test_founding_tables import GPU_PLACES, GPU_VALUES, L4_OPTION, RESERVATION, TPU_PLACES, TPU_VALUES
from tests.core.test_validation import PLACE, SOUND

if TYPE_CHECKING:
    from collections.abc import Iterator

    from apache_beam.portability.api.beam_runner_api_pb2 import Pipeline
    from emulators import Emulator

    from airflow_accel_provider.core.placement import Placement

CATALOG = load_catalog()
OWN_LABELS = {"accel-owner": "o-1", "accel-life": "1"}
FULL = {**WORKERS, "service_options": ("enable_google_cloud_profiler",)}
# Warnings about what our tables do not know or take for a slip: whether it exists is the service's to say.
DOUBTS = {"?not-listed", "?extra-spelling", "?accelerator-token"}
# Texts that Google gives to single customers, and an experiment that this Beam refuses by itself.
OPAQUE = {"use_reservation=r", RESERVATION, "some_flex_start_option", "disable_runner_v2"}

WAITING = {"JOB_STATE_PENDING", "JOB_STATE_QUEUED"}


def is_sound(said: str, parameters: dict[str, Any]) -> bool:
    """Tell whether a row of the tables is something that the service takes."""
    extras = {*parameters.get("service_options", ()), *parameters.get("experiments", ())}
    codes = {*said.split()}
    return all(code.startswith("?") for code in codes) and not codes & DOUBTS and not extras & OPAQUE


def first(places: Any) -> str:
    """Return the place that a row of the tables is about: its first."""
    return str(places if isinstance(places, str) else places[0])


ROWS: list[tuple[str, dict[str, Any]]] = [
    *[(first(places), {}) for _, places, said in (*GPU_PLACES, *TPU_PLACES) if is_sound(said, {})],
    *[(place, parameters) for _, place, parameters, said in (*GPU_VALUES, *TPU_VALUES) if is_sound(said, parameters)],
    (PLACE, FULL),
    ("nvidia-tesla-t4:2 on n1-standard-32 in us-central1-a", FULL),
]


# Whether a template streams is its own to say, its launch cannot.
LAUNCHED = [row for row in ROWS if "streaming" not in row[1].get("options", {})]


@pytest.fixture(scope="module")
def emulator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Emulator]:
    """Return an emulator where no accelerator is in stock, so that jobs start and no worker ever does."""
    with running(tmp_path_factory.mktemp("rendered"), world="nowhere", time_scale=600.0) as started:
        yield started


@pytest.fixture(scope="module")
def client(emulator: Emulator) -> Iterator[Client]:
    """Return bare calls of airflow@; jobs that are left are cancelled."""
    from google.auth.transport.requests import AuthorizedSession
    from google.oauth2.service_account import Credentials

    scopes = ["https://www.googleapis.com/auth/cloud-platform"]
    credentials = Credentials.from_service_account_file(str(emulator.keys["airflow"]), scopes=scopes)
    client = Client(emulator=emulator, session=AuthorizedSession(credentials))
    yield client
    client.clear()


@pytest.fixture(scope="module")
def template(client: Client) -> str:
    """Return where a Flex Template's specification is."""
    spec = {
        "image": "us-docker.pkg.dev/acme/templates/score:1",
        "sdkInfo": {"language": "PYTHON"},
        # A template with metadata takes no parameters but its own and Beam's.
        "metadata": {"name": "Score", "parameters": []},
    }
    url = f"{client.emulator.url}/upload/storage/v1/b/{BUCKET}/o"
    storage = f"{client.emulator.url}/storage/v1/b?project={client.emulator.project}"
    client.session.post(storage, json={"name": BUCKET}, timeout=30).raise_for_status()
    put = client.session.post(url, params={"uploadType": "media", "name": "score.json"}, json=spec, timeout=30)
    put.raise_for_status()
    return f"gs://{BUCKET}/score.json"


@pytest.fixture(scope="module")
def pipeline() -> Pipeline:
    """Return the smallest of all pipelines, as Beam hands it to runners."""
    import apache_beam

    built = apache_beam.Pipeline()
    _ = built | apache_beam.Impulse()
    return built.to_runner_api()


def job_of(flags: tuple[str, ...], pipeline: Pipeline) -> dict[str, Any]:
    """Return the job that Beam's DataflowRunner makes of a launcher's arguments, without uploading anything."""
    from apache_beam.options.pipeline_options import PipelineOptions
    from apache_beam.runners.dataflow.dataflow_runner import DataflowRunner
    from apache_beam.runners.dataflow.internal.apiclient import Environment

    options = PipelineOptions([*flags, "--dry_run=true"])
    job = DataflowRunner().run_pipeline(None, options, pipeline_proto=pipeline).job
    staged = f"gs://{BUCKET}/rendered/pipeline.pb"
    job.proto.environment = Environment([], options, environment_version="8", proto_pipeline_staged_url=staged).proto
    body: dict[str, Any] = json.loads(job.json())
    return body


def request_of(place: str, parameters: dict[str, Any]) -> tuple[BeamRequest, Placement]:
    """Return what a row asks for in its place."""
    options = {**SOUND["pipeline_options"], **parameters.get("options", {})}
    said = {name: value for name, value in parameters.items() if name != "options"}
    candidate = resolve(Candidate.parse(place), CATALOG)
    return BeamRequest(**{**SOUND, **said, "pipeline_options": options}).for_candidate(candidate), candidate.placement


def asked(request: BeamRequest, placement: Placement) -> dict[str, Any]:
    """Return what a request asks for and a job shows; nothing where Dataflow is left to choose."""
    addresses = {True: "WORKER_IP_PUBLIC", False: "WORKER_IP_PRIVATE", None: None}
    has_accelerator = not isinstance(placement.accelerator, Cpu)
    return {
        "machineType": placement.machine_type,
        "numWorkers": request.num_workers,
        "diskSizeGb": request.disk_size_gb or (50 if has_accelerator else None),
        "network": request.network,
        "subnetwork": request.subnetwork,
        # None and 0 leave it to Dataflow.
        "numThreadsPerWorker": request.number_of_worker_harness_threads or None,
        "ipConfiguration": addresses[request.use_public_ips],
        "maxNumWorkers": request.max_num_workers,
        "serviceAccountEmail": request.service_account_email,
        "serviceKmsKeyName": request.dataflow_kms_key,
        "workerZone": placement.zone,
        "image": request.sdk_container_image or "gcr.io/cloud-dataflow",
    }


def shown(job: dict[str, Any]) -> dict[str, Any]:
    """Return the same of a job."""
    environment = job["environment"]
    [pool] = environment["workerPools"]
    image = pool["workerHarnessContainerImage"]
    names = ("machineType", "numWorkers", "diskSizeGb", "network", "subnetwork", "numThreadsPerWorker")
    return {
        **{name: pool.get(name) for name in (*names, "ipConfiguration")},
        "maxNumWorkers": pool["autoscalingSettings"].get("maxNumWorkers"),
        **{name: environment.get(name) for name in ("serviceAccountEmail", "serviceKmsKeyName", "workerZone")},
        "image": "gcr.io/cloud-dataflow" if image.startswith("gcr.io/cloud-dataflow/") else image,
    }


def device(request: BeamRequest, placement: Placement) -> list[str]:
    """Return the accelerator of a request as the pages spell it, in a list with nothing else."""
    accelerator = placement.accelerator
    if isinstance(accelerator, Tpu):
        return [f"worker_accelerator=type:{accelerator.type};topology:{accelerator.topology}"]
    if isinstance(accelerator, Gpu):
        driver = f":{request.driver_version}" if request.driver_version else ""
        mps = ";use_nvidia_mps" if request.use_mps else ""
        said = f"type:{accelerator.type};count:{accelerator.count};install-nvidia-driver{driver}{mps}"
        return [f"worker_accelerator={said}"]
    return []


@pytest.mark.parametrize(
    ("place", "parameters"), ROWS, ids=[f"{place} {parameters or ''}"[:70] for place, parameters in ROWS]
)
def test_a_documented_request_becomes_a_job(
    client: Client, pipeline: Pipeline, place: str, parameters: dict[str, Any]
) -> None:
    """Beam makes a job of every request that the pages allow, the service takes it, and it shows all that was asked."""
    request, placement = request_of(place, parameters)
    flags = beam_flags(
        request,
        placement,
        project=client.emulator.project,
        job_name=fresh_name(),
        labels=OWN_LABELS,
        endpoint=client.emulator.url,
    )
    answer = client.post(job_of(flags, pipeline), placement.region)
    assert answer.status_code == 200, answer.text
    job = until(lambda: client.get(answer.json()), lambda found: found["currentState"] not in WAITING)
    client.cancel(job)

    assert "startTime" in job, client.texts(job)
    assert job["location"] == placement.region
    assert job["labels"] == {**request.labels, **OWN_LABELS}
    assert shown(job) == asked(request, placement)
    extras = [*job["environment"].get("serviceOptions", ()), *job["environment"].get("experiments", ())]
    assert [item for item in extras if item.startswith("worker_accelerator")] == device(request, placement)
    assert {*request.service_options, *request.experiments} <= {*extras}


@pytest.mark.parametrize(
    ("place", "parameters"), LAUNCHED, ids=[f"{place} {parameters or ''}"[:70] for place, parameters in LAUNCHED]
)
def test_a_documented_request_launches_a_template(
    client: Client, template: str, place: str, parameters: dict[str, Any]
) -> None:
    """The service finds nothing wrong with the Flex Template's launch that a documented request becomes."""
    request, placement = request_of(place, parameters)
    launch = flex_template_launch(
        request, placement, container_spec_gcs_path=template, job_name=fresh_name(), labels=OWN_LABELS
    )
    url = client.url(placement.region).removesuffix("/jobs") + "/flexTemplates:launch"
    answer = client.session.post(url, json={**launch, "validateOnly": True}, timeout=30)
    assert answer.status_code == 200, answer.text

    extras = launch["launchParameter"]["environment"].get("additionalExperiments", [])
    assert [item for item in extras if item.startswith("worker_accelerator")] == device(request, placement)


def test_a_wrong_accelerator_is_refused(client: Client, pipeline: Pipeline) -> None:
    """The judge is not blind: the same job with a slip in its accelerator is refused."""
    flags = (
        "--runner=DataflowRunner",
        f"--project={client.emulator.project}",
        "--region=us-central1",
        f"--temp_location=gs://{BUCKET}/temp",
        f"--dataflow_endpoint={client.emulator.url}",
        f"--dataflow_service_options={L4_OPTION.replace('nvidia-l4', 'nvidia-tesla-l4')}",
    )
    answer = client.post(job_of(flags, pipeline))
    assert answer.status_code == 400
    assert "unknown accelerator type" in answer.json()["error"]["message"]
