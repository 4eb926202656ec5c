"""The list filters that find a job's VMs."""

from __future__ import annotations

import pytest

from airflow_accel_provider.emulator.compute.filters import parse_filter
from airflow_accel_provider.emulator.wire import GoogleError

VM = {"name": "score-x", "status": "RUNNING", "labels": {"goog-dataflow-job-id": "2026-11-29_1"}}


@pytest.mark.parametrize(
    ("text", "passes"),
    [
        (None, True),
        ("", True),
        ("labels.goog-dataflow-job-id=2026-11-29_1", True),
        ('labels.goog-dataflow-job-id = "2026-11-29_1"', True),
        ("labels.goog-dataflow-job-id=2026-11-29_2", False),
        ("labels.goog-dataflow-job-id:*", True),
        ("labels.other:*", False),
        ("status=RUNNING", True),
        ("status!=RUNNING", False),
        ("labels.goog-dataflow-job-id:* AND status=RUNNING", True),
        ("labels.goog-dataflow-job-id:* AND status=STOPPING", False),
        ('(labels.goog-dataflow-job-id = "2026-11-29_1") (status = "RUNNING")', True),
        ('(labels.goog-dataflow-job-id = "2026-11-29_1") AND (status = "STAGING")', False),
        ("name eq score-.*", True),
        ("name ne score-.*", False),
    ],
)
def test_a_filter_passes_what_it_describes(text: str | None, *, passes: bool) -> None:
    """Terms on labels, status and name pass a VM when all of them hold."""
    assert parse_filter(text)(VM) is passes


@pytest.mark.parametrize("text", ["status", "status=RUNNING OR status=STOPPING", "=x", "name eq [", "a=b c=d"])
def test_an_unreadable_filter_is_refused(text: str) -> None:
    """A filter outside of the language is a 400, not an empty or a full list."""
    with pytest.raises(GoogleError, match="filter") as caught:
        parse_filter(text)
    assert caught.value.status == 400
