"""Flex Templates: what launches take and refuse, and how the programs that stand for images build their jobs."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from dataflow_jobs import L4, PIPELINES, Client, fresh_name, judged, until
from google.api_core.client_options import ClientOptions
from google.api_core.exceptions import NotFound
from google.cloud import dataflow_v1beta3 as dataflow
from google.cloud import storage
from google.cloud.exceptions import Conflict
from google.oauth2 import service_account
from googleapiclient import discovery

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from emulators import Emulator
    from google.auth.transport.requests import AuthorizedSession

BUCKET = "flex-templates"
IMAGE = "us-docker.pkg.dev/acme/templates/shout:1"
SPEC: dict[str, Any] = {
    "image": IMAGE,
    "sdkInfo": {"language": "PYTHON"},
    "metadata": {
        "name": "Shout",
        "parameters": [
            {"name": "output", "label": "Output", "helpText": "Where to write", "regexes": ["gs://.+"]},
            {"name": "mood", "label": "Mood", "helpText": "How to feel", "isOptional": True},
        ],
    },
}


@dataclass(frozen=True, kw_only=True)
class Launcher:
    """Launches of one identity, by bare HTTP."""

    client: Client
    bucket: storage.Bucket

    def upload(self, spec: object) -> str:
        """Put a specification where a launch finds it, and return where that is."""
        name = f"{fresh_name('spec')}.json"
        content = spec if isinstance(spec, str) else json.dumps(spec)
        self.bucket.blob(name).upload_from_string(content)
        return f"gs://{BUCKET}/{name}"

    def post(self, location: str = "us-central1", *, spec: object = SPEC, **fields: Any) -> Any:
        """Ask for a launch and return the HTTP response; fields named in lower case are the body's own."""
        name = fresh_name()
        parameter = {
            "jobName": name,
            "containerSpecGcsPath": self.upload(spec),
            "parameters": {"output": f"gs://{BUCKET}/{name}/words"},
            **fields,
        }
        return self.send({"launchParameter": parameter}, location)

    def send(self, body: object, location: str = "us-central1") -> Any:
        """Send a body as it is."""
        url = self.client.url(location).removesuffix("/jobs") + "/flexTemplates:launch"
        return self.client.session.post(url, json=body, timeout=30)

    def launch(self, location: str = "us-central1", **fields: Any) -> dict[str, Any]:
        """Launch and return the job."""
        answer = self.post(location, **fields)
        assert answer.status_code == 200, answer.text
        return answer.json()["job"]

    def text(self, job: dict[str, Any]) -> str:
        """Return what a job of the template wrote."""
        return "".join(blob.download_as_text() for blob in self.bucket.list_blobs(prefix=f"{job['name']}/words"))


@pytest.fixture
def launcher(emulator: Emulator, session: AuthorizedSession, google_environment: None) -> Iterator[Launcher]:
    """Return launches of airflow@; jobs that are left are cancelled."""
    store = storage.Client.from_service_account_json(
        str(emulator.keys["airflow"]), client_options={"api_endpoint": emulator.url}
    )
    try:
        bucket = store.create_bucket(BUCKET)
    except Conflict:
        bucket = store.bucket(BUCKET)
    emulator.admin("PUT", "templates", {IMAGE: str(PIPELINES / "shout.py")})
    launcher = Launcher(client=Client(emulator=emulator, session=session), bucket=bucket)
    yield launcher
    launcher.client.clear()


@pytest.fixture
def enter(emulator: Emulator, launcher: Launcher) -> Iterator[Callable[[str], None]]:
    """Return what changes the world; afterwards all is plenty again, and no job is left."""
    yield emulator.enter
    launcher.client.clear()
    emulator.enter("plenty")


def _states(emulator: Emulator, job: dict[str, Any]) -> list[str]:
    events = emulator.events("dataflow.job.state")
    return [event["state"].removeprefix("JOB_STATE_") for event in events if event["job_id"] == job["id"]]


def test_a_launch_builds_a_job_that_runs(emulator: Emulator, launcher: Launcher) -> None:
    """A launch answers a queued job; the template's program builds it under the same id, and its output is real."""
    environment = {
        "machineType": "g2-standard-8",
        "additionalExperiments": [L4],
        "additionalUserLabels": {"accel-owner": "abc"},
        "numWorkers": 2,
        "maxWorkers": 3,
        "workerZone": "us-central1-c",
        "diskSizeGb": 200,
        "tempLocation": f"gs://{BUCKET}/temp",
        "serviceAccountEmail": emulator.email("pipeline"),
    }
    job = launcher.launch(environment=environment)
    assert job["currentState"] == "JOB_STATE_QUEUED"
    assert job["labels"] == {"accel-owner": "abc"}
    assert "type" not in job
    vms = until(lambda: launcher.client.vms(job), bool)
    # As has been seen in the field: the environment's disk size stays with the launcher.
    assert {vm["disks"][0]["diskSizeGb"] for vm in vms} == {"25"}
    assert {vm["zone"].rpartition("/")[2] for vm in vms} == {"us-central1-c"}
    assert all(vm["guestAccelerators"][0]["acceleratorCount"] == 1 for vm in vms)
    over = launcher.client.wait(job, "DONE", "FAILED")
    assert over["currentState"] == "JOB_STATE_DONE", launcher.client.texts(job)
    assert sorted(launcher.text(job).split()) == ["ONE!", "THREE!", "TWO!"]
    assert over["type"] == "JOB_TYPE_BATCH"
    assert over["labels"] == {"accel-owner": "abc"}
    pool = over["environment"]["workerPools"][0]
    assert (pool["machineType"], pool["numWorkers"]) == ("g2-standard-8", 2)
    assert pool["autoscalingSettings"]["maxNumWorkers"] == 3
    assert L4 in over["environment"]["experiments"]
    assert _states(emulator, job) == ["PENDING", "RUNNING", "DONE"]
    created = [event for event in emulator.events("dataflow.job.created") if event["name"] == job["name"]]
    assert [event["job_id"] for event in created] == [job["id"]]
    came = [event for event in emulator.events("compute.instance.created") if event["job_id"] == job["id"]]
    assert came[0]["instance"] == "launcher-" + "".join(filter(str.isdigit, job["id"]))
    log = launcher.bucket.blob(f"temp/staging/template_launches/{job['id']}/console_logs").download_as_text()
    assert "--worker_zone=us-central1-c" in log


def test_parameters_reach_the_program(launcher: Launcher) -> None:
    """A parameter that is an option of Beam's is taken beside the template's own, and wins over the environment."""
    name = fresh_name()
    parameters = {"output": f"gs://{BUCKET}/{name}/words", "disk_size_gb": "70", "machine_type": "n1-standard-2"}
    environment = {"machineType": "n1-standard-4", "tempLocation": f"gs://{BUCKET}/temp"}
    job = launcher.launch(jobName=name, parameters=parameters, environment=environment)
    vms = until(lambda: launcher.client.vms(job), bool)
    assert vms[0]["disks"][0]["diskSizeGb"] == "70"
    assert vms[0]["machineType"].endswith("/n1-standard-2")


def test_the_services_own_bucket_is_there_when_none_is_named(launcher: Launcher) -> None:
    """A launch without a temp location stages in the bucket that the service makes for the region."""
    job = launcher.launch("us-east1")
    over = launcher.client.wait(job, "DONE", "FAILED")
    assert over["currentState"] == "JOB_STATE_DONE", launcher.client.texts(job)
    assert over["environment"]["tempStoragePrefix"].startswith("storage.googleapis.com/dataflow-staging-us-east1-")


def test_googles_clients_launch_too(emulator: Emulator, launcher: Launcher) -> None:
    """Both of Google's clients launch: one by the discovery document, one typed, over REST."""
    spec = launcher.upload(SPEC)
    scopes = ["https://www.googleapis.com/auth/cloud-platform"]
    credentials = service_account.Credentials.from_service_account_file(str(emulator.keys["airflow"]), scopes=scopes)
    options = {"api_endpoint": emulator.url}
    service = discovery.build(
        "dataflow", "v1b3", credentials=credentials, client_options=options, static_discovery=True
    )
    templates = service.projects().locations().flexTemplates()
    parameter = {"jobName": fresh_name(), "containerSpecGcsPath": spec, "parameters": {"output": f"gs://{BUCKET}/a"}}
    place = {"projectId": emulator.project, "location": "us-central1"}
    answer = templates.launch(**place, body={"launchParameter": parameter}).execute()
    assert answer["job"]["name"] == parameter["jobName"]
    assert (
        templates.launch(
            **place, body={"launchParameter": parameter | {"jobName": "x"}, "validateOnly": True}
        ).execute()
        == {}
    )
    client = dataflow.FlexTemplatesServiceClient(
        credentials=service_account.Credentials.from_service_account_file(str(emulator.keys["airflow"])),
        client_options=ClientOptions(api_endpoint=emulator.url),
        transport="rest",
    )
    launch = dataflow.LaunchFlexTemplateParameter(
        job_name=fresh_name(),
        container_spec_gcs_path=spec,
        parameters={"output": f"gs://{BUCKET}/b"},
        environment=dataflow.FlexTemplateRuntimeEnvironment(
            ip_configuration=dataflow.WorkerIPAddressConfiguration.WORKER_IP_PRIVATE
        ),
    )
    request = dataflow.LaunchFlexTemplateRequest(
        project_id=emulator.project, location="us-central1", launch_parameter=launch
    )
    job = client.launch_flex_template(request).job
    assert job.current_state == dataflow.JobState.JOB_STATE_QUEUED
    vms = until(lambda: launcher.client.vms({"id": job.id}), bool)
    assert "accessConfigs" not in vms[0]["networkInterfaces"][0]
    request.launch_parameter.container_spec_gcs_path = f"gs://{BUCKET}/nowhere.json"
    with pytest.raises(NotFound, match=r"Unable to open template file: gs://flex-templates/nowhere\.json"):
        client.launch_flex_template(request)


REFUSED: dict[str, tuple[dict[str, Any], int, str]] = {
    "no file": (
        {"containerSpecGcsPath": f"gs://{BUCKET}/no.json"},
        404,
        f"Unable to open template file: gs://{BUCKET}/no.json",
    ),
    "no bucket": ({"containerSpecGcsPath": "gs://no-such-bucket/no.json"}, 404, "Unable to open template file"),
    "no url": ({"containerSpecGcsPath": "spec.json"}, 400, "is not a Cloud Storage path"),
    "no spec": ({"containerSpecGcsPath": None}, 400, "Exactly one of container_spec_gcs_path and container_spec"),
    "not JSON": ({"spec": "image: shout"}, 400, "Unable to parse template file"),
    "a list": ({"spec": [SPEC]}, 400, "it is not a JSON object"),
    "no language": ({"spec": {"image": IMAGE}}, 400, "No SDK language information is provided."),
    "no image": ({"spec": {"sdkInfo": {"language": "PYTHON"}}}, 400, "it names no image"),
    "wrong form": ({"spec": {"image": IMAGE, "sdkInfo": "python"}}, 400, "Invalid value at 'sdkInfo'"),
    "missing parameter": (
        {"parameters": {}},
        400,
        "The template parameters are invalid. Details: \noutput: Missing required parameter",
    ),
    "unknown parameter": (
        {"parameters": {"output": "gs://b/o", "streaming": "true"}},
        400,
        "streaming: Unrecognized parameter",
    ),
    "parameter's form": ({"parameters": {"output": "/home"}}, 400, "output: Parameter didn't match regex 'gs://.+'"),
    "job name": ({"jobName": "No Name"}, 400, "job name 'No Name' does not match"),
    "zone": ({"environment": {"workerZone": "mars-1a"}}, 400, "worker zone 'mars-1a' is not in region us-central1"),
    "temp location": ({"environment": {"tempLocation": "temp"}}, 400, "tempLocation must be a Cloud Storage path"),
    "label": ({"environment": {"additionalUserLabels": {"Team": "x"}}}, 400, "label key 'Team'"),
    "unknown field": ({"machineType": "n1-standard-1"}, 400, 'Unknown name "machineType"'),
    "update": ({"update": True}, 501, "does not update"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_wrong_launch_is_refused_and_says_why(launcher: Launcher, case: str) -> None:
    """What is wrong with a launch or its specification is one answer, in Google's words, and no job comes of it."""
    fields, status, words = REFUSED[case]
    answer = launcher.post(**fields)
    assert answer.status_code == status, answer.text
    assert words in answer.json()["error"]["message"]
    active = launcher.client.session.get(launcher.client.url(), params={"filter": "ACTIVE"}, timeout=30).json()
    assert "jobs" not in active


def test_a_name_in_use_is_refused(launcher: Launcher) -> None:
    """A second launch under the name of an active job is a conflict, unlike a second create."""
    job = launcher.launch()
    answer = launcher.post(jobName=job["name"])
    assert answer.status_code == 409
    assert f"There is already an active job named {job['name']}." in answer.json()["error"]["message"]


def test_a_program_that_fails_fails_its_job(emulator: Emulator, launcher: Launcher, tmp_path: Path) -> None:
    """An error while the job is built ends it as the launcher says it; the traceback is in the console log."""
    program = tmp_path / "broken.py"
    program.write_text("raise RuntimeError('no model here')\n")
    emulator.admin("PUT", "templates", {IMAGE: str(program)})
    job = launcher.launch(environment={"tempLocation": f"gs://{BUCKET}/temp"})
    launcher.client.wait(job, "FAILED")
    texts = launcher.client.texts(job, "ERROR")
    assert texts == [
        "Error: Template launch failed: exit status 1",
        "Error occurred in the launcher container: Template launch failed. See console logs.",
    ]
    assert judged(texts).kind == "user_code"
    log = launcher.bucket.blob(f"temp/staging/template_launches/{job['id']}/console_logs").download_as_text()
    assert "RuntimeError: no model here" in log
    assert _states(emulator, job) == ["FAILED"]


def test_a_program_that_builds_no_job_fails_its_job(emulator: Emulator, launcher: Launcher, tmp_path: Path) -> None:
    """A program that ends well without leaving a job is a launch that failed."""
    program = tmp_path / "idle.py"
    program.write_text("print('nothing to do')\n")
    emulator.admin("PUT", "templates", {IMAGE: str(program)})
    job = launcher.launch(environment={"stagingLocation": f"gs://{BUCKET}/stage"})
    launcher.client.wait(job, "FAILED")
    folder = f"gs://{BUCKET}/stage/template_launches/{job['id']}"
    expected = f"Failed to read the job file: {folder}/job_object with error message: Unable to open template file"
    assert launcher.client.texts(job, "ERROR")[-1].startswith(expected)


def test_an_image_that_nothing_stands_for_is_never_pulled(launcher: Launcher) -> None:
    """A template whose image is not mapped fails as one whose image cannot be pulled."""
    job = launcher.launch(spec={**SPEC, "image": "us-docker.pkg.dev/acme/templates/other:1"})
    launcher.client.wait(job, "FAILED")
    texts = launcher.client.texts(job, "ERROR")
    assert "Unable to pull container image" in texts[0]
    assert texts[-1].startswith("Timeout in polling result file: gs://dataflow-staging-us-central1-")
    assert "Image URL: us-docker.pkg.dev/acme/templates/other:1" in texts[-1]


def test_a_launcher_may_find_no_machine(emulator: Emulator, launcher: Launcher, enter: Callable[[str], None]) -> None:
    """The launcher's own VM can be out of stock: the job fails from the queue, and no program runs."""
    enter("launcher-stockout")
    job = launcher.launch(environment={"workerZone": "us-central1-f"})
    launcher.client.wait(job, "FAILED")
    (text,) = launcher.client.texts(job, "ERROR")
    vm = "launcher-" + "".join(filter(str.isdigit, job["id"]))
    words = f"Failed to start the VM, {vm}, used for launching because of status code: RESOURCE_EXHAUSTED, reason: "
    assert text.startswith(words)
    assert "zones/us-central1-f" in text
    assert judged([text]).kind == "stockout"
    refused = [event for event in emulator.events("dataflow.launcher.refused") if event["job_id"] == job["id"]]
    assert [event["zone"] for event in refused] == ["us-central1-f"]


def test_a_launcher_has_a_machine_type_of_its_own(launcher: Launcher) -> None:
    """A machine type that does not exist is told of the launcher, not of the workers."""
    job = launcher.launch(environment={"launcherMachineType": "n1-standard-5"})
    launcher.client.wait(job, "FAILED")
    assert (
        "INVALID_ARGUMENT, reason: Error: Message: Invalid value for field" in launcher.client.texts(job, "ERROR")[-1]
    )


def test_a_queued_job_is_cancelled_at_once(emulator: Emulator, launcher: Launcher, tmp_path: Path) -> None:
    """A cancel while the program still runs ends program, launcher and job."""
    program = tmp_path / "slow.py"
    program.write_text("import time\ntime.sleep(600)\n")
    emulator.admin("PUT", "templates", {IMAGE: str(program)})
    job = launcher.launch()
    until(lambda: emulator.google.dataflow.launchers.is_running(job["id"]), bool)
    launcher.client.cancel(job)
    launcher.client.wait(job, "CANCELLED")
    assert not emulator.google.dataflow.launchers.is_running(job["id"])
    assert _states(emulator, job) == ["CANCELLED"]
    gone = [event["job_id"] for event in emulator.events("compute.instance.deleted")]
    assert job["id"] in gone


def test_a_mapping_names_files_that_exist(emulator: Emulator, launcher: Launcher, tmp_path: Path) -> None:
    """The programs that stand for images are checked where they are given: to the running emulator, or to a new one."""
    answer = launcher.client.session.put(
        f"{emulator.url}/_emulator/templates", json={"some:1": str(tmp_path / "no.py")}, timeout=30
    )
    assert answer.status_code == 400
    assert "the template some:1 has no file" in answer.text
    assert emulator.admin("GET", "templates")["templates"][IMAGE] == str(PIPELINES / "shout.py")
    command = [sys.executable, "-m", "airflow_accel_provider.emulator", "--state", str(tmp_path), "--port", "0"]
    wrong = [*command, "--template", f"some:1={tmp_path / 'no.py'}", "--template", "alone"]
    done = subprocess.run(wrong, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert "template 'alone' is not IMAGE=FILE" in done.stderr
