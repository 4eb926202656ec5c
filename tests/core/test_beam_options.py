"""Beam's own option names, and what wrong ones most likely meant."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_accel_provider.core.beam_options import (
    SDKS,
    Kind,
    Sdk,
    in_python_names,
    letters,
    load_options,
    meant_by,
)
from airflow_accel_provider.core.packaged import read_rows
from airflow_accel_provider.core.problems import Problem
from airflow_accel_provider.core.validation._options import _RESERVED, check_options

FILES = ("beam_options_python", "beam_options_java", "beam_options_go", "beam_options_mistaken")
KINDS = {
    "_StoreTrueAction": "switch",
    "_StoreFalseAction": "switch",
    "_AppendAction": "list",
    "_CommaSeparatedListAction": "list",
    "_DictUnionAction": "mapping",
    "_GcsCustomAuditEntriesAction": "mapping",
}


def beams_rows() -> Iterator[dict[str, Any]]:
    """Yield the row of every option that the installed Beam declares itself."""
    from apache_beam.options import pipeline_options as beam

    parsers = []
    for view in beam.PipelineOptions.__subclasses__():
        if view.__module__ == beam.__name__:
            parser = beam._BeamArgumentParser(allow_abbrev=False)
            view._add_argparse_args(parser)
            parsers.append(parser)
    for action in (action for parser in parsers for action in parser._actions if action.dest != "help"):
        plain = {int: "integer", float: "number", str: "text", None: "text"}.get(action.type, "mapping")
        for name in (flag.lstrip("-") for flag in action.option_strings):
            row = {"name": name, "kind": KINDS.get(type(action).__name__, plain)}
            row |= {"sets": action.dest} if name != action.dest else {}
            row |= {"choices": list(action.choices)} if action.choices else {}
            row |= {"is_on": True} if type(action).__name__ == "_StoreTrueAction" and action.default is True else {}
            false_flag = beam._FLAG_THAT_SETS_FALSE_VALUE.get(name)
            yield row | ({"false_flag": false_flag} if false_flag else {})


def told(options: dict[Any, Any], sdk: Sdk = "python") -> list[tuple[str, str, str]]:
    """Return severity, code and message of each problem that options have."""
    return [(each.severity, each.code, each.message) for each in problems(options, sdk)]


def problems(options: dict[Any, Any], sdk: Sdk = "python") -> list[Problem]:
    return list(check_options(options, "pipeline_options", sdk))


def test_the_table_of_python_is_beams_own() -> None:
    """The captured options are exactly those that the installed Beam declares."""
    assert list(read_rows("beam_options_python").rows) == list(beams_rows())


@pytest.mark.parametrize("name", FILES)
def test_tables_have_source_and_date(name: str) -> None:
    """Every table says where it is from and when it was read."""
    table = read_rows(name)
    assert table.source
    assert table.date >= "2026-11-29"
    names = [row["name"] for row in table.rows]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize(("sdk", "least"), [("python", 150), ("java", 45), ("go", 40)])
def test_no_half_of_a_table_is_missing(sdk: Sdk, least: int) -> None:
    """Every SDK has its options, among them all that the placement and the operator say themselves."""
    table = load_options(sdk)
    assert len(table.options) >= least
    assert {option.kind for option in table.options.values()} <= set(get_args(Kind))
    own = {"project", "region", "worker_zone", "machine_type", "job_name", "labels", "dataflow_service_options"}
    own |= {"experiments", "sdk_container_image", "disk_size_gb", "num_workers", "max_num_workers"}
    own |= {"number_of_worker_harness_threads", "service_account_email", "network", "subnetwork", "dataflow_kms_key"}
    assert not [name for name in own if table.name_of(name) is None]


@pytest.mark.parametrize("sdk", ["java", "go"])
def test_names_in_python_are_names_of_beams_python(sdk: Sdk) -> None:
    """What Java and Go call the same thing as Python is an option of Python's."""
    python = load_options("python").options
    named = [option.python for option in load_options(sdk).options.values() if option.python]
    assert not [name for name in named if name not in python]


def test_mistaken_names_mean_something_else() -> None:
    """A name that people use wrongly is no option itself, and means one."""
    python = load_options("python")
    for row in read_rows("beam_options_mistaken").rows:
        assert row["name"] == letters(row["name"])
        assert row["name"] not in python.by_letters
        assert row["meant"] in python.options


@pytest.mark.parametrize("sdk", SDKS)
def test_every_option_may_be_said_by_its_own_name(sdk: Sdk) -> None:
    """No option that says nothing is refused for its name, and else only what the operator says itself."""
    reserved = {letters(name) for name in _RESERVED}
    for name in load_options(sdk).options:
        assert told({name: None}, sdk) == []
        assert [code for _, code, _ in told({name: "{{ x }}"}, sdk)] == ["option-pinned"] * (letters(name) in reserved)


# Each row: SDK, name, severity and a part of the message; "" for a name that is let through.
NAMES: list[tuple[Sdk, str, str, str]] = [
    ("python", "num-workers", "error", "write num_workers"),
    ("python", "numWorkers", "error", "write num_workers"),
    ("python", "--num_workers", "error", "write num_workers"),
    ("python", "NUM_WORKERS", "error", "write num_workers"),
    ("python", "workerDiskType", "error", "write worker_disk_type"),
    ("python", "dataflowServiceOptions", "error", "write dataflow_service_options"),
    ("python", "flexRSGoal", "error", "write flexrs_goal"),
    ("python", "pipeline_type_check", "error", "write no_pipeline_type_check, which is its opposite"),
    ("python", "job_name", "error", "job_name="),
    ("python", "jobName", "error", "job_name="),
    ("python", "worker_zone", "error", "in the placement"),
    ("python", "worker_region", "error", "in the placement"),
    ("python", "service_account", "error", "service_account_email="),
    ("python", "serviceAccount", "error", "service_account_email="),
    ("python", "update", "error", "every job is a new one"),
    ("python", "num_worker", "warning", "num_workers is meant"),
    ("python", "max_workers", "warning", "max_num_workers is meant"),
    ("python", "temp_loaction", "warning", "temp_location is meant"),
    ("python", "gcpTempLocation", "warning", "temp_location is meant"),
    ("python", "disk_size", "warning", "disk_size_gb is meant"),
    ("python", "container_image", "warning", "sdk_container_image is meant"),
    ("python", "kms_key", "warning", "dataflow_kms_key is meant"),
    ("python", "driver_version", "error", "driver_version= to the operator"),
    ("python", "input", "", ""),
    ("python", "output_table", "", ""),
    ("python", "model_name", "", ""),
    ("python", "batch_size", "", ""),
    ("python", "my-option", "", ""),
    ("python", "myOption", "", ""),
    ("python", "input.path", "", ""),
    ("java", "numWorkers", "", ""),
    ("java", "num_workers", "error", "Beam's Java does not know num_workers; write numWorkers"),
    ("java", "disk_size_gb", "error", "write diskSizeGb"),
    ("java", "workerMachineType", "error", "in the placement"),
    ("java", "serviceAccount", "error", "service_account_email="),
    ("java", "maxWorkers", "warning", "maxNumWorkers is meant"),
    ("java", "gcpTempLocation", "", ""),
    ("java", "inputFile", "", ""),
    ("go", "num_workers", "", ""),
    ("go", "numWorkers", "error", "Beam's Go does not know numWorkers; write num_workers"),
    ("go", "output", "", ""),
]


@pytest.mark.parametrize(("sdk", "name", "severity", "said"), NAMES, ids=[f"{row[0]} {row[1]}" for row in NAMES])
def test_name(sdk: Sdk, name: str, severity: str, said: str) -> None:
    """Another spelling of a known name is an error, a name close to one a warning, any other the pipeline's own."""
    found = told({name: "x"}, sdk)
    assert [each[0] for each in found] == ([severity] if severity else [])
    assert all(said in message for _, _, message in found)


@pytest.mark.parametrize("name", ["", "a b", "a=b", "1st", "--", "na\nme", 7, None])
def test_what_cannot_be_a_name_is_refused(name: Any) -> None:
    """A name that a command line cannot carry as one is refused."""
    assert [code for _, code, _ in told({name: "x"})] == ["option-name"]


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ({"streaming": True}, ""),
        ({"streaming": "true"}, ""),
        ({"streaming": "False"}, ""),
        ({"streaming": "yes"}, "True or False"),
        ({"streaming": 1}, "True or False"),
        ({"disk_provisioned_iops": 3000}, ""),
        ({"disk_provisioned_iops": "3000"}, ""),
        ({"disk_provisioned_iops": "many"}, "a whole number"),
        ({"disk_provisioned_iops": 1.5}, "a whole number"),
        ({"parallelism": "-1"}, ""),
        ({"profile_sample_rate": 0.5}, ""),
        ({"profile_sample_rate": "0.5"}, ""),
        ({"profile_sample_rate": True}, "a number"),
        ({"profile_sample_rate": "x"}, "a number"),
        ({"autoscaling_algorithm": "NONE"}, ""),
        ({"autoscaling_algorithm": "none"}, "one of NONE, THROUGHPUT_BASED"),
        ({"flexrs_goal": "COST"}, "one of COST_OPTIMIZED, SPEED_OPTIMIZED"),
        ({"min_cpu_platform": ["a"]}, "a text"),
        ({"min_cpu_platform": {"a": 1}}, "a text"),
        ({"extra_packages": ["a.tar.gz"]}, ""),
        ({"extra_packages": "a.tar.gz"}, ""),
        ({"transform_name_mapping": {"a": "b"}}, ""),
        ({"streaming": "{{ params.x }}"}, ""),
        ({"input": ["a", {"b": 1}]}, ""),
    ],
)
def test_value_that_beam_cannot_read_is_refused(options: dict[str, Any], wanted: str) -> None:
    """A value on which Beam's parser would end the launcher is refused, with what it takes."""
    found = told(options)
    assert [code for _, code, _ in found] == (["option-value"] if wanted else [])
    assert all(wanted in message for _, _, message in found)


def test_switch_that_is_always_on_is_told() -> None:
    """Switching off what Beam's command line cannot switch off is warned about."""
    assert [each[:2] for each in told({"enable_streaming_engine": False})] == [("warning", "option-not-sent")]
    assert told({"enable_streaming_engine": True, "save_main_session": False, "streaming": False}) == []


def test_nul_is_refused() -> None:
    """A NUL character, which no program can be given as an argument, is refused wherever it stands."""
    assert [code for _, code, _ in told({"input": ["a", {"b": "c\0"}]})] == ["option-value"]


@given(st.sampled_from(["java", "go"]), st.data())
def test_names_are_found_again(sdk: Sdk, data: st.DataObject) -> None:
    """An option of Java or Go that Python has too can be named in Python's way and back."""
    table = load_options(sdk)
    name = data.draw(st.sampled_from(sorted(table.options)))
    ((python_name, value),) = in_python_names({name: 1}, sdk).items()
    assert value == 1
    if table.python_name(name):
        assert table.python_name(table.name_of(python_name) or "") == python_name
    else:
        assert python_name == name


@given(st.from_regex(r"[a-z][a-z0-9_]{0,20}", fullmatch=True))
def test_what_is_meant_is_always_an_option(name: str) -> None:
    """Whatever is suggested for an unknown name is an option of the SDK in question."""
    for sdk in SDKS:
        meant = meant_by(sdk, name)
        assert meant is None or meant in load_options(sdk).options
