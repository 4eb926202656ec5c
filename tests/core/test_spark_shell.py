"""What is said beside a batch: request ids, headers, times in queues, plans, prices, pages."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_accel_provider.core.catalog import load_catalog
from airflow_accel_provider.core.console import page_of, urls
from airflow_accel_provider.core.identity import job_labels, job_name, label_value, request_id
from airflow_accel_provider.core.placement import Placement
from airflow_accel_provider.core.quota import Quota
from airflow_accel_provider.core.request import Candidate
from airflow_accel_provider.core.spark import (
    SparkRequest,
    check_call,
    check_waiting,
    owns_batch,
    spark_plan,
    spark_properties,
    usage_row,
    within_budget,
)
from airflow_accel_provider.core.spark.labels import spark_labels
from airflow_accel_provider.core.usage import Spent
from tests.core.spark_checks import PYSPARK, TABLES

CATALOG = load_catalog()
L4 = Placement.parse("l4 in us-central1")
TIMEOUT = "spark.dataproc.executor.provisioning.allocationTimeout"
ids = st.tuples(st.text(max_size=40), st.integers(1, 999), st.integers(1, 999))


def request(**said: Any) -> SparkRequest:
    return SparkRequest(**{"batch": PYSPARK, **said})


@given(ids, ids, st.none() | st.from_regex(r"[A-Za-z0-9_-]{1,40}", fullmatch=True))
def test_request_ids_are_one_to_one(one: tuple[str, int, int], other: tuple[str, int, int], prefix: str | None) -> None:
    """The same owner, life and attempt give the same request id, of the service's form; others give another."""
    owner, life, attempt = one
    made = request_id(prefix, owner=owner, life=life, attempt=attempt)
    assert re.fullmatch(r"[A-Za-z0-9_-]{1,40}", made)
    again = request_id(prefix, owner=other[0], life=other[1], attempt=other[2])
    assert (made == again) == (one == other)


@given(st.text(max_size=60), ids)
def test_batch_ids_are_what_the_service_takes(prefix: str, said: tuple[str, int, int]) -> None:
    """Any prefix gives an id of 4 to 63 letters, digits and hyphens."""
    made = job_name(prefix, owner=said[0], life=said[1], attempt=said[2])
    assert re.fullmatch(r"[a-z][a-z0-9-]{3,62}", made)


@given(st.text(min_size=1, max_size=80), st.text(min_size=1, max_size=80))
def test_ownership_is_the_label(owner: str, other: str) -> None:
    """A batch's labels tell its owner, in the form that the service takes, and nobody else."""
    labels = job_labels(owner=owner, life=1, attempt=2, dag_id="d", task_id="t", run_id="r", map_index=3)
    assert owns_batch(owner, spark_labels(labels))
    if label_value(other) != label_value(owner):
        assert not owns_batch(other, spark_labels(labels))
    assert not owns_batch(owner, {})


WRONG: list[tuple[dict[str, Any], str, str]] = [
    ({"request_id": "a b"}, "request-id", "up to 40 letters"),
    ({"request_id": "x" * 41}, "request-id", "up to 40 letters"),
    ({"request_id": 7}, "wrong-type", "give a text"),
    ({"metadata": {"a": "b"}}, "wrong-type", "a list of pairs"),
    ({"metadata": [("a",)]}, "wrong-type", "a list of pairs"),
    ({"metadata": "ab"}, "wrong-type", "a list of pairs"),
    ({"metadata": [("x-team", "a\nb")]}, "metadata", "cannot be sent"),
    ({"metadata": [("x team", "ml")]}, "metadata", "cannot be sent"),
    ({"metadata": [("Authorization", "Bearer x")]}, "metadata-ours", "gcp_conn_id"),
]


@pytest.mark.parametrize(("parameters", "code", "said"), WRONG)
def test_what_cannot_be_sent_is_told(parameters: dict[str, Any], code: str, said: str) -> None:
    """A request id or header that the service would not take is one problem at its parameter."""
    (problem,) = check_call(parameters)
    assert (problem.code, problem.where, problem.severity) == (code, *parameters, "error")
    assert said in problem.message


def test_what_can_be_sent_is_let_through() -> None:
    """Headers, templates and nothing at all raise no problem."""
    for said in ({}, {"request_id": "{{ ds }}"}, {"request_id": "A_b-9", "metadata": [("x-team", "ml ops")]}):
        assert list(check_call(said)) == []


@pytest.mark.parametrize(
    ("said", "start_timeout", "wanted"),
    [
        ({"runtime_version": "3.0"}, 1800, "1620s"),
        ({"runtime_version": "3.0"}, timedelta(hours=3), "7200s"),
        ({"runtime_version": "3.0", "allocation_timeout": 60}, 1800, "60s"),
        ({"runtime_version": "3.0", "provisioning": "default"}, 1800, None),
        ({"runtime_version": "2.3"}, 1800, None),
        ({"runtime_version": "3.0"}, "soon", None),
    ],
)
def test_the_queue_ends_before_the_task_does(said: dict[str, Any], start_timeout: Any, wanted: str | None) -> None:
    """A queued batch waits a little less long than the task, so that it is the service that gives up."""
    meant = within_budget(request(**said), L4, TABLES, start_timeout)
    properties = spark_properties(meant, L4, TABLES)
    assert properties.get(TIMEOUT) == wanted
    assert properties.get(TIMEOUT.replace("executor", "driver")) == wanted


def test_a_queue_that_is_too_long_is_told() -> None:
    """A queue that outlasts start_timeout is a warning, once for all places."""
    places = [Candidate(placement=L4), Candidate(placement=Placement.parse("l4 in europe-west4")), None]
    long = request(runtime_version="3.0", allocation_timeout=3600)
    (problem,) = check_waiting(long, places, TABLES, 1800)
    assert (problem.severity, problem.where) == ("warning", "allocation_timeout")
    assert check_waiting(long, places, TABLES, 7200) == check_waiting(long, places, TABLES, None) == ()


def test_plan_asks_for_the_quota_of_the_mode() -> None:
    """A queued batch draws preemptible GPUs, any other those on demand; a region without the GPU is put aside."""
    readings = {
        "us-central1": {"NVIDIA_L4_GPUS": Quota(1, 1), "PREEMPTIBLE_NVIDIA_L4_GPUS": Quota(8, 0)},
        "europe-west12": {"NVIDIA_L4_GPUS": Quota(8, 0)},
    }
    places = [Candidate(placement=L4), Candidate(placement=Placement.parse("a100-40 in europe-west12"))]
    on_demand, elsewhere = spark_plan(request(runtime_version="2.3"), places, catalog=CATALOG, readings=readings)
    assert on_demand.rejected
    assert (on_demand.rejected.kind, on_demand.rejected.metric) == ("quota", "NVIDIA_L4_GPUS")
    assert elsewhere.rejected
    assert elsewhere.rejected.kind == "not_offered"
    queued, _ = spark_plan(request(runtime_version="3.0"), places, catalog=CATALOG, readings=readings)
    assert queued.rejected is None


def test_usage_has_a_price_range() -> None:
    """GPU-seconds are summed, and the price lies between what standard and premium compute and storage cost."""
    spent = Spent(gpu_seconds={"l4": 3600.0}, dcu_seconds=7200.0, storage_gb_seconds=0.0)
    row = usage_row(spent, CATALOG.rates)
    l4, low, high = (CATALOG.rates["spark", item].usd for item in ("l4", "dcu-standard", "dcu-premium"))
    assert row == {
        "gpu_seconds": 3600.0,
        "price_low": pytest.approx(l4 + 2 * low),
        "price_high": pytest.approx(l4 + 2 * high),
    }
    assert usage_row(None, CATALOG.rates) == {"gpu_seconds": None, "price_low": None, "price_high": None}
    assert usage_row(Spent(gpu_seconds={"h100": 1.0}), CATALOG.rates)["price_low"] is None


def test_pages_are_the_batchs() -> None:
    """A batch has a page and its logs; its machines are nobody's to see."""
    pages = urls(service="dataproc", project="acme", region="us-central1", job_id="etl-1")
    assert pages.keys() == {"job", "logs"}
    assert pages["job"].endswith("/dataproc/batches/us-central1/etl-1/monitoring?project=acme")
    assert "cloud_dataproc_batch" in pages["logs"]
    assert page_of(service="dataproc", project="acme", region="us-central1", job_id="etl-1") == pages["job"]


@pytest.mark.parametrize(
    ("batch", "main"),
    [
        (PYSPARK, PYSPARK["pyspark_batch"]["main_python_file_uri"]),
        ({"spark_batch": {"main_class": "acme.Main"}}, None),
        ({"spark_batch": {"main_jar_file_uri": "gs://b/{region}.jar"}}, "gs://b/us-central1.jar"),
        ({"spark_sql_batch": {"query_file_uri": "gs://b/q.sql"}}, "gs://b/q.sql"),
    ],
)
def test_main_file(batch: dict[str, Any], main: str | None) -> None:
    """The file that a batch runs is known as it is meant in a place."""
    assert request(batch=batch).for_candidate(Candidate(placement=L4)).main_file == main
