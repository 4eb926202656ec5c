"""Score the digits every night in Paris and have them by six, with at most two GPUs at a time.

The schedule is in local time, summer and winter. The pool ``gpu`` (``airflow pools set gpu 2 "GPUs of the night"``) is
shared with whatever else the project runs on GPUs, and of these tasks only one runs at a time, also in a backfill. If a
run is not over three hours after it was queued, ``say_late`` is called.
"""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import Any

import pendulum
from airflow.sdk import AsyncCallback, CronTriggerTimetable, DeadlineAlert, DeadlineReference, Param, dag

from airflow_accel_provider.operators.beam import BeamGpuPipelineOperator
from digits import BUCKET, DAYS, IMAGES, MODEL, PIPELINE, check, prepare

log = logging.getLogger(__name__)

PARIS = "Europe/Paris"
PREDICTIONS = "digits/nightly-predictions/{day}.jsonl"


async def say_late(text: str, **_context: Any) -> None:
    """Say that the predictions will not be there in time; a team would page somebody."""
    log.warning("%s", text)


@dag(
    # The night's first hours belong to the same date in Paris and in UTC.
    schedule=CronTriggerTimetable("0 3 * * *", timezone=PARIS),
    start_date=pendulum.parse(DAYS[0], tz=PARIS),
    catchup=False,
    deadline=DeadlineAlert(
        reference=DeadlineReference.DAGRUN_QUEUED_AT,
        interval=timedelta(hours=3),
        callback=AsyncCallback(say_late, kwargs={"text": "The digits of the night will not be scored by six."}),
    ),
    params={"bucket": Param(BUCKET, type="string", description="Bucket for images, model and predictions")},
    doc_md=__doc__,
)
def score_by_six() -> None:
    """Prepare, score and check one day."""
    score = BeamGpuPipelineOperator(
        task_id="score",
        pool="gpu",
        max_active_tis_per_dag=1,
        project_id="acme-ml-prod",
        placement="nvidia-l4 on g2-standard-8 in europe-west4",
        fallback=["nvidia-l4 on g2-standard-8 in europe-west1"],
        py_file=str(PIPELINE),
        sdk_container_image="europe-docker.pkg.dev/acme-ml-prod/beam/score-digits:2.77.0",
        num_workers=1,
        max_num_workers=2,
        pipeline_options={
            "temp_location": "gs://{{ params.bucket }}/tmp",
            "model": f"gs://{{{{ params.bucket }}}}/{MODEL}",
            "input": "gs://{{ params.bucket }}/" + IMAGES.format(day="{{ ds }}"),
            "output": "gs://{{ params.bucket }}/" + PREDICTIONS.format(day="{{ ds }}"),
        },
    )
    day = prepare()
    day >> score >> check(day, PREDICTIONS)


score_by_six()
