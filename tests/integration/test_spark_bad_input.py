"""Bad input of Spark batches: one clear error, when the DAG is parsed or the task starts, and nothing started."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Any

import pytest
from airflow.providers.google.cloud.operators.dataproc import DataprocCreateBatchOperator

from airflow_accel_provider.core.catalog import load_catalog
from airflow_accel_provider.core.checking import check_request
from airflow_accel_provider.core.elsewhere import ELSEWHERE
from airflow_accel_provider.core.parameters import AIRFLOW_PARAMETERS, PARAMETERS
from airflow_accel_provider.exceptions import AcceleratorConfigurationError
from tests.core import test_spark_rules as rules
from tests.integration.batches import CREATE, L4, MAIN, etl, etl_run

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.integration.local_google import LocalGoogle

OPERATOR = "DataprocGpuBatchOperator"
PYSPARK = {"pyspark_batch": {"main_python_file_uri": MAIN}}
LATER = "{{ params.wrong }}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wrong:
    """What is said wrongly, a part of the one error about it, and the value a template gives where one is late."""

    said: dict[str, Any]
    part: str
    late: Any = None

    def __str__(self) -> str:
        """Return a test's name."""
        return str({**self.said, **({"late": self.late} if self.late is not None else {})})[:90]


def _is_error(code: str) -> bool:
    return bool(code) and not code.startswith("?")


PROPERTIES = [
    Wrong(said={"placement": place, "runtime_version": version, "properties": properties}, part=part)
    for _, place, version, properties, code, part in rules.PROPERTIES
    if _is_error(code)
]
PLACES = [Wrong(said={"placement": place}, part=part) for _, place, code, part in rules.PLACES if _is_error(code)]
OTHERS = [Wrong(said=said, part=part) for _, said, code, _, part in rules.PARAMETERS if _is_error(code)]
OTHERS += [
    Wrong(said={"runtime_version": "1.0"}, part="There is no runtime 1.0"),
    Wrong(said={"runtime_version": "9.9"}, part="There is no runtime 9.9"),
    Wrong(said={"runtime_version": "latest"}, part="It is one of 1.1"),
    Wrong(said={"request_id": "a b"}, part="not a request's id"),
    Wrong(said={"metadata": [("x team", "ml")]}, part="cannot be sent"),
]
# What a template gives is known only when the task starts.
LATE = [
    *(
        Wrong(said={**row.said, "properties": {name: LATER}}, part=row.part, late=value)
        for row in PROPERTIES
        for name, value in row.said["properties"].items()
        if len(row.said["properties"]) == 1 and isinstance(name, str)
    ),
    *(Wrong(said={"placement": LATER}, part=row.part, late=row.said["placement"]) for row in PLACES),
    Wrong(said={"batch_id": LATER}, part="'nightly-etl' would do", late="Nightly ETL"),
    Wrong(said={"request_id": LATER}, part="not a request's id", late="a b"),
    Wrong(said={"labels": {"team": LATER}}, part="'ml' would do", late="ML"),
    Wrong(said={"runtime_version": LATER}, part="There is no runtime 9.9", late="9.9"),
    Wrong(said={"ttl": LATER}, part="The nearest is '600s'", late="599s"),
    Wrong(said={"ttl": LATER}, part="14 days", late="1209601s"),
    Wrong(said={"executors": LATER}, part="nearest is 2", late="1"),
    Wrong(said={"runtime_version": "3.0", "provisioning": LATER}, part="'queue' or 'default'", late="spot"),
    Wrong(said={"runtime_version": "3.0", "allocation_timeout": LATER}, part="7200", late="7201s"),
    Wrong(
        said={"batch": {"pyspark_batch": {"main_python_file_uri": LATER}}}, part="must end in .py", late="gs://b/x.r"
    ),
]


@pytest.fixture(scope="module")
def since(started_google: LocalGoogle) -> int:
    """Return where the ledger stood before the first of these tests."""
    return started_google.mark()


@pytest.fixture
def _nothing_starts(started_google: LocalGoogle, since: int) -> Iterator[None]:
    """See to it that the emulator was not asked for a batch, and has none."""
    yield
    ledger = started_google.emulator.ledger(since=since)
    assert [call for call in ledger["calls"] if call["method"] == CREATE] == []
    assert [event for event in ledger["events"] if event["kind"] == "dataproc.batch.created"] == []


def _sound(said: dict[str, Any]) -> dict[str, Any]:
    """Return what a row says on top of what is right in every row."""
    properties = said.get("properties", {})
    if not isinstance(properties, dict):
        return said
    fixed = {} if "spark.dynamicAllocation.enabled" in properties else {"spark.dynamicAllocation.enabled": "false"}
    return {"placement": L4, "batch": PYSPARK, **said, "properties": {**fixed, **properties}}


@pytest.mark.usefixtures("_nothing_starts")
@pytest.mark.parametrize("wrong", [*PROPERTIES, *PLACES, *OTHERS], ids=str)
def test_is_refused_at_parse(wrong: Wrong) -> None:
    """Each rule about properties, places, ids, labels, runtimes and durations, broken alone, is one error at parse."""
    with pytest.raises(AcceleratorConfigurationError) as refused:
        etl(**_sound(wrong.said))
    _one_error(str(refused.value), wrong.part)


@pytest.mark.usefixtures("_nothing_starts")
@pytest.mark.parametrize("wrong", LATE, ids=str)
def test_is_refused_when_the_task_starts(google: LocalGoogle, wrong: Wrong) -> None:
    """The same rules hold for what a template gives, before anything is asked of the service."""
    run = etl_run(google, run={"params": {"wrong": wrong.late}}, **_sound(wrong.said))
    with pytest.raises(AcceleratorConfigurationError) as refused:
        run.execute()
    _one_error(str(refused.value), wrong.part)
    assert "accel_job" not in run.stored


def _one_error(text: str, part: str) -> None:
    head, *lines = text.splitlines()
    assert head == "etl cannot run, 1 error:"
    assert len(lines) == 1
    assert part in lines[0]


STOCK = inspect.signature(DataprocCreateBatchOperator.__init__).parameters.keys() - {"self", "kwargs"}


@pytest.mark.usefixtures("_nothing_starts")
@pytest.mark.parametrize("name", sorted(STOCK))
def test_the_stock_operators_parameters_are_taken_or_explained(name: str) -> None:
    """A parameter of DataprocCreateBatchOperator is one here too, or an error that says what stands for it.

    ``accel check`` says the same.
    """
    if name in PARAMETERS[OPERATOR]:
        assert name not in ELSEWHERE
        return
    with pytest.raises(AcceleratorConfigurationError) as refused:
        etl(**{name: None})
    told = f"{name}: {OPERATOR} has no parameter {name!r}. {ELSEWHERE[name]}"
    _one_error(str(refused.value), told)
    request = {"operator": OPERATOR, "placement": L4, "batch": PYSPARK, name: None}
    checked = check_request(request, catalog=load_catalog(), today=date(2026, 11, 29))
    assert [str(problem) for problem in checked.problems if problem.is_error] == [told]


@pytest.mark.usefixtures("_nothing_starts")
def test_all_misplaced_parameters_are_told_with_the_rest() -> None:
    """What is said elsewhere is told together with all else that is wrong."""
    with pytest.raises(AcceleratorConfigurationError, match="4 errors") as refused:
        etl(timeout=30, service_account="etl@acme.iam.gserviceaccount.com", job_name="etl", ttl=60)
    for part in ("start_timeout", "environment_config.execution_config.service_account", "batch_id", "'600s'"):
        assert part in str(refused.value)


def test_what_is_said_elsewhere_is_no_parameter() -> None:
    """No name is both a parameter, ours or Airflow's, and explained as none."""
    assert ELSEWHERE.keys().isdisjoint(PARAMETERS[OPERATOR] | AIRFLOW_PARAMETERS)
