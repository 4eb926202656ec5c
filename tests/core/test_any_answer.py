"""Answers in which anything is missing, null, of another kind or unknown: a value or one error, and no decision."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_accel_provider.core.accelerators import Gpu
from airflow_accel_provider.core.jobs import TERMINAL_STATES, Job, JobState
from airflow_accel_provider.core.proof import ProofStatus, prove
from airflow_accel_provider.exceptions import GoogleApiError
from airflow_accel_provider.hooks import _wire, _wire_spark, _wire_supply
from airflow_accel_provider.hooks._answers import google_error
from airflow_accel_provider.hooks.dataflow import DataflowHook
from airflow_accel_provider.hooks.monitoring import utilization_from_series
from airflow_accel_provider.hooks.offers import read_offers
from airflow_accel_provider.hooks.spark import SparkHook
from airflow_accel_provider.hooks.workers import WorkersHook

NAME = "projects/acme/locations/us-central1/batches/etl"
ZONE = "https://www.googleapis.com/compute/v1/projects/acme/zones/us-central1-a"
JOB = {
    "id": "job-1",
    "name": "score",
    "type": "JOB_TYPE_BATCH",
    "currentState": "JOB_STATE_RUNNING",
    "currentStateTime": "2026-11-29T21:45:20.123Z",
    "createTime": "2026-11-29T21:45:12.5Z",
    "labels": {"accel-owner": "ab12"},
    "location": "us-central1",
    "serviceResources": {"zones": ["us-central1-a"]},
}
MESSAGES = {
    "jobMessages": [
        {"id": "1", "messageText": "hello", "messageImportance": "JOB_MESSAGE_ERROR", "time": "2026-11-29T21:45:20Z"}
    ],
    "autoscalingEvents": [
        {
            "currentNumWorkers": "1",
            "targetNumWorkers": "2",
            "eventType": "CURRENT_NUM_WORKERS_CHANGED",
            "time": "2026-11-29T21:45:20Z",
            "description": {"messageText": "more"},
        }
    ],
}
INSTANCE = {
    "name": "w-1",
    "status": "RUNNING",
    "zone": ZONE,
    "machineType": f"{ZONE}/machineTypes/g2-standard-8",
    "guestAccelerators": [{"acceleratorType": f"{ZONE}/acceleratorTypes/nvidia-l4", "acceleratorCount": 1}],
    "labels": {"goog-dataflow-job-id": "job-1"},
    "scheduling": {"provisioningModel": "STANDARD"},
    "resourceStatus": {"reservationConsumptionInfo": {"consumedReservation": "r"}},
}
BATCH = {
    "name": NAME,
    "state": "RUNNING",
    "stateTime": "2026-11-29T21:45:20Z",
    "stateMessage": "it runs",
    "createTime": "2026-11-29T21:45:12Z",
    "operation": "projects/acme/regions/us-central1/operations/o",
    "labels": {"accel-owner": "ab12"},
    "runtimeConfig": {"version": "2.3"},
    "stateHistory": [{"state": "PENDING", "stateStartTime": "2026-11-29T21:45:12Z", "stateMessage": "waits"}],
    "runtimeInfo": {
        "currentUsage": {"milliAccelerator": "1000", "acceleratorType": "l4", "snapshotTime": "2026-11-29T21:46:00Z"},
        "approximateUsage": {"milliAcceleratorSeconds": "9000", "acceleratorType": "l4", "milliDcuSeconds": "1"},
    },
}
QUOTAS = {"name": "us-central1", "quotas": [{"metric": "NVIDIA_L4_GPUS", "limit": 8.0, "usage": 1.0}]}
INFO = {"dimensionsInfos": [{"dimensions": {"region": "us-central1"}, "details": {"value": "8"}}]}
RESERVATION = {
    "name": "r",
    "zone": ZONE,
    "status": "READY",
    "specificReservationRequired": True,
    "specificReservation": {
        "count": "5",
        "assuredCount": "5",
        "inUseCount": "1",
        "instanceProperties": {"machineType": "g2-standard-8", "guestAccelerators": INSTANCE["guestAccelerators"]},
    },
}
SERIES = {"metric": {}, "points": [{"interval": {"endTime": "2026-11-29T21:45:20Z"}, "value": {"int64Value": "7"}}]}
TYPES = {
    "items": {
        "zones/us-central1-a": {
            "acceleratorTypes": [{"name": "nvidia-l4"}],
            "machineTypes": [
                {
                    "name": "g2-standard-8",
                    "guestCpus": 8,
                    "memoryMb": 32768,
                    "accelerators": [{"guestAcceleratorType": "nvidia-l4", "guestAcceleratorCount": 1}],
                }
            ],
        }
    }
}


class Said:
    """A session to which the service always says the same."""

    project = "acme"

    def __init__(self, value: Any) -> None:
        self.value = value

    def request(self, *_: Any, **__: Any) -> Any:
        """Answer."""
        return self.value

    def pages(self, *_: Any, **__: Any) -> Iterator[Any]:
        """Answer with one page."""
        yield self.value


def _catalog() -> Any:
    from airflow_accel_provider.core.catalog import load_catalog

    return load_catalog()


Read = Callable[[Any], Any]
READERS: Mapping[str, tuple[Any, Read]] = {
    "job": (JOB, lambda value: DataflowHook(Said(value)).get("job-1", "us-central1")),
    "jobs": ({"jobs": [JOB]}, lambda value: DataflowHook(Said(value)).list_active("us-central1")),
    "messages": (MESSAGES, lambda value: DataflowHook(Said(value)).messages("job-1", "us-central1")),
    "workers": (
        {"items": {ZONE: {"instances": [INSTANCE]}}},
        lambda value: WorkersHook(Said(value)).workers_of("job-1", region="us-central1"),
    ),
    "all workers": (
        {"items": {ZONE: {"instances": [INSTANCE]}}, "unreachables": [ZONE]},
        lambda value: WorkersHook(Said(value)).all_workers(),
    ),
    "batch": (BATCH, lambda value: SparkHook(Said(value)).get("etl", "us-central1")),
    "batches": ({"batches": [BATCH]}, lambda value: SparkHook(Said(value)).list_active("us-central1")),
    "operation": ({"metadata": {"createTime": "2026-11-29T21:45:12Z"}}, _wire_spark.created_at),
    "quotas": (QUOTAS, _wire_supply.quotas_from_json),
    "quota info": (INFO, lambda value: _wire_supply.limit_from_json(value, {}, "us-central1")),
    "machines": (
        {"items": {ZONE: {"instances": [INSTANCE]}}},
        lambda value: list(_wire_supply.on_demand_from_json(value)),
    ),
    "reservation": (RESERVATION, _wire_supply.reservation_from_json),
    "reservations": (
        {"items": {ZONE: {"reservations": [RESERVATION]}}},
        lambda value: list(_wire_supply.reservations_from_json(value)),
    ),
    "series": (SERIES, lambda value: utilization_from_series([value])),
    "types": (TYPES, lambda value: read_offers(Said(value), _catalog(), day="2026-11-30")),
    "error": (
        {"error": {"code": 403, "message": "No.", "errors": [{"reason": "forbidden"}], "details": [{"reason": "x"}]}},
        lambda value: google_error(json.dumps(value)),
    ),
}

_WRONG = st.sampled_from(
    [None, 0, -1, 7.5, True, "", "JOB_STATE_NEW", "abc", "Infinity", [], ["x"], [None], {}, {"a": 1}]
)


def paths(value: Any, before: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the way to each field and element of an answer."""
    found = []
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in items:
        found += [(*before, key), *paths(each, (*before, key))]
    return found


@st.composite
def spoiled(draw: st.DrawFn, value: Any) -> Any:
    """Draw an answer of which up to four fields are gone or something else."""
    answer = deepcopy(value)
    for path in draw(st.lists(st.sampled_from(paths(value)), min_size=1, max_size=4)):
        *way, last = path
        try:
            holder = answer
            for key in way:
                holder = holder[key]
            if draw(st.booleans()):
                del holder[last]
            else:
                holder[last] = deepcopy(draw(_WRONG))
        except (KeyError, IndexError, TypeError):
            # It went with what it was in.
            continue
    return answer


def error_of(read: Read, answer: Any) -> GoogleApiError | None:
    """Return the error that reading an answer makes, if it does."""
    try:
        read(answer)
    except GoogleApiError as error:
        return error
    return None


@pytest.mark.parametrize("name", READERS)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_any_answer_is_a_value_or_one_error(name: str, data: st.DataObject) -> None:
    """Whatever is missing or of another kind, an answer reads as a value or as one error worth asking again."""
    valid, read = READERS[name]
    assert read(valid) is not None
    error = error_of(read, data.draw(spoiled(valid)))
    if error:
        assert error.is_transient
        assert error.reason in {"unreadableAnswer", "unreachable"}
        assert len(str(error)) < 400


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_a_job_ends_by_its_own_word_alone(data: st.DataObject) -> None:
    """A job of which anything but its state is spoiled is in that state, and one without it is in none that ends."""
    answer = data.draw(spoiled(JOB))
    try:
        job = DataflowHook(Said(answer)).get("job-1", "us-central1")
    except GoogleApiError:
        return
    assert isinstance(job, Job)
    assert job.id == "job-1"
    assert job.state not in TERMINAL_STATES
    assert (job.state is JobState.RUNNING) is (answer.get("currentState") == "JOB_STATE_RUNNING")


@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_a_worker_is_bare_only_where_it_shows_all_it_is(data: st.DataObject) -> None:
    """A VM counts as one without its accelerator only where its machine type and all of what it carries can be read."""
    from datetime import UTC, datetime

    answer = data.draw(spoiled(INSTANCE))
    try:
        worker = _wire.worker_from_json(answer)
    except GoogleApiError:
        return
    proof = prove(Gpu(type="nvidia-l4", count=1), (worker,), datetime(2026, 11, 30, tzinfo=UTC))
    if proof and proof.status is ProofStatus.ABSENT:
        said = answer.get("guestAccelerators")
        assert isinstance(answer["machineType"], str | int | float)
        assert not said or all(
            isinstance(each, dict) and {"acceleratorType", "acceleratorCount"} <= set(each) for each in said
        )


@pytest.mark.parametrize("hidden", ["name", "id"])
def test_a_job_that_hides_its_name_is_not_overlooked(hidden: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A listing that leaves out a job's name or id is unreadable, and never reads as "there is no such job"."""
    monkeypatch.setattr("airflow_accel_provider.hooks.dataflow._LIST_SECONDS", 0.0)

    class Hiding(Said):
        def request(self, *_: Any, **__: Any) -> Any:
            return {key: value for key, value in JOB.items() if key != hidden}

    page = {"jobs": [{key: value for key, value in JOB.items() if key != hidden}]}
    with pytest.raises(GoogleApiError, match="cannot be read"):
        DataflowHook(Hiding(page)).find("score", "us-central1")


def test_a_batch_without_an_operation_cannot_be_cancelled_yet() -> None:
    """A batch whose operation is not told is an error worth asking again, not a request to nowhere."""
    batch = {key: value for key, value in BATCH.items() if key != "operation"}
    with pytest.raises(GoogleApiError, match="it has no operation") as caught:
        SparkHook(Said(batch)).cancel("etl", "us-central1")
    assert caught.value.is_transient
