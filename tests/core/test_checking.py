"""An operator's keyword arguments, checked without Airflow, are judged as the operator judges them."""

from __future__ import annotations

import inspect
import json
from dataclasses import fields
from datetime import date
from typing import Any

import pytest
from airflow.sdk import BaseOperator
from hypothesis import given
from hypothesis import strategies as st

from airflow_accel_provider.core.catalog import load_catalog
from airflow_accel_provider.core.checking import Checked, check_request
from airflow_accel_provider.core.options import beam_flags
from airflow_accel_provider.core.parameters import AIRFLOW_PARAMETERS, PARAMETERS, SPARK_PARAMETERS
from airflow_accel_provider.core.placement import Placement
from airflow_accel_provider.core.request import BeamRequest, Candidate
from airflow_accel_provider.core.spark import SparkRequest
from airflow_accel_provider.exceptions import AcceleratorConfigurationError
from airflow_accel_provider.operators._job import AcceleratorJobOperator
from airflow_accel_provider.operators.beam import BeamGpuPipelineOperator, BeamTpuPipelineOperator

GPU: dict[str, Any] = {
    "operator": "BeamGpuPipelineOperator",
    "placement": "nvidia-l4 on g2-standard-8 in europe-west3",
    "fallback": ["nvidia-l4 in europe-west4"],
    "py_file": "gs://acme-ml/pipelines/score.py",
    "sdk_container_image": "europe-docker.pkg.dev/acme/beam/gpu:2.77.0",
    "pipeline_options": {"temp_location": "gs://acme-ml-{region}/tmp", "threshold": 0.5},
    "labels": {"team": "ml"},
}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda children: st.lists(children, max_size=3) | st.dictionaries(st.text(max_size=8), children, max_size=3),
    max_leaves=6,
)


def check(request: Any, **said: Any) -> Checked:
    return check_request(request, catalog=load_catalog(), today=date(2026, 11, 29), **said)


def codes(checked: Checked) -> list[str]:
    return [problem.code for problem in checked.problems if problem.is_error]


def parameters(cls: type) -> set[str]:
    return set(inspect.signature(cls.__init__).parameters) - {"self", "args", "kwargs"}


def own_parameters(cls: type) -> set[str]:
    """Return what an operator takes besides what Airflow gives to all."""
    return {name for each in cls.__mro__ if issubclass(each, AcceleratorJobOperator) for name in parameters(each)}


@pytest.mark.parametrize("operator", [BeamGpuPipelineOperator, BeamTpuPipelineOperator])
def test_the_operators_parameters_are_known(operator: type) -> None:
    """A request takes exactly the parameters that the operator takes."""
    assert PARAMETERS[operator.__name__] == own_parameters(operator)


def test_airflows_parameters_are_known() -> None:
    """What every operator takes from Airflow may stand in a request."""
    assert parameters(BaseOperator) == AIRFLOW_PARAMETERS
    assert codes(check({**GPU, "task_id": "score", "retries": 2, "pool": "gpus", "doc_md": "…"})) == []


def test_a_good_request_is_rendered() -> None:
    """What would be sent stands in the answer as the launcher gets it, without what only a run knows."""
    placement = Placement.parse(GPU["placement"])
    fields = {name: value for name, value in GPU.items() if name not in {"operator", "placement", "fallback"}}
    request = BeamRequest(**fields).for_candidate(Candidate(placement=placement))
    sent = beam_flags(request, placement, project="acme", job_name="score-1", labels={"accel-owner": "x"})
    checked = check(GPU)

    assert checked.is_ok
    assert set(sent) - set(checked.rendered) == {"--project=acme", "--job_name=score-1", "--labels=accel-owner=x"}
    assert set(checked.rendered) <= set(sent)
    assert "--temp_location=gs://acme-ml-europe-west3/tmp" in checked.rendered


def test_a_known_project_is_rendered() -> None:
    """A project that the request names is among the flags."""
    assert "--project=acme-prod" in check({**GPU, "project_id": "acme-prod"}).rendered


def test_the_default_machine_is_rendered() -> None:
    """A placement without a machine type is sent with the catalogue's."""
    rendered = check({**GPU, "placement": "nvidia-l4:2 in us-central1"}).rendered
    assert "--machine_type=g2-standard-24" in rendered


TEMPLATE: dict[str, Any] = {**GPU, "py_file": None, "pipeline_options": {"temp_location": "gs://acme-ml-{region}/tmp"}}


def test_a_flex_template_is_rendered_as_the_launchs_body() -> None:
    """A Flex template's lines are the fields of the launch, an item of a list a line."""
    spec = {"flex_template": "gs://acme-ml/score.json", "parameters": {"input": "gs://acme-ml/in", "dtype": "bfloat16"}}
    assert check({**TEMPLATE, **spec, "reservation": "any", "max_num_workers": 3}).rendered == (
        "containerSpecGcsPath=gs://acme-ml/score.json",
        "parameters.disk_size_gb=50",
        "parameters.input=gs://acme-ml/in",
        "parameters.dtype=bfloat16",
        "environment.machineType=g2-standard-8",
        "environment.workerRegion=europe-west3",
        "environment.additionalExperiments=worker_accelerator=type:nvidia-l4;count:1;install-nvidia-driver",
        "environment.additionalExperiments=automatically_use_created_reservation",
        "environment.additionalExperiments=no_use_multiple_sdk_containers",
        "environment.additionalUserLabels.team=ml",
        "environment.maxWorkers=3",
        "environment.tempLocation=gs://acme-ml-europe-west3/tmp",
        "environment.sdkContainerImage=europe-docker.pkg.dev/acme/beam/gpu:2.77.0",
    )


def test_a_java_template_is_rendered_in_javas_words() -> None:
    """What has no field in a template's launch has the name that the template's SDK gives it."""
    java = {"sdk": "java", "pipeline_options": {"tempLocation": "gs://acme-ml/tmp"}}
    flex = check({**TEMPLATE, "flex_template": "gs://acme-ml/score.json", **java}).rendered
    classic = check({**TEMPLATE, "template": "gs://acme-ml/score", **java}).rendered
    assert "parameters.diskSizeGb=50" in flex
    assert not [line for line in flex if "sdk_containers" in line]
    assert classic[0] == "gcsPath=gs://acme-ml/score"
    assert "environment.diskSizeGb=50" in classic
    assert check({**TEMPLATE, "template": "gs://acme-ml/score"}).rendered == ()


@pytest.mark.parametrize(
    ("pipeline", "line"),
    [
        ({"jar": "gs://acme-ml/score.jar", "job_class": "com.acme.Score"}, "--workerMachineType=g2-standard-8"),
        ({"go_binary": "gs://acme-ml/score"}, "--worker_machine_type=g2-standard-8"),
    ],
    ids=["java", "go"],
)
def test_other_launchers_are_rendered_in_their_words(pipeline: dict[str, Any], line: str) -> None:
    """A jar and a Go binary get the arguments of their SDK, without what only a run knows."""
    rendered = check({**TEMPLATE, **pipeline, "pipeline_options": {}}).rendered
    assert line in rendered
    assert all(each.startswith("--") and each.partition("=")[2] for each in rendered)


def test_nothing_is_rendered_of_what_is_wrong() -> None:
    """A request with an error has no flags, since nothing would be sent."""
    assert check({**GPU, "placement": "nvidia-l4 on n1-standard-4 in us-central1"}).rendered == ()


def test_what_a_template_gives_is_not_judged() -> None:
    """A placement that Jinja fills in is no problem, and is not rendered."""
    checked = check({**GPU, "placement": "{{ var.value.place }}"})
    assert (checked.is_ok, checked.rendered) == (True, ())


SPARK: dict[str, Any] = {
    "operator": "DataprocGpuBatchOperator",
    "placement": "l4 in us-central1",
    "fallback": ["a100-40 in us-central1", "l4 in europe-west4"],
    "batch": {"pyspark_batch": {"main_python_file_uri": "gs://acme-ml/etl.py"}},
    "executors": 4,
    "runtime_version": "2.3",
    "properties": {"spark.executor.memory": "10g"},
}

WRONG: list[tuple[Any, str, str]] = [
    ("nvidia-l4", "request-invalid", "is an object"),
    ([GPU], "request-invalid", "is an object"),
    (None, "request-invalid", "is an object"),
    ({}, "operator-missing", "BeamGpuPipelineOperator"),
    ({**GPU, "operator": "BeamGpuOperator"}, "operator-unknown", "Did you mean BeamGpuPipelineOperator?"),
    ({**GPU, "operator": ["x"]}, "operator-unknown", "There are BeamGpu"),
    ({**GPU, "max_workers": 3}, "parameter-unknown", "Did you mean max_num_workers?"),
    ({**GPU, "threshold": 3}, "parameter-unknown", "pipeline_options"),
    (
        {**GPU, "operator": "BeamTpuPipelineOperator", "placement": "tpu-v6e-slice:1x1 in us-east5-b", "use_mps": True},
        "parameter-unknown",
        "in the mapping of a fallback",
    ),
    ({**SPARK, "service_account": "x"}, "parameter-unknown", "environment_config.execution_config.service_account."),
    ({**SPARK, "py_file": "gs://acme-ml/x.py"}, "parameter-unknown", "pyspark_batch.main_python_file_uri."),
    ({**SPARK, "threshold": 3}, "parameter-unknown", "go into properties"),
    ({**GPU, "placement": None}, "placement-invalid", "not a placement"),
    ({name: value for name, value in GPU.items() if name != "placement"}, "parameter-missing", "nvidia-l4"),
    ({**GPU, "fallback_on": ["stock_out"]}, "unknown-kind", "Did you mean 'stockout'?"),
    ({**GPU, "project_id": 12}, "wrong-type", "give a text"),
    ({**GPU, "poll_interval": 0}, "not-seconds", "more than 0"),
]


@pytest.mark.parametrize(("request_", "code", "said"), WRONG, ids=[row[1] for row in WRONG])
def test_wrong_requests(request_: Any, code: str, said: str) -> None:
    """Whatever is wrong with a request is one problem with the nearest right thing."""
    checked = check(request_)
    assert codes(checked) == [code]
    assert said in next(problem.message for problem in checked.problems if problem.is_error)
    assert not checked.to_json()["ok"]


def test_all_problems_at_once() -> None:
    """Problems of names, life, options and places come in one answer."""
    wrong = {
        **GPU,
        "placment": "x",
        "poll_interval": -1,
        "num_workers": "many",
        "fallback": ["nvidia-l4:3 in us-east4"],
    }
    assert codes(check(wrong)) == ["parameter-unknown", "not-seconds", "not-a-number", "count-invalid"]


def test_regions_may_be_restricted() -> None:
    """A place outside the allowed regions is an error."""
    assert codes(check(GPU, allowed_regions=frozenset({"europe-west3"}))) == ["region-not-allowed"]


@pytest.mark.filterwarnings("ignore::airflow_accel_provider.exceptions.AcceleratorWarning")
@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"placement": "nvidia-l4 on n1-standard-4 in us-central1"},
        {"placement": "nvidia-tesla-k80 in us-central1", "poll_interval": -3},
        {"py_file": None},
        {"pipeline_options": {"job_name": "x", "region": "us-central1"}},
        {"num_workers": 5, "max_num_workers": 2, "on_unproven": "maybe"},
        {"deferrable": None, "poll_interval": None, "pipeline_options": None, "labels": None},
    ],
    ids=str,
)
def test_the_operator_says_the_same(changed: dict[str, Any]) -> None:
    """A request is refused exactly when the operator refuses it, in the same words."""
    checked = check({**GPU, **changed})
    keywords = {name: value for name, value in {**GPU, **changed}.items() if name != "operator"}
    if checked.is_ok:
        BeamGpuPipelineOperator(task_id="score", **keywords)
        return
    with pytest.raises(AcceleratorConfigurationError) as raised:
        BeamGpuPipelineOperator(task_id="score", **keywords)
    said = set(str(raised.value).splitlines()[1:])
    assert said == {f"- {problem}" for problem in checked.problems if problem.is_error}


@given(st.dictionaries(st.sampled_from(sorted({*GPU, *PARAMETERS["BeamGpuPipelineOperator"]})), JSON, max_size=5))
def test_no_value_breaks_it(changed: dict[str, Any]) -> None:
    """Any JSON in any parameter gets an answer that is JSON."""
    for base in (GPU, {**GPU, "operator": "BeamTpuPipelineOperator", "placement": "tpu-v6e-slice:2x2 in us-east5-b"}):
        answer = check({**base, **changed}).to_json()
        assert json.loads(json.dumps(answer)) == answer


@given(JSON)
def test_no_request_breaks_it(value: Any) -> None:
    """Any JSON as a request gets an answer."""
    assert not check(value).is_ok


def test_the_batchs_parameters_are_known() -> None:
    """What makes up a batch can be said under the names that its request has."""
    assert set(SPARK_PARAMETERS) == {spec.name for spec in fields(SparkRequest)}


def test_a_spark_batch_is_rendered_as_properties() -> None:
    """What a batch would be sent is its properties, the user's among them."""
    checked = check(SPARK)
    assert checked.is_ok, checked
    said = dict(each.split("=", 1) for each in checked.rendered)
    assert said["spark.dataproc.executor.resource.accelerator.type"] == "l4"
    assert (said["spark.executor.instances"], said["spark.executor.memory"]) == ("4", "10g")


SPARK_WRONG: list[tuple[dict[str, Any], str]] = [
    ({"placement": "nvidia-l4 in us-central1"}, "l4"),
    ({"placement": "l4 in us-central1-a"}, "zone"),
    ({"executers": 4}, "Did you mean executors?"),
    ({"job_name": "x"}, "no parameter 'job_name'"),
    ({"executors": 1}, "2"),
]


@pytest.mark.parametrize(("changed", "said"), SPARK_WRONG, ids=str)
def test_wrong_spark_batches(changed: dict[str, Any], said: str) -> None:
    """Mistakes in a Spark batch are told with what would be right, and nothing is rendered."""
    checked = check({**SPARK, **changed})
    assert (checked.is_ok, checked.rendered) == (False, ())
    assert any(said in problem.message for problem in checked.problems if problem.is_error)


@given(st.dictionaries(st.sampled_from(sorted(PARAMETERS["DataprocGpuBatchOperator"])), JSON, max_size=4))
def test_no_value_breaks_a_spark_batch(changed: dict[str, Any]) -> None:
    """Any JSON in any parameter of a batch gets an answer that is JSON."""
    answer = check({**SPARK, **changed}).to_json()
    assert json.loads(json.dumps(answer)) == answer
