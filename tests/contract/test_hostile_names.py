"""Names that are none, from users and from answers: nothing else is addressed, asked for or run than what is meant."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
import requests
from hypothesis import example, given, settings
from hypothesis import strategies as st
from urllib3.util import parse_url

from airflow_accel_provider.core.catalog import load_catalog
from airflow_accel_provider.core.console import urls
from airflow_accel_provider.core.identity import job_labels, job_name
from airflow_accel_provider.core.options import beam_flags, go_flags, java_flags
from airflow_accel_provider.core.request import BeamRequest, Candidate
from airflow_accel_provider.core.spark.labels import is_label, spark_labels
from airflow_accel_provider.core.validation import resolve
from airflow_accel_provider.exceptions import AcceleratorLaunchError, GoogleApiError
from airflow_accel_provider.hooks import _wire
from airflow_accel_provider.hooks._endpoints import Endpoints, leads_astray
from airflow_accel_provider.hooks.dataflow import DataflowHook
from airflow_accel_provider.hooks.launcher import Launcher
from airflow_accel_provider.hooks.monitoring import gpu_utilization
from airflow_accel_provider.hooks.session import GoogleSession
from airflow_accel_provider.hooks.spark import SparkHook

HOSTILE = (
    *(
        "../../x",
        "..",
        "%2e%2e",
        "%2F..",
        "x?alt=media",
        "x#y",
        "a b",
        "x\ny",
        "x\r\nHost: evil",
        "x\x00",
        "\u202ex",
        "é",
    ),
    *(
        "x' OR 'a'='a",
        'x" OR metric.type = "a',
        "x) OR (labels.a:*",
        "{region}",
        "{{ var.value.secret }}",
        "x" * 10_000,
    ),
    *("-rf", "--runner=DirectRunner", "$(id)", "`id`", ";id", "/", "//", "\\..\\..", "@evil.example", ":cancel"),
)
text = st.text(max_size=60) | st.text("./%2eEfF:;?#@\\ab", max_size=12)


def sent(path: str) -> str:
    """Return the address that goes over the wire for a path."""
    return parse_url(requests.Request("GET", Endpoints().url("dataflow", path)).prepare().url or "").url


@given(text)
@example("..")
@example("../x")
@example("%2e%2e/x")
@example("..:cancel")
@settings(max_examples=500, deadline=None)
def test_a_name_addresses_itself_or_nothing(name: str) -> None:
    """A path with a name that is none is refused; any other goes over the wire as it is, to the host that is meant."""
    path = f"projects/p/locations/r/jobs/{name}"
    if leads_astray(path):
        return
    address = urlsplit(sent(path))
    assert (address.hostname, address.query, address.fragment) == ("dataflow.googleapis.com", "", "")
    assert unquote(address.path) == unquote(f"/v1b3/{path}")


class Answering(GoogleSession):
    """A Google that answers the same to every call, and remembers what was asked."""

    def __init__(self, answer: dict[str, Any]) -> None:
        self.asked: list[tuple[str, str, Any]] = []
        self._said = answer

    @property
    def project(self) -> str:
        """The project."""
        return "acme"

    def request(self, _: str, verb: str, path: str, **said: Any) -> dict[str, Any]:
        """Remember the call and answer."""
        self.asked.append((verb, path, said.get("params")))
        return self._said


@pytest.mark.parametrize("id_", [each for each in HOSTILE if not each.startswith("-")])
def test_an_answers_id_must_be_one(id_: str) -> None:
    """A job whose id is no id is an unreadable answer, so that it comes into no address, filter or page."""
    with pytest.raises(GoogleApiError, match="not an id"):
        _wire.job_from_json({"id": id_})
    with pytest.raises(GoogleApiError, match="not an id"):
        DataflowHook(Answering({"jobs": [{"id": id_, "name": "score"}]})).list_active("us-central1")


@pytest.mark.parametrize(
    "operation", [*HOSTILE, "projects/p/regions/r/batches/b", "projects/p/regions/r/operations/a/b"]
)
def test_only_an_operation_is_cancelled(operation: str) -> None:
    """What a batch names as its operation is asked to end only where it is one."""
    session = Answering({"name": "x", "state": "RUNNING", "operation": operation})
    with pytest.raises(GoogleApiError, match="no operation"):
        SparkHook(session).cancel("b", "us-central1")
    assert [verb for verb, *_ in session.asked] == ["GET"]


def test_no_call_is_made_of_a_name_that_is_none() -> None:
    """The session itself refuses a path that leads elsewhere, whoever made it, before anything is sent."""
    session = GoogleSession.__new__(GoogleSession)
    for name in HOSTILE:
        path = f"projects/p/locations/r/jobs/{name}"
        if leads_astray(path):
            with pytest.raises(GoogleApiError, match="a name in it is none") as refused:
                session.request("dataflow", "PUT", path)
            assert str(refused.value).isprintable()
    assert sum(leads_astray(f"a/{name}") for name in HOSTILE) >= len(HOSTILE) // 2


@pytest.mark.parametrize("id_", HOSTILE)
def test_a_monitoring_filter_holds_one_value(id_: str) -> None:
    """An id stands in quotation marks in a filter, and cannot end them."""
    session = Answering({})
    now = datetime(2026, 3, 2, tzinfo=UTC)
    gpu_utilization(session, job_id=id_, region="us-central1", since=now.replace(month=2), now=now)
    (_, _, params) = session.asked[0]
    value = params["filter"].partition("metric.labels.job_id = ")[2]
    assert value[0] == value[-1] == '"'
    assert value[1:-1].replace("\\\\", "").replace('\\"', "").count('"') == 0


@given(st.tuples(text, text, text, text))
@example(("../..", "a\nb", "{{ x }}", "é" * 10_000))
@settings(max_examples=100, deadline=None)
def test_names_and_labels_hold_nothing_else(said: tuple[str, str, str, str]) -> None:
    """Whatever a DAG, a task, a run and a prefix are called, names and labels hold letters, digits and dashes alone."""
    dag, task, run, prefix = (each.encode("utf-8", "replace").decode() for each in said)
    assert is_label(job_name(prefix, owner="o" * 32, life=1, attempt=1))
    labels = job_labels(owner="o" * 32, life=1, attempt=1, dag_id=dag, task_id=task, run_id=run, map_index=3)
    assert all(
        len(each) <= 63 and set(each) <= set("abcdefghijklmnopqrstuvwxyz0123456789_-") for each in labels.values()
    )
    assert all(not value or is_label(value) for value in spark_labels(labels).values())


PLACE = resolve(Candidate.parse("nvidia-l4 on g2-standard-8 in us-central1"), load_catalog())
FLAGS = {"python": beam_flags, "java": java_flags, "go": go_flags}


@pytest.mark.parametrize("sdk", FLAGS)
@pytest.mark.parametrize("value", [each for each in HOSTILE if "{region}" not in each])
def test_a_value_stays_in_its_option(sdk: str, value: str) -> None:
    """Whatever a value is, it is one argument together with its option's name, and adds none."""
    plain, hostile = (
        FLAGS[sdk](
            replace(BeamRequest(), pipeline_options={"note": note}),
            PLACE.placement,
            project="acme",
            job_name="score-1",
            labels={},
            endpoint=None,
        )
        for note in ("plain", value)
    )
    changed = [(one, other) for one, other in zip(plain, hostile, strict=True) if one != other]
    assert len(changed) == 1
    assert changed[0][0].removesuffix("plain") == changed[0][1].removesuffix(value)


def test_no_program_is_run_with_a_zero_in_its_arguments() -> None:
    """An argument that no program can be given is told as one error, and nothing is run."""
    with pytest.raises(AcceleratorLaunchError, match="could not be started"), Launcher(["echo", "a\0b"]):
        pass


@pytest.mark.parametrize("id_", HOSTILE)
def test_pages_are_googles_own(id_: str) -> None:
    """The address of a job's page leads to Google's console, whatever the job is called."""
    for address in urls(project="acme", region="us-central1", job_id=id_).values():
        assert urlsplit(address).hostname == "console.cloud.google.com"
        assert address.isprintable()
