"""Every row of Google's pages about GPUs for Spark batches, with its valid and invalid neighbours.

Sources: [gpu] https://cloud.google.com/dataproc-serverless/docs/guides/gpus-serverless, [props] …/concepts/properties,
[dws] …/docs/guides/dws-serverless, [versions] …/docs/concepts/versions/dataproc-serverless-versions, [api] Dataproc API
v1, discovery document, [tools] https://github.com/NVIDIA/cudf-spark-tools/issues/2091.
"""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_accel_provider.core.spark import SPARK_OVERRIDABLE
from tests.core.spark_checks import PYSPARK, TABLES, check, told

L4 = "l4 in us-central1"
A40 = "a100-40 in us-central1"
A80 = "a100-80 in us-central1"
CPU = "cpu in us-central1"
LATEST = "3.0"
CORES = "spark.executor.cores"
MEMORY = "spark.executor.memory"
DISK = "spark.dataproc.executor.disk.size"

# Each row: source; placement; runtime; properties; code of its one problem (an error, or "?" before a warning), "" for
# none; a part of the message.
PROPERTIES: list[tuple[str, str, str, dict[str, Any], str, str]] = [
    # tiers, required
    ("gpu", L4, "2.3", {"spark.dataproc.executor.compute.tier": "premium"}, "", ""),
    ("gpu", L4, "2.3", {"spark.dataproc.executor.compute.tier": "standard"}, "property-required", "tier=premium"),
    ("gpu", L4, "2.3", {"spark.dataproc.executor.compute.tier": "premum"}, "property-value", "'premium'"),
    ("gpu", A40, "1.1", {"spark.dataproc.executor.disk.tier": "premium"}, "", ""),
    ("gpu", A40, "1.1", {"spark.dataproc.executor.disk.tier": "standard"}, "property-required", "disk.tier=premium"),
    ("tools", L4, "3.0", {"spark.dataproc.executor.compute.class": "performance"}, "", ""),
    ("tools", L4, "3.0", {"spark.dataproc.executor.compute.class": "standard"}, "property-required", "=performance"),
    ("tools", L4, "3.0", {"spark.dataproc.executor.storage.class": "performance"}, "", ""),
    ("tools", L4, "3.0", {"spark.dataproc.executor.storage.class": "basic"}, "property-required", "=performance"),
    ("tools", L4, "3.0", {"spark.dataproc.executor.compute.tier": "premium"}, "?property-of-other-runtime", "class"),
    ("tools", L4, "3.0", {"spark.dataproc.driver.disk.tier": "premium"}, "?property-of-other-runtime", "storage.class"),
    (
        "tools",
        L4,
        "2.3",
        {"spark.dataproc.executor.storage.class": "performance"},
        "?property-of-other-runtime",
        "tier",
    ),
    ("tools", L4, "2.3", {"spark.dataproc.driver.compute.class": "performance"}, "?property-of-other-runtime", "tier"),
    ("props", L4, "2.3", {"spark.dataproc.driver.compute.tier": "standard"}, "", ""),
    ("props", L4, "2.3", {"dataproc.tier": "premium"}, "", ""),
    ("props", L4, "2.3", {"dataproc.tier": "gold"}, "property-value", "standard or premium"),
    # the accelerator
    ("gpu", L4, "2.3", {"spark.dataproc.executor.resource.accelerator.type": "l4"}, "", ""),
    ("gpu", A40, "2.3", {"spark.dataproc.executor.resource.accelerator.type": "a100-40"}, "", ""),
    ("gpu", A80, "2.3", {"spark.dataproc.executor.resource.accelerator.type": "l4"}, "accelerator-pinned", "a100-80"),
    ("gpu", L4, "2.3", {"spark.dataproc.executor.resource.accelerator.type": "l4,a100-40"}, "accelerator-pinned", ""),
    # instances
    ("gpu", L4, "2.3", {"spark.executor.instances": "5"}, "", ""),
    ("gpu", L4, "2.3", {"spark.executor.instances": 2}, "", ""),
    ("gpu", L4, "2.3", {"spark.executor.instances": "1"}, "executors-range", "the nearest is 2"),
    ("props", L4, "2.3", {"spark.executor.instances": "2000"}, "", ""),
    ("props", L4, "2.3", {"spark.executor.instances": "2001"}, "executors-range", "the nearest is 2000"),
    ("props", L4, "2.3", {"spark.executor.instances": "five"}, "executors-range", "whole number"),
    # cores and GPUs an executor
    *[("gpu", L4, "2.3", {CORES: str(cores)}, "", "") for cores in (4, 8, 12, 16)],
    ("gpu", "l4:2 in us-central1", "2.3", {CORES: "24"}, "", ""),
    ("gpu", "l4:4 in us-central1", "2.3", {CORES: 48}, "", ""),
    ("gpu", "l4:8 in us-central1", "2.3", {CORES: "96"}, "", ""),
    ("gpu", L4, "2.3", {CORES: "24"}, "cores-of-other-count", "write l4:2"),
    ("gpu", "l4:2 in us-central1", "2.3", {CORES: "16"}, "cores-of-other-count", "24 cores for l4:2"),
    ("gpu", L4, "2.3", {CORES: "2"}, "cores-invalid", "nearest is 4"),
    ("gpu", L4, "2.3", {CORES: "20"}, "cores-invalid", "4, 8, 12, 16, 24, 48 or 96"),
    ("gpu", L4, "2.3", {CORES: "32"}, "cores-invalid", "nearest is 24"),
    ("gpu", L4, "2.3", {CORES: "four"}, "property-value", "whole number"),
    ("gpu", A40, "2.3", {CORES: "12"}, "", ""),
    ("gpu", A80, "2.3", {CORES: "12"}, "", ""),
    ("gpu", A40, "2.3", {CORES: "8"}, "cores-invalid", "nearest is 12"),
    ("gpu", A80, "2.3", {CORES: "24"}, "cores-invalid", "nearest is 12"),
    # disks
    *[("gpu", L4, "2.3", {CORES: str(cores), DISK: "375g"}, "", "") for cores in (4, 8, 12, 16)],
    ("gpu", "l4:2 in us-central1", "2.3", {DISK: "750g"}, "", ""),
    ("gpu", "l4:4 in us-central1", "2.3", {DISK: "1500g"}, "", ""),
    ("gpu", "l4:8 in us-central1", "2.3", {DISK: "3000G"}, "", ""),
    ("gpu", L4, "2.3", {DISK: "750g"}, "disk-size", "fixed at 375g"),
    ("gpu", "l4:2 in us-central1", "2.3", {DISK: "375g"}, "disk-size", "fixed at 750g"),
    ("gpu", "l4:4 in us-central1", "2.3", {DISK: "750g"}, "disk-size", "fixed at 1500g"),
    ("gpu", "l4:8 in us-central1", "2.3", {DISK: "1500g"}, "disk-size", "fixed at 3000g"),
    *[("gpu", A40, "2.3", {DISK: f"{size}g"}, "", "") for size in (375, 750, 1500, 3000, 6000, 9000)],
    *[("gpu", A80, "2.3", {DISK: f"{size}g"}, "", "") for size in (375, 750, 1500, 3000, 6000, 9000)],
    ("gpu", A40, "2.3", {DISK: "400g"}, "disk-size", "375g, 750g, 1500g, 3000g, 6000g or 9000g"),
    ("gpu", A80, "2.3", {DISK: "12000g"}, "disk-size", "9000g"),
    ("gpu", A80, "2.3", {DISK: "1.500 g"}, "property-value", "375g"),
    # memory
    *[
        ("gpu", f"{type_} in us-central1", "2.3", {CORES: str(cores), MEMORY: f"{memory}{unit}"}, code, part)
        for type_, cores, most in (
            ("a100-40", 12, 78040),
            ("a100-80", 12, 165080),
            ("l4", 4, 13384),
            ("l4", 8, 26768),
            ("l4", 12, 40152),
            ("l4", 16, 53536),
            ("l4:4", 48, 160608),
            ("l4:8", 96, 321216),
        )
        for memory, unit, code, part in (
            (most, "m", "", ""),
            (1024, "m", "", ""),
            (1, "g", "", ""),
            (1023, "m", "memory-too-small", "1024m"),
            (most + 1, "m", "memory-too-large", f"up to {most} MB"),
        )
    ],
    ("gpu", "l4:2 in us-central1", "2.3", {MEMORY: "80304m"}, "", ""),
    ("gpu", "l4:2 in us-central1", "2.3", {MEMORY: "80305m"}, "?memory-disputed", "other rows 80304"),
    ("gpu", "l4:2 in us-central1", "2.3", {MEMORY: "113072m"}, "?memory-disputed", "113072 MB by its page"),
    ("gpu", "l4:2 in us-central1", "2.3", {MEMORY: "113073m"}, "memory-too-large", "113072"),
    ("gpu", "l4:2 in us-central1", "2.3", {MEMORY: "1234567m"}, "memory-too-large", "not 1234567."),
    ("gpu", L4, "2.3", {MEMORY: "9.5g"}, "property-value", "whole number and a unit"),
    ("gpu", L4, "2.3", {"spark.executor.memoryOverhead": "1g"}, "overhead-set", "leave it out"),
    ("gpu", L4, "2.3", {"spark.rapids.sql.enabled": "true"}, "?memory-unsaid", "spark.executor.memory"),
    ("gpu", L4, "2.3", {"spark.rapids.sql.enabled": "true", MEMORY: "9560m"}, "", ""),
    (
        "props",
        L4,
        "2.3",
        {MEMORY: "12g", "spark.memory.offHeap.enabled": "true", "spark.memory.offHeap.size": "4g"},
        "memory-too-large",
        "16384",
    ),
    # the character set, below 2.2
    ("gpu", L4, "1.1", {"spark.executorEnv.LANG": "C.UTF-8"}, "", ""),
    ("gpu", L4, "1.1", {"spark.executorEnv.LANG": "C"}, "property-required", "LANG=C.UTF-8"),
    ("gpu", L4, "1.2", {"spark.dataproc.driverEnv.LANG": "en_US"}, "property-required", "LANG=C.UTF-8"),
    ("gpu", L4, "2.2", {"spark.dataproc.driverEnv.LANG": "C"}, "", ""),
    # RAPIDS
    ("gpu", L4, "1.1", {"spark.shuffle.manager": "com.nvidia.spark.rapids.RapidsShuffleManager"}, "", ""),
    ("gpu", L4, "1.1", {"spark.shuffle.manager": "com.nvidia.spark.rapids.spark330.RapidsShuffleManager"}, "", ""),
    ("gpu", L4, "2.3", {"spark.shuffle.manager": "com.nvidia.spark.rapids.spark353.RapidsShuffleManager"}, "", ""),
    (
        "gpu",
        L4,
        "2.3",
        {"spark.shuffle.manager": "com.nvidia.spark.rapids.spark330.RapidsShuffleManager"},
        "?shuffle-manager-version",
        "for Spark 3.3",
    ),
    ("gpu", L4, "2.3", {"spark.shuffle.manager": "com.nvidia.spark.RapidsShuffleManager"}, "shuffle-manager", "it is"),
    ("gpu", L4, "2.3", {"spark.shuffle.manager": "com.nvidia.spark.rapids.RapidShuffleManager"}, "shuffle-manager", ""),
    ("gpu", L4, "2.3", {"spark.shuffle.manager": "sort"}, "", ""),
    ("gpu", L4, "2.3", {"spark.shuffle.manager": ""}, "", ""),
    ("gpu", L4, "2.3", {"spark.plugins": "com.nvidia.spark.SQLPlugin"}, "", ""),
    ("gpu", L4, "2.3", {"spark.plugins": "acme.Plugin"}, "?plugin-missing", "com.nvidia.spark.SQLPlugin"),
    ("gpu", L4, "2.3", {"spark.executor.resource.gpu.amount": "1"}, "?property-advice", "leave it out"),
    ("gpu", L4, "2.3", {"spark.task.resource.gpu.amount": 0.125}, "?property-advice", "leave it out"),
    # drivers
    *[("props", L4, "2.3", {"spark.driver.cores": cores}, "", "") for cores in (4, 8, 16)],
    ("props", L4, "2.3", {"spark.driver.cores": 6}, "property-value", "4, 8 or 16"),
    ("props", L4, "2.3", {"spark.driver.memory": "9600m"}, "", ""),
    ("props", L4, "2.3", {"spark.driver.memory": "29696m"}, "", ""),
    ("props", L4, "2.3", {"spark.driver.memory": "29697m"}, "memory-too-large", "29696 MB"),
    ("props", L4, "2.3", {"spark.driver.memory": "98304m", "spark.dataproc.driver.compute.tier": "premium"}, "", ""),
    (
        "props",
        L4,
        "2.3",
        {"spark.driver.memory": "29000m", "spark.driver.memoryOverhead": "1g"},
        "memory-too-large",
        "",
    ),
    ("props", L4, "2.3", {"spark.driver.memory": "2g", "spark.driver.memoryOverhead": "2g"}, "", ""),
    ("props", L4, "2.3", {"spark.driver.memory": "2g", "spark.driver.memoryOverhead": "1g"}, "memory-too-small", ""),
    ("props", L4, "2.3", {"spark.driver.memory": "1g"}, "memory-too-small", "4096 MB"),
    ("props", L4, "2.3", {"spark.dataproc.driver.disk.size": "250g"}, "", ""),
    ("props", L4, "2.3", {"spark.dataproc.driver.disk.size": "249g"}, "disk-size", "250g or more"),
    (
        "props",
        L4,
        "2.3",
        {"spark.dataproc.driver.disk.size": "400g", "spark.dataproc.driver.disk.tier": "premium"},
        "disk-size",
        "375g",
    ),
    # executors without GPUs
    *[("props", CPU, "2.3", {CORES: cores}, "?cpu-first", "") for cores in (4, 8, 16)],
    # growth
    ("props", L4, "2.3", {"spark.dynamicAllocation.enabled": "true"}, "?growth-unbounded", "maxExecutors"),
    ("props", L4, "2.3", {"spark.dynamicAllocation.enabled": True, "spark.dynamicAllocation.maxExecutors": 9}, "", ""),
    (
        "props",
        L4,
        "2.3",
        {
            "spark.dynamicAllocation.enabled": "true",
            "spark.dynamicAllocation.minExecutors": "9",
            "spark.dynamicAllocation.maxExecutors": "8",
        },
        "growth-bounds",
        "minExecutors=9",
    ),
    (
        "props",
        L4,
        "2.3",
        {
            "spark.dynamicAllocation.enabled": "true",
            "spark.executor.instances": "9",
            "spark.dynamicAllocation.maxExecutors": "8",
        },
        "?growth-bounds",
        "starts with 9",
    ),
    ("props", L4, "2.3", {"spark.dynamicAllocation.minExecutors": "1"}, "property-value", "from 2 to 2000"),
    ("props", L4, "2.3", {"spark.dynamicAllocation.initialExecutors": "2001"}, "property-value", "from 2 to 2000"),
    ("props", L4, "2.3", {"spark.dynamicAllocation.executorAllocationRatio": "0.3"}, "", ""),
    ("props", L4, "2.3", {"spark.dynamicAllocation.executorAllocationRatio": "3"}, "property-value", "0 to 1"),
    ("props", L4, "2.3", {"spark.dynamicAllocation.enabled": "no"}, "property-value", "true or false"),
    # what is not supported
    ("props", L4, "2.3", {"spark.master": "yarn"}, "property-value", "YARN"),
    ("props", L4, "2.3", {"spark.yarn.queue": "default"}, "property-refused", "YARN"),
    ("props", L4, "2.3", {"spark.shuffle.service.enabled": "true"}, "property-refused", "shuffle service"),
    ("versions", L4, "3.0", {"spark.master": "local"}, "property-of-other-runtime", "leave it out"),
    ("versions", L4, "3.0", {"spark.dataproc.scaling.version": "2"}, "property-of-other-runtime", "leave it out"),
    ("versions", L4, "2.3", {"spark.dataproc.scaling.version": "2"}, "", ""),
    # provisioning
    ("dws", L4, "3.0", {"spark.dataproc.executor.provisioning.mode": "queue"}, "", ""),
    ("dws", L4, "3.0", {"spark.dataproc.driver.provisioning.mode": "default"}, "", ""),
    ("dws", L4, "3.0", {"spark.dataproc.driver.provisioning.mode": "spot"}, "property-value", "queue or default"),
    ("dws", L4, "2.3", {"spark.dataproc.driver.provisioning.mode": "queue"}, "property-of-other-runtime", "2.3"),
    ("dws", L4, "3.0", {"spark.dataproc.executor.provisioning.allocationTimeout": "3600s"}, "", ""),
    ("dws", L4, "3.0", {"spark.dataproc.driver.provisioning.allocationTimeout": "7200s"}, "", ""),
    ("dws", L4, "3.0", {"spark.dataproc.driver.provisioning.allocationTimeout": "7201s"}, "property-value", "7200s"),
    ("dws", L4, "3.0", {"spark.dataproc.executor.provisioning.allocationTimeout": "3600"}, "property-value", "'s'"),
    (
        "dws",
        L4,
        "2.3",
        {"spark.dataproc.executor.provisioning.allocationTimeout": "60s"},
        "property-of-other-runtime",
        "",
    ),
    # names
    ("props", L4, "2.3", {"spark.dataproc.executor.compute.teir": "premium"}, "property-unknown", "compute.tier?"),
    (
        "props",
        L4,
        "2.3",
        {"spark.dataproc.executor.accelerator.type": "l4"},
        "property-unknown",
        "resource.accelerator",
    ),
    ("props", L4, "2.3", {"spark.dataproc.executor.zzz": "1"}, "property-unknown", "leave it out"),
    ("props", L4, "2.3", {"spark.dataproc.zzqq": "1"}, "?property-unknown", "catalogue"),
    ("props", L4, "2.3", {"spark.dataproc.driverEnv.MODE": "a,b=c;d"}, "", ""),
    ("props", L4, "2.3", {"spark.sql.shuffle.partitions": 200, "acme.own": "x"}, "", ""),
    ("props", L4, "2.3", {"spark:spark.executor.cores": "4"}, "property-name", "'spark.executor.cores'"),
    ("props", L4, "2.3", {" spark.executor.cores": "4"}, "property-name", "'spark.executor.cores'"),
    ("props", L4, "2.3", {"{{ params.name }}": "4"}, "property-name", "fills no template in a name"),
    ("props", L4, "2.3", {"spark.dataproc.driver.compute.tier": "gold"}, "property-value", "standard or premium"),
    ("dws", L4, "3.0", {"spark.dataproc.executor.provisioning.mode": "spot"}, "property-value", "queue or default"),
]


@pytest.mark.parametrize(("source", "place", "runtime", "properties", "code", "part"), PROPERTIES)
def test_property(  # noqa: PLR0917
    source: str, place: str, runtime: str, properties: dict[str, Any], code: str, part: str
) -> None:
    """Each property of a batch with GPUs is taken or refused as the pages say, with the nearest right thing."""
    problems = check(place, runtime_version=runtime, properties=properties)
    assert told(problems) == ([code] if code else [])
    assert part in " ".join(problem.message for problem in problems)


# Each row: source; properties of executors without GPUs; code; part of the message.
WITHOUT_GPUS = [
    ("props", {CORES: "12"}, "cores-invalid", "4, 8 or 16"),
    ("props", {MEMORY: "29696m"}, "", ""),
    ("props", {MEMORY: "29g", "spark.executor.memoryOverhead": "2g"}, "memory-too-large", "29696 MB"),
    ("props", {MEMORY: "90g", "spark.dataproc.executor.compute.tier": "premium"}, "", ""),
    ("props", {MEMORY: "97g", "spark.dataproc.executor.compute.tier": "premium"}, "memory-too-large", "98304 MB"),
    ("props", {MEMORY: "1g", CORES: "8"}, "memory-too-small", "8192 MB"),
    ("props", {DISK: "400g"}, "", ""),
    ("props", {DISK: "100g"}, "disk-size", "250g or more"),
    ("props", {DISK: "400g", "spark.dataproc.executor.disk.tier": "premium"}, "disk-size", "750g"),
    ("props", {"spark.executor.memoryOverhead": "1g"}, "", ""),
    ("props", {"spark.dynamicAllocation.enabled": "true"}, "", ""),
    ("gpu", {"spark.dataproc.executor.resource.accelerator.type": "l4"}, "accelerator-pinned", "cpu in us-central1"),
]


@pytest.mark.parametrize(("source", "properties", "code", "part"), WITHOUT_GPUS)
def test_property_without_gpus(source: str, properties: dict[str, Any], code: str, part: str) -> None:
    """Where CPUs are the last resort, their own bounds hold."""
    problems = check({"placement": CPU, "properties": properties}, runtime_version="2.3")
    assert told(problems) == ["?cpu-first", *([code] if code else [])]
    assert part in problems[-1].message


# Each row: source; placement; code; part of the message.
PLACES = [
    ("gpu", "l4 in europe-west4", "", ""),
    ("gpu", "l4:2 in europe-west4", "", ""),
    ("gpu", "l4:4 in us-east1", "", ""),
    ("gpu", "l4:8 in us-east4", "", ""),
    ("gpu", "a100-40 in europe-west4", "", ""),
    ("gpu", "a100-80 in us-east4", "", ""),
    ("gpu", "l4:3 in us-central1", "count-invalid", "the nearest is l4:4"),
    ("gpu", "l4:16 in us-central1", "count-invalid", "1, 2, 4 or 8"),
    ("gpu", "a100-40:2 in us-central1", "count-invalid", "the nearest is a100-40"),
    ("gpu", "nvidia-l4 in us-central1", "unknown-accelerator", "it is called l4"),
    ("gpu", "nvidia-tesla-a100 in us-central1", "unknown-accelerator", "it is called a100-40"),
    ("gpu", "nvidia-a100-80gb in us-central1", "unknown-accelerator", "it is called a100-80"),
    ("gpu", "a100 in us-central1", "unknown-accelerator", "a100-40 or a100-80"),
    ("gpu", "a100-4 in us-central1", "unknown-accelerator", "Did you mean a100-40?"),
    ("api", "h100 in us-central1", "unknown-accelerator", "l4, a100-40 or a100-80"),
    ("api", "nvidia-tesla-t4 in us-central1", "unknown-accelerator", "l4, a100-40 or a100-80"),
    ("gpu", "tpu-v6e-slice:2x2 in us-east5", "wrong-operator", "BeamTpuPipelineOperator"),
    ("api", "l4 in us-central1-a", "zone-of-spark", "write 'l4 in us-central1'"),
    ("api", "l4 on g2-standard-8 in us-central1", "machine-of-spark", "spark.executor.cores"),
    ("gpu", "a100-40 in europe-west3", "?not-offered", "europe-west4"),
    ("gpu", "l4 in us-centrl1", "unknown-region", "us-central1"),
    ("gpu", "l4", "placement-invalid", "location"),
]


@pytest.mark.parametrize(("source", "place", "code", "part"), PLACES)
def test_place(source: str, place: str, code: str, part: str) -> None:
    """A placement for Spark is a Spark accelerator with GPUs an executor, in a region; else the right one is named."""
    problems = check(place)
    assert told(problems) == ([code] if code else [])
    assert part in " ".join(problem.message for problem in problems)


@pytest.mark.parametrize(("ttl", "near"), [("15d", "1209600s"), ("9m", "600s"), ("60", "600s")])
def test_a_duration_in_other_units_is_judged_too(ttl: str, near: str) -> None:
    """A duration in units that the service does not take is told of, and so is one that would not do in any."""
    problems = check(ttl=ttl)
    assert told(problems) == ["wrong-type", "ttl-range"]
    assert f"The nearest is '{near}'." in problems[-1].message


@pytest.mark.parametrize(
    ("place", "right"),
    [
        ("nvidia-l4 in us-central1-a", "l4 in us-central1"),
        ("nvidia-l4:2 on g2-standard-24 in us-central1-a", "l4:2 in us-central1"),
        ("nvidia-tesla-a100 on a2-highgpu-1g in europe-west4", "a100-40 in europe-west4"),
        ("nvidia-a100-80gb in us-central1-c", "a100-80 in us-central1"),
        ("a100-40 in us-central1-c", "a100-40 in us-central1"),
    ],
)
def test_a_place_in_dataflows_words_is_said_in_sparks(place: str, right: str) -> None:
    """Each sentence about a zone or a machine type tells the same place, which is right as it stands."""
    problems = [problem for problem in check(place) if problem.code in {"zone-of-spark", "machine-of-spark"}]
    assert problems
    assert all(f"write '{right}'" in problem.message for problem in problems)
    assert told(check(right)) == []


HISTORY = {
    "environment_config": {
        "peripherals_config": {"spark_history_server_config": {"dataproc_cluster": "projects/p/regions/r/clusters/c"}}
    }
}
EXECUTION = "batch.environment_config.execution_config"


def execution(**settings: Any) -> dict[str, Any]:
    """Return parameters whose batch has an execution config."""
    return {"batch": {**PYSPARK, "environment_config": {"execution_config": settings}}}


# Each row: source; parameters; code; where; part of the message.
PARAMETERS: list[tuple[str, dict[str, Any], str, str, str]] = [
    # what to run
    ("api", {"batch": {"spark_batch": {"main_class": "a.B", "jar_file_uris": ["gs://b/x.jar"]}}}, "", "", ""),
    ("api", {"batch": {"spark_batch": {"main_jar_file_uri": "gs://b/x.jar"}}}, "", "", ""),
    ("api", {"batch": {"spark_sql_batch": {"query_file_uri": "gs://b/q.sql"}}}, "", "", ""),
    ("api", {"batch": {"spark_r_batch": {"main_r_file_uri": "gs://b/x.R"}}}, "", "", ""),
    ("api", {"batch": {"pyspark_notebook_batch": {"notebook_file_uri": "gs://b/x.ipynb"}}}, "", "", ""),
    ("api", {"batch": None}, "batch-missing", "batch", "pyspark_batch"),
    ("api", {"batch": {"labels": {}}}, "batch-missing", "batch", "pyspark_batch"),
    ("api", {"batch": {"pyspark_batch": {}}}, "batch-main", "batch.pyspark_batch", "main_python_file_uri"),
    (
        "api",
        {"batch": {"pyspark_batch": {"main_python_file_uri": "gs://b/x.ipynb"}}},
        "batch-main",
        "batch.pyspark_batch.main_python_file_uri",
        "must end in .py",
    ),
    ("api", {"batch": {"spark_batch": {}}}, "batch-main", "batch.spark_batch", "neither"),
    (
        "api",
        {"batch": {**PYSPARK, "spark_sql_batch": {"query_file_uri": "gs://b/q.sql"}}},
        "batch-twice",
        "batch",
        "runs one",
    ),
    ("api", {"batch": {**PYSPARK, "pysparkBatch": {}}}, "batch-field", "batch.pysparkBatch", "pyspark_batch?"),
    ("api", {"batch": {**PYSPARK, "state": "RUNNING"}}, "batch-field", "batch.state", "fills in"),
    (
        "api",
        {"batch": {**PYSPARK, "execution_config": {}}},
        "batch-field",
        "batch.execution_config",
        "EnvironmentConfig",
    ),
    ("api", {"batch": [1]}, "wrong-type", "batch", "mapping"),
    ("api", {"batch": {"pyspark_batch": "x.py"}}, "wrong-type", "batch.pyspark_batch", "mapping"),
    # its environment
    ("api", execution(subnetwork_uri="default", service_account="a@b.iam"), "", "", ""),
    ("api", execution(subnetwork_uri="projects/p/regions/us-central1/subnetworks/s"), "", "", ""),
    (
        "api",
        execution(subnetwork_uri="projects/p/regions/us-east1/subnetworks/s"),
        "subnetwork-region",
        f"{EXECUTION}.subnetwork_uri",
        "needs one in us-central1",
    ),
    ("api", execution(subnetwork_uri="x/y"), "subnetwork-form", f"{EXECUTION}.subnetwork_uri", "NAME"),
    ("api", execution(network_uri="n", subnetwork_uri="s"), "network-twice", f"{EXECUTION}.network_uri", "one of them"),
    ("api", execution(kms_key="projects/p/locations/us-central1/keyRings/r/cryptoKeys/k"), "", "", ""),
    (
        "api",
        execution(kms_key="projects/p/locations/europe-west1/keyRings/r/cryptoKeys/k"),
        "kms-key-region",
        f"{EXECUTION}.kms_key",
        "needs one in us-central1",
    ),
    ("api", execution(kms_key="k"), "kms-key-form", f"{EXECUTION}.kms_key", "full name"),
    ("api", execution(staging_bucket="acme"), "", "", ""),
    ("api", execution(staging_bucket="gs://acme/x"), "staging-bucket", f"{EXECUTION}.staging_bucket", "write 'acme'"),
    ("api", execution(idle_ttl="3600s"), "batch-field", f"{EXECUTION}.idle_ttl", "give ttl"),
    ("api", execution(network_tags=["a", "b"]), "", "", ""),
    ("api", execution(network_tags="a"), "wrong-type", f"{EXECUTION}.network_tags", "list of texts"),
    ("api", execution(ttl="3600s"), "", "", ""),
    ("api", execution(ttl={"seconds": 3600}), "", "", ""),
    ("api", execution(ttl="7200s"), "said-twice", f"{EXECUTION}.ttl", "contradicts ttl"),
    ("api", execution(authentication_config={"user_workload_authentication_type": "SERVICE_ACCOUNT"}), "", "", ""),
    (
        "api",
        execution(authentication_config={"user_workload_authentication_type": "ME"}),
        "authentication",
        f"{EXECUTION}.authentication_config.user_workload_authentication_type",
        "SERVICE_ACCOUNT or END_USER_CREDENTIALS",
    ),
    ("api", execution(ttl=None, zone="us-central1-a"), "batch-field", f"{EXECUTION}.zone", "It has service_account"),
    # lifetime
    ("api", {"ttl": 600}, "", "", ""),
    ("api", {"ttl": "1209600s"}, "", "", ""),
    ("api", {"ttl": "599s"}, "ttl-range", "ttl", "nearest is '600s'"),
    ("api", {"ttl": 1209601}, "ttl-range", "ttl", "14 days"),
    ("api", {"ttl": "4h"}, "wrong-type", "ttl", "'14400s'"),
    ("api", {"ttl": None}, "?ttl-missing", "ttl", "4 hours"),
    ("api", {"ttl": None, "runtime_version": "1.2"}, "", "", ""),
    # names and labels
    ("api", {"batch_id": "abcd"}, "", "", ""),
    ("api", {"batch_id": "0" * 63}, "", "", ""),
    ("api", {"batch_id": "abc"}, "batch-id", "batch_id", "4 to 63"),
    ("api", {"batch_id": "abcd\n"}, "batch-id", "batch_id", "'abcd' would do"),
    ("api", {"batch_id": "a" * 64}, "batch-id", "batch_id", "4 to 63"),
    ("api", {"batch_id": "Nightly_ETL"}, "batch-id", "batch_id", "'nightly-etl' would do"),
    ("api", {"labels": {"team": "ml", "empty": ""}}, "", "", ""),
    ("api", {"labels": {f"k{n}": "v" for n in range(25)}}, "", "", ""),
    ("api", {"labels": {f"k{n}": "v" for n in range(26)}}, "too-many-labels", "labels", "25 are left"),
    ("api", {"labels": {"k" * 63: "v" * 63}}, "", "", ""),
    ("api", {"labels": {"k" * 64: "v"}}, "label-key", f"labels.{'k' * 64}", "up to 63"),
    ("api", {"labels": {"cost_center": "x"}}, "label-key", "labels.cost_center", "'cost-center' would do"),
    ("api", {"labels": {"1st": "x"}}, "label-key", "labels.1st", "'v1st' would do"),
    ("api", {"labels": {"team": "2026"}}, "label-value", "labels.team", "'v2026' would do"),
    ("api", {"labels": {"team": "ML"}}, "label-value", "labels.team", "'ml' would do"),
    ("api", {"labels": {"accel-owner": "x"}}, "label-reserved", "labels.accel-owner", "otherwise"),
    ("api", {"labels": {"Accel-owner": "x"}}, "label-key", "labels.Accel-owner", "ending in '-'."),
    ("api", {"labels": {"{{ ds }}": "x"}}, "label-key", "labels.{{ ds }}", "fills no template in a key"),
    # the queue
    ("dws", {"runtime_version": LATEST, "provisioning": "queue", "allocation_timeout": "3600s"}, "", "", ""),
    ("dws", {"runtime_version": LATEST, "provisioning": "default"}, "", "", ""),
    (
        "dws",
        {"runtime_version": LATEST, "provisioning": "spot"},
        "provisioning",
        "provisioning",
        "'queue' or 'default'",
    ),
    ("dws", {"runtime_version": LATEST, "allocation_timeout": 7200}, "", "", ""),
    (
        "dws",
        {"runtime_version": LATEST, "allocation_timeout": 7201},
        "allocation-timeout",
        "allocation_timeout",
        "7200",
    ),
    ("dws", {"runtime_version": LATEST, "allocation_timeout": 0}, "allocation-timeout", "allocation_timeout", "7200"),
    ("dws", {"runtime_version": "2.3", "provisioning": "queue"}, "provisioning-unknown", "provisioning", "take 3.0"),
    (
        "dws",
        {"runtime_version": LATEST, "provisioning": "default", "allocation_timeout": 60},
        "?allocation-timeout-unused",
        "allocation_timeout",
        "queued",
    ),
    (
        "dws",
        {
            "runtime_version": LATEST,
            "provisioning": "queue",
            "properties": {"spark.dataproc.executor.provisioning.mode": "default"},
        },
        "?property-wins",
        "properties.spark.dataproc.executor.provisioning.mode",
        "the property wins",
    ),
    # executors
    ("gpu", {"executors": 2}, "", "", ""),
    ("gpu", {"executors": "5"}, "", "", ""),
    ("gpu", {"executors": 1}, "executors-range", "executors", "nearest is 2"),
    ("gpu", {"executors": "a few"}, "wrong-type", "executors", "whole number"),
    (
        "gpu",
        {"executors": 3, "properties": {"spark.executor.instances": "4"}},
        "said-twice",
        "properties.spark.executor.instances",
        "contradicts executors",
    ),
    # what 3.0 does without
    (
        "versions",
        {"runtime_version": LATEST, "batch": {"spark_r_batch": {"main_r_file_uri": "gs://b/x.R"}}},
        "runtime-lacks",
        "batch.spark_r_batch",
        "no SparkR",
    ),
    (
        "versions",
        {"runtime_version": LATEST, **execution(staging_bucket="acme")},
        "?runtime-lacks",
        f"{EXECUTION}.staging_bucket",
        "no staging bucket",
    ),
    (
        "versions",
        {"runtime_version": LATEST, "batch": {**PYSPARK, **HISTORY}},
        "runtime-lacks",
        "batch.environment_config.peripherals_config.spark_history_server_config",
        "take 2.3",
    ),
    ("versions", {"runtime_version": "2.3", "batch": {**PYSPARK, **HISTORY}}, "", "", ""),
    ("gpu", {"properties": {"spark.a": ["b"]}}, "wrong-type", "properties.spark.a", "a text, a number"),
    ("gpu", {"properties": {7: "b"}}, "wrong-type", "properties.7", "names are texts"),
    ("api", {"ttl": "3600"}, "wrong-type", "ttl", "'3600s'"),
    ("api", {"container_image": 7}, "wrong-type", "container_image", "a text"),
    ("gpu", {"properties": "a=b"}, "wrong-type", "properties", "mapping"),
]


@pytest.mark.parametrize(("source", "parameters", "code", "where", "part"), PARAMETERS)
def test_parameter(source: str, parameters: dict[str, Any], code: str, where: str, part: str) -> None:
    """Each parameter and field of a batch is taken or refused as the API says, and the error tells where it stands."""
    problems = [problem for problem in check(**parameters) if problem.code != "growth-unbounded"]
    assert told(tuple(problems)) == ([code] if code else [])
    assert [problem.where for problem in problems] == ([where] if code else [])
    assert part in " ".join(problem.message for problem in problems)


# Each row: override; part of the message.
OVERRIDES = [
    ({"batch_id": "nightly"}, "the same for all"),
    ({"region": "us-east1"}, "in the placement"),
    ({"machine_type": "g2-standard-8"}, "in the placement"),
    ({"propertys": {}}, "Did you mean properties?"),
    ({"zzz": 1}, "It can differ in allocation_timeout, batch"),
]


@pytest.mark.parametrize(("override", "part"), OVERRIDES)
def test_override(override: dict[str, Any], part: str) -> None:
    """A candidate may differ in what makes up the batch and in nothing else."""
    problems = check(L4, {"placement": A40, **override})
    assert told(problems) == ["override-unknown"]
    assert problems[0].where == f"fallback[0].{next(iter(override))}"
    assert part in problems[0].message


# Each row: version; day; code; part of the message.
RUNTIMES = [
    ("1.1", date(2025, 7, 31), "", ""),
    ("1.1", date(2026, 11, 29), "?runtime-ended", "ended on 2025-07-31, it can be used until 2027-07-31"),
    ("1.1", date(2027, 8, 1), "runtime-ended", "take 2.3"),
    ("1.2", date(2026, 11, 29), "?runtime-ended", "2026-09-30"),
    ("2.0", date(2026, 11, 29), "?runtime-ended", "no longer supported"),
    ("2.1", date(2026, 11, 29), "?runtime-ended", "no longer supported"),
    ("2.2", date(2026, 9, 30), "", ""),
    ("2.2", date(2026, 11, 29), "?runtime-ended", "until 2028-09-30"),
    ("2.3", date(2026, 11, 29), "", ""),
    ("2.3", date(2027, 11, 27), "?runtime-ended", "2027-11-26"),
    ("3.0", date(2026, 11, 29), "", ""),
    ("3.0", date(2027, 2, 1), "?runtime-ended", "2027-01-31"),
    (None, date(2026, 11, 29), "", ""),
    ("3.1", date(2026, 11, 29), "?runtime-unknown", "rules of 3.0"),
    ("2.4", date(2026, 11, 29), "?runtime-unknown", "rules of 2.3"),
    ("1.0", date(2026, 11, 29), "runtime-unknown", "There is no runtime 1.0"),
    ("9.9", date(2026, 11, 29), "runtime-unknown", "There is no runtime 9.9"),
    ("2.3.39", date(2026, 11, 29), "runtime-form", "write 2.3"),
    ("latest", date(2026, 11, 29), "runtime-form", "It is one of 1.1"),
    (2.3, date(2026, 11, 29), "wrong-type", "the text '2.3'"),
]


@pytest.mark.parametrize(("version", "today", "code", "part"), RUNTIMES)
def test_runtime(version: Any, today: date, code: str, part: str) -> None:
    """A runtime whose support has ended warns, one that cannot be used any more or never was is refused."""
    problems = check(runtime_version=version, today=today)
    assert told(problems) == ([code] if code else [])
    assert part in " ".join(problem.message for problem in problems)


PARAMETER_NAMES = SPARK_OVERRIDABLE | {"batch_id"}
NAMES = {name for fields in TABLES.messages.values() for name in fields} | {"seconds"}
JUNK = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=9), st.binary(max_size=3)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.one_of(st.text(max_size=9), st.integers()), inner, max_size=3),
        st.dictionaries(st.sampled_from(sorted(NAMES)), inner, max_size=3),
    ),
    max_leaves=9,
)


@settings(max_examples=300)
@given(st.dictionaries(st.sampled_from(sorted(PARAMETER_NAMES)), JUNK), st.dictionaries(st.text(max_size=9), JUNK))
def test_junk_is_answered(parameters: dict[str, Any], overrides: dict[Any, Any]) -> None:
    """Whatever the parameters and a candidate's overrides hold, the answer is a list of problems."""
    fallback = {**overrides, **parameters, "placement": "a100-40 in us-central1"}
    for problem in check(L4, fallback, **parameters):
        assert problem.message.endswith((".", "?"))


@given(st.dictionaries(st.sampled_from(sorted(TABLES.properties)), st.one_of(st.text(max_size=9), st.integers())))
def test_any_property_is_answered(properties: dict[str, Any]) -> None:
    """Whatever the properties say, the answer is a list of problems, each about a property or a parameter."""
    for place in (L4, A80, CPU):
        for problem in check(place, runtime_version="2.3", properties=properties):
            assert problem.where.partition(".")[0] in {"placement", "properties", "executors"}
