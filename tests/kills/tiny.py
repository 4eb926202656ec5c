"""The smallest of pipelines, submitted by Beam itself: what the light launcher was recorded from."""

from __future__ import annotations

import apache_beam as beam
from apache_beam.options.pipeline_options import PipelineOptions

if __name__ == "__main__":
    pipeline = beam.Pipeline(options=PipelineOptions())
    _ = pipeline | beam.Impulse()
    pipeline.run()
