"""Write down what the launcher was given, and have the workers write what the pipeline read of it."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import apache_beam as beam
from apache_beam.options.pipeline_options import PipelineOptions, StandardOptions

if TYPE_CHECKING:
    from argparse import ArgumentParser


class EchoOptions(PipelineOptions):
    """A text, a list of texts, where the workers write, and a local file for the launcher to write."""

    @classmethod
    def _add_argparse_args(cls, parser: ArgumentParser) -> None:
        parser.add_argument("--output", required=True)
        parser.add_argument("--text")
        parser.add_argument("--texts", action="append")
        parser.add_argument("--note")
        parser.add_argument("--fail", action="store_true")
        parser.add_argument("--wait", action="store_true")
        parser.add_argument("--seconds", type=float, default=0, help="how long the work takes")
        parser.add_argument("--endless", action="store_true", help="make it a streaming job")


def refuse(line: str) -> str:
    """Raise, as users' code does."""
    raise ValueError("row 7 has no pixels")


def work(line: str, seconds: float) -> str:
    """Take a while."""
    time.sleep(seconds)
    return line


def main() -> None:
    """Submit the pipeline; wait for its end when told so."""
    options = PipelineOptions()
    echo = options.view_as(EchoOptions)
    if echo.note:
        Path(echo.note).write_text(json.dumps({"argv": sys.argv[1:], "interpreter": sys.orig_argv}), encoding="utf-8")
    if echo.endless:
        options.view_as(StandardOptions).streaming = True
    pipeline = beam.Pipeline(options=options)
    lines = pipeline | beam.Create([json.dumps({"text": echo.text, "texts": echo.texts})])
    if echo.seconds:
        lines |= "Work" >> beam.Map(work, echo.seconds)
    if echo.fail:
        lines |= "Score" >> beam.Map(refuse)
    _ = lines | beam.io.WriteToText(echo.output, num_shards=1, shard_name_template="")
    result = pipeline.run()
    if echo.wait:
        result.wait_until_finish()


if __name__ == "__main__":
    main()
