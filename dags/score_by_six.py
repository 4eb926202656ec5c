"""Score the digits every night in Paris and have them by six, with one job of at most two GPUs at a time.

The schedule is in local time, summer and winter. Of these tasks only one runs at a time, also in a backfill. The pool
``gpu`` is for all that the project runs on GPUs; a task that waits in the triggerer has its GPUs, so the pool must
count it::

    airflow pools set gpu 2 "Jobs on GPUs" --include-deferred

If a run is not over at six, ``say_late`` is called; in a backfill of past nights it is called at once. It is in a
module of its own, see there.
"""

from __future__ import annotations

from datetime import timedelta

import pendulum
from airflow.sdk import AsyncCallback, CronTriggerTimetable, DeadlineAlert, DeadlineReference, Param, dag

from airflow_accel_provider.operators.beam import BeamGpuPipelineOperator
from digits import BUCKET, DAYS, IMAGES, MODEL, PIPELINE, check, prepare
from late import say_late

PARIS = "Europe/Paris"
PREDICTIONS = "digits/nightly-predictions/{day}.jsonl"


@dag(
    # The night's first hours belong to the same date in Paris and in UTC.
    schedule=CronTriggerTimetable("0 3 * * *", timezone=PARIS),
    start_date=pendulum.parse(DAYS[0], tz=PARIS),
    catchup=False,
    deadline=DeadlineAlert(
        # With this timetable a run's logical date is the time it is to start at: three in the morning.
        reference=DeadlineReference.DAGRUN_LOGICAL_DATE,
        interval=timedelta(hours=3),
        callback=AsyncCallback(say_late, kwargs={"text": "The digits are not scored by six."}),
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
