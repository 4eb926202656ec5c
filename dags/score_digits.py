"""Score a day's images of handwritten digits on a GPU, wherever there is one.

Three days of images are scored, each day by its own run: ``prepare`` puts the day's images and a model into a bucket,
``score`` runs the Beam pipeline ``pipelines/score_digits.py`` on Dataflow, in the first of three places that has stock
and quota, and ``check`` compares the predictions with what people read. Start it with a backfill from 2026-03-02 to
2026-03-04.
"""

from __future__ import annotations

import json
import logging
import pickle
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pendulum
from airflow.sdk import Param, dag, get_current_context, task

from airflow_accel_provider.operators.beam import BeamGpuPipelineOperator

if TYPE_CHECKING:
    from collections.abc import Iterator

log = logging.getLogger(__name__)

PIPELINE = Path(__file__).parent / "pipelines" / "score_digits.py"
FIRST_DAY = pendulum.datetime(2026, 3, 2, tz="UTC")
DAYS = tuple(FIRST_DAY.add(days=n).to_date_string() for n in range(3))
IMAGES_A_DAY = 400
TRAINING_IMAGES = 597
WANTED_ACCURACY = 0.9

# Object names in the bucket; Airflow and the Python below fill them with the same day.
MODEL = "digits/model.pickle"
IMAGES = "digits/images/{day}.jsonl"
PREDICTIONS = "digits/predictions/{day}.jsonl"


@dag(
    schedule="@daily",
    start_date=FIRST_DAY,
    catchup=False,
    params={"bucket": Param("acme-ml-digits", type="string", description="Bucket for images, model and predictions")},
    doc_md=__doc__,
)
def score_digits() -> None:
    """Prepare, score and check one day."""

    @task
    def prepare() -> str:
        """Put the model and all days' images into the bucket, unless they are there; return the run's own day."""
        context = get_current_context()
        day = day_of_run(context.get("logical_date"))
        wanted = [MODEL, *(IMAGES.format(day=each) for each in DAYS)]
        put_missing(bucket=context["params"]["bucket"], names=wanted)
        return day

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

    @task
    def check(day: str) -> dict[str, Any]:
        """Fail unless the day's predictions are complete and good; return a summary."""
        from airflow.providers.google.cloud.hooks.gcs import GCSHook

        bucket = get_current_context()["params"]["bucket"]
        text = GCSHook().download(bucket_name=bucket, object_name=PREDICTIONS.format(day=day)).decode()
        summary = summarise(day, [json.loads(line) for line in text.splitlines()])
        log.info("%s", json.dumps(summary))
        return summary

    day = prepare()
    day >> score >> check(day)


def day_of_run(logical_date: pendulum.DateTime | None) -> str:
    """Return the day a run is to score; raise ``ValueError`` if it has none, or one without images."""
    days = f"one of {', '.join(DAYS)}"
    if logical_date is None:
        raise ValueError(
            "This run has no logical date, so there is no day to score. "
            f"Trigger score_digits with a logical date, {days}, or start a backfill over these days."
        )
    day = pendulum.instance(logical_date).to_date_string()
    if day not in DAYS:
        raise ValueError(f"There are no images for {day}. Give the run a logical date that is {days}.")
    return day


def put_missing(bucket: str, names: list[str]) -> None:
    """Upload those of the wanted objects that the bucket lacks; make the bucket if need be.

    What is there stays as it is, so it does no harm that several days' runs do this at the same time.
    """
    from airflow.providers.google.cloud.hooks.gcs import GCSHook
    from google.api_core.exceptions import Conflict

    gcs = GCSHook()
    with suppress(Conflict):  # it is there, or another day's run was faster
        gcs.get_conn().create_bucket(bucket)
    missing = [name for name in names if not gcs.exists(bucket_name=bucket, object_name=name)]
    if missing:
        for name, content in make_objects():
            if name in missing:
                gcs.upload(bucket_name=bucket, object_name=name, data=content)


def make_objects() -> Iterator[tuple[str, bytes]]:
    """Yield name and content of the model and of each day's images, the same at each call."""
    from sklearn.datasets import load_digits
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import train_test_split

    images, labels = load_digits(return_X_y=True)
    training, scoring = train_test_split(
        range(len(labels)), train_size=TRAINING_IMAGES, stratify=labels, random_state=0
    )
    model = LogisticRegression(max_iter=2000).fit(images[training], labels[training])
    yield MODEL, pickle.dumps(model)
    for n, day in enumerate(DAYS):
        part = scoring[n * IMAGES_A_DAY : (n + 1) * IMAGES_A_DAY]
        records = [{"id": f"digit-{i:04}", "pixels": images[i].tolist(), "label": int(labels[i])} for i in part]
        yield IMAGES.format(day=day), "".join(json.dumps(record) + "\n" for record in records).encode()


def summarise(day: str, predictions: list[dict[str, Any]]) -> dict[str, Any]:
    """Return date, count, accuracy and first predictions; raise ``ValueError`` if some are missing or too few right."""
    predictions = sorted(predictions, key=lambda each: each["id"])
    count = len({each["id"] for each in predictions})
    if count != IMAGES_A_DAY or len(predictions) != count:
        raise ValueError(
            f"{day} has {len(predictions)} predictions for {count} images, not one for each of {IMAGES_A_DAY}."
        )
    accuracy = sum(each["prediction"] == each["label"] for each in predictions) / count
    if accuracy < WANTED_ACCURACY:
        raise ValueError(f"Only {accuracy:.1%} of the predictions for {day} are right; {WANTED_ACCURACY:.0%} must be.")
    return {"date": day, "count": count, "accuracy": accuracy, "first": predictions[:5]}


score_digits()
