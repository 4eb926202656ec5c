"""Every parameter arrives where it is meant to arrive."""

from __future__ import annotations

import inspect
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from airflow.sdk.exceptions import TaskDeferred

from airflow_accel_provider.exceptions import AcceleratorConfigurationError
from airflow_accel_provider.operators._job import AcceleratorJobOperator
from airflow_accel_provider.operators.beam import BeamGpuPipelineOperator, BeamTpuPipelineOperator
from demo.waiting import wait_for
from tests.integration.local_google import CREATE, PROJECT
from tests.integration.pipelines import BUCKET, ECHO, IMAGE, PIPELINES, Operator, run_of, score

if TYPE_CHECKING:
    from tests.integration.local_google import LocalGoogle
    from tests.integration.task_run import TaskRun

PIPELINE_ACCOUNT = f"pipeline@{PROJECT}.iam.gserviceaccount.com"
KEY = f"projects/{PROJECT}/locations/{{region}}/keyRings/ml/cryptoKeys/score"


@dataclass(frozen=True, kw_only=True)
class Arrived:
    """What came of one submission: the launcher's own words, the job, its call, the trigger's row, the record."""

    note: dict[str, Any]
    job: dict[str, Any]
    call: dict[str, Any]
    trigger: dict[str, Any]
    record: dict[str, Any]

    @property
    def flags(self) -> list[str]:
        """The launcher's arguments."""
        flags: list[str] = self.note["argv"]
        return flags

    @property
    def pool(self) -> dict[str, Any]:
        """The job's worker pool."""
        pool: dict[str, Any] = self.job["environment"]["workerPools"][0]
        return pool

    @property
    def policy(self) -> dict[str, Any]:
        """What the trigger knows of the user's wishes."""
        policy: dict[str, Any] = self.trigger["policy"]
        return policy

    @property
    def options(self) -> dict[str, Any]:
        """The pipeline options as the job holds them."""
        options: dict[str, Any] = self.job["environment"]["sdkPipelineOptions"]["options"]
        return options


@dataclass(frozen=True, kw_only=True)
class Row:
    """A parameter's value, the launcher's flag that says it if one does, and where else it shows."""

    value: Any
    flag: str | None = None
    seen: Callable[[Arrived], Any]
    wanted: Any


def row(value: Any, seen: Callable[[Arrived], Any], wanted: Any = None, flag: str | None = None) -> Row:
    return Row(value=value, flag=flag, seen=seen, wanted=value if wanted is None else wanted)


# Not together with others here, or of no effect on the wire: each has a test of its own, below or among those of the
# other ways of submitting.
ALONE = {"py_module", "beam_version"}
OTHER_WAYS = {"jar", "job_class", "go_binary", "template", "flex_template", "parameters", "sdk"}
ENVIRONMENT = {"py_requirements", "py_system_site_packages"}

ROWS: dict[str, Row] = {
    "placement": row("nvidia-l4 on g2-standard-12", lambda a: a.pool["machineType"], "g2-standard-12"),
    "region": row("us-central1", lambda a: a.job["location"], flag="--region=us-central1"),
    "fallback": row(
        ["nvidia-tesla-t4 on n1-standard-8 in europe-west4"],
        lambda a: a.trigger["record"]["plan"][1]["placement"],
        "nvidia-tesla-t4 on n1-standard-8 in europe-west4",
    ),
    "fallback_on": row(["stockout"], lambda a: a.policy["fallback_on"]),
    "on_unproven": row("fail", lambda a: a.policy["on_unproven"]),
    "wait_until": row("proven", lambda a: a.policy["wait_until"]),
    "drain_pipeline": row(True, lambda a: a.policy["drain"]),
    "start_timeout": row(1234, lambda a: a.policy["start_timeout"]),
    "cancel_timeout": row(234, lambda a: a.policy["cancel_timeout"]),
    "poll_interval": row(0.75, lambda a: a.trigger["poll_interval"]),
    "deferrable": row(True, lambda a: bool(a.trigger)),
    "project_id": row(PROJECT, lambda a: a.call["path"]["projectId"], flag=f"--project={PROJECT}"),
    "gcp_conn_id": row("accelerators", lambda a: a.trigger["gcp_conn_id"]),
    "impersonation_chain": row(PIPELINE_ACCOUNT, lambda a: a.call["principal"]),
    "quota_project_id": row("acme-billing", lambda a: a.trigger["quota_project_id"]),
    "job_name": row("Nightly Scores", lambda a: a.job["name"].rpartition("-")[0], "nightly-scores"),
    "py_file": row(ECHO, lambda a: ECHO in a.note["interpreter"], wanted=True),
    "py_interpreter": row(None, lambda a: "launched_by=wrapper" in a.note["interpreter"], wanted=True),
    "py_options": row(["-W", "ignore"], lambda a: " ".join(a.note["interpreter"]).count("-W ignore"), wanted=1),
    "pipeline_options": row({"text": "a b"}, lambda a: a.options["text"], "a b", flag="--text=a b"),
    "default_pipeline_options": row(
        {"texts": ["x", "y z"], "text": "not this"}, lambda a: a.options["texts"], ["x", "y z"], flag="--texts=y z"
    ),
    "service_options": row(
        ["enable_google_cloud_profiler"],
        lambda a: a.job["environment"]["serviceOptions"][-1],
        "enable_google_cloud_profiler",
    ),
    "experiments": row(
        ["shuffle_mode=service"],
        lambda a: "shuffle_mode=service" in a.options["experiments"],
        wanted=True,
        flag="--experiments=shuffle_mode=service",
    ),
    "sdk_container_image": row(
        IMAGE, lambda a: a.pool["workerHarnessContainerImage"], flag=f"--sdk_container_image={IMAGE}"
    ),
    "num_workers": row(2, lambda a: a.pool["numWorkers"], flag="--num_workers=2"),
    "max_num_workers": row(3, lambda a: a.pool["autoscalingSettings"]["maxNumWorkers"], flag="--max_num_workers=3"),
    "disk_size_gb": row(77, lambda a: a.pool["diskSizeGb"], flag="--disk_size_gb=77"),
    "service_account_email": row(
        PIPELINE_ACCOUNT,
        lambda a: a.job["environment"]["serviceAccountEmail"],
        flag=f"--service_account_email={PIPELINE_ACCOUNT}",
    ),
    "network": row("ml", lambda a: a.pool["network"], flag="--network=ml"),
    "subnetwork": row(
        "regions/{region}/subnetworks/ml", lambda a: a.pool["subnetwork"], "regions/us-central1/subnetworks/ml"
    ),
    "use_public_ips": row(False, lambda a: a.pool["ipConfiguration"], "WORKER_IP_PRIVATE", flag="--no_use_public_ips"),
    "dataflow_kms_key": row(KEY, lambda a: a.job["environment"]["serviceKmsKeyName"], KEY.format(region="us-central1")),
    "reservation": row(
        "any",
        lambda a: a.job["environment"]["serviceOptions"][1],
        "automatically_use_created_reservation",
        flag="--dataflow_service_options=automatically_use_created_reservation",
    ),
    "labels": row({"team": "vision"}, lambda a: a.job["labels"]["team"], "vision", flag="--labels=team=vision"),
    "driver_version": row(
        "535", lambda a: "install-nvidia-driver:535" in a.job["environment"]["serviceOptions"][0], wanted=True
    ),
    "use_mps": row(True, lambda a: a.job["environment"]["serviceOptions"][0].endswith(";use_nvidia_mps")),
    "sdk_processes": row(
        "per_vcpu", lambda a: "no_use_multiple_sdk_containers" in a.options["experiments"], wanted=False
    ),
    "number_of_worker_harness_threads": row(
        5, lambda a: a.pool["numThreadsPerWorker"], flag="--number_of_worker_harness_threads=5"
    ),
}


TPU_ROWS: dict[str, Row] = {
    **{name: each for name, each in ROWS.items() if name not in {"driver_version", "use_mps"}},
    "placement": row(
        "tpu-v6e-slice:1x1 on ct6e-standard-1t",
        lambda a: a.job["environment"]["serviceOptions"][0],
        "worker_accelerator=type:tpu-v6e-slice;topology:1x1",
        flag="--machine_type=ct6e-standard-1t",
    ),
}
BY_KIND: dict[type[Operator], dict[str, Row]] = {BeamGpuPipelineOperator: ROWS, BeamTpuPipelineOperator: TPU_ROWS}
CASES = [(kind, name) for kind, rows in BY_KIND.items() for name in rows]


def parameters(kind: type[Operator]) -> set[str]:
    """Return the names of all parameters, the operator's own and those it shares with others."""
    classes = [cls for cls in kind.__mro__ if issubclass(cls, AcceleratorJobOperator)]
    return {name for cls in classes for name in inspect.signature(cls.__init__).parameters} - {"self", "args", "kwargs"}


@pytest.fixture(scope="module")
def arrivals(started_google: LocalGoogle, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Arrived]:
    """Return what submits one job with all parameters said, once for each operator."""

    @cache
    def arrived(kind: type[Operator]) -> Arrived:
        return _submitted(kind, started_google, tmp_path_factory)

    return arrived


def _submitted(kind: type[Operator], started_google: LocalGoogle, tmp_path_factory: pytest.TempPathFactory) -> Arrived:
    directory = tmp_path_factory.mktemp("launch")
    wrapper = directory / "python"
    wrapper.write_text(f'#!/bin/sh\nexec {sys.executable} -X launched_by=wrapper "$@"\n')
    wrapper.chmod(0o755)
    values = {name: each.value for name, each in BY_KIND[kind].items()}
    values |= {"py_interpreter": str(wrapper)}
    values["pipeline_options"] = {**values["pipeline_options"], "note": str(directory / "note.json")}
    with pytest.MonkeyPatch.context() as patch:
        # The default connection leads nowhere, and the one that is named has another project of its own.
        patch.setenv("AIRFLOW_CONN_GOOGLE_CLOUD_DEFAULT", '{"conn_type": "google_cloud_platform"}')
        patch.setenv("AIRFLOW_CONN_ACCELERATORS", started_google.connection(project="acme-other"))
        started_google.emulator.set_world("plenty")
        since = started_google.mark()
        run = run_of(started_google, kind=kind, **values)
        with pytest.raises(TaskDeferred) as deferred:
            run.execute()
        patch.setenv("AIRFLOW_CONN_GOOGLE_CLOUD_DEFAULT", started_google.connection())
        job = wait_for("the job to be described whole", lambda: _started(started_google, run), seconds=30)
        started_google.cancel(job)
    return Arrived(
        note=json.loads((directory / "note.json").read_text()),
        job=job,
        call=started_google.calls(CREATE, since=since)[0],
        trigger=deferred.value.trigger.serialize()[1],
        record=run.record,
    )


def _started(google: LocalGoogle, run: TaskRun) -> dict[str, Any] | None:
    job = google.job(run.xcom["dataflow_job_id"], "us-central1")
    return job if "startTime" in job else None


@pytest.mark.parametrize("kind", BY_KIND)
def test_no_parameter_is_forgotten(kind: type[Operator]) -> None:
    """Each accepted parameter has a row here, or a test of its own."""
    assert parameters(kind) == BY_KIND[kind].keys() | ALONE | OTHER_WAYS | ENVIRONMENT


@pytest.mark.parametrize(("kind", "name"), CASES)
def test_parameter_arrives(arrivals: Callable[..., Arrived], kind: type[Operator], name: str) -> None:
    """A parameter's value is said to the launcher and shows in the job, its call, the trigger or the record."""
    arrived, each = arrivals(kind), BY_KIND[kind][name]
    assert each.seen(arrived) == each.wanted
    if each.flag:
        assert each.flag in arrived.flags


@pytest.mark.parametrize("kind", BY_KIND)
def test_flags_are_said_once(arrivals: Callable[..., Arrived], kind: type[Operator]) -> None:
    """No single-valued flag is said twice, and nothing is said that no parameter asked for."""
    arrived = arrivals(kind)
    names = [flag.partition("=")[0] for flag in arrived.flags]
    many = {"--labels", "--experiments", "--dataflow_service_options", "--texts"}
    assert len([name for name in names if name not in many]) == len(set(names) - many)
    assert "None" not in " ".join(arrived.flags)


def test_beam_version_is_checked() -> None:
    """A Beam that is too old for the accelerator is refused when the DAG is parsed."""
    with pytest.raises(AcceleratorConfigurationError, match=r"beam_version: nvidia-l4 needs Beam [\d.]+ or newer"):
        score(beam_version="2.40.0")


def test_gpu_after_a_tpu_has_its_own_driver(google: LocalGoogle, tmp_path: Path) -> None:
    """What only GPUs have is said by the candidates that have one, and the TPU before them is asked for without."""
    google.emulator.set_world("tpu-stockout")
    note = tmp_path / "note.json"
    run = run_of(
        google,
        kind=BeamTpuPipelineOperator,
        placement="tpu-v6e-slice:1x1 in us-central1",
        fallback=[{"placement": "nvidia-l4 in us-central1", "driver_version": "535", "sdk_processes": "one"}],
        pipeline_options={"note": str(note)},
    )
    result = run.run()
    assert [each["placement"].split()[0] for each in result["attempts"]] == ["tpu-v6e-slice:1x1", "nvidia-l4"]
    option = "--dataflow_service_options=worker_accelerator=type:nvidia-l4;count:1;install-nvidia-driver:535"
    assert option in json.loads(note.read_text())["argv"]


def test_module_is_launched(google: LocalGoogle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pipeline can be a module instead of a file."""
    monkeypatch.setenv("PYTHONPATH", str(PIPELINES.parent))
    note = tmp_path / "note.json"
    run = run_of(google, py_file=None, py_module="pipelines.echo", pipeline_options={"note": str(note)})
    assert run.run()["state"] == "done"
    assert json.loads(note.read_text())["interpreter"][1:3] == ["-m", "pipelines.echo"]


def test_file_in_a_bucket_is_launched(google: LocalGoogle) -> None:
    """A pipeline file can lie in a bucket, and its address may be templated."""
    google.bucket(BUCKET).blob("pipelines/2026-03-02/echo.py").upload_from_filename(ECHO)
    run = run_of(
        google, py_file="gs://{{ params.bucket }}/pipelines/{{ ds }}/echo.py", run={"params": {"bucket": BUCKET}}
    )
    assert run.run()["state"] == "done"


HOSTILE = {
    "quotes": 'it\'s a "day"',
    "separators": "a b,c;d=e|f&g",
    "shell": "$(touch {path}) `touch {path}` > {path}; touch {path}",
    "lines": "one\ntwo\n\tthree\\n",
    "other": "ünï-çødé 日本 🙂 --region=europe-west1",
    "braces": '{"a": {"b": "{zone_of}"}} %s {0}',
}


def test_values_arrive_as_they_are(google: LocalGoogle, tmp_path: Path) -> None:
    """Quotes, spaces, separators, shell syntax, line breaks and other alphabets reach the pipeline unchanged."""
    touched = tmp_path / "touched"
    texts = [text.replace("{path}", str(touched)) for text in HOSTILE.values()]
    run = run_of(
        google, pipeline_options={"text": "\n".join(texts), "texts": texts, "output": f"gs://{BUCKET}/hostile"}
    )
    run.run()
    written = json.loads(google.bucket(BUCKET).blob("hostile").download_as_text())
    assert written == {"text": "\n".join(texts), "texts": texts}
    assert not touched.exists()
