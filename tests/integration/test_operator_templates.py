"""Flex Templates: what of the parameters arrives where, and what is refused before anything is started."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from airflow.sdk.exceptions import TaskDeferred

from airflow_accel_provider.exceptions import AcceleratorConfigurationError
from airflow_accel_provider.operators.beam import BeamGpuPipelineOperator, BeamTpuPipelineOperator
from demo.waiting import wait_for
from tests.integration.pipelines import BUCKET, ECHO, IMAGE, run_of

if TYPE_CHECKING:
    from pathlib import Path

    from tests.integration.local_google import LocalGoogle
    from tests.integration.task_run import TaskRun

LAUNCH = "dataflow.projects.locations.flexTemplates.launch"
TEMPLATE_IMAGE = "us-docker.pkg.dev/acme-ml-prod/templates/echo:1"
OUTPUT = {"name": "output", "label": "Output", "helpText": "Where to write"}
OPTIONAL = [
    {"name": name, "label": name, "helpText": name, "isOptional": True} for name in ("text", "texts", "note", "seconds")
]
SPEC: dict[str, Any] = {
    "image": TEMPLATE_IMAGE,
    "sdkInfo": {"language": "PYTHON"},
    "metadata": {"name": "Echo", "parameters": [OUTPUT, *OPTIONAL]},
}


def template_run(google: LocalGoogle, *, spec: Any = SPEC, **parameters: Any) -> TaskRun:
    """Return a task instance that launches a template, whose image the echoing pipeline stands for."""
    httpx.put(f"{google.emulator.url}/_emulator/templates", json={TEMPLATE_IMAGE: ECHO}, trust_env=False)
    google.bucket(BUCKET).blob("templates/echo.json").upload_from_string(
        spec if isinstance(spec, str) else json.dumps(spec)
    )
    said = {
        "py_file": None,
        "flex_template": f"gs://{BUCKET}/templates/echo.json",
        "parameters": {"output": f"gs://{BUCKET}/echoed"},
        # What the templates of other tests say as an option is a parameter here.
        "pipeline_options": {"output": None},
    }
    return run_of(google, **{**said, **parameters})


def note_of(path: Path) -> list[str]:
    """Return the arguments that the template's program was run with."""
    text = wait_for("the template's program to run", lambda: path.read_text() if path.exists() else "", seconds=60)
    flags: list[str] = json.loads(text)["argv"]
    return flags


PLACES = {
    BeamGpuPipelineOperator: (
        "nvidia-l4 on g2-standard-8 in us-central1",
        "g2-standard-8",
        "worker_accelerator=type:nvidia-l4;count:1;install-nvidia-driver",
    ),
    BeamTpuPipelineOperator: (
        "tpu-v6e-slice:1x1 on ct6e-standard-1t in us-central1",
        "ct6e-standard-1t",
        "worker_accelerator=type:tpu-v6e-slice;topology:1x1",
    ),
}


@pytest.mark.parametrize("kind", PLACES)
def test_everything_arrives(google: LocalGoogle, tmp_path: Path, kind: Any) -> None:
    """All that a launch can carry reaches the template's program, in the way that a launch carries it."""
    note = tmp_path / "note.json"
    placement, machine, accelerator = PLACES[kind]
    run = template_run(
        google,
        kind=kind,
        placement=placement,
        parameters={"output": f"gs://{BUCKET}/echoed", "text": "{region} ünï;ç,ødé", "note": str(note)},
        sdk="python",
        reservation="any",
        service_options=["enable_google_cloud_profiler"],
        experiments=["shuffle_mode=service"],
        labels={"team": "vision"},
        disk_size_gb=77,
        network="ml",
        number_of_worker_harness_threads=5,
        use_public_ips=False,
        sdk_container_image=IMAGE,
    )
    since = google.mark()
    with pytest.raises(TaskDeferred):
        run.execute()
    flags = note_of(note)
    job_id = run.xcom["dataflow_job_id"]
    google.cancel({"id": job_id, "location": "us-central1"})
    assert len(google.calls(LAUNCH, since=since)) == 1
    assert set(flags) >= {
        f"--machine_type={machine}",
        "--worker_region=us-central1",
        "--num_workers=1",
        "--max_num_workers=2",
        "--network=ml",
        "--disk_size_gb=77",
        "--number_of_worker_harness_threads=5",
        "--no_use_public_ips",
        f"--sdk_container_image={IMAGE}",
        f"--temp_location=gs://{BUCKET}/work",
        "--text=us-central1 ünï;ç,ødé",
        f"--experiments={accelerator}",
        "--experiments=automatically_use_created_reservation",
        "--experiments=enable_google_cloud_profiler",
        "--experiments=shuffle_mode=service",
        "--experiments=no_use_multiple_sdk_containers",
    }
    labels = json.loads(next(flag for flag in flags if flag.startswith("--labels=")).partition("=")[2])
    assert labels["team"] == "vision"
    assert labels["accel-owner"]
    assert run.record["attempts"][0]["job_id"] == job_id


def test_another_accelerator_gets_other_parameters(google: LocalGoogle) -> None:
    """Where the first accelerator is out of stock the next place is launched with its own parameters and the others."""
    google.emulator.set_world("l4-stockout")
    run = template_run(
        google,
        parameters={"output": f"gs://{BUCKET}/by/{{accelerator}}", "text": "bfloat16"},
        fallback=[
            {"placement": "nvidia-tesla-t4 on n1-standard-8 in us-central1", "parameters": {"text": "float16"}},
        ],
    )
    result = run.run()
    assert [each["outcome"] for each in result["attempts"]] == ["cancelled", "done"]
    assert result["proof"]["accelerator"] == "nvidia-tesla-t4"
    written = json.loads(google.bucket(BUCKET).blob("by/nvidia-tesla-t4").download_as_text())
    assert written["text"] == "float16"
    assert not google.bucket(BUCKET).blob("by/nvidia-l4").exists()


@pytest.mark.parametrize(
    "action", [{"reset": "after"}, {"truncate": True}, {"reset": "before"}, {"status": 503}], ids=str
)
def test_a_lost_answer_makes_no_second_job(google: LocalGoogle, action: dict[str, Any]) -> None:
    """Whether a launch whose answer was lost went through or not, there is one job in the end, and it is followed."""
    run = template_run(google)
    since = google.mark()
    google.fail(LAUNCH, **action)
    with pytest.raises(TaskDeferred):
        run.execute()
    (created,) = google.created(since=since)
    assert created["job_id"] == run.xcom["dataflow_job_id"]
    google.cancel({"id": created["job_id"], "location": "us-central1"})


def test_a_refused_launch_is_told_in_the_services_words(google: LocalGoogle) -> None:
    """A launch that the service refuses ends the task with what it said, without another try."""
    run = template_run(google)
    since = google.mark()
    google.fail(LAUNCH, times=20, status=400, message="The workflow could not be created.")
    with pytest.raises(AcceleratorConfigurationError, match=r"HTTP 400"):
        run.execute()
    assert len(google.calls(LAUNCH, since=since)) == 1
    assert google.created(since=since) == []


SECRET = "hunter2-hunter2-hunter2"


@pytest.mark.parametrize("is_refused", [False, True], ids=["taken", "refused"])
def test_secrets_among_the_parameters_stay_secret(
    google: LocalGoogle, tmp_path: Path, capsys: pytest.CaptureFixture[str], *, is_refused: bool
) -> None:
    """A template's parameter with the name of a secret reaches the template, and no log, trigger, XCom or record."""
    token = {"name": "registry_token", "label": "Token", "helpText": "Who reads the model", "isOptional": True}
    spec = _spec(metadata={"name": "Echo", "parameters": [OUTPUT, *OPTIONAL, token]})
    note = tmp_path / "note.json"
    parameters = {"output": f"gs://{BUCKET}/echoed", "note": str(note), "registry_token": SECRET}
    run = template_run(google, spec=spec, parameters=parameters)
    if is_refused:
        google.fail(LAUNCH, status=400, message=f"Parameter registry_token={SECRET} is not known.")
        with pytest.raises(AcceleratorConfigurationError, match=r"registry_token=\*\*\*|HTTP 400") as refused:
            run.execute()
        value: Any = str(refused.value)
    else:
        value = run.run()
        assert f"--registry_token={SECRET}" in note_of(note)
    output = capsys.readouterr()
    kept = json.dumps([value, run.triggers, run.xcom, run.stored]) + output.out + output.err
    assert SECRET not in kept


def _spec(**changed: Any) -> dict[str, Any]:
    return {**SPEC, **changed}


# Each row: what is wrong with the file; what else is said; what the one line of the error says.
WRONG: list[tuple[Any, dict[str, Any], str]] = [
    (SPEC, {"flex_template": f"gs://{BUCKET}/templates/none.json"}, r"flex_template: There is no gs://.*none\.json\."),
    ("image: here", {}, r"flex_template: gs://.*echo\.json is not a Flex template: it is not JSON\."),
    ("[1]", {}, r"not a JSON object"),
    (_spec(image=None), {}, r"it has no image"),
    (_spec(sdkInfo={"language": "JAVA"}), {}, r"sdk: The template is written in Java; give sdk='java'"),
    (SPEC, {"parameters": {}}, r"parameters: The template needs 'output'; give it in parameters="),
    (
        SPEC,
        {"parameters": {"output": "gs://b/x", "txt": "x"}},
        r"parameters\.txt: The template has no parameter 'txt'\. Did you mean 'text'\?",
    ),
]


@pytest.mark.parametrize(("spec", "wrong", "said"), WRONG, ids=[row[2][:40] for row in WRONG])
def test_a_wrong_template_is_one_error(google: LocalGoogle, spec: Any, wrong: dict[str, Any], said: str) -> None:
    """What is wrong with a template, or with what it is given, is one clear error, and nothing is started."""
    run = template_run(google, spec=spec, **wrong)
    since = google.mark()
    with pytest.raises(AcceleratorConfigurationError, match=said) as refused:
        run.execute()
    assert "1 error" in str(refused.value)
    assert google.calls(LAUNCH, since=since) == []
    assert run.stored == {}


def test_each_region_may_have_its_own_template(google: LocalGoogle) -> None:
    """The address of a template follows the place, and each of the addresses must be there."""
    httpx.put(f"{google.emulator.url}/_emulator/templates", json={TEMPLATE_IMAGE: ECHO}, trust_env=False)
    google.bucket(BUCKET).blob("us-central1/echo.json").upload_from_string(json.dumps(SPEC))
    said = {"flex_template": f"gs://{BUCKET}/{{region}}/echo.json"}
    run = template_run(google, **said)
    with pytest.raises(TaskDeferred):
        run.execute()
    google.cancel({"id": run.xcom["dataflow_job_id"], "location": "us-central1"})
    with pytest.raises(
        AcceleratorConfigurationError, match=rf"There is no gs://{BUCKET}/us-east1/echo\.json"
    ) as refused:
        template_run(google, fallback=["nvidia-l4 in us-east1"], **said).execute()
    assert "1 error" in str(refused.value)
