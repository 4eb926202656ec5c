"""Score images of handwritten digits with a scikit-learn model: the Beam pipeline of the DAG ``score_digits``.

Each input line is a JSON object with ``id``, ``pixels`` (64 brightnesses from 0 to 16, row by row) and ``label`` (the
digit a person read); each output line is one with ``id``, ``label`` and ``prediction``. Paths may be local, too::

    python score_digits.py --input images.jsonl --output predictions.jsonl --model model.pickle
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import apache_beam as beam
import numpy as np
from apache_beam.ml.inference.base import KeyedModelHandler, RunInference
from apache_beam.ml.inference.sklearn_inference import SklearnModelHandlerNumpy
from apache_beam.options.pipeline_options import PipelineOptions

if TYPE_CHECKING:
    from argparse import ArgumentParser

    from apache_beam.ml.inference.base import PredictionResult

PIXELS = 64

Key = tuple[str, int]
"""The image's id and its label: what is carried past the model."""


class ScoreOptions(PipelineOptions):
    """Where the pipeline reads and writes."""

    @classmethod
    def _add_argparse_args(cls, parser: ArgumentParser) -> None:
        parser.add_argument("--input", required=True, help="JSON lines to score; may be a glob")
        parser.add_argument("--output", required=True, help="the one file to write")
        parser.add_argument("--model", required=True, help="a pickled scikit-learn estimator")
        parser.add_argument("--dtype", default="float64", choices=("float64", "float32", "float16"), help="precision")


def parse(line: str, dtype: str) -> tuple[Key, np.ndarray]:
    """Return key and pixels, in a precision, of one input line; raise ``ValueError`` naming what is wrong with it."""
    try:
        record = json.loads(line)
        key = (str(record["id"]), int(record["label"]))
        pixels = np.array(record["pixels"], dtype=dtype)
    except (TypeError, KeyError, ValueError) as error:
        raise ValueError(f"Not an image record: {line[:80]!r} ({type(error).__name__}: {error})") from error
    if pixels.shape != (PIXELS,):
        raise ValueError(f"Image {key[0]} has {pixels.size} pixels, not {PIXELS}.")
    return key, pixels


def write_line(keyed: tuple[Key, PredictionResult]) -> str:
    """Return the output line of one scored image."""
    (identity, label), result = keyed
    return json.dumps({"id": identity, "label": label, "prediction": int(result.inference)})


def main() -> None:
    """Read, score and write until the runner says it is done."""
    options = PipelineOptions()
    paths = options.view_as(ScoreOptions)
    model = KeyedModelHandler(SklearnModelHandlerNumpy(model_uri=paths.model))
    with beam.Pipeline(options=options) as pipeline:
        _ = (
            pipeline
            | "Read images" >> beam.io.ReadFromText(paths.input)
            | "Parse" >> beam.Map(parse, dtype=paths.dtype)
            | "Score" >> RunInference(model)
            | "Write lines" >> beam.Map(write_line)
            # One unsharded file: a second run of the same day replaces it whole and leaves no stale shard behind.
            | "Write predictions" >> beam.io.WriteToText(paths.output, num_shards=1, shard_name_template="")
        )


if __name__ == "__main__":
    main()
