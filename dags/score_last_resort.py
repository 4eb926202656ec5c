"""Score a day's digits on a GPU if there is one, and on CPUs if there is none: late is better than never.

CPUs come last in ``fallback`` and need neither an accelerator's quota nor its image. A night on which even they are out
of stock is tried again twice, at growing intervals; a pipeline that raises is not, since it would raise again.
"""

from __future__ import annotations

from airflow.sdk import Param, dag

from airflow_accel_provider.operators.beam import BeamGpuPipelineOperator
from airflow_accel_provider.retry import AcceleratorRetryPolicy
from digits import BUCKET, FIRST_DAY, IMAGES, MODEL, PIPELINE, check, prepare

PREDICTIONS = "digits/last-resort-predictions/{day}.jsonl"


@dag(
    schedule="@daily",
    start_date=FIRST_DAY,
    catchup=False,
    params={"bucket": Param(BUCKET, type="string", description="Bucket for images, model and predictions")},
    doc_md=__doc__,
)
def score_last_resort() -> None:
    """Prepare, score and check one day."""
    score = BeamGpuPipelineOperator(
        task_id="score",
        project_id="acme-ml-prod",
        placement="nvidia-l4 on g2-standard-8 in us-central1",
        fallback=[
            "nvidia-tesla-t4 on n1-standard-8 in us-central1",
            {
                "placement": "cpu on n2-standard-8 in us-central1",
                "sdk_container_image": "us-docker.pkg.dev/acme-ml-prod/beam/score-digits-cpu:2.77.0",
                "max_num_workers": 8,
            },
        ],
        py_file=str(PIPELINE),
        sdk_container_image="us-docker.pkg.dev/acme-ml-prod/beam/score-digits:2.77.0",
        num_workers=1,
        max_num_workers=2,
        retries=2,
        retry_policy=AcceleratorRetryPolicy(),
        pipeline_options={
            "temp_location": "gs://{{ params.bucket }}/tmp",
            "model": f"gs://{{{{ params.bucket }}}}/{MODEL}",
            "input": "gs://{{ params.bucket }}/" + IMAGES.format(day="{{ ds }}"),
            "output": "gs://{{ params.bucket }}/" + PREDICTIONS.format(day="{{ ds }}"),
        },
    )
    day = prepare()
    day >> score >> check(day, PREDICTIONS)


score_last_resort()
