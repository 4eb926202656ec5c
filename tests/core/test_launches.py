"""Requests in the words of Java, Go and of templates, and as Beam's own parser reads them."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_accel_provider.core.accelerators import Gpu, Tpu
from airflow_accel_provider.core.beam_options import Sdk, load_options
from airflow_accel_provider.core.catalog import load_catalog
from airflow_accel_provider.core.options import (
    beam_flags,
    classic_template_launch,
    flex_template_launch,
    go_flags,
    java_flags,
    option_flags,
    read_worker_accelerator,
    worker_accelerator,
)
from airflow_accel_provider.core.placement import Placement
from airflow_accel_provider.core.request import BEAM_NAMED, BeamRequest, Candidate
from airflow_accel_provider.core.validation import resolve
from tests.core.strategies import GPUS, TPUS
from tests.core.test_options import options_of

PLACE = "nvidia-l4 on g2-standard-8 in us-central1-a"
LABELS = {"accel-owner": "o-1", "accel-life": "1"}
ACCELERATOR = "worker_accelerator=type:nvidia-l4;count:1;install-nvidia-driver"
FULL = BeamRequest(
    service_options=("max_workflow_runtime_walltime_seconds=3600",),
    experiments=("upload_graph",),
    sdk_container_image="{region}-docker.pkg.dev/acme/beam/gpu:2.77.0",
    num_workers=1,
    max_num_workers=4,
    disk_size_gb=100,
    service_account_email="worker@acme-ml-prod.iam.gserviceaccount.com",
    network="acme",
    subnetwork="regions/{region}/subnetworks/ml",
    use_public_ips=False,
    dataflow_kms_key="projects/acme/locations/{region}/keyRings/ml/cryptoKeys/beam",
    labels={"team": "ml"},
    number_of_worker_harness_threads=8,
)
TOP = {"inputFile": "gs://acme/in", "top": 3}
JAVA = {"tempLocation": "gs://acme-{region}/tmp", "inputFile": "gs://acme/a;b'c\"d", "dryRun": False, "limit": None}
GO = {"temp_location": "gs://acme-{region}/tmp", "input": "gs://acme/a;b'c\"d", "fast": False, "limit": None}


def meant(request: BeamRequest, sdk: Sdk, place: str = PLACE) -> tuple[BeamRequest, Placement]:
    """Return the request as it is meant in a place, and the place."""
    candidate = resolve(Candidate.parse(place), load_catalog())
    return request.for_candidate(candidate, sdk), candidate.placement


def flags(request: BeamRequest, sdk: Sdk, place: str = PLACE, endpoint: str | None = None) -> list[str]:
    """Return the launcher's arguments in the words of an SDK."""
    render = {"python": beam_flags, "java": java_flags, "go": go_flags}[sdk]
    there = {"project": "acme-ml-prod", "job_name": "score-1a2b", "labels": LABELS, "endpoint": endpoint}
    return list(render(*meant(request, sdk, place), **there))


def test_java_says_everything_in_its_own_words() -> None:
    """A full request has each of its values once in Java's spelling, as the L4 page writes the accelerator."""
    assert flags(replace(FULL, pipeline_options=JAVA), "java", endpoint="http://localhost:8080") == [
        "--runner=DataflowRunner",
        "--project=acme-ml-prod",
        "--region=us-central1",
        "--workerZone=us-central1-a",
        "--workerMachineType=g2-standard-8",
        "--jobName=score-1a2b",
        '--labels={"team": "ml", "accel-owner": "o-1", "accel-life": "1"}',
        f"--dataflowServiceOptions={ACCELERATOR}",
        "--dataflowServiceOptions=max_workflow_runtime_walltime_seconds=3600",
        "--experiments=upload_graph",
        "--sdkContainerImage=us-central1-docker.pkg.dev/acme/beam/gpu:2.77.0",
        "--diskSizeGb=100",
        "--numWorkers=1",
        "--maxNumWorkers=4",
        "--numberOfWorkerHarnessThreads=8",
        "--serviceAccount=worker@acme-ml-prod.iam.gserviceaccount.com",
        "--network=acme",
        "--subnetwork=regions/us-central1/subnetworks/ml",
        "--usePublicIps=false",
        "--dataflowKmsKey=projects/acme/locations/us-central1/keyRings/ml/cryptoKeys/beam",
        "--dataflowEndpoint=http://localhost:8080",
        "--tempLocation=gs://acme-us-central1/tmp",
        "--inputFile=gs://acme/a;b'c\"d",
        "--dryRun=false",
    ]


def test_go_says_everything_in_its_own_words() -> None:
    """A full request has each of its values once in Go's spelling; public addresses are refused by a flag."""
    assert flags(replace(FULL, pipeline_options=GO), "go") == [
        "--runner=dataflow",
        "--project=acme-ml-prod",
        "--region=us-central1",
        "--worker_zone=us-central1-a",
        "--worker_machine_type=g2-standard-8",
        "--job_name=score-1a2b",
        '--labels={"team": "ml", "accel-owner": "o-1", "accel-life": "1"}',
        f"--dataflow_service_options={ACCELERATOR},max_workflow_runtime_walltime_seconds=3600",
        "--experiments=upload_graph",
        "--sdk_container_image=us-central1-docker.pkg.dev/acme/beam/gpu:2.77.0",
        "--disk_size_gb=100",
        "--num_workers=1",
        "--max_num_workers=4",
        "--number_of_worker_harness_threads=8",
        "--service_account_email=worker@acme-ml-prod.iam.gserviceaccount.com",
        "--network=acme",
        "--subnetwork=regions/us-central1/subnetworks/ml",
        "--dataflow_kms_key=projects/acme/locations/us-central1/keyRings/ml/cryptoKeys/beam",
        "--no_use_public_ips=true",
        "--temp_location=gs://acme-us-central1/tmp",
        "--input=gs://acme/a;b'c\"d",
        "--fast=false",
    ]


def test_options_in_javas_words_are_the_parameters() -> None:
    """What Java calls otherwise than Python is merged with the parameter of the same meaning, and said once."""
    options = {"numWorkers": 2, "serviceAccount": "a@b.c", "labels": {"x": "y"}, "dataflowServiceOptions": ["one"]}
    rendered = flags(BeamRequest(pipeline_options=options, service_options=("two",)), "java")
    assert [flag for flag in rendered if "umWorkers" in flag or "serviceAcc" in flag] == [
        "--numWorkers=2",
        "--serviceAccount=a@b.c",
    ]
    assert [flag.partition("=")[2] for flag in rendered if "ServiceOptions" in flag] == [ACCELERATOR, "two", "one"]
    assert '--labels={"x": "y", "accel-owner": "o-1", "accel-life": "1"}' in rendered


@pytest.mark.parametrize("sdk", ["java", "go"])
def test_only_python_has_several_processes(sdk: Sdk) -> None:
    """The experiment that leaves one Python process a worker is no word of Java's or Go's."""
    assert not [flag for flag in flags(FULL, sdk) if "sdk_containers" in flag]


def test_public_addresses_refused_by_beams_flag_are_refused() -> None:
    """Beam's flag for no public addresses is the same as use_public_ips=False, and is sent once."""
    request, _ = meant(BeamRequest(pipeline_options={"no_use_public_ips": True}), "python")
    assert request.use_public_ips is False
    assert [flag for flag in flags(request, "python") if "public" in flag] == ["--no_use_public_ips"]


def test_tpu_has_one_process_even_where_a_fallback_shares_its_gpu() -> None:
    """MPS, meant for a GPU in the fallback, does not open a TPU to several processes."""
    request = BeamRequest(use_mps=True)
    assert "--experiments=no_use_multiple_sdk_containers" in flags(request, "python", "tpu-v6e-slice:1x1 in us-east5-b")
    assert "--experiments=no_use_multiple_sdk_containers" not in flags(request, "python")


def test_accelerator_written_out_goes_as_it_stands() -> None:
    """An accelerator that the user wrote out, for tokens that the placement cannot say, is sent alone."""
    written = f"{ACCELERATOR};new_token"
    assert [flag for flag in flags(BeamRequest(service_options=(written,)), "python") if "accelerator" in flag] == [
        f"--dataflow_service_options={written}"
    ]


def test_classic_template_carries_the_accelerator_as_an_experiment() -> None:
    """A classic template has the accelerator in additionalExperiments and what has no field as pipeline options."""
    request, placement = meant(
        replace(FULL, pipeline_options={"tempLocation": "gs://acme/tmp", "mode": "x"}, parameters=TOP), "java"
    )
    launch = classic_template_launch(request, placement, job_name="score-1a2b", labels=LABELS)
    assert launch == {
        "jobName": "score-1a2b",
        "parameters": {"inputFile": "gs://acme/in", "top": "3"},
        "environment": {
            "machineType": "g2-standard-8",
            "workerZone": "us-central1-a",
            "additionalExperiments": [ACCELERATOR, "max_workflow_runtime_walltime_seconds=3600", "upload_graph"],
            "additionalUserLabels": {"team": "ml", **LABELS},
            "numWorkers": 1,
            "maxWorkers": 4,
            "serviceAccountEmail": "worker@acme-ml-prod.iam.gserviceaccount.com",
            "network": "acme",
            "subnetwork": "regions/us-central1/subnetworks/ml",
            "kmsKeyName": "projects/acme/locations/us-central1/keyRings/ml/cryptoKeys/beam",
            "ipConfiguration": "WORKER_IP_PRIVATE",
            "tempLocation": "gs://acme/tmp",
            "diskSizeGb": 100,
            "additionalPipelineOptions": [
                "sdkContainerImage=us-central1-docker.pkg.dev/acme/beam/gpu:2.77.0",
                "numberOfWorkerHarnessThreads=8",
                "mode=x",
            ],
        },
    }


def test_flex_template_carries_the_disk_as_a_parameter() -> None:
    """A Flex template has the disk's size among its parameters, since the environment's was seen not to arrive."""
    request, placement = meant(
        BeamRequest(
            pipeline_options={"staging_location": "gs://acme/s"},
            parameters={"input": ["a", "b"], "fast": True, "shape": {"x": 1}, "none": None},
        ),
        "python",
        "l4 in a-b1",
    )
    placement = replace(placement, accelerator=Gpu("nvidia-l4"), machine_type="g2-standard-4")
    launch = flex_template_launch(
        request,
        placement,
        container_spec_gcs_path="gs://acme/spec.json",
        job_name="score-1a2b",
        labels={},
    )
    assert launch == {
        "launchParameter": {
            "jobName": "score-1a2b",
            "containerSpecGcsPath": "gs://acme/spec.json",
            "parameters": {"disk_size_gb": "50", "input": "a,b", "fast": "true", "shape": '{"x": 1}'},
            "environment": {
                "machineType": "g2-standard-4",
                "workerRegion": "a-b1",
                "additionalExperiments": [ACCELERATOR, "no_use_multiple_sdk_containers"],
                "additionalUserLabels": {},
                "stagingLocation": "gs://acme/s",
            },
        }
    }


@given(GPUS | TPUS, st.none() | st.just("535"), st.booleans())
def test_accelerator_reads_back(accelerator: Gpu | Tpu, driver: str | None, mps: bool) -> None:
    """Whatever is asked for in worker_accelerator is read back from it, with no token unknown."""
    text = read_worker_accelerator(worker_accelerator(accelerator, driver_version=driver, use_mps=mps))
    assert (text.accelerator, text.unknown) == (accelerator, ())


# A command line cannot carry NUL; half of a surrogate pair is no text; the place's own tokens are filled in.
TEXTS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])).filter(
    lambda text: not any(token in text for token in ("{region}", "{zone}", "{accelerator}"))
)
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "text": TEXTS,
    "integer": st.integers(-(2**40), 2**40),
    "number": st.floats(allow_nan=False),
    "switch": st.booleans(),
    "list": st.lists(TEXTS, min_size=1, max_size=3),
    "mapping": st.dictionaries(TEXTS, TEXTS | st.integers() | st.lists(TEXTS, max_size=2), max_size=3),
}
# Beam changes these while it parses: services become other values, entries of an audit are cut.
CHANGED = {"beam_services", "gcs_custom_audit_entry", "gcs_custom_audit_entries"}
OWN = {*BEAM_NAMED, "project", "region", "worker_zone", "machine_type", "worker_machine_type", "job_name", "runner"}
OWN |= {"label", "labels", "experiment", "experiments", "dataflow_service_option", "dataflow_service_options"}
OWN |= {"dataflow_endpoint", "worker_region", "zone"}
FREE = [
    option
    for option in load_options("python").options.values()
    if option.name not in OWN | CHANGED and not option.is_on and (option.kind != "switch" or not option.sets)
]


# Beam splits the items of these at commas, and drops what is then empty.
SPLIT = {"profiler_extra_args", "profiler_extra_env_vars"}
WORDS = st.lists(st.from_regex(r"[a-z;'\"é -]{0,5}[a-z]", fullmatch=True).map(str.strip), min_size=1, max_size=3)


@settings(max_examples=120, deadline=None)
@given(st.data())
def test_beam_reads_back_every_option_of_its_own(data: st.DataObject) -> None:
    """Any value that an option of Beam takes arrives as it was given, whatever its characters."""
    option = data.draw(st.sampled_from(FREE))
    strategy = st.sampled_from(option.choices) if option.choices else VALUES[option.kind]
    value = data.draw(WORDS if (option.sets or option.name) in SPLIT else strategy)
    request = BeamRequest(pipeline_options={option.name: value})
    read = options_of(tuple(flags(request, "python", "cpu in us-central1")))
    kept = read[option.sets or option.name]
    if option.kind == "mapping" and value == {}:
        assert kept in ({}, None)
    elif option.kind == "list":
        # Beam adds to the defaults of some lists.
        assert kept[-len(value) :] == value
    else:
        assert kept == value


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(st.sampled_from(["text", "items", "flag", "shape"]), st.none(), max_size=4), st.data())
def test_the_pipelines_own_options_arrive_as_given(names: dict[str, None], data: st.DataObject) -> None:
    """A pipeline reads its own options as they were given, nothing where None was, and no option that was not."""
    from argparse import ArgumentParser

    parser = ArgumentParser()
    parser.add_argument("--text")
    parser.add_argument("--items", action="append")
    parser.add_argument("--flag", action="store_true", default=None)
    parser.add_argument("--shape", type=json.loads)
    kinds = {"text": TEXTS, "items": VALUES["list"], "flag": st.just(True), "shape": VALUES["mapping"]}
    options = {name: data.draw(st.none() | kinds[name]) for name in names}
    rendered = flags(BeamRequest(pipeline_options=options), "python", "cpu in us-central1")
    known, _ = parser.parse_known_args(rendered)
    assert {name: value for name, value in vars(known).items() if value is not None} == {
        name: value for name, value in options.items() if value is not None
    }


def test_switch_said_as_text_is_a_switch() -> None:
    """A switch of Beam's that a template rendered as text is switched; the pipeline's own option keeps its text."""
    assert option_flags("streaming", "True") == ("--streaming",)
    assert option_flags("streaming", "false") == ()
    assert option_flags("save_main_session", "False") == ("--no_save_main_session",)
    assert option_flags("mine", "True") == ("--mine=True",)


@pytest.mark.parametrize("sdk", ["python", "java", "go"])
def test_cpu_asks_for_no_accelerator(sdk: Sdk) -> None:
    """CPUs have no accelerator option in any SDK."""
    assert not [flag for flag in flags(BeamRequest(), sdk, "cpu in us-central1") if "worker_accelerator" in flag]
