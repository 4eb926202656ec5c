"""The command on Google's page about GPUs for Spark batches, as it stands there, given to our operator.

Source: https://cloud.google.com/dataproc-serverless/docs/guides/gpus-serverless, read 2026-11.
"""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow_accel_provider.core.catalog import load_catalog
from airflow_accel_provider.core.checking import check_request
from tests.integration.batches import BUCKET, CREATE, etl_run
from tests.integration.local_google import PROJECT

if TYPE_CHECKING:
    from tests.integration.local_google import LocalGoogle

SCRIPT = Path(__file__).parents[1] / "contract" / "batches" / "google_gpus_page.txt"
FLAGS = (
    "spark.dataproc.executor.compute.tier=premium,spark.dataproc.executor.disk.tier=premium,"
    "spark.dataproc.executor.resource.accelerator.type=l4,spark.executor.instances=5,"
    "spark.dataproc.driverEnv.LANG=C.UTF-8,spark.executorEnv.LANG=C.UTF-8,"
    "spark.shuffle.manager=com.nvidia.spark.rapids.RapidsShuffleManager"
)
COMMAND: dict[str, Any] = {
    "placement": "l4 in us-central1",
    "batch": {"pyspark_batch": {"main_python_file_uri": f"gs://{BUCKET}/jobs/test-py-spark-gpu.py"}},
    "runtime_version": "1.1",
    "properties": dict(flag.split("=", 1) for flag in FLAGS.split(",")),
}


def test_the_pages_command_is_right() -> None:
    """The command has no error, and all its properties would be sent."""
    request = {"operator": "DataprocGpuBatchOperator", **COMMAND}
    answer = check_request(request, catalog=load_catalog(), today=date(2026, 11, 29))
    assert {problem.code for problem in answer.problems} == {"runtime-ended", "growth-unbounded"}
    assert answer.is_ok
    assert set(FLAGS.split(",")) <= set(answer.rendered)


def test_the_pages_command_counts_five_gpus(google: LocalGoogle) -> None:
    """The page's script runs as one batch on runtime 1.1, finds the five GPUs of its executors, and they are proven."""
    google.bucket(BUCKET).blob("jobs/test-py-spark-gpu.py").upload_from_filename(SCRIPT)
    since = google.mark()
    value = etl_run(google, ttl=None, proof_grace=300, **COMMAND).run()
    assert (value["state"], value["placement"]) == ("done", COMMAND["placement"])
    assert (value["proof"]["status"], value["proof"]["accelerator"], value["proof"]["count"]) == ("seen", "l4", 5)
    assert value["usage"]["gpu_seconds"] > 0
    assert len(google.calls(CREATE, since=since)) == 1
    path = f"projects/{PROJECT}/locations/us-central1/batches/{value['job_id']}"
    batch = google.session().request("dataproc", "GET", path)
    assert batch["runtimeConfig"]["version"].startswith("1.1.")
    assert "Total accelerators: 5\n" in _output(google, batch)


def _output(google: LocalGoogle, batch: dict[str, Any]) -> str:
    name, _, path = batch["runtimeInfo"]["outputUri"].removeprefix("gs://").partition("/")
    text: str = google.bucket(name).blob(f"{path}.000000000").download_as_text()
    return text
