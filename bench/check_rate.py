"""How many requests a second ``accel check --json -`` answers in one process, and how many one process each would.

Run: python bench/check_rate.py [REQUESTS]
"""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

WANTED = 2_000
"""Requests a second that one process must answer."""

ACCEL = [sys.executable, "-m", "airflow_accel_provider.cli"]
PLACEMENTS = (
    "nvidia-l4 on g2-standard-8 in europe-west4",
    "nvidia-tesla-t4 on n1-standard-8 in us-central1-a",
    "nvidia-l4:2 on g2-standard-24 in us-central1",
    "nvidia-tesla-a100 in us-central1",
    "nvidia-l4:3 in us-central1",
    "nvidia-l4 on n1-standard-4 in europe-west4-a",
    "tpu-v6e-slice:2x2 in us-east5-b",
)


def requests() -> Iterator[dict[str, Any]]:
    """Yield requests without end, right and wrong ones, no two of them the same."""
    for number in itertools.count():
        yield batch(number) if number % 8 == 7 else pipeline(number, PLACEMENTS[number % len(PLACEMENTS)])


def pipeline(number: int, placement: str) -> dict[str, Any]:
    """Return a request for a Beam pipeline."""
    is_tpu = placement.startswith("tpu")
    return {
        "operator": "BeamTpuPipelineOperator" if is_tpu else "BeamGpuPipelineOperator",
        "placement": placement,
        "fallback": ["tpu-v6e-slice:1x1 in us-east5-a"] if is_tpu else ["nvidia-l4 in us-east4"],
        "py_file": f"gs://acme-ml/pipelines/score_{number}.py",
        "sdk_container_image": "europe-docker.pkg.dev/acme/beam/gpu:2.77.0",
        "max_num_workers": 1 + number % 50,
        "pipeline_options": {
            "temp_location": "gs://acme-ml-{region}/tmp",
            "input": f"gs://acme-ml/in/{number}/*.jsonl",
            "output": f"gs://acme-ml/out/{number}/part",
        },
    }


def batch(number: int) -> dict[str, Any]:
    """Return a request for a Spark batch."""
    return {
        "operator": "DataprocGpuBatchOperator",
        "placement": "l4 in us-central1",
        "fallback": ["a100-40 in us-central1", "l4 in europe-west4"],
        "batch": {"pyspark_batch": {"main_python_file_uri": f"gs://acme-ml/etl_{number}.py"}},
        "executors": 2 + number % 50,
        "properties": {"spark.executor.memory": "10g"},
    }


def seconds_in_one_process(count: int) -> float:
    """Return how long one process takes for that many requests, its start included."""
    lines = "".join(json.dumps(request) + "\n" for request in itertools.islice(requests(), count))
    start = time.perf_counter()
    ended = subprocess.run([*ACCEL, "check", "--json", "-"], input=lines, capture_output=True, text=True, check=False)
    seconds = time.perf_counter() - start
    answered = len(ended.stdout.splitlines())
    if answered != count:
        raise RuntimeError(f"{answered} answers to {count} requests:\n{ended.stderr}")
    return seconds


def main(count: int) -> int:
    """Measure, print, and tell whether it is fast enough."""
    together = count / min(seconds_in_one_process(count) for _ in range(3))
    alone = 1 / min(seconds_in_one_process(1) for _ in range(5))
    print(f"one process        {together:8,.0f} checks a second (wanted: {WANTED:,})")
    print(f"a process a check  {alone:8,.1f} checks a second")
    print(f"ratio              {together / alone:8,.0f}")
    return 0 if together >= WANTED else 1


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000))
