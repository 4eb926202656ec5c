"""Says that it has begun, then takes an hour; if nobody stops it, it writes a result."""

from __future__ import annotations

import argparse
import subprocess
import sys
import time

import apache_beam as beam
from apache_beam.io.filesystems import FileSystems
from apache_beam.options.pipeline_options import PipelineOptions


def linger(word: str, begun: str) -> str:
    """Write where to find this process and one that it starts, and wait."""
    child = subprocess.Popen(["/bin/sleep", "3600"])
    with FileSystems.create(begun) as file:
        file.write(f"{child.pid}".encode())
    time.sleep(3600)
    return word


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--output", required=True)
    known, rest = parser.parse_known_args(sys.argv[1:])
    pipeline = beam.Pipeline(options=PipelineOptions(rest))
    lingering = pipeline | beam.Create(["word"]) | "Linger" >> beam.Map(linger, f"{known.output}/begun")
    lingering | beam.io.WriteToText(f"{known.output}/result")
    pipeline.run()
