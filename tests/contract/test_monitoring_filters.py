"""The emulator reads Cloud Monitoring's filters as the service does."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_accel_provider.emulator.monitoring.filters import parse_filter
from airflow_accel_provider.emulator.wire import GoogleError

JOB = {
    "metric.type": "dataflow.googleapis.com/job/gpu_utilization",
    "resource.type": "dataflow_job",
    "project": "acme",
    "metric.labels.job_id": "2026-11-30_01_02_03-4",
    "resource.labels.region": "us-central1",
    "resource.labels.job_name": "score",
}


@pytest.mark.parametrize(
    ("text", "passes"),
    [
        ("", True),
        ('metric.type = "dataflow.googleapis.com/job/gpu_utilization"', True),
        ('metric.type="dataflow.googleapis.com/job/gpu_utilization" resource.type="dataflow_job"', True),
        ("resource.type = dataflow_job\nAND resource.labels.region = 'us-central1'", True),
        ('resource.label.region = "us-central1" AND metric.label."job_id" = "2026-11-30_01_02_03-4"', True),
        ('resource.labels.region = "us-east1"', False),
        ('resource.labels.region != "us-east1"', True),
        ('resource.labels.region = starts_with("us-")', True),
        ('resource.labels.region != starts_with("us-")', False),
        ('resource.labels.region = ends_with("1")', True),
        ('resource.labels.region = has_substring("tral")', True),
        ('resource.labels.region : "tral"', True),
        ('resource.labels.region = one_of("us-east1", "us-central1")', True),
        ('resource.labels.region = one_of("us-east1")', False),
        ('resource.labels.job_name = monitoring.regex.full_match("s.*e")', True),
        ('resource.labels.job_name = monitoring.regex.full_match("s")', False),
        ('NOT resource.labels.region = "us-east1"', True),
        ('(resource.labels.region = "us-east1") OR project = "acme"', True),
        # OR binds closer than AND.
        ('project = "no" AND project = "acme" OR resource.type = "dataflow_job"', False),
        ('(project = "no" AND project = "acme") OR resource.type = "dataflow_job"', True),
        ('metric.labels.job_id > "2026"', True),
        # A label that the series doesn't have has no value.
        ('resource.labels.zone = "us-central1-a"', False),
        ('resource.labels.zone != "us-central1-a"', True),
    ],
)
def test_filters_choose(text: str, passes: bool) -> None:
    """A filter passes what its comparisons hold for."""
    assert parse_filter(text).passes(JOB) is passes


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('"dataflow_job"', "left-hand side"),
        ("resource.type", "end of the filter"),
        ("resource.type =", "end of the filter"),
        ("resource.type = =", "Expected a value"),
        ('resource.type "x"', "Expected a comparison"),
        ('instance_name = "x"', "'instance_name' is not supported"),
        ('resource.type = begins_with("x")', "begins_with"),
        ('resource.type > starts_with("x")', "cannot be used with '>'"),
        ('resource.type = starts_with("x"', "Expected '\\)'"),
        ("resource.type = starts_with(x)", "Expected a string"),
        ('resource.type = monitoring.regex.full_match("(")', "Invalid regular expression"),
        ('(resource.type = "x"', "Expected '\\)'"),
        ('resource.type = "x")', "Could not parse"),
        ('resource.type = "x', "Could not parse"),
        ('resource.type = "x" AND', "end of the filter"),
    ],
)
def test_what_is_no_filter_is_refused(text: str, why: str) -> None:
    """A filter that cannot be read is a 400 that shows it and says why."""
    with pytest.raises(GoogleError, match=why) as caught:
        parse_filter(text)

    assert caught.value.status == 400
    assert text in caught.value.message


@given(st.text(max_size=60))
def test_reading_always_ends_in_a_filter_or_a_refusal(text: str) -> None:
    """No text breaks the reader."""
    with contextlib.suppress(GoogleError):
        parse_filter(text).passes(JOB)


@given(st.text(max_size=40))
def test_a_quoted_value_is_taken_as_it_is(value: str) -> None:
    """Backslashes and quotation marks in a value are the value's own once they are escaped."""
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    wanted = parse_filter(f'metric.labels.job_id = "{escaped}"')

    assert wanted.passes({"metric.labels.job_id": value})
    assert not wanted.passes({"metric.labels.job_id": f"{value}x"})
