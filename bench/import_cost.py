"""What importing an operator costs a DAG file: this provider's, stock ones, and `airflow.sdk` alone.

    .venv/bin/python bench/import_cost.py [--rounds 7]

Every sample is a fresh interpreter. Rounds are interleaved (each case once, then all again), so that a machine that
slows down slows all cases alike; the first round compiles what isn't compiled and is dropped. Exits 1 when this
provider's operator costs more than the budget, or loads what no DAG file should load.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass

BUDGET_MS = 50
BARE = "airflow.sdk"
OURS = "BeamGpuPipelineOperator"
CASES = {
    BARE: "from airflow.sdk import DAG",
    OURS: "from airflow_accel_provider.operators.beam import BeamGpuPipelineOperator",
    "DataflowStartFlexTemplateOperator": (
        "from airflow.providers.google.cloud.operators.dataflow import DataflowStartFlexTemplateOperator"
    ),
    "DataprocCreateBatchOperator": (
        "from airflow.providers.google.cloud.operators.dataproc import DataprocCreateBatchOperator"
    ),
    "BeamRunPythonPipelineOperator": (
        "from airflow.providers.apache.beam.operators.beam import BeamRunPythonPipelineOperator"
    ),
}
HEAVY = ("google", "googleapiclient", "grpc", "apache_beam", "pandas", "airflow.providers.google")
# Namespace packages that some installed distribution declares at interpreter start, whoever imports what.
EMPTY = {"google", "google.cloud"}

SAMPLE = """
import json, sys, time
begun = time.perf_counter()
from airflow.sdk import DAG
there, bare = set(sys.modules), time.perf_counter()
{statement}
ended = time.perf_counter()
added = sorted(set(sys.modules) - there)
print()
print(json.dumps({{"seconds": ended - begun, "over_bare": ended - bare, "modules": len(sys.modules), "added": added}}))
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One import in a fresh process: its time, how many modules are then loaded, and those beyond `airflow.sdk`.

    `over_bare` is the time after `airflow.sdk` was there: the noise of that far larger import is no part of it.
    """

    seconds: float
    over_bare: float
    modules: int
    added: list[str]

    @property
    def heavy(self) -> list[str]:
        """The packages among the added modules that a DAG file should not load."""
        added = set(self.added) - EMPTY
        return [name for name in HEAVY if any(module == name or module.startswith(f"{name}.") for module in added)]


def sample(statement: str, home: str) -> Sample | str:
    """Return a sample, or why the import fails."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", SAMPLE.format(statement=statement)],
        env={**environment, "AIRFLOW_HOME": home},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        return done.stderr.strip().splitlines()[-1].rpartition("Exception: ")[2].partition(". ")[0]
    return Sample(**json.loads(done.stdout.strip().splitlines()[-1]))


def measure(rounds: int) -> tuple[dict[str, list[Sample]], dict[str, str]]:
    """Return the samples of each case, and the cases that can't be imported here."""
    samples: dict[str, list[Sample]] = {}
    missing: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as home:
        for number in range(rounds + 1):
            for case in [case for case in CASES if case not in missing]:
                taken = sample(CASES[case], home)
                if isinstance(taken, str):
                    missing[case] = taken
                elif number:
                    samples.setdefault(case, []).append(taken)
    return samples, missing


def middle(samples: list[Sample]) -> float:
    """Return the median in milliseconds."""
    return statistics.median(sample.seconds for sample in samples) * 1000


def least(samples: list[Sample]) -> float:
    """Return the minimum in milliseconds."""
    return min(sample.seconds for sample in samples) * 1000


def over_bare(samples: list[Sample]) -> float:
    """Return what a case costs over `airflow.sdk`, the median in milliseconds."""
    return statistics.median(sample.over_bare for sample in samples) * 1000


def show(samples: dict[str, list[Sample]], missing: dict[str, str]) -> None:
    """Print the table."""
    ours = over_bare(samples[OURS])
    head = ("case", "median ms", "min ms", "over bare ms", "× ours", "modules", "heavy packages loaded")
    print("{:36} {:>9} {:>8} {:>12} {:>7} {:>7}  {}".format(*head))
    for case, taken in samples.items():
        over = over_bare(taken)
        ratio = "" if case == BARE else f"{over / max(ours, 1):.1f}"
        heavy = ", ".join(taken[0].heavy) or "none"
        numbers = f"{middle(taken):9.0f} {least(taken):8.0f} {over:12.0f} {ratio:>7} {taken[0].modules:7}"
        print(f"{case:36} {numbers}  {heavy}")
    for case, reason in missing.items():
        print(f"{case}: not measured ({reason})")


def main() -> int:
    """Measure, print, and judge."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7, help="samples of each case (default 7)")
    samples, missing = measure(parser.parse_args().rounds)
    if OURS in missing or BARE in missing:
        print("\n".join(f"{case}: {reason}" for case, reason in missing.items()), file=sys.stderr)
        return 1
    show(samples, missing)
    ours, heavy = over_bare(samples[OURS]), samples[OURS][0].heavy
    is_good = ours <= BUDGET_MS and not heavy
    verdict = "kept" if is_good else "missed"
    print(
        f"\nBudget {verdict}: {ours:.0f} of {BUDGET_MS} ms over {BARE}, heavy packages: {', '.join(heavy) or 'none'}."
    )
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
