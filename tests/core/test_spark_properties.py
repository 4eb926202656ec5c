"""What a Spark request becomes: properties, the batch's JSON, and what it draws from quotas."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_accel_provider.core.accelerators import Gpu
from airflow_accel_provider.core.placement import Placement
from airflow_accel_provider.core.request import Candidate
from airflow_accel_provider.core.spark import (
    SparkRequest,
    batch_body,
    is_queued,
    spark_demands,
    spark_properties,
)
from airflow_accel_provider.core.spark.labels import is_label, spark_label
from airflow_accel_provider.core.spark.sizes import duration, megabytes, seconds
from tests.core.spark_checks import PYSPARK, TABLES, check, told

TIERS = {"spark.dataproc.executor.compute.tier": "premium", "spark.dataproc.executor.disk.tier": "premium"}
CLASSES = {
    "spark.dataproc.executor.compute.class": "performance",
    "spark.dataproc.executor.storage.class": "performance",
}
UTF8 = {"spark.dataproc.driverEnv.LANG": "C.UTF-8", "spark.executorEnv.LANG": "C.UTF-8"}
# The properties of the command on the page, https://cloud.google.com/dataproc-serverless/docs/guides/gpus-serverless.
PAGE = {
    **TIERS,
    **UTF8,
    "spark.dataproc.executor.resource.accelerator.type": "l4",
    "spark.executor.instances": "5",
    "spark.shuffle.manager": "com.nvidia.spark.rapids.RapidsShuffleManager",
}


def meant(place: str, overrides: dict[str, Any] | None = None, **parameters: Any) -> tuple[SparkRequest, Placement]:
    """Return a request as it is meant in a place."""
    candidate = Candidate(placement=Placement.parse(place), overrides=overrides or {})
    return SparkRequest(**{"batch": PYSPARK, **parameters}).for_candidate(candidate), candidate.placement


def properties(place: str, **parameters: Any) -> dict[str, str]:
    """Return the properties of a batch in a place."""
    return spark_properties(*meant(place, **parameters), TABLES)


def body(place: str, overrides: dict[str, Any] | None = None, **parameters: Any) -> dict[str, Any]:
    """Return the JSON of a batch in a place."""
    return batch_body(*meant(place, overrides, **parameters), TABLES, labels={"accel-owner": "nightly"})


@pytest.mark.parametrize(
    ("place", "runtime", "wanted"),
    [
        ("l4 in us-central1", "1.1", {**TIERS, **UTF8, "spark.executor.cores": "4"}),
        ("l4 in us-central1", "2.2", {**TIERS, "spark.executor.cores": "4"}),
        ("l4:2 in us-central1", None, {**TIERS, "spark.executor.cores": "24"}),
        ("l4:4 in us-central1", "2.3", {**TIERS, "spark.executor.cores": "48"}),
        ("l4:8 in us-central1", "3.0", {**CLASSES, "spark.executor.cores": "96"}),
        (
            "a100-40 in us-central1",
            "2.3",
            {**TIERS, "spark.executor.cores": "12", "spark.dataproc.executor.disk.size": "375g"},
        ),
        (
            "a100-80 in us-central1",
            "3.1",
            {**CLASSES, "spark.executor.cores": "12", "spark.dataproc.executor.disk.size": "375g"},
        ),
    ],
)
def test_placement_and_runtime_become_properties(place: str, runtime: str | None, wanted: dict[str, str]) -> None:
    """The accelerator, two executors, their cores, and what the runtime asks for are said without the user."""
    type_ = place.partition(" ")[0].partition(":")[0]
    common = {"spark.dataproc.executor.resource.accelerator.type": type_, "spark.executor.instances": "2"}
    assert properties(place, runtime_version=runtime) == {**common, **wanted}


def test_cpu_asks_for_nothing_special() -> None:
    """Where CPUs are the last resort, only what the user says is sent."""
    assert properties("cpu in us-central1") == {}
    assert properties("cpu in us-central1", executors=3) == {"spark.executor.instances": "3"}


def test_page_command_is_kept() -> None:
    """The command on Google's page, with runtime 1.1, passes with warnings alone, and its properties stay."""
    sent = properties("l4 in us-central1", runtime_version="1.1", properties=PAGE)
    assert sent == {**sent, **PAGE}
    assert set(sent) - set(PAGE) == {"spark.executor.cores"}
    problems = check(
        "l4 in us-central1",
        runtime_version="1.1",
        ttl=None,
        properties={**PAGE, "spark.dynamicAllocation.enabled": "true"},
        today=date(2026, 11, 29),
    )
    assert told(problems) == ["?runtime-ended", "?growth-unbounded"]


def test_users_cores_choose_the_executor() -> None:
    """Cores of the user's take the place of the default, and values of other types become texts."""
    sent = properties("l4 in us-central1", properties={"spark.executor.cores": 16, "spark.speculation": True})
    assert sent["spark.executor.cores"] == "16"
    assert sent["spark.speculation"] == "true"


def test_provisioning_is_said_for_both_roles() -> None:
    """The mode and the time in the queue go to the driver and the executors alike; a property of the user's wins."""
    role = "spark.dataproc.executor.provisioning.allocationTimeout"
    sent = properties(
        "l4 in us-central1",
        runtime_version="3.0",
        provisioning="queue",
        allocation_timeout=timedelta(minutes=30),
        properties={role: "900s"},
    )
    assert sent["spark.dataproc.driver.provisioning.mode"] == "queue"
    assert sent["spark.dataproc.executor.provisioning.mode"] == "queue"
    assert sent["spark.dataproc.driver.provisioning.allocationTimeout"] == "1800s"
    assert sent[role] == "900s"


def test_body_is_complete() -> None:
    """Everything said reaches the batch, in the API's spelling, and the job's own labels win."""
    batch = {
        **PYSPARK,
        "labels": {"team": "ml", "accel-owner": "mine"},
        "runtime_config": {"version": "2.2", "properties": {"spark.a": 1}, "cohort": "c"},
        "environment_config": {
            "execution_config": {
                "service_account": "s@p.iam",
                "subnetwork_uri": "sub-{region}",
                "ttl": {"seconds": 900},
            },
            "peripherals_config": {"spark_history_server_config": {"dataproc_cluster": "x"}},
        },
    }
    sent = body("l4 in europe-west4", batch=batch, container_image="{region}-docker.pkg.dev/p/r/i", labels={"day": "x"})
    assert sent["pysparkBatch"] == {"mainPythonFileUri": "gs://acme-ml/jobs/etl.py"}
    assert sent["labels"] == {"team": "ml", "day": "x", "accel-owner": "nightly"}
    runtime = sent["runtimeConfig"]
    assert (runtime["version"], runtime["cohort"]) == ("2.2", "c")
    assert runtime["containerImage"] == "europe-west4-docker.pkg.dev/p/r/i"
    assert runtime["properties"]["spark.a"] == "1"
    assert sent["environmentConfig"] == {
        "executionConfig": {"serviceAccount": "s@p.iam", "subnetworkUri": "sub-europe-west4", "ttl": "900s"},
        "peripheralsConfig": {"sparkHistoryServerConfig": {"dataprocCluster": "x"}},
    }


def test_parameters_win_over_the_batch() -> None:
    """What a parameter says replaces what the batch says, and nothing is said twice."""
    batch = {**PYSPARK, "runtime_config": {"version": "2.2", "container_image": "a"}}
    runtime = body("l4 in us-central1", batch=batch, runtime_version="2.3", container_image="b")["runtimeConfig"]
    assert (runtime["version"], runtime["containerImage"]) == ("2.3", "b")


def test_candidate_differs_where_it_says_so() -> None:
    """A candidate's overrides are merged to any depth, and what it says wins over parameter and batch alike."""
    overrides = {
        "batch": {"environment_config": {"execution_config": {"subnetwork_uri": "other"}}},
        "properties": {"spark.executor.instances": "7", "spark.a": "2"},
    }
    base = {**PYSPARK, "environment_config": {"execution_config": {"subnetwork_uri": "one", "network_tags": ["t"]}}}
    sent = body(
        "a100-40 in us-central1", overrides, batch=base, executors=3, properties={"spark.a": "1", "spark.b": "1"}
    )
    assert sent["environmentConfig"]["executionConfig"] == {"subnetworkUri": "other", "networkTags": ["t"]}
    said = sent["runtimeConfig"]["properties"]
    assert (said["spark.executor.instances"], said["spark.a"], said["spark.b"]) == ("7", "2", "1")
    assert sent["pysparkBatch"] == {"mainPythonFileUri": "gs://acme-ml/jobs/etl.py"}


def test_all_problems_at_once() -> None:
    """One look at a request with many mistakes names each of them once, with the candidate that makes it."""
    problems = check(
        "l4 in us-central1-a",
        {"placement": "nvidia-l4 in us-east1", "executors": 1, "machine_type": "g2-standard-4"},
        {"placement": "a100-40 in us-central1", "properties": {"spark.executor.memory": "99g"}},
        batch={"pyspark_batch": {}},
        ttl=60,
        labels={"A": "b"},
        batch_id="x",
    )
    assert sorted((problem.code, problem.where) for problem in problems) == sorted(
        [
            ("zone-of-spark", "placement"),
            ("unknown-accelerator", "fallback[0]"),
            ("executors-range", "fallback[0].executors"),
            ("override-unknown", "fallback[0].machine_type"),
            ("memory-too-large", "fallback[1].properties.spark.executor.memory"),
            ("batch-main", "batch.pyspark_batch"),
            ("ttl-range", "ttl"),
            ("label-key", "labels.A"),
            ("batch-id", "batch_id"),
        ]
    )


def test_problems_between_candidates() -> None:
    """A repeated place and CPUs in the first place warn; region= of another region and one not allowed are errors."""
    assert told(check("l4 in us-east1", "l4 in us-east1")) == ["?duplicate"]
    assert told(check("cpu in us-east1", "l4 in us-east1")) == ["?cpu-first"]
    assert told(check("l4 in us-east1", region="us-west1")) == ["region-contradicted"]
    assert told(check("l4", region="us-east1")) == []
    assert told(check("l4 in us-east1", allowed_regions=frozenset({"europe-west4"}))) == ["region-not-allowed"]
    assert told(check(project=None, project_required=True)) == ["project-missing"]
    assert told(check(project="Acme ML")) == ["project-invalid"]
    assert told(check(container_image="eu.pkg.dev/{zone}/x")) == ["zone-not-pinned"]


class Later:
    """What another task will give."""


@pytest.mark.parametrize(
    "parameters",
    [
        {"batch": "{{ params.batch }}"},
        {"batch": Later()},
        {"batch": {"pyspark_batch": Later()}},
        {"batch": {"pyspark_batch": {"main_python_file_uri": "{{ params.file }}", "args": Later()}}},
        {"runtime_version": Later(), "properties": "{{ params.properties }}"},
        {"runtime_version": "{{ params.runtime }}", "provisioning": "queue", "properties": {"spark.master": "local"}},
        {"executors": "{{ params.n }}"},
        {"ttl": "{{ params.ttl }}", "batch_id": "{{ ds }}", "container_image": Later()},
        {"labels": {"day": "{{ ds }}"}},
        {
            "labels": Later(),
            "properties": {"spark.executor.cores": "{{ params.cores }}", "spark.executor.memory": "90g"},
        },
        {"properties": {"spark.dataproc.executor.compute.tier": "{{ params.tier }}"}},
        {"project": "{{ var.value.project }}"},
    ],
)
def test_templates_are_left_alone(parameters: dict[str, Any]) -> None:
    """What a template or another task will fill in is not judged before the task starts, and the rest can be shown."""
    assert [problem for problem in check(**parameters) if problem.code != "growth-unbounded"] == []
    request = {name: value for name, value in parameters.items() if name != "project"}
    assert properties("l4 in us-central1", **request)["spark.dataproc.executor.resource.accelerator.type"] == "l4"


@pytest.mark.parametrize(
    ("place", "runtime", "wanted"),
    [
        ("l4:2 in us-central1", "2.3", {"NVIDIA_L4_GPUS": (6, 10), "N2_CPUS": (72, 120), "CPUS": (4, 4)}),
        ("l4 in us-central1", "3.0", {"PREEMPTIBLE_NVIDIA_L4_GPUS": (3, 5), "N2_CPUS": (12, 20), "CPUS": (4, 4)}),
        (
            "a100-40 in us-central1",
            "2.3",
            {"NVIDIA_A100_GPUS": (3, 5), "LOCAL_SSD_TOTAL_GB_PER_VM_FAMILY": (1125, 1875)},
        ),
        ("a100-80 in us-central1", "3.0", {"PREEMPTIBLE_NVIDIA_A100_80GB_GPUS": (3, 5)}),
        ("cpu in us-central1", "2.3", {"CPUS": (16, 24)}),
    ],
)
def test_demands(place: str, runtime: str, wanted: dict[str, tuple[int, int]]) -> None:
    """A batch draws its GPUs, preemptible ones where it is queued, and the premium tier's CPUs and disks."""
    request, placement = meant(
        place, runtime_version=runtime, executors=3, properties={"spark.dynamicAllocation.maxExecutors": 5}
    )
    drawn = {each.metric: (each.floor, each.ceiling) for each in spark_demands(request, placement, TABLES)}
    assert drawn == {**drawn, **wanted}


def test_only_gpus_refuse_a_place() -> None:
    """What the premium tier draws beside GPUs is not settled, so a shortage of it only warns."""
    certain = {each.metric for each in spark_demands(*meant("l4 in us-central1"), TABLES) if each.certain}
    assert certain == {"NVIDIA_L4_GPUS"}


def test_growth_decides_the_ceiling() -> None:
    """A batch of a fixed size has that as its ceiling, one without bounds has none."""
    fixed = meant("l4 in us-central1", executors=4, properties={"spark.dynamicAllocation.enabled": False})
    assert next(iter(spark_demands(*fixed, TABLES))).ceiling == 4
    assert next(iter(spark_demands(*meant("l4 in us-central1"), TABLES))).ceiling is None


@pytest.mark.parametrize(
    ("parameters", "queued"),
    [
        ({"runtime_version": "2.3"}, False),
        ({"runtime_version": "3.0"}, True),
        ({"runtime_version": "3.0", "provisioning": "default"}, False),
        ({"runtime_version": "3.0", "properties": {"spark.dataproc.executor.provisioning.mode": "default"}}, False),
    ],
)
def test_queueing(parameters: dict[str, Any], queued: bool) -> None:
    """From 3.0 on a batch with GPUs waits in a queue unless it is told not to."""
    assert is_queued(*meant("l4 in us-central1", **parameters), TABLES) is queued
    assert not is_queued(*meant("cpu in us-central1", **parameters), TABLES)


PLACEMENTS = st.sampled_from(TABLES.executors).map(
    lambda shape: Placement(accelerator=Gpu(shape.type, shape.gpus), region="us-central1")
)
NAMES = st.from_regex(r"spark\.[a-z]{1,9}\.[a-zA-Z]{1,9}", fullmatch=True)
VALUES = st.one_of(st.text(max_size=30), st.integers(), st.booleans())
REQUESTS = st.builds(
    SparkRequest,
    batch=st.just(PYSPARK),
    runtime_version=st.sampled_from([None, *TABLES.runtimes]),
    executors=st.one_of(st.none(), st.integers(2, 2000)),
    properties=st.dictionaries(NAMES, VALUES, max_size=4),
    ttl=st.one_of(st.none(), st.integers(600, 1209600)),
)


@given(REQUESTS, PLACEMENTS)
def test_users_properties_arrive_as_given(request_: SparkRequest, placement: Placement) -> None:
    """Every property of the user's is in the batch with its own value, and all values are texts."""
    settled = request_.for_candidate(Candidate(placement=placement))
    sent = spark_properties(settled, placement, TABLES)
    assert all(isinstance(value, str) for value in sent.values())
    for name, value in settled.properties.items():
        assert sent[name] == (str(value).lower() if isinstance(value, bool) else str(value))


@given(REQUESTS, PLACEMENTS)
def test_settling_twice_changes_nothing(request_: SparkRequest, placement: Placement) -> None:
    """A request that is settled, or meant in a place, stays the same when that is done again."""
    candidate = Candidate(placement=placement)
    once = request_.for_candidate(candidate)
    assert once.for_candidate(candidate) == once
    assert request_.settled().settled() == request_.settled()


@given(REQUESTS, PLACEMENTS)
def test_what_is_derived_passes_the_rules(request_: SparkRequest, placement: Placement) -> None:
    """The properties that follow from a placement and a runtime are ones that validation takes without a word."""
    plain = replace(request_, properties={})
    sent = spark_properties(plain.for_candidate(Candidate(placement=placement)), placement, TABLES)
    problems = check(str(placement), runtime_version=plain.runtime_version, ttl=3600, properties=sent)
    assert [code for code in told(problems) if code != "?runtime-ended"] == []


@given(st.text(alphabet=st.sampled_from("abz019_-"), max_size=63))
def test_own_labels_are_labels(text: str) -> None:
    """Any value of the job's own labels becomes one that the service takes, and a good one stays."""
    label = spark_label(text)
    assert not text or is_label(label)
    assert spark_label(label) == label
    assert not is_label(text) or label == text


@given(st.integers(0, 10**7))
def test_durations_round_trip(count: int) -> None:
    """A number of seconds, a timedelta and the API's text are the same duration."""
    assert duration(count) == duration(timedelta(seconds=count)) == duration({"seconds": count}) == f"{count}s"
    assert seconds(duration(count)) == count


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("16g", 16384),
        ("1024", 1024),
        ("512M", 512),
        ("2048k", 2),
        ("1tb", 1048576),
        ("1.5g", None),
        ("g", None),
        ("", None),
    ],
)
def test_sizes(text: str, size: float | None) -> None:
    """Sizes are read as Spark reads them: whole numbers with a unit, in any case, in MB when there is none."""
    assert megabytes(text) == size
