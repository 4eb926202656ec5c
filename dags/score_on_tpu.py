"""Score a day's digits on reserved TPUs, on others when the reservation is taken, and on a GPU when there are none.

A reservation is capacity that nobody else gets: no quota is asked for it, and its zone is the job's. Google tells the
projects that it lets use one which service option selects it; that goes through ``service_options`` as it is.
"""

from __future__ import annotations

from airflow.sdk import Param, dag

from airflow_accel_provider.operators.beam import BeamTpuPipelineOperator
from digits import BUCKET, FIRST_DAY, IMAGES, MODEL, PIPELINE, check, prepare

RESERVATION = "projects/acme-ml-prod/zones/us-east5-b/reservations/tpu-night"
IMAGE = "us-docker.pkg.dev/acme-ml-prod/beam/score-digits"
PREDICTIONS = "digits/tpu-predictions/{day}.jsonl"


@dag(
    schedule="@daily",
    start_date=FIRST_DAY,
    catchup=False,
    params={"bucket": Param(BUCKET, type="string", description="Bucket for images, model and predictions")},
    doc_md=__doc__,
)
def score_on_tpu() -> None:
    """Prepare, score and check one day."""
    score = BeamTpuPipelineOperator(
        task_id="score",
        project_id="acme-ml-prod",
        placement="tpu-v6e-slice:2x2 on ct6e-standard-4t in us-east5-b",
        reservation=RESERVATION,
        service_options=[f"reservation={RESERVATION}"],
        fallback=[
            {
                "placement": "tpu-v5-lite-podslice:2x2 on ct5lp-hightpu-4t in us-west4-a",
                "reservation": None,
                "service_options": [],
                # The environment of a TPU image is that of one type and topology.
                "sdk_container_image": f"{IMAGE}-v5e-4:2.77.0",
            },
            {
                "placement": "nvidia-l4 on g2-standard-8 in us-central1",
                "reservation": None,
                "service_options": [],
                "sdk_container_image": f"{IMAGE}:2.77.0",
            },
        ],
        py_file=str(PIPELINE),
        sdk_container_image=f"{IMAGE}-v6e-4:2.77.0",
        num_workers=1,
        max_num_workers=1,
        # The machines of slices have more CPUs than one device can be fed from.
        number_of_worker_harness_threads=50,
        pipeline_options={
            "temp_location": "gs://{{ params.bucket }}/tmp",
            "model": f"gs://{{{{ params.bucket }}}}/{MODEL}",
            "input": "gs://{{ params.bucket }}/" + IMAGES.format(day="{{ ds }}"),
            "output": "gs://{{ params.bucket }}/" + PREDICTIONS.format(day="{{ ds }}"),
        },
    )
    day = prepare()
    day >> score >> check(day, PREDICTIONS)


score_on_tpu()
