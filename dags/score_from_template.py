"""Score a day's digits from a Flex Template, in half precision where only a T4 is to be had.

A Flex Template is an image that holds the pipeline, and a specification in a bucket that names it. ``prepare`` writes
the specification here; elsewhere a team's CI does (``gcloud dataflow flex-template build``). A candidate may differ in
its parameters.
"""

from __future__ import annotations

import json

from airflow.sdk import Param, dag

from airflow_accel_provider.operators.beam import BeamGpuPipelineOperator
from digits import BUCKET, FIRST_DAY, IMAGES, MODEL, check, prepare

TEMPLATE_IMAGE = "us-docker.pkg.dev/acme-ml-prod/templates/score-digits:1"
TEMPLATE = "templates/score-digits.json"
SPECIFICATION = {
    "image": TEMPLATE_IMAGE,
    "sdkInfo": {"language": "PYTHON"},
    "metadata": {
        "name": "Score digits",
        "parameters": [
            {"name": "input", "label": "Images", "helpText": "JSON lines to score; may be a glob"},
            {"name": "output", "label": "Predictions", "helpText": "The one file to write"},
            {"name": "model", "label": "Model", "helpText": "A pickled scikit-learn estimator"},
            {"name": "dtype", "label": "Precision", "helpText": "float64, float32 or float16", "isOptional": True},
        ],
    },
}
PREDICTIONS = "digits/template-predictions/{day}.jsonl"


@dag(
    schedule="@daily",
    start_date=FIRST_DAY,
    catchup=False,
    params={"bucket": Param(BUCKET, type="string", description="Bucket for images, model and predictions")},
    doc_md=__doc__,
)
def score_from_template() -> None:
    """Prepare, score and check one day."""
    score = BeamGpuPipelineOperator(
        task_id="score",
        project_id="acme-ml-prod",
        placement="nvidia-l4 on g2-standard-8 in us-central1",
        fallback=[
            {
                "placement": "nvidia-tesla-t4 on n1-standard-8 in us-central1",
                "parameters": {"dtype": "float16"},
            },
        ],
        flex_template=f"gs://{{{{ params.bucket }}}}/{TEMPLATE}",
        sdk_container_image="us-docker.pkg.dev/acme-ml-prod/beam/score-digits:2.77.0",
        num_workers=1,
        max_num_workers=2,
        pipeline_options={"temp_location": "gs://{{ params.bucket }}/tmp"},
        parameters={
            "model": f"gs://{{{{ params.bucket }}}}/{MODEL}",
            "input": "gs://{{ params.bucket }}/" + IMAGES.format(day="{{ ds }}"),
            "output": "gs://{{ params.bucket }}/" + PREDICTIONS.format(day="{{ ds }}"),
        },
    )
    day = prepare({TEMPLATE: json.dumps(SPECIFICATION)})
    day >> score >> check(day, PREDICTIONS)


score_from_template()
