"""Summarise a night's bicycle rides with Spark on L4 GPUs, on A100s or in another region when there are none.

``prepare`` makes the day's rides (240,000 lines of CSV), the list of stations and the program, and puts them into a
bucket; ``summarise`` runs ``pipelines/summarise_rides.py`` as a batch of Managed Service for Apache Spark; ``check``
counts the same in plain Python and compares.
"""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

from airflow.sdk import Param, dag, get_current_context, task

from airflow_accel_provider.operators.dataproc import DataprocGpuBatchOperator
from digits import FIRST_DAY, day_of_run, open_bucket
from rides import rides_csv, stations_csv, summary_of

log = logging.getLogger(__name__)

PROGRAM = Path(__file__).parent / "pipelines" / "summarise_rides.py"
PROGRAM_NAME = "rides/summarise_rides.py"
STATIONS = "rides/stations.csv"
RIDES = "rides/{day}.csv"
SUMMARY = "rides/summary/{day}/"


@task
def prepare() -> str:
    """Put the day's rides, the stations and the program into the bucket; return the run's own day."""
    context = get_current_context()
    day = day_of_run(context.get("logical_date"))
    bucket = context["params"]["bucket"]
    gcs = open_bucket(bucket)
    made = {RIDES.format(day=day): rides_csv(day), STATIONS: stations_csv(), PROGRAM_NAME: PROGRAM.read_text()}
    for name, text in made.items():
        gcs.upload(bucket_name=bucket, object_name=name, data=text)
    return day


@task
def check(day: str) -> dict[str, Any]:
    """Fail unless Spark found what plain Python finds; return a few figures."""
    from airflow.providers.google.cloud.hooks.gcs import GCSHook

    gcs, bucket = GCSHook(), get_current_context()["params"]["bucket"]

    def text_of(name: str) -> str:
        content: bytes = gcs.download(bucket_name=bucket, object_name=name)
        return content.decode()

    parts = [name for name in gcs.list(bucket, prefix=SUMMARY.format(day=day)) if name.endswith(".json")]
    rows = [json.loads(line) for part in parts for line in text_of(part).splitlines()]
    found = {(row["district"], row["hour"]): (row["rides"], row["minutes"]) for row in rows}
    wanted = summary_of(text_of(RIDES.format(day=day)), text_of(STATIONS))
    if found != wanted or len(rows) != len(wanted):
        wrong = sorted(key for key in found.keys() | wanted.keys() if found.get(key) != wanted.get(key))
        raise ValueError(f"Spark and Python disagree on {len(wrong)} of {len(wanted)} sums, such as {wrong[:3]}.")
    busiest = max(rows, key=lambda row: int(row["rides"]))
    summary = {"date": day, "rides": sum(rides for rides, _ in found.values()), "sums": len(rows), "busiest": busiest}
    log.info("%s", json.dumps(summary))
    return summary


@dag(
    schedule="@daily",
    start_date=FIRST_DAY,
    catchup=False,
    params={"bucket": Param("acme-ml-rides", type="string", description="Bucket for rides, program and summary")},
    doc_md=__doc__,
)
def rides_by_district() -> None:
    """Prepare, summarise and check one day."""
    summarise = DataprocGpuBatchOperator(
        task_id="summarise",
        project_id="acme-ml-prod",
        placement="l4 in us-central1",
        fallback=["a100-40 in us-central1", "l4 in europe-west4"],
        runtime_version="2.3",
        executors=2,
        ttl="3600s",
        batch={
            "pyspark_batch": {
                "main_python_file_uri": f"gs://{{{{ params.bucket }}}}/{PROGRAM_NAME}",
                "args": [
                    "gs://{{ params.bucket }}/" + RIDES.format(day="{{ ds }}"),
                    f"gs://{{{{ params.bucket }}}}/{STATIONS}",
                    "gs://{{ params.bucket }}/" + SUMMARY.format(day="{{ ds }}"),
                ],
            }
        },
        # Without a bound a batch may grow to a thousand executors.
        properties={"spark.dynamicAllocation.maxExecutors": "4"},
    )
    day = prepare()
    day >> summarise >> check(day)


rides_by_district()
