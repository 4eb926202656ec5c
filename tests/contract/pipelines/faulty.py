"""Fails on one of its elements, as user code does."""

from __future__ import annotations

import sys

import apache_beam as beam
from apache_beam.options.pipeline_options import PipelineOptions


def invert(number: int) -> float:
    """Return one over a number."""
    return 1 / number


if __name__ == "__main__":
    with beam.Pipeline(options=PipelineOptions(sys.argv[1:])) as pipeline:
        pipeline | "Numbers" >> beam.Create([1, 2, 0]) | "Invert" >> beam.Map(invert)
