"""Score a day's digits in several regions at once, as soon as one of them has room.

``room`` waits in the triggerer until a region has quota. ``split`` cuts the day into one part a region, and ``score``
is mapped over the parts: each begins in its own region and falls back to the others.
"""

from __future__ import annotations

from typing import Any

from airflow.sdk import Param, dag, get_current_context, task

from airflow_accel_provider.operators.beam import BeamGpuPipelineOperator
from airflow_accel_provider.sensors.quota import AcceleratorQuotaSensor
from digits import BUCKET, FIRST_DAY, IMAGES, MODEL, PIPELINE, check, prepare

REGIONS = ("us-central1", "europe-west4", "asia-southeast1")
PLACES = tuple(f"nvidia-l4 on g2-standard-8 in {region}" for region in REGIONS)
PARTS = "digits/parts/{day}/{n}.jsonl"
PREDICTIONS = "digits/region-predictions/{day}/"


@task
def split(day: str) -> list[dict[str, Any]]:
    """Cut the day's images into as many parts as there are places; return what each mapped task is to be told."""
    from airflow.providers.google.cloud.hooks.gcs import GCSHook

    gcs, bucket = GCSHook(), get_current_context()["params"]["bucket"]
    lines = gcs.download(bucket_name=bucket, object_name=IMAGES.format(day=day)).decode().splitlines(keepends=True)
    told = []
    for n, place in enumerate(PLACES):
        part = PARTS.format(day=day, n=n)
        gcs.upload(bucket_name=bucket, object_name=part, data="".join(lines[n :: len(PLACES)]))
        others = [other for other in PLACES if other != place]
        options = {
            "temp_location": f"gs://{bucket}/work",
            "model": f"gs://{bucket}/{MODEL}",
            "input": f"gs://{bucket}/{part}",
            "output": f"gs://{bucket}/{PREDICTIONS.format(day=day)}{n}.jsonl",
        }
        told.append({"placement": place, "fallback": others, "pipeline_options": options})
    return told


@dag(
    schedule="@daily",
    start_date=FIRST_DAY,
    catchup=False,
    params={"bucket": Param(BUCKET, type="string", description="Bucket for images, model and predictions")},
    doc_md=__doc__,
)
def score_regions() -> None:
    """Wait for room, split, score and check one day."""
    room = AcceleratorQuotaSensor(
        task_id="room",
        project_id="acme-ml-prod",
        placements=list(PLACES),
        num_workers=1,
        poke_interval=60,
        timeout=6 * 60 * 60,
    )
    day = prepare()
    parts = split(day)
    score = BeamGpuPipelineOperator.partial(
        task_id="score",
        project_id="acme-ml-prod",
        py_file=str(PIPELINE),
        sdk_container_image="us-docker.pkg.dev/acme-ml-prod/beam/score-digits:2.77.0",
        num_workers=1,
        max_num_workers=1,
    ).expand_kwargs(parts)
    room >> parts
    score >> check(day, PREDICTIONS)


score_regions()
