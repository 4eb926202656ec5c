"""Spark batches against Google's own descriptions: the discovery document and the typed client."""

from __future__ import annotations

import json
from importlib import resources
from typing import Any

import jsonschema
import pytest
from discovery import convert

from airflow_accel_provider.core.placement import Placement
from airflow_accel_provider.core.request import Candidate, filler, map_strings
from airflow_accel_provider.core.spark import SparkRequest, batch_body, load_spark_catalog

TABLES = load_spark_catalog()
DOCUMENT = json.loads(
    (resources.files("googleapiclient") / "discovery_cache" / "documents" / "dataproc.v1.json").read_text()
)
SCHEMAS = DOCUMENT["schemas"]
VALIDATOR = jsonschema.Draft202012Validator(
    {"$ref": "#/$defs/Batch", "$defs": {name: convert(schema) for name, schema in SCHEMAS.items()}}
)
ENVIRONMENT = {
    "execution_config": {
        "service_account": "worker@acme.iam.gserviceaccount.com",
        "subnetwork_uri": "projects/acme/regions/{region}/subnetworks/jobs",
        "network_tags": ["spark"],
        "kms_key": "projects/acme/locations/{region}/keyRings/r/cryptoKeys/k",
        "staging_bucket": "acme-{region}",
        "ttl": "7200s",
        "resource_manager_tags": {"a/b": "c"},
        "authentication_config": {"user_workload_authentication_type": "SERVICE_ACCOUNT"},
    },
    "peripherals_config": {
        "metastore_service": "projects/p/locations/l/services/s",
        "spark_history_server_config": {"dataproc_cluster": "projects/p/regions/r/clusters/c"},
    },
}
COMMON = {"args": ["--day", "x"], "jar_file_uris": ["gs://b/x.jar"], "file_uris": ["gs://b/f"]}
BATCHES: list[dict[str, Any]] = [
    {"pyspark_batch": {"main_python_file_uri": "gs://b/x.py", "python_file_uris": ["gs://b/y.py"], **COMMON}},
    {"spark_batch": {"main_class": "acme.Main", "archive_uris": ["gs://b/a.zip"], **COMMON}},
    {"spark_sql_batch": {"query_file_uri": "gs://b/q.sql", "query_variables": {"day": "x", "n": "3"}}},
    {"spark_r_batch": {"main_r_file_uri": "gs://b/x.R", "args": ["a"]}},
    {"pyspark_notebook_batch": {"notebook_file_uri": "gs://b/x.ipynb", "params": {"a": "b"}}},
]
PLACES = [
    "l4 in us-central1",
    "l4:8 in europe-west4",
    "a100-40 in us-central1",
    "a100-80 in us-east4",
    "cpu in us-east1",
]


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("version", sorted(TABLES.runtimes))
@pytest.mark.parametrize("batch", BATCHES, ids=lambda batch: next(iter(batch)))
def test_body_is_a_batch(batch: dict[str, Any], version: str, place: str) -> None:
    """The body of every kind of batch, on every runtime and accelerator, keeps to Google's schema of a batch."""
    request = SparkRequest(
        batch={**batch, "environment_config": ENVIRONMENT, "runtime_config": {"cohort": "nightly"}},
        runtime_version=version,
        executors=5,
        container_image="us-docker.pkg.dev/acme/spark/gpu:1",
        allocation_timeout=1800 if TABLES.runtimes[version].provisioning else None,
        properties={"spark.sql.shuffle.partitions": 200, "spark.speculation": True},
        labels={"team": "ml"},
    )
    candidate = Candidate(placement=Placement.parse(place))
    labels = {"accel-owner": "0f3a_9", "accel-life": "1", "accel-dag": "nightly-etl"}
    body = batch_body(request.for_candidate(candidate), candidate.placement, TABLES, labels=labels)
    assert [f"{problem.json_path}: {problem.message}" for problem in VALIDATOR.iter_errors(body)] == []
    assert body["environmentConfig"]["executionConfig"]["stagingBucket"] == f"acme-{candidate.placement.region}"


@pytest.mark.parametrize("message", sorted(TABLES.messages))
def test_messages_are_googles(message: str) -> None:
    """The table of a batch's fields has every field that a user may set, of Google's own kind, and no other."""
    theirs = SCHEMAS[message]["properties"]
    settable = {name for name, field in theirs.items() if not field.get("readOnly")} - {"idleTtl"}
    ours = {_camel(name): kind for name, kind in TABLES.messages[message].items()}
    assert set(ours) == settable
    for name, kind in ours.items():
        field = theirs[name]
        wanted = field.get("$ref") or {"array": "list", "object": "map"}.get(field["type"], "text")
        assert kind == ("duration" if field.get("format") == "google-duration" else wanted)


@pytest.mark.parametrize("batch", BATCHES, ids=lambda batch: next(iter(batch)))
def test_typed_client_reads_the_same(batch: dict[str, Any]) -> None:
    """Google's typed client takes the same mapping as the operator and makes the same JSON of it."""
    from google.cloud.dataproc_v1 import Batch

    said = {**batch, "environment_config": ENVIRONMENT, "labels": {"team": "ml"}}
    candidate = Candidate(placement=Placement.parse("cpu in us-east1"))
    ours = batch_body(SparkRequest(batch=said).for_candidate(candidate), candidate.placement, TABLES, labels={})
    filled = map_strings(filler(candidate.placement), said)
    theirs = json.loads(
        Batch.to_json(Batch(filled), always_print_fields_with_no_presence=False, use_integers_for_enums=False)
    )
    assert {name: ours[name] for name in theirs if name != "runtimeConfig"} == theirs


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)
