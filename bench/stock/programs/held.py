"""A pipeline whose one element takes until a file appears."""

from __future__ import annotations

import logging
import time
from pathlib import Path
from typing import TYPE_CHECKING

import apache_beam as beam  # noqa: TID253 - it is a pipeline
from apache_beam.options.pipeline_options import PipelineOptions  # noqa: TID253

if TYPE_CHECKING:
    from argparse import ArgumentParser


class HeldOptions(PipelineOptions):
    """The file that is waited for."""

    @classmethod
    def _add_argparse_args(cls, parser: ArgumentParser) -> None:
        parser.add_argument("--marker", required=True)


def held(marker: str) -> str:
    """Wait for the file, ten minutes at most."""
    end = time.monotonic() + 600
    while not Path(marker).exists() and time.monotonic() < end:
        time.sleep(0.2)
    return marker


def main() -> None:
    """Submit the pipeline."""
    # The stock operator reads the job's id from what Beam logs at this level.
    logging.getLogger().setLevel(logging.INFO)
    options = PipelineOptions()
    pipeline = beam.Pipeline(options=options)
    _ = pipeline | beam.Create([options.view_as(HeldOptions).marker]) | beam.Map(held)
    pipeline.run()


if __name__ == "__main__":
    main()
