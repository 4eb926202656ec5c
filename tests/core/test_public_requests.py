"""What people ask for in public can be said here, reaches Google whole, and its mistakes are told."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from airflow_accel_provider.core.catalog import load_catalog
from airflow_accel_provider.core.checking import Checked, beam_request, check_request, spark_request
from airflow_accel_provider.core.options import flex_template_launch
from airflow_accel_provider.core.request import Candidate
from airflow_accel_provider.core.spark import batch_body, load_spark_catalog
from airflow_accel_provider.core.validation import resolve

ROWS = json.loads((Path(__file__).parent / "public_requests.json").read_text(encoding="utf-8"))["requests"]
CATALOG = load_catalog()

# Other names that Beam's Python has for the same; the later ones are sent.
SAME = {
    "worker_machine_type": "machine_type",
    "worker_harness_container_image": "sdk_container_image",
    "experiment": "experiments",
}
# Dataflow reads the same items from both, so that it does not matter which of the two has one.
EXTRAS = ("experiments", "dataflow_service_options")
# gcloud's flags, and where the launch's body has what they say.
FLEX = {
    "template-file-gcs-location": "containerSpecGcsPath",
    "region": "environment.workerRegion",
    "temp-location": "environment.tempLocation",
    "staging-location": "environment.stagingLocation",
    "worker-machine-type": "environment.machineType",
    "additional-experiments": "environment.additionalExperiments",
    # Both are the launcher's to hand on as the same option of Beam's.
    "parameters.sdk_container_image": "environment.sdkContainerImage",
}
SPARK = {
    "version": "runtimeConfig.version",
    "container-image": "runtimeConfig.containerImage",
    "ttl": "environmentConfig.executionConfig.ttl",
    "labels": "labels",
}


def named(row: dict[str, Any]) -> str:
    return str(row["source"]).removeprefix("https://github.com/")[:60]


def check(row: dict[str, Any]) -> Checked:
    return check_request(row["said"], catalog=CATALOG, today=date(2026, 11, 29))


def has_error(row: dict[str, Any]) -> bool:
    return any(severity == "error" for severity, _, _ in row.get("problems", ()))


SOUND = [row for row in ROWS if not has_error(row)]


@pytest.mark.parametrize("row", ROWS, ids=named)
def test_a_public_request_is_judged_as_a_person_judges_it(row: dict[str, Any]) -> None:
    """A request that works has no error, and a mistake in one is told with the nearest right thing."""
    found = check(row).problems
    expected = [tuple(problem) for problem in row.get("problems", ())]

    assert {each.code for each in found if each.is_error} == {code for kind, code, _ in expected if kind == "error"}
    for severity, code, words in expected:
        told = [each.message for each in found if (each.severity, each.code) == (severity, code)]
        assert any(words in message for message in told), (code, told, found)


@pytest.mark.parametrize("row", SOUND, ids=named)
def test_a_public_request_is_sent_whole(row: dict[str, Any]) -> None:
    """Every option and property that somebody gave reaches the service, but for those with a reason not to."""
    lost = {name for name, is_carried in carried(row) if not is_carried}
    assert lost == set(row.get("exceptions", {}))


def test_there_are_enough_of_each() -> None:
    """Twenty requests are kept, each with source and licence; all services, devices and ways of asking are there."""
    assert len(ROWS) >= 20
    assert all(row["source"] and row["licence"] for row in ROWS)
    ways = [row["how"] for row in ROWS]
    assert all(ways.count(way) >= least for way, least in {"python": 9, "flex": 2, "gcloud dataproc": 6}.items())
    assert "airflow flex" in ways
    assert {row["said"]["operator"] for row in ROWS} == {
        "BeamGpuPipelineOperator",
        "BeamTpuPipelineOperator",
        "DataprocGpuBatchOperator",
    }
    tpus = [row for row in ROWS if "Tpu" in row["said"]["operator"] and row["source"].startswith("https://github.com")]
    assert len(tpus) >= 2
    assert any(row in SOUND for row in tpus)


def carried(row: dict[str, Any]) -> Iterator[tuple[str, bool]]:
    """Yield each thing that a public request asks for, and whether it is asked for by what is rendered."""
    ways = {"python": by_flags, "flex": by_gcloud, "airflow flex": by_body, "gcloud dataproc": by_batch}
    return ways[row["how"]](row)


def by_flags(row: dict[str, Any]) -> Iterator[tuple[str, bool]]:
    rendered = check(row).rendered
    extras = {value for name, _, value in (flag.partition("=") for flag in rendered) if name.lstrip("-") in EXTRAS}
    for name, value in row["options"]:
        same = SAME.get(name, name)
        if same in EXTRAS:
            yield name, set(value.split(",")) <= extras
        else:
            yield name, (f"--{same}" if value is True else f"--{same}={value}") in rendered


def by_gcloud(row: dict[str, Any]) -> Iterator[tuple[str, bool]]:
    options = row["options"]
    sent = launch(row)
    for name, value in options:
        if name == "parameters":
            parameter, _, text = value.partition("=")
            path = FLEX.get(f"parameters.{parameter}", f"parameters.{parameter}")
            yield f"parameters.{parameter}", inside(sent, path) == text
        else:
            yield name, name in FLEX and is_said(inside(sent, FLEX[name]), value)


def by_body(row: dict[str, Any]) -> Iterator[tuple[str, bool]]:
    sent = launch(row)
    for name, value in row["body"].items():
        if name in ("environment", "parameters"):
            for inner, text in value.items():
                yield f"{name}.{inner}", is_said(sent[name].get(inner), text)
        else:
            yield name, sent[name] == value


def by_batch(row: dict[str, Any]) -> Iterator[tuple[str, bool]]:
    candidate = Candidate.parse(row["said"]["placement"])
    request = spark_request(row["said"]).for_candidate(candidate)
    sent = batch_body(request, candidate.placement, load_spark_catalog(), labels={})
    assert {f"{name}={value}" for name, value in sent["runtimeConfig"]["properties"].items()} == set(
        check(row).rendered
    )
    for name, value in row["options"]:
        if name == "region":
            yield name, candidate.placement.region == value
        elif name == "labels":
            yield name, is_said(sent["labels"], dict(label.split("=") for label in value.split(",")))
        else:
            yield name, inside(sent, SPARK[name]) == value
    for name, value in row["properties"].items():
        yield name, sent["runtimeConfig"]["properties"].get(name) == value


def launch(row: dict[str, Any]) -> dict[str, Any]:
    """Return the launch of a template with what the row says in this package's words."""
    candidate = resolve(Candidate.parse(row["said"]["placement"]), CATALOG)
    request = beam_request(row["said"]).for_candidate(candidate)
    address = row["said"]["flex_template"]
    body = flex_template_launch(
        request, candidate.placement, container_spec_gcs_path=address, job_name="score-1", labels={}
    )
    return dict(body["launchParameter"])


def inside(body: Any, path: str) -> Any:
    for name in path.split("."):
        body = body.get(name) if isinstance(body, dict) else None
    return body


def is_said(sent: Any, asked: Any) -> bool:
    """Tell whether what is sent has all that is asked: the same value, or every item of a list or mapping."""
    if isinstance(sent, list):
        return {asked} <= set(sent) if isinstance(asked, str) else set(asked) <= set(sent)
    if isinstance(sent, dict) and isinstance(asked, dict):
        return asked.items() <= sent.items()
    return bool(sent == asked)


@pytest.mark.parametrize("name", ["no_use_multiple_sdk_containers", "use_runner_v2", "enable_prime", "upload_graph"])
def test_extras_are_no_options(name: str) -> None:
    """An experiment or service option among the pipeline's options would reach nobody, and is told of."""
    sound = {"operator": "BeamGpuPipelineOperator", "placement": "nvidia-l4 in us-central1", "py_file": "score.py"}
    found = check({"said": {**sound, "pipeline_options": {name: "true", "temp_location": "gs://acme-ml/tmp"}}}).problems
    told = [(each.severity, each.where) for each in found if each.code == "extra-as-option"]
    assert told == [("warning", f"pipeline_options.{name}")]


@pytest.mark.parametrize(
    ("token", "said"),
    [
        ("no_use_multiple_sdk_containers", "no part of worker_accelerator; say it by itself"),
        ("max_workflow_runtime_walltime_seconds=60", "no part of worker_accelerator; say it by itself"),
        ("some_new_token", "do not know some_new_token; the text goes as it stands"),
    ],
)
def test_extras_are_no_part_of_the_accelerator(token: str, said: str) -> None:
    """An experiment inside a written-out accelerator is told apart from tokens that the pages do not know."""
    written = f"worker_accelerator=type:nvidia-l4;count:1;install-nvidia-driver;{token}"
    request = {
        "operator": "BeamGpuPipelineOperator",
        "placement": "nvidia-l4 in us-central1",
        "py_file": "score.py",
        "service_options": [written],
        "sdk_container_image": "gcr.io/acme/gpu:1",
        "pipeline_options": {"temp_location": "gs://acme-ml/tmp"},
    }
    told = [(each.code, said in each.message) for each in check({"said": request}).problems]
    assert told == [("accelerator-token", True)]
