"""A classic template that Beam wrote, launched by the operator."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tests.integration.pipelines import BUCKET, run_of

if TYPE_CHECKING:
    from tests.integration.local_google import LocalGoogle

PROGRAM = Path(__file__).parents[1] / "contract" / "pipelines" / "templated.py"
TEMPLATE = f"gs://{BUCKET}/templates/classic"


def test_a_template_is_launched_proven_and_done(google: LocalGoogle) -> None:
    """A template that Beam wrote runs with its parameters on the GPU that was asked for, which is proven."""
    bucket = google.bucket(BUCKET)
    build = [
        *(sys.executable, str(PROGRAM), "--runner=DataflowRunner", "--project=acme-ml-prod", "--region=us-central1"),
        *(f"--temp_location=gs://{BUCKET}/work", f"--template_location={TEMPLATE}"),
        f"--dataflow_endpoint={google.emulator.url}",
    ]
    built = subprocess.run(
        build, env={**os.environ, **google.environment}, capture_output=True, text=True, check=False, timeout=120
    )
    assert built.returncode == 0, built.stderr
    run = run_of(
        google,
        py_file=None,
        template=TEMPLATE,
        sdk="python",
        parameters={"output": f"gs://{BUCKET}/classic/word"},
        pipeline_options={"output": None},
        disk_size_gb=88,
    )

    since = google.mark()
    value = run.run()

    assert (value["state"], value["proof"]["status"]) == ("done", "seen")
    (launched,) = google.calls("dataflow.projects.locations.templates.launch", since=since)
    assert launched["principal"] == "airflow@acme-ml-prod.iam.gserviceaccount.com"
    (vm,) = google.events("compute.instance.created", since=since)
    assert (vm["accelerator"], vm["count"]) == ("nvidia-l4", 1)
    assert bucket.blob("classic/word").download_as_text() == "WORD"
