"""What is wrong with the parameters that all kinds of jobs share, and what people know from the stock operators."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_accel_provider.core.failures import FailureKind
from airflow_accel_provider.core.validation import check_life
from airflow_accel_provider.operators.beam import BeamGpuPipelineOperator, BeamTpuPipelineOperator

# apache-airflow-providers-apache-beam, BeamRunPythonPipelineOperator and BeamBasePipelineOperator; dataflow_config is
# the google provider's DataflowConfiguration. Read 2026-11. `runner` has one value here, `dataflow_config` is spelled
# out as parameters of its own.
STOCK_TEMPLATED = {"py_file", "pipeline_options", "default_pipeline_options"}
STOCK_DATAFLOW_CONFIG = {"job_name", "project_id", "gcp_conn_id", "impersonation_chain"}


class Later:
    """What another task will give."""


# Each row: parameters, the code of the one problem, the parameter it names, a part of what is said.
WRONG: list[tuple[dict[str, Any], str, str, str]] = [
    ({"fallback_on": ["stock_out"]}, "unknown-kind", "fallback_on", "Did you mean 'stockout'?"),
    ({"fallback_on": ["stockout", "no-idea"]}, "unknown-kind", "fallback_on", "It is one of stockout, quota"),
    ({"fallback_on": {"quotas"}}, "unknown-kind", "fallback_on", "Did you mean 'quota'?"),
    ({"fallback_on": [3]}, "unknown-kind", "fallback_on", "It is one of"),
    ({"fallback_on": "stockout"}, "not-a-list", "fallback_on", "such as ['stockout']"),
    ({"fallback_on": None}, "not-a-list", "fallback_on", "not a list"),
    ({"fallback_on": ["cancelled"]}, "unknown-kind", "fallback_on", "leave 'cancelled' out"),
    ({"fallback_on": ["timeout"]}, "unknown-kind", "fallback_on", "leave 'timeout' out"),
    ({"on_unproven": "warning"}, "on-unproven", "on_unproven", "Did you mean 'warn'?"),
    ({"on_unproven": None}, "on-unproven", "on_unproven", "It is one of warn, fail"),
    ({"poll_interval": 0}, "not-seconds", "poll_interval", "more than 0"),
    ({"poll_interval": -5}, "not-seconds", "poll_interval", "-5 does not do"),
    ({"poll_interval": "10"}, "not-seconds", "poll_interval", "give seconds"),
    ({"poll_interval": True}, "not-seconds", "poll_interval", "True does not do"),
    ({"poll_interval": timedelta(seconds=10)}, "not-seconds", "poll_interval", "give seconds"),
    ({"start_timeout": timedelta(seconds=-1)}, "not-seconds", "start_timeout", "-1.0 does not do"),
    ({"start_timeout": "30m"}, "not-seconds", "start_timeout", "give seconds or a timedelta"),
    ({"start_timeout": float("nan")}, "not-seconds", "start_timeout", "nan does not do"),
    ({"cancel_timeout": float("inf")}, "not-seconds", "cancel_timeout", "at most a year"),
    ({"cancel_timeout": None}, "not-seconds", "cancel_timeout", "None does not do"),
    ({"deferrable": "false"}, "not-a-switch", "deferrable", "give True or False"),
    ({"wait_until": "prooven"}, "wait-until", "wait_until", "Did you mean 'proven'?"),
    ({"wait_until": True}, "wait-until", "wait_until", "It is one of done, proven"),
    ({"drain_pipeline": "yes"}, "not-a-switch", "drain_pipeline", "give True or False"),
    ({"impersonation_chain": [1]}, "wrong-type", "impersonation_chain", "a text or a list of texts"),
    ({"job_name": 7}, "wrong-type", "job_name", "give a text"),
    ({"project_id": 1234567890}, "wrong-type", "project_id", "give a text"),
    ({"region": ["us-central1"]}, "wrong-type", "region", "give a text"),
    ({"gcp_conn_id": {}}, "wrong-type", "gcp_conn_id", "give a text"),
]


@pytest.mark.parametrize(("parameters", "code", "where", "said"), WRONG, ids=[str(row[0])[:50] for row in WRONG])
def test_wrong_value_is_told(parameters: dict[str, Any], code: str, where: str, said: str) -> None:
    """A value that cannot mean anything has one problem, at its parameter, with what would be right."""
    problems = list(check_life(parameters))
    assert [(problem.severity, problem.code, problem.where) for problem in problems] == [("error", code, where)]
    assert said in problems[0].message


def test_all_are_told_at_once() -> None:
    """Several wrong values are told in one answer."""
    wrong = {"fallback_on": ["a", "stockout"], "on_unproven": "x", "poll_interval": 0, "start_timeout": None}
    assert [problem.where for problem in check_life(wrong)] == list(wrong)


@given(
    st.lists(
        st.sampled_from([kind for kind in FailureKind if kind not in {FailureKind.CANCELLED, FailureKind.TIMEOUT}])
    ),
    st.sampled_from(["warn", "fail"]),
    st.integers(1, 10**7) | st.floats(0.01, 1e7),
    st.timedeltas(timedelta(seconds=1), timedelta(days=300)),
)
def test_sensible_values_are_let_through(kinds: list[FailureKind], word: str, seconds: float, span: timedelta) -> None:
    """Every kind, as word or as value, and every sensible duration is accepted."""
    for fallback_on in (kinds, [str(kind) for kind in kinds], tuple(kinds), set(kinds)):
        said = {"fallback_on": fallback_on, "on_unproven": word, "poll_interval": seconds, "start_timeout": span}
        assert list(check_life({**said, "cancel_timeout": seconds})) == []


@pytest.mark.parametrize("later", ["{{ params.x }}", Later()], ids=["template", "output"])
@pytest.mark.parametrize("name", sorted({"job_name", "region", *STOCK_DATAFLOW_CONFIG}))
def test_what_is_not_known_yet_is_not_judged(name: str, later: Any) -> None:
    """What a template or another task will give raises no problem before the task starts."""
    assert list(check_life({name: later})) == []


def test_what_stock_operators_render_is_rendered() -> None:
    """Whatever the stock Beam operator takes as a template, under a name that is also ours, is one here."""
    for operator in (BeamGpuPipelineOperator, BeamTpuPipelineOperator):
        assert set(operator.template_fields) >= STOCK_TEMPLATED | STOCK_DATAFLOW_CONFIG
