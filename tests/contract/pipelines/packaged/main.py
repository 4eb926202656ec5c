"""Uses a package that only ``--setup_file`` brings to the workers."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import apache_beam as beam
from apache_beam.options.pipeline_options import PipelineOptions

sys.path.insert(0, str(Path(__file__).parent))


def louder(word: str) -> str:
    """Return what the package makes of a word."""
    from loudness import loud

    return loud(word)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--output", required=True)
    known, rest = parser.parse_known_args(sys.argv[1:])
    with beam.Pipeline(options=PipelineOptions(rest)) as pipeline:
        pipeline | beam.Create(["hm"]) | beam.Map(louder) | beam.io.WriteToText(known.output)
