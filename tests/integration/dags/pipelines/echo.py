"""Write what the pipeline was given, as the launcher's argument list says it and as Beam reads it."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import apache_beam as beam  # noqa: TID253
from apache_beam.options.pipeline_options import PipelineOptions  # noqa: TID253

if TYPE_CHECKING:
    from argparse import ArgumentParser


class EchoOptions(PipelineOptions):
    """An option for a text, one for a list of texts, and the place to write to."""

    @classmethod
    def _add_argparse_args(cls, parser: ArgumentParser) -> None:
        parser.add_argument("--output", required=True)
        parser.add_argument("--text")
        parser.add_argument("--texts", action="append")
        parser.add_argument("--note")


def main() -> None:
    """Write one JSON object: the arguments, and the options that are read from them."""
    options = PipelineOptions()
    echo = options.view_as(EchoOptions)
    said = {"argv": sys.argv[1:], "text": echo.text, "texts": echo.texts}
    pipeline = beam.Pipeline(options=options)
    output = beam.io.WriteToText(echo.output, num_shards=1, shard_name_template="")
    _ = pipeline | beam.Create([json.dumps(said)]) | output
    pipeline.run()


if __name__ == "__main__":
    main()
