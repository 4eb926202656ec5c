"""Bodies of template launches, judged by Google's discovery document."""

from __future__ import annotations

import json
from importlib import resources
from typing import Any

import jsonschema
import pytest

from airflow_accel_provider.core.catalog import load_catalog
from airflow_accel_provider.core.options import classic_template_launch, flex_template_launch
from airflow_accel_provider.core.request import BeamRequest, Candidate
from airflow_accel_provider.core.validation import resolve
from tests.contract.discovery import convert
from tests.core.full_request import WORKERS

LABELS = {"accel-owner": "o-1"}
FULL = BeamRequest(
    parameters={"input": "gs://acme/in", "top": 3},
    pipeline_options={"temp_location": "gs://acme/tmp", "staging_location": "gs://acme/s", "mode": {"a": [1, None]}},
    service_options=("enable_google_cloud_profiler",),
    sdk_container_image="eu-docker.pkg.dev/acme/beam/gpu:2.77.0",
    **{**WORKERS, "use_public_ips": True},
)
PLACES = [
    "nvidia-l4 in us-central1",
    "nvidia-tesla-t4 in us-central1-a",
    "tpu-v6e-slice:2x2 in us-east5-b",
    "cpu in us-east1",
]


def faults(schema: str, body: Any) -> list[str]:
    """Return how a body departs from a schema of the Dataflow API; a field that it lacks is a fault."""
    folder = resources.files("googleapiclient") / "discovery_cache" / "documents"
    schemas = json.loads((folder / "dataflow.v1b3.json").read_text())["schemas"]
    whole = {"$ref": f"#/$defs/{schema}", "$defs": {name: convert(value) for name, value in schemas.items()}}
    return [error.message for error in jsonschema.Draft202012Validator(whole).iter_errors(body)]


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("request_", [BeamRequest(), FULL], ids=["empty", "full"])
def test_launches_have_the_form_that_google_documents(request_: BeamRequest, place: str) -> None:
    """Both kinds of launch, with much or little said, for every kind of accelerator, fit Google's own schemas."""
    candidate = resolve(Candidate.parse(place), load_catalog())
    request, placement = request_.for_candidate(candidate), candidate.placement
    classic = classic_template_launch(request, placement, job_name="score-1a2b", labels=LABELS)
    flex = flex_template_launch(
        request, placement, container_spec_gcs_path="gs://acme/spec.json", job_name="score-1a2b", labels=LABELS
    )
    assert faults("LaunchTemplateParameters", classic) == []
    assert faults("LaunchFlexTemplateRequest", flex) == []


def test_the_judge_sees_a_field_that_does_not_exist() -> None:
    """The schema has no field for an accelerator, and says so."""
    assert faults("RuntimeEnvironment", {"workerAccelerator": "x"})
    assert faults("RuntimeEnvironment", {"numWorkers": "many"})
