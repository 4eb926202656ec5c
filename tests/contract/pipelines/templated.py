"""Writes words in capitals to where its launch says: the output is known only then."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import apache_beam as beam
from apache_beam.io.filesystems import FileSystems
from apache_beam.options.pipeline_options import PipelineOptions

if TYPE_CHECKING:
    from argparse import ArgumentParser

    from apache_beam.options.value_provider import ValueProvider


class TemplatedOptions(PipelineOptions):
    """What a launch gives."""

    @classmethod
    def _add_argparse_args(cls, parser: ArgumentParser) -> None:
        parser.add_value_provider_argument("--output")  # type: ignore[attr-defined]


class Write(beam.DoFn):  # type: ignore[misc]
    """Writes one file."""

    def __init__(self, output: ValueProvider) -> None:
        self.output = output

    def process(self, word: str) -> None:
        """Write a word in capitals."""
        with FileSystems.create(self.output.get()) as file:
            file.write(word.upper().encode())


if __name__ == "__main__":
    options = PipelineOptions(sys.argv[1:])
    with beam.Pipeline(options=options) as pipeline:
        pipeline | beam.Create(["word"]) | beam.ParDo(Write(options.view_as(TemplatedOptions).output))
