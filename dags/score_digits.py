"""Score a day's images of handwritten digits on a GPU, wherever there is one.

Three days of images are scored, each day by its own run: ``prepare`` puts the day's images and a model into a bucket,
``score`` runs the Beam pipeline ``pipelines/score_digits.py`` on Dataflow, in the first of three places that has stock
and quota, and ``check`` compares the predictions with what people read. Start it with a backfill from 2026-03-02 to
2026-03-04.
"""

from __future__ import annotations

from airflow.sdk import Param, dag

from airflow_accel_provider.operators.beam import BeamGpuPipelineOperator
from digits import BUCKET, FIRST_DAY, IMAGES, MODEL, PIPELINE, check, prepare

PREDICTIONS = "digits/predictions/{day}.jsonl"


@dag(
    schedule="@daily",
    start_date=FIRST_DAY,
    catchup=False,
    params={"bucket": Param(BUCKET, type="string", description="Bucket for images, model and predictions")},
    doc_md=__doc__,
)
def score_digits() -> None:
    """Prepare, score and check one day."""
    score = BeamGpuPipelineOperator(
        task_id="score",
        project_id="acme-ml-prod",
        placement="nvidia-l4 on g2-standard-8 in us-central1",
        fallback=[
            "nvidia-l4 on g2-standard-8 in europe-west4",
            "nvidia-tesla-t4 on n1-standard-8 in us-central1",
        ],
        py_file=str(PIPELINE),
        # Holds CUDA and scikit-learn, which Beam's own image does not.
        sdk_container_image="us-docker.pkg.dev/acme-ml-prod/beam/score-digits:2.77.0",
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


score_digits()
