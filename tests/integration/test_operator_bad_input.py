"""Bad input: one clear error, as early as it can be known, and nothing started."""

from __future__ import annotations

import re
import textwrap
import warnings
from typing import TYPE_CHECKING, Any

import pytest

from airflow_accel_provider.exceptions import AcceleratorConfigurationError, AcceleratorQuotaError, AcceleratorWarning
from airflow_accel_provider.operators.beam import BeamTpuPipelineOperator
from tests.integration.local_google import PROJECT
from tests.integration.pipelines import BUCKET, IMAGE, run_of, score

if TYPE_CHECKING:
    from pathlib import Path

    from tests.integration.local_google import LocalGoogle

TPU = BeamTpuPipelineOperator
SUBNETWORK = "regions/us-central1/subnetworks/ml"

# Each row: what is said wrongly, and what the one line of the error says of it.
AT_PARSE: list[tuple[str, dict[str, Any], str]] = [
    ("accelerator", {"placement": "nvidia-l5 in us-central1"}, r"placement: .*nvidia-l5.*Did you mean nvidia-l4\?"),
    ("Spark's accelerator", {"placement": "l4 in us-central1"}, r"placement: .*nvidia-l4"),
    (
        "machine",
        {"placement": "nvidia-l4 on g2-standard-9 in us-central1"},
        r"g2-standard-9.*Did you mean g2-standard-",
    ),
    ("region", {"placement": "nvidia-l4 in us-centrl1"}, r"no region us-centrl1\. Did you mean us-central1\?"),
    ("count", {"placement": "nvidia-l4:2 on g2-standard-8 in us-central1"}, r"2 come with g2-standard-24"),
    ("L4 on N1", {"placement": "nvidia-l4 on n1-standard-8 in us-central1"}, r"needs G2, such as g2-standard-4"),
    ("zone", {"placement": "nvidia-l4 in us-central1-a", "region": "europe-west4"}, r"us-central1-a is not in region"),
    ("location", {"placement": "nvidia-l4"}, r"no location; add 'in REGION'"),
    (
        "topology and machine",
        {"kind": TPU, "placement": "tpu-v6e-slice:2x2 on ct6e-standard-1t in us-east5-b"},
        r"placement: tpu-v6e-slice:2x2 requires the machine type ct6e-standard-4t, not ct6e-standard-1t\.",
    ),
    (
        "topology",
        {"kind": TPU, "placement": "tpu-v6e-slice:3x3 in us-east5-b"},
        r"placement: tpu-v6e-slice comes as 1x1, 2x2, 2x4, not 3x3\..* The nearest is tpu-v6e-slice:2x4\.",
    ),
    (
        "topology and machine in a fallback",
        {
            "kind": TPU,
            "placement": "tpu-v6e-slice:1x1 in us-east5-b",
            "fallback": ["tpu-v5-lite-podslice:2x2 on ct5lp-hightpu-1t in us-west4-a"],
        },
        r"fallback\[0\]: tpu-v5-lite-podslice:2x2 requires the machine type ct5lp-hightpu-4t, not ct5lp-hightpu-1t\.",
    ),
    ("a GPU first", {"kind": TPU}, r"nvidia-l4 is not a TPU; use BeamGpuPipelineOperator for it, or name a TPU first"),
    ("subnetwork", {"fallback": ["nvidia-l4 in us-east1"], "subnetwork": SUBNETWORK}, r"needs one in us-east1"),
    ("zone in options", {"pipeline_options": {"worker_zone": "us-central1-a"}}, r"worker_zone does not go here"),
    ("region in options", {"pipeline_options": {"region": "us-east1"}}, r"region does not go here; say it in the plac"),
    ("two pipelines", {"py_module": "acme.score"}, r"two pipelines, py_file and py_module; give one"),
    (
        "no pipeline",
        {"py_file": None},
        r"There is no pipeline; give py_file=, py_module=, jar=, go_binary=, template= or flex",
    ),
    (
        "file and template",
        {"flex_template": "gs://acme-ml/score.json"},
        r"py_file: There are two pipelines, py_file and flex_template; give one",
    ),
    (
        "three pipelines",
        {"jar": "score.jar", "go_binary": "/opt/score"},
        r"There are 3 pipelines, py_file, jar and go_binary; give one",
    ),
    (
        "template's parameters",
        {"parameters": {"top": 3}},
        r"parameters goes with template or flex_template, not with py_file; options of its own go into pipeline_opt",
    ),
    (
        "template's parameters in a fallback",
        {"fallback": [{"placement": "nvidia-l4 in us-east1", "parameters": {"top": 3}}]},
        r"fallback\[0\]\.parameters: parameters goes with template or flex_template",
    ),
    (
        "streaming",
        {"pipeline_options": {"streaming": True}},
        r"A streaming pipeline is never done.*wait_until='proven'",
    ),
    ("wait_until", {"wait_until": "proved"}, r"wait_until: 'proved' does not do\. Did you mean 'proven'\?"),
    ("fallback_on", {"fallback_on": ["stock-out"]}, r"fallback_on: 'stock-out' is no kind.*'stockout'"),
    ("on_unproven", {"on_unproven": "failed"}, r"on_unproven: 'failed' does not do\. Did you mean 'fail'\?"),
    (
        "sdk_processes",
        {"sdk_processes": "per-vcpu"},
        r"sdk_processes: 'per-vcpu' does not do; it is 'one' or 'per_vcpu'",
    ),
    ("start_timeout", {"start_timeout": -1}, r"start_timeout: -1 does not do; give seconds or a timedelta"),
    ("cancel_timeout", {"cancel_timeout": "5m"}, r"cancel_timeout: '5m' does not do"),
    ("poll_interval", {"poll_interval": 0}, r"poll_interval: 0 does not do; give seconds, more than 0"),
    ("region of another type", {"region": 5}, r"region: 5 does not do for region; give a text"),
]


@pytest.mark.parametrize(("wrong", "said"), [row[1:] for row in AT_PARSE], ids=[row[0] for row in AT_PARSE])
def test_is_refused_at_parse(google: LocalGoogle, wrong: dict[str, Any], said: str) -> None:
    """What cannot work is refused when the operator is made, in one line that says what would; nothing is started."""
    since = google.mark()
    with pytest.raises(AcceleratorConfigurationError) as refused:
        score(**wrong)
    head, line = str(refused.value).splitlines()
    assert head == "score cannot run, 1 error:"
    assert re.search(said, line)
    assert google.created(since=since) == []


def test_all_mistakes_are_told_at_once() -> None:
    """Mistakes in places, options, pipeline and waiting are named in one error."""
    with pytest.raises(AcceleratorConfigurationError) as refused:
        score(
            placement="nvidia-l5 in us-central1",
            fallback=["nvidia-l4 on n1-standard-8 in us-east1"],
            fallback_on=["stock-out"],
            py_module="acme.score",
            poll_interval=-1,
            pipeline_options={"worker_zone": "us-central1-a"},
            labels={"accel-owner": "me"},
        )
    head, *lines = str(refused.value).splitlines()
    assert head == f"score cannot run, {len(lines)} errors:"
    told = {line.removeprefix("- ").partition(":")[0] for line in lines}
    wrong = {"placement", "fallback[0]", "fallback_on", "py_file", "poll_interval", "labels.accel-owner"}
    assert told == wrong | {"pipeline_options.worker_zone"}


DAG = """
from airflow.sdk import DAG
from airflow_accel_provider.operators.beam import BeamGpuPipelineOperator

with DAG("nightly"):
    BeamGpuPipelineOperator(
        task_id="score",
        placement="{placement}",
        py_file="gs://acme-ml/score.py",
        sdk_container_image="us-docker.pkg.dev/acme-ml-prod/beam/gpu:2.77.0",
        pipeline_options={options},
    )
"""


def test_import_error_says_it(tmp_path: Path) -> None:
    """A DAG with a mistake is an import error that ends with the sentence a person needs."""
    from airflow.dag_processing.dagbag import DagBag

    file = tmp_path / "nightly.py"
    file.write_text(DAG.format(placement="nvidia-l5 in us-central1", options={"temp_location": "gs://acme-ml/x"}))
    bag = DagBag(dag_folder=tmp_path)
    ((where, told),) = bag.import_errors.items()
    with pytest.raises(AcceleratorConfigurationError) as refused:
        score(placement="nvidia-l5 in us-central1")
    assert told.strip().endswith(str(refused.value))
    assert where.endswith(file.name)


def test_warning_points_at_the_dag(tmp_path: Path) -> None:
    """A missing temp_location is warned about at the DAG's own line, with the bucket that Beam would make."""
    from apache_beam.io.gcp.gcsio import default_gcs_bucket_name

    source = textwrap.dedent(DAG.format(placement="nvidia-l4 in us-central1", options={}))
    source = source.replace('task_id="score",', f'task_id="score", project_id="{PROJECT}",')
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        exec(compile(source, str(tmp_path / "nightly.py"), "exec"), {"__name__": "nightly"})  # noqa: S102
    (warning,) = [each for each in caught if each.category is AcceleratorWarning]
    assert f"gs://{default_gcs_bucket_name(PROJECT, 'us-central1')}/" in str(warning.message)
    assert (warning.filename, source.splitlines()[warning.lineno - 1].strip()) == (
        str(tmp_path / "nightly.py"),
        "BeamGpuPipelineOperator(",
    )


def test_missing_temp_location_is_logged_at_start(google: LocalGoogle, capsys: pytest.CaptureFixture[str]) -> None:
    """The same warning stands in the task's log, with the connection's project in the bucket's name."""
    from apache_beam.io.gcp.gcsio import default_gcs_bucket_name

    run = run_of(google, placement="nvidia-l4 in us-east1", pipeline_options={"temp_location": None})
    google.emulator.set_world("no-quota")
    with pytest.warns(AcceleratorWarning), pytest.raises(AcceleratorQuotaError):
        run.execute()
    bucket = default_gcs_bucket_name(PROJECT, "us-east1")
    assert f"There is no temp_location; in us-east1 Beam would use, and if need be make, gs://{bucket}/." in (
        capsys.readouterr().out
    )


TEMPLATED: list[tuple[str, dict[str, Any], str]] = [
    ("placement", {"placement": "{{ params.bad }} in us-central1"}, r"placement: .*'?nvidia-l5"),
    ("region", {"placement": "nvidia-l4", "region": "{{ params.region }}"}, r"no region us-centrl1"),
    (
        "options",
        {"pipeline_options": {"temp_location": "{{ params.path }}"}},
        r"'acme-ml/tmp' is not a path in a bucket",
    ),
    ("labels", {"labels": {"team": "{{ params.label }}"}}, r"labels\.team: 'Vision!' is not a label's value"),
    ("project", {"project_id": "{{ params.number }}"}, r"project_id: '1234567890' is not a project id"),
    (
        "topology and machine",
        {"kind": TPU, "placement": "tpu-v6e-slice:{{ params.topology }} on ct6e-standard-1t in us-east5-b"},
        r"placement: tpu-v6e-slice:2x2 requires the machine type ct6e-standard-4t, not ct6e-standard-1t\.",
    ),
    ("image and network", {"subnetwork": "{{ params.bad }}"}, r"subnetwork: 'nvidia-l5' does not say its region"),
]
PARAMS = {
    "bad": "nvidia-l5",
    "region": "us-centrl1",
    "path": "acme-ml/tmp",
    "label": "Vision!",
    "number": "1234567890",
    "topology": "2x2",
}


@pytest.mark.parametrize(("wrong", "said"), [row[1:] for row in TEMPLATED], ids=[row[0] for row in TEMPLATED])
def test_templates_are_judged_at_start(google: LocalGoogle, wrong: dict[str, Any], said: str) -> None:
    """What a template turns out to be is judged like a value in the DAG, before anything is started."""
    since = google.mark()
    with pytest.raises(AcceleratorConfigurationError) as refused:
        run_of(google, run={"params": PARAMS}, **wrong).execute()
    head, line = str(refused.value).splitlines()
    assert head == "score cannot run, 1 error:"
    assert re.search(said, line)
    assert google.created(since=since) == []


NO_PROJECT = (
    r"Connection 'google_cloud_default': no project is known; give project_id=, or set the connection's project"
)


def test_no_project(google: LocalGoogle, monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection without a project is one error, together with what a template turned out to be."""
    connection = google.connection(project=None, key={"project_id": None})
    monkeypatch.setenv("AIRFLOW_CONN_GOOGLE_CLOUD_DEFAULT", connection)
    since = google.mark()
    with pytest.raises(AcceleratorConfigurationError, match=NO_PROJECT) as refused:
        run_of(google).execute()
    assert "1 error" in str(refused.value)
    with pytest.raises(AcceleratorConfigurationError, match=NO_PROJECT) as refused:
        run_of(google, run={"params": PARAMS}, placement="{{ params.bad }} in us-central1").execute()
    assert "2 errors" in str(refused.value)
    assert "nvidia-l5" in str(refused.value)
    assert google.created(since=since) == []


def test_no_connection(google: LocalGoogle) -> None:
    """A connection that Airflow does not have is named."""
    with pytest.raises(AcceleratorConfigurationError, match=r"gcp_conn_id: Airflow has no connection 'nowhere'"):
        run_of(google, gcp_conn_id="nowhere").execute()


@pytest.mark.parametrize(
    ("py_file", "said"),
    [
        ("/opt/pipelines/missing.py", r"py_file: There is no file /opt/pipelines/missing\.py on this worker \(.+\)\."),
        (f"gs://{BUCKET}/missing.py", rf"py_file: There is no gs://{BUCKET}/missing\.py\."),
        ("gs://no-such-bucket-here/score.py", r"py_file: There is no gs://no-such-bucket-here/score\.py\."),
        ("gs://score.py", r"py_file: gs://score\.py is not the address of a file, such as gs://bucket/file\.py\."),
    ],
)
def test_missing_file(google: LocalGoogle, py_file: str, said: str) -> None:
    """A pipeline file that is not there is no error at parse, which may be elsewhere, and one when the task starts."""
    run = run_of(google, py_file=py_file)
    since = google.mark()
    with pytest.raises(AcceleratorConfigurationError, match=said) as refused:
        run.execute()
    assert "1 error" in str(refused.value)
    assert google.created(since=since) == []
    assert run.stored == {}


def test_parse_reads_nothing() -> None:
    """Making an operator with a connection and files that do not exist raises nothing and warns of nothing."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        score(gcp_conn_id="nowhere", py_file="/opt/pipelines/missing.py", sdk_container_image=IMAGE)
