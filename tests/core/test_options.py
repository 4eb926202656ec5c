"""Requests as Beam reads them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_accel_provider.core.accelerators import Accelerator, Cpu, Gpu, Tpu
from airflow_accel_provider.core.catalog import load_catalog
from airflow_accel_provider.core.options import beam_flags, option_flags, worker_accelerator
from airflow_accel_provider.core.request import BeamRequest, Candidate
from airflow_accel_provider.core.validation import resolve
from tests.core.full_request import WORKERS

OWN_LABELS = {"accel-owner": "o-1", "accel-life": "1"}
FULL = BeamRequest(
    py_file="gs://acme-ml/score.py",
    pipeline_options={
        "temp_location": "gs://acme-ml-{region}/tmp",
        "staging_location": "gs://acme-ml-{region}/staging",
        "save_main_session": True,
        "labels": {"from": "options"},
        "experiments": ["use_beam_bq_sink"],
        "dataflow_service_options": "enable_google_cloud_profiler",
    },
    default_pipeline_options={"enable_hot_key_logging": True, "labels": ["default=yes", "from=defaults"]},
    service_options=("max_workflow_runtime_walltime_seconds=3600",),
    sdk_container_image="{region}-docker.pkg.dev/acme/beam/gpu:2.77.0",
    **WORKERS,
)


# The place's own tokens are filled in, all other texts stay as they are.
TEXTS = st.text().filter(lambda text: not any(token in text for token in ("{region}", "{zone}", "{accelerator}")))


def flags_of(
    request: BeamRequest, placement: str = "nvidia-l4 in us-central1-a", endpoint: str | None = None
) -> tuple[str, ...]:
    """Return the rendered arguments of a request in a place."""
    candidate = resolve(Candidate.parse(placement), load_catalog())
    return beam_flags(
        request.for_candidate(candidate),
        candidate.placement,
        project="acme-ml-prod",
        job_name="score-1a2b",
        labels=OWN_LABELS,
        endpoint=endpoint,
    )


def options_of(flags: tuple[str, ...]) -> dict[str, Any]:
    """Return what Beam reads from the arguments, failing if it does not know one of them."""
    from apache_beam.options.pipeline_options import PipelineOptions, _BeamArgumentParser

    parser = _BeamArgumentParser(allow_abbrev=False)
    for views in PipelineOptions.__subclasses__():
        if views.__module__ == PipelineOptions.__module__:
            views._add_argparse_args(parser)
    known, unknown = parser.parse_known_args(list(flags))
    assert unknown == []
    return vars(known)


@pytest.mark.parametrize(
    ("accelerator", "options", "text"),
    # Token order: https://cloud.google.com/dataflow/docs/gpu/use-gpus ("the order of tokens matters") and, for TPUs,
    # https://cloud.google.com/dataflow/docs/tpu/use-tpus.
    [
        (Gpu("nvidia-l4"), {}, "type:nvidia-l4;count:1;install-nvidia-driver"),
        (Gpu("nvidia-tesla-t4", 2), {}, "type:nvidia-tesla-t4;count:2;install-nvidia-driver"),
        (Gpu("nvidia-l4"), {"driver_version": "535"}, "type:nvidia-l4;count:1;install-nvidia-driver:535"),
        (Gpu("nvidia-l4"), {"use_mps": True}, "type:nvidia-l4;count:1;install-nvidia-driver;use_nvidia_mps"),
        (Tpu("tpu-v6e-slice", "2x2"), {}, "type:tpu-v6e-slice;topology:2x2"),
    ],
)
def test_accelerator_is_written_in_canonical_order(
    accelerator: Accelerator, options: dict[str, Any], text: str
) -> None:
    """The service option's tokens always come in the order that the service documents."""
    assert worker_accelerator(accelerator, **options) == text


def test_cpu_has_no_service_option() -> None:
    """CPUs are not asked for as an accelerator, and keep Beam's own processes and disk."""
    with pytest.raises(ValueError, match="no accelerator"):
        worker_accelerator(Cpu())
    flags = flags_of(BeamRequest(py_file="a.py"), "cpu on n2-standard-8 in us-central1")
    assert not [flag for flag in flags if "accelerator" in flag or "sdk_containers" in flag or "disk" in flag]


def test_every_parameter_reaches_beam() -> None:
    """Beam knows every argument that a request with all parameters becomes, and reads the values that were meant."""
    read = options_of(flags_of(FULL, endpoint="http://localhost:8080"))
    expected = {
        "runner": "DataflowRunner",
        "project": "acme-ml-prod",
        "region": "us-central1",
        "worker_zone": "us-central1-a",
        "machine_type": "g2-standard-4",
        "job_name": "score-1a2b",
        "sdk_container_image": "us-central1-docker.pkg.dev/acme/beam/gpu:2.77.0",
        "disk_size_gb": 100,
        "num_workers": 1,
        "max_num_workers": 4,
        "number_of_worker_harness_threads": 8,
        "service_account_email": "worker@acme-ml-prod.iam.gserviceaccount.com",
        "network": "acme",
        "subnetwork": "regions/us-central1/subnetworks/ml",
        "use_public_ips": False,
        "dataflow_kms_key": "projects/acme/locations/us-central1/keyRings/ml/cryptoKeys/beam",
        "dataflow_endpoint": "http://localhost:8080",
        "temp_location": "gs://acme-ml-us-central1/tmp",
        "staging_location": "gs://acme-ml-us-central1/staging",
        "save_main_session": True,
        "enable_hot_key_logging": True,
        "labels": ["default=yes", "from=options", "team=ml", "accel-owner=o-1", "accel-life=1"],
        "dataflow_service_options": [
            "worker_accelerator=type:nvidia-l4;count:1;install-nvidia-driver:535",
            "max_workflow_runtime_walltime_seconds=3600",
            "enable_google_cloud_profiler",
        ],
        "experiments": ["no_use_multiple_sdk_containers", "upload_graph", "use_beam_bq_sink"],
    }
    assert {name: read[name] for name in expected} == expected


def test_beams_validator_accepts_what_is_sent_to_the_real_service(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beam's own checks for Dataflow find nothing wrong with a rendered request, and do find an invalid one."""
    from apache_beam.options.pipeline_options import GoogleCloudOptions, PipelineOptions
    from apache_beam.options.pipeline_options_validator import PipelineOptionsValidator
    from apache_beam.runners import DataflowRunner

    # It would ask the real bucket whether it keeps deleted objects.
    monkeypatch.setattr(GoogleCloudOptions, "_warn_if_soft_delete_policy_enabled", lambda *_: None)

    def errors(flags: tuple[str, ...]) -> list[str]:
        validator = PipelineOptionsValidator(PipelineOptions(list(flags)), DataflowRunner())
        assert validator.is_service_runner()
        return validator.validate()

    assert errors(flags_of(FULL)) == []
    assert errors((*flags_of(FULL), "--job_name=Not A Name")) != []


def test_parameters_left_out_are_left_to_the_service() -> None:
    """A request that says little sends little: place, names, labels, accelerator, one process, and a disk that fits."""
    names = {flag.partition("=")[0] for flag in flags_of(BeamRequest(py_file="a.py"), "nvidia-l4 in us-central1")}
    assert names == {
        "--runner",
        "--project",
        "--region",
        "--machine_type",
        "--job_name",
        "--labels",
        "--dataflow_service_options",
        "--experiments",
        "--disk_size_gb",
    }


@pytest.mark.parametrize("request_", [BeamRequest(sdk_processes="per_vcpu"), BeamRequest(use_mps=True)])
def test_several_processes_when_asked_for(request_: BeamRequest) -> None:
    """Beam's default of one process per vCPU is kept when asked for, and with MPS, which is for several processes."""
    assert "--experiments=no_use_multiple_sdk_containers" not in flags_of(request_)


def test_own_labels_win() -> None:
    """A user's label never replaces one that ties the job to its task."""
    read = options_of(flags_of(BeamRequest(labels={"accel-owner": "me"}, pipeline_options={"labels": '{"a": "b"}'})))
    assert read["labels"] == ["a=b", "accel-owner=o-1", "accel-life=1"]


def test_options_overlay_defaults() -> None:
    """What pipeline_options says wins over default_pipeline_options, and is said once."""
    request = BeamRequest(default_pipeline_options={"a": 1, "b": 1}, pipeline_options={"b": 2, "disk_size_gb": 80})
    flags = flags_of(request)
    assert flags[-2:] == ("--a=1", "--b=2")
    assert [flag for flag in flags if "disk" in flag] == ["--disk_size_gb=80"]


@pytest.mark.parametrize(
    ("value", "flags"),
    [
        (None, ()),
        (True, ("--name",)),
        (False, ()),
        (0, ("--name=0",)),
        ("", ("--name=",)),
        ("a b; $(c) 'd' \"e\"\n--f", ("--name=a b; $(c) 'd' \"e\"\n--f",)),
        (["a", "b"], ("--name=a", "--name=b")),
        ((), ()),
        ({"a": [1, "é"]}, ('--name={"a": [1, "\\u00e9"]}',)),
    ],
)
def test_value_is_written_as_its_kind_demands(value: Any, flags: tuple[str, ...]) -> None:
    """Each kind of value has one way to be written, and texts keep every character."""
    assert option_flags("name", value) == flags


def test_false_is_said_where_beam_can_say_it() -> None:
    """The options that Beam can switch off by a flag are switched off by False."""
    from apache_beam.options.pipeline_options import _FLAG_THAT_SETS_FALSE_VALUE

    for name, flag in _FLAG_THAT_SETS_FALSE_VALUE.items():
        assert option_flags(name, False) == (f"--{flag}",)
        assert options_of(option_flags(name, False))[name] is False


@settings(max_examples=50, deadline=None)
@given(TEXTS, st.dictionaries(TEXTS, st.integers() | TEXTS, max_size=3))
def test_beam_reads_back_what_was_said(text: str, mapping: dict[str, Any]) -> None:
    """Any text and any mapping arrive in the pipeline as they were given."""
    from argparse import ArgumentParser

    parser = ArgumentParser()
    parser.add_argument("--text")
    parser.add_argument("--mapping", type=json.loads)
    request = BeamRequest(pipeline_options={"text": text, "mapping": mapping})
    candidate = Candidate.parse("cpu in us-central1")
    flags = beam_flags(request, candidate.placement, project="acme-ml-prod", job_name="score", labels={}, endpoint=None)
    known, _ = parser.parse_known_args(list(flags))
    assert (known.text, known.mapping) == (text, mapping)


def test_order_is_always_the_same() -> None:
    """The same request renders to the same arguments in the same order."""
    assert flags_of(FULL) == flags_of(FULL)
