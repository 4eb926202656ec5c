"""Writes words in capitals, and counts them; a function of the main module and a module-level name take part."""

from __future__ import annotations

import argparse
import sys

import apache_beam as beam
from apache_beam.metrics import Metrics
from apache_beam.options.pipeline_options import PipelineOptions

MARK = "!"


def shout(word: str) -> str:
    """Return a word in capitals, with the module's mark."""
    Metrics.counter("shout", "words").inc()
    Metrics.distribution("shout", "length").update(len(word))
    return word.upper() + MARK


def main(arguments: list[str]) -> None:
    """Run the pipeline."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--output", required=True)
    known, rest = parser.parse_known_args(arguments)
    with beam.Pipeline(options=PipelineOptions(rest)) as pipeline:
        words = pipeline | "Words" >> beam.Create(["one", "two", "three"])
        words | "Shout" >> beam.Map(shout) | "Write" >> beam.io.WriteToText(known.output)


if __name__ == "__main__":
    main(sys.argv[1:])
