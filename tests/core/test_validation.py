"""What is refused, what is warned about, and what is let through."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_accel_provider.core.accelerators import Gpu
from airflow_accel_provider.core.catalog import load_catalog
from airflow_accel_provider.core.placement import Placement
from airflow_accel_provider.core.problems import Problem
from airflow_accel_provider.core.request import BEAM_NAMED, BeamRequest, Candidate
from airflow_accel_provider.core.validation import check_beam, check_candidate, read_candidates, resolve
from airflow_accel_provider.core.validation._options import _RESERVED
from airflow_accel_provider.core.validation._places import default_bucket
from airflow_accel_provider.core.ways import WAY_NAMES, sdk_of

CATALOG = load_catalog()
PLACE = "nvidia-l4 on g2-standard-8 in us-central1"
SOUND: dict[str, Any] = {
    "py_file": "gs://acme-ml/score.py",
    "sdk_container_image": "us-docker.pkg.dev/acme/beam/gpu:2.77.0",
    "pipeline_options": {"temp_location": "gs://acme-ml-{region}/tmp"},
}


class Later:
    """What another task will give."""


def check(*places: Any, region: str | None = None, **parameters: Any) -> tuple[Problem, ...]:
    """Return the problems of a sound request with some parameters said differently, in some places."""
    settings = {
        name: parameters.pop(name)
        for name in ("operator", "project", "project_required", "wait_until")
        if name in parameters
    }
    allowed = parameters.pop("allowed_regions", frozenset())
    options = {**SOUND["pipeline_options"], **parameters.pop("options", {})}
    request = BeamRequest(**{**SOUND, "pipeline_options": options, **parameters})
    if sdk_of(request) == "java":
        request = replace(request, pipeline_options={"tempLocation": options.pop("temp_location"), **options})
    first, *further = places or (PLACE,)
    candidates, problems = read_candidates(first, further, region=region)
    found = check_beam(request, candidates, catalog=CATALOG, region=region, allowed_regions=allowed, **settings)
    return (*problems, *found)


def told(problems: tuple[Problem, ...]) -> list[tuple[str, str, str]]:
    """Return severity, code and place of each problem."""
    return [(problem.severity, problem.code, problem.where) for problem in problems]


# Each row: placement; code of its one problem (an error, or "?" before a warning), "" for none; a part of the message.
# Sources: [gpu] https://cloud.google.com/dataflow/docs/gpu/gpu-support, [l4] …/dataflow/docs/gpu/use-l4-gpus,
# [gce] https://cloud.google.com/compute/docs/gpus, [k80] …/compute/docs/eol/k80-eol,
# [spark] …/dataproc-serverless/docs/guides/gpus-serverless, [zones] …/compute/docs/gpus/gpu-regions-zones,
# [custom] …/compute/docs/instances/creating-instance-with-custom-machine-type.
SHAPES = [
    # [l4] L4 on G2 only, in the count that the machine has
    ("nvidia-l4 in us-central1", "", ""),
    ("nvidia-l4 on g2-standard-4 in us-central1", "", ""),
    ("nvidia-l4 on g2-standard-32 in us-central1", "", ""),
    ("nvidia-l4:2 on g2-standard-24 in us-central1", "", ""),
    ("nvidia-l4:8 on g2-standard-96 in us-central1-a", "", ""),
    ("nvidia-l4:2 on g2-standard-8 in us-central1", "machine-count", "2 come with g2-standard-24"),
    ("nvidia-l4 on g2-standard-24 in us-central1", "machine-count", "has 2 of nvidia-l4, not 1"),
    ("nvidia-l4:3 in us-central1", "count-invalid", "the nearest is nvidia-l4:4"),
    ("nvidia-l4:16 in us-central1", "count-invalid", "1, 2, 4 or 8"),
    ("nvidia-l4 on n1-standard-8 in us-central1", "machine-family", "needs G2, such as g2-standard-4"),
    ("nvidia-l4 on n2-standard-8 in us-central1", "machine-family", "n2-standard-8 cannot carry it"),
    ("nvidia-l4 on e2-standard-8 in us-central1", "machine-family", "needs G2"),
    ("nvidia-l4 on a2-highgpu-1g in us-central1", "machine-family", "carries nvidia-tesla-a100"),
    ("nvidia-l4 on g2-standard-6 in us-central1", "unknown-machine", "Did you mean g2-standard-"),
    # [gpu] no GPU on Arm
    ("nvidia-l4 on t2a-standard-4 in us-central1", "machine-family", "Arm"),
    ("nvidia-tesla-t4 on c4a-standard-4 in us-central1", "machine-family", "Arm"),
    # [gce] T4 attaches to N1, 1, 2 or 4, up to a size of host
    ("nvidia-tesla-t4 in us-central1", "", ""),
    ("nvidia-tesla-t4 on n1-standard-32 in us-central1", "", ""),
    ("nvidia-tesla-t4:4 on n1-standard-96 in us-central1", "", ""),
    ("nvidia-tesla-t4 on n1-standard-64 in us-central1", "host-too-large", "takes nvidia-tesla-t4:4"),
    ("nvidia-tesla-t4:2 on n1-highmem-64 in us-central1", "host-too-large", "up to 48 vCPUs and 312 GB"),
    ("nvidia-tesla-t4:3 in us-central1", "count-invalid", "1, 2 or 4"),
    ("nvidia-tesla-t4:8 in us-central1", "count-invalid", "the nearest is nvidia-tesla-t4:4"),
    ("nvidia-tesla-t4 on g2-standard-8 in us-central1", "machine-family", "carries nvidia-l4"),
    ("nvidia-tesla-t4 on e2-standard-4 in us-central1", "machine-family", "needs N1, such as n1-standard-4"),
    ("nvidia-tesla-t4 on f1-micro in us-central1", "machine-family", "needs N1"),
    ("nvidia-tesla-t4 on n1-standard-5 in us-central1", "unknown-machine", "Did you mean n1-standard-"),
    ("nvidia-tesla-v100 on n1-standard-8 in us-central1", "", ""),
    ("nvidia-tesla-v100 on n1-standard-16 in us-central1", "host-too-large", "takes nvidia-tesla-v100:2"),
    ("nvidia-tesla-p100:4 on n1-standard-96 in us-central1", "", ""),
    ("nvidia-tesla-p100:4 on n1-standard-96 in europe-west1-b", "host-too-large", "up to 64 vCPUs"),
    # [custom] N1 shapes that are not in a table
    ("nvidia-tesla-t4 on n1-custom-1-6656 in us-central1", "", ""),
    ("nvidia-tesla-t4 on n1-custom-1-16384-ext in us-central1", "", ""),
    ("nvidia-tesla-t4 on n1-custom-1-16384 in us-central1", "custom-machine", "'-ext'"),
    ("nvidia-tesla-t4 on n1-custom-3-8192 in us-central1", "custom-machine", "even number"),
    ("nvidia-tesla-t4 on n1-custom-50-65536 in us-central1", "host-too-large", "up to 48"),
    # [gpu] A100 on A2, one kind of A2 each
    ("nvidia-tesla-a100 in us-central1", "", ""),
    ("nvidia-tesla-a100:16 on a2-megagpu-16g in us-central1", "", ""),
    ("nvidia-a100-80gb on a2-ultragpu-1g in us-central1", "", ""),
    ("nvidia-tesla-a100 on a2-ultragpu-1g in us-central1", "machine-accelerator", "comes with a2-highgpu-1g"),
    ("nvidia-tesla-a100:2 on a2-highgpu-1g in us-central1", "machine-count", "a2-highgpu-2g"),
    # [gce] consumption options
    ("nvidia-h100-80gb:8 on a3-highgpu-8g in us-central1", "", ""),
    ("nvidia-h100-80gb on a3-highgpu-1g in us-central1", "?not-on-demand", "reservation"),
    # [gpu], [k80], [spark] names
    ("nvidia-l5 in us-central1", "unknown-accelerator", "Did you mean nvidia-l4?"),
    ("accelerator in us-central1", "unknown-accelerator", "It takes nvidia-l4,"),
    ("nvidia-tesla-l4 in us-central1", "unknown-accelerator", "it is called nvidia-l4"),
    ("nvidia-a100-40gb in us-central1", "unknown-accelerator", "it is called nvidia-tesla-a100"),
    ("nvidia-tesla-k80 in us-central1", "unknown-accelerator", "retired by Compute Engine on 2024-05-01"),
    ("nvidia-rtx-pro-6000 on g4-standard-48 in us-central1", "?not-listed", "not on Dataflow's list"),
    ("nvidia-gb200:4 on a4x-highgpu-4g in us-central1", "unknown-accelerator", "not on Dataflow's list"),
    ("l4 in us-central1", "unknown-accelerator", "Beam's is nvidia-l4"),
    ("a100-40 in us-central1", "unknown-accelerator", "Beam's is nvidia-tesla-a100"),
    ("a100-80 in us-central1", "unknown-accelerator", "Beam's is nvidia-a100-80gb"),
    ("nvidia-l4:2x2 in us-central1", "topology-of-gpu", "takes a count"),
    ("tpu-v6e-slice:2x2 in us-east5", "wrong-operator", "BeamTpuPipelineOperator"),
    ("tpu-v6e-slice:4 in us-east5", "wrong-operator", "BeamTpuPipelineOperator"),
    # [zones] places
    ("nvidia-l4 in us-centrl1", "unknown-region", "Did you mean us-central1?"),
    ("nvidia-l4 in europe-west99", "unknown-region", "no region europe-west99"),
    ("nvidia-l4 in europe-west13", "?unknown-region", "The catalogue has no region"),
    ("nvidia-l4 in europe-west3-c", "?not-offered", "it is in europe-west3-a, europe-west3-b"),
    ("nvidia-tesla-a100 in europe-west3", "?not-offered", "it is in europe-west4"),
    ("nvidia-l4 in mars", "placement-invalid", "neither a region"),
    ("nvidia-l4", "placement-invalid", "has no location"),
    (3, "placement-invalid", "not a placement"),
]


@pytest.mark.parametrize(("placement", "code", "said"), SHAPES, ids=[str(row[0]) for row in SHAPES])
def test_shape(placement: Any, code: str, said: str) -> None:
    """A placement has the one problem that Google's pages say it has, with the nearest right thing, or none."""
    problems = check(placement)
    severity = "warning" if code.startswith("?") else "error"
    assert told(problems) == ([(severity, code.lstrip("?"), "placement")] if code else [])
    assert all(said in problem.message for problem in problems)


KEY = "projects/p/locations/{}/keyRings/r/cryptoKeys/k"
SERVICE_OPTION = "worker_accelerator=type:nvidia-l4;count:1;install-nvidia-driver"

# Each row: parameters said differently; code and place of the one problem ("?" before a warning); part of the message.
# Sources beside those above: [df] Dataflow API v1b3, Job; [beam] apache_beam.options, 2.77;
# [mps] https://cloud.google.com/dataflow/docs/gpu/use-nvidia-mps; [gpus] …/dataflow/docs/gpu/use-gpus;
# [flexrs] …/dataflow/docs/guides/flexrs.
VALUES: list[tuple[dict[str, Any], str, str, str]] = [
    ({}, "", "", ""),
    # What to run
    ({"py_file": None}, "pipeline-missing", "py_file", "py_module="),
    ({"py_file": None, "py_module": "acme.score"}, "", "", ""),
    ({"py_module": "acme.score"}, "pipeline-twice", "py_file", "give one"),
    ({"py_file": "score.txt"}, "py-file", "py_file", "must end in .py"),
    ({"py_file": 5}, "wrong-type", "py_file", "a text"),
    ({"py_file": None, "py_module": "score.py;"}, "py-module", "py_module", "is not a module"),
    ({"py_file": None}, "pipeline-missing", "py_file", "jar=, go_binary=, template= or flex_template="),
    ({"jar": "gs://acme-ml/score.jar"}, "pipeline-twice", "py_file", "two pipelines, py_file and jar; give one"),
    (
        {"jar": "gs://acme-ml/score.jar", "template": "gs://acme-ml/score"},
        "pipeline-twice",
        "py_file",
        "3 pipelines, py_file, jar and template",
    ),
    ({"py_file": None, "jar": "gs://acme-ml/score.jar"}, "", "", ""),
    ({"py_file": None, "jar": "gs://acme-ml/score.war"}, "jar", "jar", "must end in .jar"),
    ({"py_file": None, "go_binary": "/opt/score"}, "", "", ""),
    ({"py_file": None, "flex_template": "gs://acme-ml/score.json", "parameters": {"top": 3}}, "", "", ""),
    ({"py_file": None, "flex_template": "score.json"}, "template-address", "flex_template", "such as gs://BUCKET"),
    ({"py_file": None, "template": "gs://acme-ml/"}, "template-address", "template", "such as gs://BUCKET"),
    ({"py_file": None, "flex_template": "{{ params.spec }}"}, "", "", ""),
    # What goes with another way of submitting
    (
        {"parameters": {"top": 3}},
        "parameter-of-another-way",
        "parameters",
        "goes with template or flex_template, not with py_file; options of its own go into pipeline_options",
    ),
    ({"job_class": "com.acme.Score"}, "parameter-of-another-way", "job_class", "goes with jar, not with py_file"),
    ({"py_file": None, "jar": "a.jar", "job_class": "com.acme.Score$Main"}, "", "", ""),
    ({"py_file": None, "jar": "a.jar", "job_class": "com/acme/Score"}, "job-class", "job_class", "com.acme.Score"),
    (
        {"py_file": None, "flex_template": "gs://acme-ml/score.json", "py_options": ["-O"]},
        "parameter-of-another-way",
        "py_options",
        "goes with py_file or py_module, not with flex_template",
    ),
    ({"sdk": "python"}, "", "", ""),
    ({"sdk": "java"}, "parameter-of-another-way", "sdk", "not with py_file, which is python"),
    ({"py_file": None, "template": "gs://acme-ml/score", "sdk": "jawa"}, "sdk", "sdk", "Did you mean 'java'?"),
    # The launcher's environment
    ({"py_options": "-O -W ignore"}, "wrong-type", "py_options", 'such as ["-O"]'),
    ({"py_options": ["-W", 3]}, "wrong-type", "py_options", "a list of texts"),
    ({"py_interpreter": 3.11}, "wrong-type", "py_interpreter", "a text"),
    ({"py_requirements": "apache-beam"}, "wrong-type", "py_requirements", "apache-beam[gcp]=="),
    ({"py_requirements": ["apache-beam[gcp]==2.77.0"]}, "", "", ""),
    ({"py_requirements": []}, "empty-environment", "py_requirements", "has no Beam"),
    ({"py_requirements": [], "py_system_site_packages": True}, "", "", ""),
    ({"py_system_site_packages": True}, "?no-environment", "py_system_site_packages", "does nothing"),
    ({"py_system_site_packages": "maybe"}, "wrong-type", "py_system_site_packages", "True or False"),
    # Streaming
    ({"options": {"streaming": True}}, "streaming-until-done", "pipeline_options.streaming", "wait_until='proven'"),
    ({"options": {"streaming": "true"}, "wait_until": "proven"}, "", "", ""),
    ({"options": {"streaming": False}, "default_pipeline_options": {"streaming": True}}, "", "", ""),
    (
        {"py_file": None, "flex_template": "gs://acme-ml/score.json", "parameters": {"streaming": "true"}},
        "streaming-until-done",
        "parameters.streaming",
        "never done",
    ),
    # Numbers
    ({"num_workers": "3"}, "", "", ""),
    ({"num_workers": "three"}, "not-a-number", "num_workers", "whole number of 1 or more"),
    ({"num_workers": 0}, "not-a-number", "num_workers", "1 or more"),
    ({"num_workers": True}, "not-a-number", "num_workers", "True does not do"),
    ({"num_workers": 1.5}, "not-a-number", "num_workers", "1.5 does not do"),
    ({"max_num_workers": -1}, "not-a-number", "max_num_workers", "1 or more"),
    ({"num_workers": 4, "max_num_workers": 4}, "", "", ""),
    ({"num_workers": 4, "max_num_workers": "3"}, "workers-over-maximum", "num_workers", "max_num_workers=3"),
    ({"number_of_worker_harness_threads": "x"}, "not-a-number", "number_of_worker_harness_threads", "0 or more"),
    ({"options": {"num_workers": "x"}}, "not-a-number", "pipeline_options.num_workers", "1 or more"),
    ({"options": {"num_workers": 2}, "num_workers": 2}, "", "", ""),
    ({"options": {"num_workers": 2}, "num_workers": 3}, "said-twice", "pipeline_options.num_workers", "say it once"),
    ({"disk_size_gb": 50}, "", "", ""),
    ({"disk_size_gb": 49}, "?small-disk", "disk_size_gb", "50 GB or more"),  # [gpus]
    ({"sdk_container_image": None}, "?image-missing", "sdk_container_image", "CUDA"),  # [gpus]
    ({"sdk_container_image": None, "options": {"sdk_container_image": "gpu:1"}}, "", "", ""),
    # [df] labels
    ({"labels": {"team": "ml-2_x", "größe": "groß"}}, "", "", ""),
    ({"labels": {"Team": "ml"}}, "label-key", "labels.Team", "lower-case"),
    ({"labels": {"1team": "ml"}}, "label-key", "labels.1team", "starting with a letter"),
    ({"labels": {"a" * 64: "ml"}}, "label-key", f"labels.{'a' * 64}", "up to 63"),
    ({"labels": {"team": "M L"}}, "label-value", "labels.team", "'M L'"),
    ({"labels": {"team": "m" * 64}}, "label-value", "labels.team", "up to 63"),
    ({"labels": {"accel-owner": "me"}}, "label-reserved", "labels.accel-owner", "accel-"),
    ({"options": {"labels": ["accel-x=1"]}}, "label-reserved", "labels.accel-x", "accel-"),
    ({"options": {"labels": "{broken"}}, "labels", "pipeline_options.labels", "JSON"),
    ({"options": {"labels": [None]}}, "label-key", "labels.None", ""),
    ({"labels": {f"l{n}": "" for n in range(57)}}, "", "", ""),
    ({"labels": {f"l{n}": "" for n in range(58)}}, "too-many-labels", "labels", "57 are left"),
    ({"labels": ["team=ml"]}, "wrong-type", "labels", "a mapping"),
    # [mps] processes
    ({"use_mps": True, "sdk_processes": "per_vcpu"}, "", "", ""),
    ({"use_mps": True}, "mps-with-one-process", "use_mps", "sdk_processes='per_vcpu'"),
    ({"sdk_processes": "many"}, "sdk-processes", "sdk_processes", "'one' or 'per_vcpu'"),
    ({"experiments": ["use_multiple_sdk_containers"]}, "processes-contradicted", "experiments", "per_vcpu"),
    (
        {"sdk_processes": "per_vcpu", "experiments": ["no_use_multiple_sdk_containers"]},
        "processes-contradicted",
        "experiments",
        "contradicts",
    ),
    # [l4] versions
    ({"beam_version": "2.46.0"}, "?beam-old", "beam_version", "2.50 or newer is advised"),
    ({"beam_version": "2.50.0"}, "", "", ""),
    ({"beam_version": "2.45.0"}, "beam-too-old", "beam_version", "needs Beam 2.46"),
    ({"beam_version": "latest"}, "beam-version", "beam_version", "such as 2.77.0"),
    ({"driver_version": "535"}, "", "", ""),
    ({"driver_version": "5xx"}, "", "", ""),
    ({"driver_version": "4xx"}, "driver-too-old", "driver_version", "525 or newer"),
    ({"driver_version": "latest"}, "driver-version", "driver_version", "such as 535"),
    ({"driver_version": "510"}, "driver-too-old", "driver_version", "525 or newer"),
    # The accelerator by another way
    ({"service_options": [SERVICE_OPTION]}, "accelerator-pinned", "service_options", "from the placement"),
    ({"service_options": SERVICE_OPTION}, "wrong-type", "service_options", "a list"),
    (
        {"options": {"dataflow_service_options": [SERVICE_OPTION]}},
        "accelerator-pinned",
        "pipeline_options.dataflow_service_options",
        "leave it out",
    ),
    (
        {"options": {"experiments": f"upload_graph,{SERVICE_OPTION}"}},
        "accelerator-pinned",
        "pipeline_options.experiments",
        "leave it out",
    ),
    ({"service_options": ["enable_prime"]}, "prime", "service_options", "Prime"),  # [gpus]
    ({"experiments": ["disable_runner_v2"]}, "runner-v2", "experiments", "Runner v2"),  # [gpus]
    ({"experiments": ["worker_region=us-east1"]}, "option-pinned", "experiments", "from the placement"),
    ({"options": {"flexrs_goal": "COST_OPTIMIZED"}}, "flexrs", "pipeline_options.flexrs_goal", "FlexRS"),  # [flexrs]
    (
        {"options": {"resource_hints": ["accelerator=type:nvidia-l4;count:1"]}},
        "accelerator-hint",
        "pipeline_options.resource_hints",
        "leave it out",
    ),
    (
        {"options": {"resource_hints": ["min_ram=30GB"]}},
        "?right-fitting",
        "pipeline_options.resource_hints",
        "another machine",
    ),
    # Names of options, [beam]
    ({"options": {"num-workers": 2}}, "option-spelling", "pipeline_options.num-workers", "write num_workers"),
    ({"options": {"numWorkers": 2}}, "option-spelling", "pipeline_options.numWorkers", "write num_workers"),
    ({"options": {"tempLocation": "x"}}, "option-spelling", "pipeline_options.tempLocation", "write temp_location"),
    ({"options": {"--input": "x"}}, "option-spelling", "pipeline_options.--input", "write input"),
    ({"options": {"my-option": 1, "myOption": 2}}, "", "", ""),
    ({"options": {"workerZone": "x"}}, "option-pinned", "pipeline_options.workerZone", "in the placement"),
    ({"options": {"use_mps": True}}, "option-pinned", "pipeline_options.use_mps", "use_mps= to the operator"),
    ({"default_pipeline_options": {"region": "x"}}, "option-pinned", "default_pipeline_options.region", "placement"),
    # Locations
    ({"subnetwork": "regions/{region}/subnetworks/ml"}, "", "", ""),
    ({"subnetwork": "https://www.googleapis.com/compute/v1/projects/p/regions/us-central1/subnetworks/ml"}, "", "", ""),
    ({"subnetwork": "regions/us-east1/subnetworks/ml"}, "subnetwork-region", "subnetwork", "needs one in us-central1"),
    (
        {"subnetwork": "https://www.googleapis.com/compute/v1/projects/p/regions/us-east1/subnetworks/ml"},
        "subnetwork-region",
        "subnetwork",
        "regions/{region}/subnetworks/ml would follow",
    ),
    ({"subnetwork": "ml"}, "subnetwork-form", "subnetwork", "regions/{region}/subnetworks/NAME"),
    ({"dataflow_kms_key": KEY.format("{region}")}, "", "", ""),
    ({"dataflow_kms_key": KEY.format("global")}, "", "", ""),
    ({"dataflow_kms_key": KEY.format("us-east1")}, "kms-key-region", "dataflow_kms_key", "needs one in us-central1"),
    ({"dataflow_kms_key": "k"}, "kms-key-form", "dataflow_kms_key", "full name"),
    ({"options": {"output": "gs://acme/{zone}/x"}}, "zone-not-pinned", "pipeline_options.output", "pins no zone"),
    ({"service_account_email": "worker"}, "service-account", "service_account_email", "@PROJECT"),
    (
        {"service_account_email": "serviceAccount:worker@acme-ml-prod.iam.gserviceaccount.com"},
        "service-account",
        "service_account_email",
        "@PROJECT",
    ),
    # Images, as container registries name them
    *[
        ({"sdk_container_image": image}, "", "", "")
        for image in ("gpu", "nvidia/cuda:12.0.0-runtime", "localhost:5000/a.b_c--d/gpu:V1", f"x/y@sha256:{'0' * 64}")
    ],
    *[
        ({"sdk_container_image": image}, "image-form", "sdk_container_image", "NAME:TAG")
        for image in ("", "gpu image", "https://gcr.io/acme/gpu", "gcr.io/acme/GPU:1", "gcr.io/acme/gpu:", "gcr.io/x/")
    ],
    # Values that a command line would tear
    ({"options": {"setup_file": True}}, "option-value", "pipeline_options.setup_file", "give a text"),
    ({"options": {"setup_file": "./setup.py"}}, "", "", ""),
    ({"service_options": [""]}, "wrong-type", "service_options", "a list of texts"),
    ({"experiments": ["upload_graph", " "]}, "wrong-type", "experiments", "a list of texts"),
    ({"py_file": "s3://acme-ml/score.py"}, "file-address", "py_file", "gs://BUCKET/PATH"),
    ({"py_file": "/srv/pipelines/score.py"}, "", "", ""),
    # Project and allowed regions
    ({"options": {"temp_location": "gs://acme"}}, "bucket-path", "pipeline_options.temp_location", "gs://BUCKET/tmp"),
    ({"options": {"temp_location": "/var/x"}}, "bucket-path", "pipeline_options.temp_location", "gs://BUCKET/tmp"),
    ({"options": {"temp_location": None, "staging_location": "gs://acme/x"}}, "", "", ""),
    (
        {"options": {"staging_location": "gs://acme"}},
        "?bucket-path",
        "pipeline_options.staging_location",
        "pass it over for temp_location",
    ),
    (
        {"options": {"temp_location": "gs://acme", "staging_location": "gs://acme/{{ ds }}"}},
        "?bucket-path",
        "pipeline_options.temp_location",
        "pass it over for staging_location",
    ),
    (
        {"options": {"temp_location": None}, "dataflow_kms_key": KEY.format("us-central1")},
        "temp-location-missing",
        "pipeline_options.temp_location",
        "Beam makes no bucket",
    ),
    # Project and regions
    ({"project": "acme-ml-prod", "project_required": True}, "", "", ""),
    ({"project": None}, "", "", ""),
    ({"project": None, "project_required": True}, "project-missing", "project_id", "project_id="),
    ({"project": "1234567890"}, "project-invalid", "project_id", "not a project id"),
    ({"allowed_regions": frozenset({"us-central1"})}, "", "", ""),
    ({"allowed_regions": frozenset({"europe-west4"})}, "region-not-allowed", "placement", "europe-west4"),
]


@pytest.mark.parametrize(("parameters", "code", "where", "said"), VALUES, ids=[str(row[0])[:60] for row in VALUES])
def test_value(parameters: dict[str, Any], code: str, where: str, said: str) -> None:
    """A request with one thing wrong has that one problem, at that parameter, with what would be right."""
    problems = check(**parameters)
    severity = "warning" if code.startswith("?") else "error"
    assert told(problems) == ([(severity, code.lstrip("?"), where)] if code else [])
    assert all(said in problem.message for problem in problems)


@pytest.mark.parametrize("name", sorted(_RESERVED))
def test_option_that_the_operator_says_itself_is_refused(name: str) -> None:
    """An option that would contradict the placement or the operator is refused, naming where it belongs."""
    problems = check(options={name: "x"})
    assert told(problems) == [("error", "option-pinned", f"pipeline_options.{name}")]
    assert _RESERVED[name] in problems[0].message


def test_all_problems_are_told_at_once() -> None:
    """Everything wrong with a request and with every place is told in one answer, each thing once."""
    problems = check(
        "nvidia-l5 on g2-standard-9 in us-centrl1",
        "nvidia-l4 on n1-standard-8 in us-central1",
        {"placement": "nvidia-l4 in us-east1", "num_worker": 3, "zone": "b", "py_file": "x.py"},
        py_module="acme.score",
        subnetwork="regions/us-central1/subnetworks/ml",
        project_required=True,
        options={"worker_zone": "us-central1-a"},
    )
    assert [(code, where) for _, code, where in told(problems)] == [
        ("pipeline-twice", "py_file"),
        ("project-missing", "project_id"),
        ("option-pinned", "pipeline_options.worker_zone"),
        ("unknown-accelerator", "placement"),
        ("unknown-machine", "placement"),
        ("unknown-region", "placement"),
        ("subnetwork-region", "subnetwork"),
        ("machine-family", "fallback[0]"),
        ("subnetwork-region", "subnetwork"),
        ("override-unknown", "fallback[1].num_worker"),
        ("override-unknown", "fallback[1].zone"),
        ("override-unknown", "fallback[1].py_file"),
    ]
    assert "Did you mean num_workers?" in str(problems)


def test_what_a_candidate_says_itself_is_reported_as_its_own() -> None:
    """A problem in a candidate's own words names the candidate, one in inherited words names the parameter."""
    fallback = {"placement": "nvidia-l4 in us-east1", "num_workers": 9, "subnetwork": "regions/us-west1/subnetworks/ml"}
    assert told(check(PLACE, fallback, max_num_workers=4)) == [
        ("error", "workers-over-maximum", "fallback[0].num_workers"),
        ("error", "subnetwork-region", "fallback[0].subnetwork"),
    ]


def test_region_beside_a_placement_must_agree_with_it() -> None:
    """The placement's zone or region is not contradicted by the region given beside it."""
    assert told(check("nvidia-l4 in us-central1-a", region="europe-west4")) == [
        ("error", "zone-outside-region", "placement")
    ]
    assert told(check("nvidia-l4 in us-central1", region="europe-west4")) == [
        ("error", "region-contradicted", "placement")
    ]
    assert check("nvidia-l4", "nvidia-l4 in europe-west4", region="us-central1") == ()
    assert check("nvidia-l4 in us-central1-a", region="us-central1") == ()


def test_order_is_questioned() -> None:
    """CPUs first, and the same place twice, are warned about; CPUs last are not."""
    assert told(check("cpu in us-central1")) == [("warning", "cpu-first", "placement")]
    assert check(PLACE, "cpu on n2-standard-8 in us-central1") == ()
    twice = check("nvidia-l4 in us-central1", "nvidia-l4 on g2-standard-4 in us-central1")
    assert told(twice) == [("warning", "duplicate", "fallback[0]")]
    assert check(PLACE, {"placement": PLACE, "num_workers": 2}) == ()


@pytest.mark.parametrize(
    ("placement", "code"),
    [
        ("cpu in us-central1", ""),
        ("cpu on n1-standard-8 in us-central1", ""),
        ("cpu on g2-standard-8 in us-central1", "machine-carries-accelerator"),
        ("cpu on n1-standard-9 in us-central1", "unknown-machine"),
        ("cpu on x9-standard-8 in us-central1", "unknown-machine"),
    ],
)
def test_cpu_candidates(placement: str, code: str) -> None:
    """CPUs run on any CPU machine, and not on one that always carries an accelerator."""
    assert [each for _, each, _ in told(check(PLACE, placement))] == ([code] if code else [])


def test_gpu_in_the_tpu_operator_is_sent_to_the_other_one() -> None:
    """A GPU given to the TPU operator is an error that names the GPU operator."""
    problems = check(PLACE, operator="tpu")
    assert told(problems) == [("error", "wrong-operator", "placement")]
    assert "BeamGpuPipelineOperator" in problems[0].message


def test_missing_temp_location_names_the_bucket_that_beam_would_make() -> None:
    """Without a temp_location the warning names the very bucket that Beam would make."""
    from apache_beam.io.gcp.gcsio import default_gcs_bucket_name

    assert default_bucket("acme-ml-prod", "us-central1") == default_gcs_bucket_name("acme-ml-prod", "us-central1")
    problems = check(options={"temp_location": None}, project="acme-ml-prod")
    assert told(problems) == [("warning", "temp-location-missing", "pipeline_options.temp_location")]
    assert f"gs://{default_gcs_bucket_name('acme-ml-prod', 'us-central1')}/" in problems[0].message


def test_zone_is_filled_where_one_is_pinned() -> None:
    """A zone token is fine where the placement pins a zone."""
    assert check("nvidia-l4 in us-central1-a", options={"output": "gs://acme/{zone}/x"}) == ()


# What else must be said for a parameter to mean anything.
WITH = {"job_class": {"jar": "gs://acme-ml/score.jar"}, "sdk": {"flex_template": "gs://acme-ml/score.json"}}
WITH["parameters"] = WITH["sdk"]
LATERS: list[Any] = ["{{ params.x }}", "{% if x %}1{% endif %}", Later()]


@pytest.mark.parametrize("later", LATERS, ids=["value", "block", "output"])
@pytest.mark.parametrize("name", [*BeamRequest.__dataclass_fields__, "project"])
def test_what_is_not_known_yet_is_not_judged(name: str, later: Any) -> None:
    """A parameter that a template or another task will fill in raises no problem before the task starts."""
    said = {"py_file": None, **WITH.get(name, {})} if name in {*WAY_NAMES, *WITH} else {}
    assert check(**{**said, name: later}) == ()


@pytest.mark.parametrize("later", LATERS, ids=["value", "block", "output"])
@pytest.mark.parametrize(
    "name", [*BEAM_NAMED, "labels", "experiments", "dataflow_service_options", "temp_location", "x"]
)
def test_options_that_are_not_known_yet_are_not_judged(name: str, later: Any) -> None:
    """The same holds for single options, in the operator's own mapping and in a candidate's."""
    assert check(options={name: later}) == ()
    assert check(PLACE, {"placement": "nvidia-l4 in us-east1", "pipeline_options": {name: later}}) == ()


def test_places_that_are_not_known_yet_are_not_judged() -> None:
    """A templated placement is left for later, and the others keep their names."""
    candidates, problems = read_candidates("{{ params.place }}", ["nvidia-l5 in us-central1", Later()])
    assert [candidate is None for candidate in candidates] == [True, False, True]
    assert problems == ()
    assert read_candidates(PLACE, "{{ params.places }}")[1] == ()
    assert read_candidates(PLACE, Later())[1] == ()
    assert [where for _, _, where in told(check("{{ params.place }}", "nvidia-l5 in us-central1"))] == ["fallback[0]"]


def test_one_fallback_without_a_list_is_refused() -> None:
    """A fallback that is not a list is refused, and the placement is read all the same."""
    candidates, problems = read_candidates(PLACE, "nvidia-l4 in us-east1")
    assert len(candidates) == 1
    assert told(problems) == [("error", "not-a-list", "fallback")]


@given(
    st.sampled_from(sorted(CATALOG.accelerators)),
    st.integers(1, 17),
    st.none() | st.sampled_from(sorted(CATALOG.machines)),
    st.sampled_from(sorted(CATALOG.regions)),
)
def test_validity_does_not_depend_on_spelling(type_: str, count: int, machine: str | None, region: str) -> None:
    """A placement has the same problems in any spelling, and with its default machine spelled out."""
    placement = Placement(accelerator=Gpu(type_, count), machine_type=machine, region=region)
    request = BeamRequest(**SOUND)
    candidate = Candidate(placement=placement)
    found = check_candidate(request, candidate, CATALOG)
    spelled = Candidate.parse(f"{type_}:{count} {f'on {machine}' if machine else ''} in {region}".upper())
    assert check_candidate(request, spelled, CATALOG) == found
    if not any(problem.is_error for problem in found):
        resolved = resolve(candidate, CATALOG)
        assert resolved.placement.machine_type
        assert not any(problem.is_error for problem in check_candidate(request, resolved, CATALOG))


def test_one_image_does_not_fit_two_slices() -> None:
    """A place whose image is that of a slice with another environment is told which slice, and what its own needs."""
    v6e, small, v5e = "tpu-v6e-slice:2x2 in us-east5-b", "tpu-v6e-slice:1x1 in us-east5-b", "tpu-v5-lite-podslice:2x2"
    own = {"placement": small, "sdk_container_image": "us-docker.pkg.dev/acme/beam/v6e-1:2.77.0"}
    settings: dict[str, Any] = {"operator": "tpu", "number_of_worker_harness_threads": 50}
    found = check(v6e, small, f"{v5e} in us-west4-a", **settings)
    assert told(found) == [("warning", "image-of-another-slice", f"fallback[{n}]") for n in (0, 1)]
    assert all("image of tpu-v6e-slice:2x2 (placement)" in problem.message for problem in found)
    assert "tpu-v6e-slice:1x1 needs TPU_ACCELERATOR_TYPE=v6e-1 and TPU_CHIPS_PER_HOST_BOUNDS=1,1,1." in found[0].message
    assert "tpu-v5-lite-podslice:2x2 needs TPU_ACCELERATOR_TYPE=v5litepod-4." in found[1].message
    assert check(v6e, "tpu-v6e-slice:2x2 in us-east5-a", own, PLACE, "cpu in us-central1", **settings) == ()
    follows = "us-docker.pkg.dev/acme/beam/{accelerator}:2.77.0"
    assert check(v6e, f"{v5e} in us-west4-a", **settings, sdk_container_image=follows) == ()
    assert check(v6e, small, **settings, sdk_container_image="{{ params.image }}") == ()
