"""``accel plan`` over quotas that are read as a connection or as Google's default credentials."""

from __future__ import annotations

import io
import json
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from airflow_accel_provider.cli import main

if TYPE_CHECKING:
    from emulators import Emulator

REQUEST: dict[str, Any] = {
    "operator": "BeamGpuPipelineOperator",
    "placement": "nvidia-l4 on g2-standard-8 in europe-west4",
    "fallback": ["nvidia-tesla-t4 on n1-standard-8 in europe-west4", "{{ params.place }}"],
    "py_file": "gs://acme-ml/pipelines/score.py",
    "sdk_container_image": "europe-docker.pkg.dev/acme/beam/gpu:2.77.0",
    "pipeline_options": {"temp_location": "gs://acme-ml/tmp"},
}


def plan(*arguments: str, stdin: str = "", monkeypatch: pytest.MonkeyPatch) -> tuple[int, str, str]:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main(["plan", *arguments])
    return code, out.getvalue(), err.getvalue()


@pytest.fixture
def connected(emulator: Emulator, monkeypatch: pytest.MonkeyPatch) -> None:
    """Export a connection to the emulator under the name ``acme``."""
    extra = {
        "keyfile_dict": emulator.keys["airflow"].read_text(),
        "project": emulator.project,
        "endpoint_url": emulator.url,
    }
    monkeypatch.setenv("AIRFLOW_CONN_ACME", json.dumps({"conn_type": "google_cloud_platform", "extra": extra}))


@pytest.mark.usefixtures("connected")
def test_a_plan_has_live_quotas(emulator: Emulator, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each place is told to be ready or why not; templates are left out with a warning; nothing is started."""
    emulator.enter("no-quota")
    try:
        mark = emulator.mark()
        code, out, _ = plan("-", "--json", "--conn-id", "acme", stdin=json.dumps(REQUEST), monkeypatch=monkeypatch)
        created = emulator.calls("dataflow.projects.locations.jobs.create", since=mark)
    finally:
        emulator.enter("plenty")
    answer = json.loads(out)
    assert (code, answer["ok"], answer["project"]) == (1, False, emulator.project)
    assert {place["rejected"]["kind"] for place in answer["places"]} == {"quota"}
    assert [problem["code"] for problem in answer["problems"]] == ["templated"]
    assert created == []


@pytest.mark.usefixtures("connected")
def test_lines_share_a_session(monkeypatch: pytest.MonkeyPatch) -> None:
    """One line gets one plan, wrong requests get their problems, and nothing but answers is on stdout."""
    requests = [REQUEST, {**REQUEST, "placement": "nvidia-l4:3 in europe-west4"}, {**REQUEST, "gcp_conn_id": "acme"}]
    stdin = "".join(json.dumps({**request, "gcp_conn_id": "acme"}) + "\n" for request in requests)
    code, out, _ = plan("-", "--json", stdin=stdin, monkeypatch=monkeypatch)
    answers = [json.loads(line) for line in out.splitlines()]
    assert [(answer["ok"], len(answer["places"])) for answer in answers] == [(True, 2), (False, 0), (True, 2)]
    assert code == 1


@pytest.mark.usefixtures("google_environment")
def test_default_credentials_do(emulator: Emulator, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Without a connection Google's default credentials are used; a person reads a table."""
    monkeypatch.delenv("AIRFLOW_CONN_GOOGLE_CLOUD_DEFAULT", raising=False)
    path = tmp_path / "request.json"
    path.write_text(json.dumps(REQUEST), encoding="utf-8")
    code, out, _ = plan(str(path), "--endpoint-url", emulator.url, monkeypatch=monkeypatch)
    assert code == 0
    assert f"In project {emulator.project}:" in out
    assert [line.split()[0] for line in out.splitlines() if line.endswith("ready")] == ["1.", "2."]


TPU_REQUEST: dict[str, Any] = {
    **REQUEST,
    "operator": "BeamTpuPipelineOperator",
    "placement": "tpu-v6e-slice:2x2 in us-east5-b",
    "fallback": ["tpu-v6e-slice:2x2 in us-east5", "nvidia-l4 on g2-standard-8 in us-central1"],
    "sdk_container_image": "europe-docker.pkg.dev/acme/beam/tpu:2.77.0",
    "number_of_worker_harness_threads": 50,
}


@pytest.mark.usefixtures("connected")
def test_a_person_reads_estimates_and_how_to_ask_for_more(
    emulator: Emulator, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A quota whose usage is estimated says so, and what to ask for stands below the table once."""
    path = tmp_path / "request.json"
    path.write_text(json.dumps(TPU_REQUEST), encoding="utf-8")
    emulator.enter("reserved-tpu")
    try:
        code, out, _ = plan(str(path), "--conn-id", "acme", monkeypatch=monkeypatch)
    finally:
        emulator.enter("plenty")
    assert code == 0
    assert out.count("0 of 0 left (usage estimated from running VMs)") == 2
    asked = [line for line in out.splitlines() if "TPUS-PER-TPU-FAMILY-per-project-region" in line]
    assert len(asked) == 1
    assert asked[0].endswith("(dimensions region=us-east5, tpu_family=CT6E).")
    assert [line.split()[0] for line in out.splitlines() if line.endswith("ready")] == ["3."]


@pytest.mark.usefixtures("connected")
def test_a_plan_tells_what_is_free_in_a_reservation(emulator: Emulator, monkeypatch: pytest.MonkeyPatch) -> None:
    """A place on a named reservation is told with its free machines and needs no quota; others are as without it."""
    own = {"reservation": None, "service_options": []}
    request = {
        **TPU_REQUEST,
        "reservation": "tpu-night",
        "service_options": ["reservation=zones/us-east5-b/reservations/tpu-night"],
        "fallback": [{"placement": place, **own} for place in TPU_REQUEST["fallback"]],
    }
    emulator.enter("reserved-tpu")
    try:
        code, out, _ = plan("-", "--json", "--conn-id", "acme", stdin=json.dumps(request), monkeypatch=monkeypatch)
    finally:
        emulator.enter("plenty")
    answer = json.loads(out)
    assert (code, answer["problems"]) == (0, [])
    first, second, third = answer["places"]
    assert first["reservation"] == "zones/us-east5-b/reservations/tpu-night"
    assert first["warnings"] == ["2 of 2 free in zones/us-east5-b/reservations/tpu-night"]
    assert (second["rejected"]["kind"], "rejected" in third) == ("quota", False)


def test_a_missing_connection_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection that the environment lacks is told with the variable to export, in both forms."""
    code, out, _ = plan("-", "--json", "--conn-id", "nobody", stdin=json.dumps(REQUEST), monkeypatch=monkeypatch)
    assert code == 1
    assert "export AIRFLOW_CONN_NOBODY" in json.loads(out)["error"]
    code, out, err = plan("-", "--conn-id", "nobody", stdin=json.dumps(REQUEST), monkeypatch=monkeypatch)
    assert (code, out) == (1, "")
    assert "export AIRFLOW_CONN_NOBODY" in err


@pytest.mark.usefixtures("connected")
def test_spark_batches_are_planned(monkeypatch: pytest.MonkeyPatch) -> None:
    """The places of a Spark batch are held against the quotas that it draws."""
    request = {
        "operator": "DataprocGpuBatchOperator",
        "placement": "l4 in europe-west4",
        "batch": {"pyspark_batch": {"main_python_file_uri": "gs://acme-ml/etl.py"}},
        "executors": 400,
        "runtime_version": "2.3",
    }
    code, out, _ = plan("-", "--json", "--conn-id", "acme", stdin=json.dumps(request), monkeypatch=monkeypatch)
    (place,) = json.loads(out)["places"]
    assert code == 1
    assert place["rejected"]["kind"] == "quota"
    assert place["rejected"]["metric"] == "NVIDIA_L4_GPUS"
