"""The digits that the examples score: three days of images, a model, and the two tasks around every scoring.

``prepare`` puts what a day needs into a bucket, ``check`` compares the predictions with what people read.
"""

from __future__ import annotations

import json
import logging
import pickle
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pendulum
from airflow.sdk import get_current_context, task

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from airflow.providers.google.cloud.hooks.gcs import GCSHook

log = logging.getLogger(__name__)

PIPELINE = Path(__file__).parent / "pipelines" / "score_digits.py"
BUCKET = "acme-ml-digits"
FIRST_DAY = pendulum.datetime(2026, 3, 2, tz="UTC")
DAYS = tuple(FIRST_DAY.add(days=n).to_date_string() for n in range(3))
IMAGES_A_DAY = 400
TRAINING_IMAGES = 597
WANTED_ACCURACY = 0.9

# Object names in the bucket; Airflow and the Python below fill them with the same day.
MODEL = "digits/model.pickle"
IMAGES = "digits/images/{day}.jsonl"


@task
def prepare(also: Mapping[str, str] | None = None) -> str:
    """Put the model, all days' images and ``also`` (texts by name) into the bucket; return the run's own day.

    What is there already stays as it is.
    """
    context = get_current_context()
    day = day_of_run(context.get("logical_date"))
    made = {name: text.encode() for name, text in (also or {}).items()}
    put_missing(bucket=context["params"]["bucket"], made=made)
    return day


@task
def check(day: str, pattern: str) -> dict[str, Any]:
    """Fail unless the day's predictions, in all objects whose name begins like this, are complete and good.

    Returns a summary.
    """
    from airflow.providers.google.cloud.hooks.gcs import GCSHook

    gcs, bucket = GCSHook(), get_current_context()["params"]["bucket"]
    names = gcs.list(bucket, prefix=pattern.format(day=day))
    text = "".join(gcs.download(bucket_name=bucket, object_name=name).decode() for name in names)
    summary = summarise(day, [json.loads(line) for line in text.splitlines()])
    log.info("%s", json.dumps(summary))
    return summary


def day_of_run(logical_date: pendulum.DateTime | None) -> str:
    """Return the day a run is to score; raise ``ValueError`` if it has none, or one without images."""
    days = f"one of {', '.join(DAYS)}"
    if logical_date is None:
        raise ValueError(
            "This run has no logical date, so there is no day to score. "
            f"Trigger it with a logical date, {days}, or start a backfill over these days."
        )
    day = pendulum.instance(logical_date).to_date_string()
    if day not in DAYS:
        raise ValueError(f"There are no images for {day}. Give the run a logical date that is {days}.")
    return day


def put_missing(bucket: str, made: Mapping[str, bytes]) -> None:
    """Upload the model, the images and what else was made, as far as the bucket lacks it; make the bucket if need be.

    What is there stays as it is, so it does no harm that several days' runs do this at the same time.
    """
    gcs = open_bucket(bucket)
    wanted = (MODEL, *(IMAGES.format(day=each) for each in DAYS), *made)
    missing = [name for name in wanted if not gcs.exists(bucket_name=bucket, object_name=name)]
    if missing:
        for name, content in (*made.items(), *make_objects()):
            if name in missing:
                gcs.upload(bucket_name=bucket, object_name=name, data=content)


def open_bucket(bucket: str) -> GCSHook:
    """Return a hook, and see to it that the bucket exists."""
    from airflow.providers.google.cloud.hooks.gcs import GCSHook
    from google.api_core.exceptions import Conflict

    gcs = GCSHook()
    with suppress(Conflict):  # it is there, or another day's run was faster
        gcs.get_conn().create_bucket(bucket)
    return gcs


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
