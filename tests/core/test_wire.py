"""Google's JSON read as the core's values."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_accel_provider.core.jobs import Importance, Job, JobState, JobType, Message, ScalingEvent, Worker
from airflow_accel_provider.core.quota import Quota
from airflow_accel_provider.hooks import _wire, _wire_supply

JOB = {
    "id": "2026-11-29_13_45_12-1234567890123456789",
    "projectId": "acme-ml-prod",
    "name": "score-0123456789",
    "type": "JOB_TYPE_BATCH",
    "currentState": "JOB_STATE_RUNNING",
    "currentStateTime": "2026-11-29T21:45:20.123456789Z",
    "createTime": "2026-11-29T21:45:12.5Z",
    "labels": {"team": "ml", "accel-owner": "ab12"},
    "location": "us-central1",
    "serviceResources": {"zones": ["us-central1-a"]},
}

INSTANCE = {
    "id": "8123456789012345678",
    "name": "score-11291345-x1y2-harness-ab12",
    "status": "RUNNING",
    "zone": "https://www.googleapis.com/compute/v1/projects/acme-ml-prod/zones/us-central1-a",
    "machineType": "https://www.googleapis.com/compute/v1/projects/acme-ml-prod/zones/us-central1-a/machineTypes/g2-standard-8",
    "guestAccelerators": [
        {
            "acceleratorType": "https://www.googleapis.com/compute/v1/projects/acme-ml-prod/zones/us-central1-a/acceleratorTypes/nvidia-l4",
            "acceleratorCount": 1,
        }
    ],
    "labels": {"goog-dataflow-job-id": JOB["id"]},
}


def test_a_job_is_read_with_labels_zones_and_times() -> None:
    """A job's state, labels, zones and times are read from the service's JSON."""
    assert _wire.job_from_json(JOB) == Job(
        id="2026-11-29_13_45_12-1234567890123456789",
        name="score-0123456789",
        region="us-central1",
        state=JobState.RUNNING,
        labels=(("accel-owner", "ab12"), ("team", "ml")),
        zones=("us-central1-a",),
        created_at=datetime(2026, 11, 29, 21, 45, 12, 500_000, tzinfo=UTC),
        state_at=datetime(2026, 11, 29, 21, 45, 20, 123_456, tzinfo=UTC),
        type=JobType.BATCH,
    )


def test_labels_that_were_not_shown_are_not_no_labels() -> None:
    """A summary without labels says nothing about them; a full view without labels says that there are none."""
    unlabelled = {key: value for key, value in JOB.items() if key != "labels"}
    assert _wire.job_from_json(unlabelled).labels is None
    assert _wire.job_from_json(unlabelled, full=True).labels == ()


def test_an_empty_job_is_tolerated() -> None:
    """A job of which nothing is told has an unknown state, and unknown is not terminal."""
    job = _wire.job_from_json({})
    assert job.state is JobState.UNKNOWN
    assert not job.state.is_terminal


@pytest.mark.parametrize("state", list(JobState))
def test_states_go_both_ways(state: JobState) -> None:
    """Every state's wire name reads as that state."""
    assert _wire.state_from_wire(_wire.state_to_wire(state)) is state


@pytest.mark.parametrize("name", [None, "", "JOB_STATE_SOMETHING_NEW", "RUNNING_OR_SO"])
def test_a_new_state_is_unknown(name: str | None) -> None:
    """A state that this release does not know reads as unknown."""
    assert _wire.state_from_wire(name) is JobState.UNKNOWN


@pytest.mark.parametrize("importance", list(Importance))
def test_importances_go_both_ways(importance: Importance) -> None:
    """Every importance's wire name reads as that importance."""
    assert _wire.importance_from_wire(_wire.importance_to_wire(importance)) is importance


def test_every_enum_name_of_the_discovery_document_is_known() -> None:
    """The core knows every state and importance that Google's discovery document lists."""
    import json
    from importlib.resources import files

    text = files("googleapiclient.discovery_cache.documents").joinpath("dataflow.v1b3.json").read_text()
    schemas = json.loads(text)["schemas"]
    states = schemas["Job"]["properties"]["currentState"]["enum"]
    importances = schemas["JobMessage"]["properties"]["messageImportance"]["enum"]
    assert {_wire.state_to_wire(_wire.state_from_wire(name)) for name in states} == set(states)
    assert {_wire.importance_to_wire(_wire.importance_from_wire(name)) for name in importances} == {
        name for name in importances if name != "JOB_MESSAGE_IMPORTANCE_UNKNOWN"
    }


@pytest.mark.parametrize(
    ("text", "microsecond"),
    [
        ("2026-11-29T21:45:12Z", 0),
        ("2026-11-29T21:45:12.1Z", 100_000),
        ("2026-11-29T21:45:12.123Z", 123_000),
        ("2026-11-29T21:45:12.123456789Z", 123_456),
        ("2026-11-29t22:45:12.5+01:00", 500_000),
    ],
)
def test_times_take_any_fraction(text: str, microsecond: int) -> None:
    """A time is read whatever the number of its fraction digits."""
    assert _wire.time_from_wire(text) == datetime(2026, 11, 29, 21, 45, 12, microsecond, tzinfo=UTC)


@pytest.mark.parametrize("text", [None, "", "yesterday", "2026-13-29T21:45:12Z", "2026-11-29", "2026-11-29T21:45:12"])
def test_what_is_no_time_is_none(text: str | None) -> None:
    """A text that is no RFC 3339 time is no time, and no error."""
    assert _wire.time_from_wire(text) is None


@given(
    st.datetimes(
        min_value=datetime(2000, 1, 1),  # noqa: DTZ001 - hypothesis adds the zone
        max_value=datetime(2100, 1, 1),  # noqa: DTZ001
        timezones=st.sampled_from([UTC, timezone(timedelta(hours=-8)), timezone(timedelta(hours=5, minutes=30))]),
    )
)
def test_times_go_both_ways(at: datetime) -> None:
    """A written time reads as the same moment."""
    assert _wire.time_from_wire(_wire.time_to_wire(at)) == at


def test_messages_are_read() -> None:
    """A message keeps its text, importance, time and id."""
    page = {
        "jobMessages": [
            {
                "id": "1",
                "time": "2026-11-29T21:45:12Z",
                "messageText": "Workflow failed. Causes: …",
                "messageImportance": "JOB_MESSAGE_ERROR",
            }
        ]
    }
    at = datetime(2026, 11, 29, 21, 45, 12, tzinfo=UTC)
    assert _wire.messages_from_json(page) == (
        Message(text="Workflow failed. Causes: …", importance=Importance.ERROR, at=at, id="1"),
    )
    assert _wire.messages_from_json({}) == ()


def test_a_long_message_is_cut() -> None:
    """A message keeps at most ten thousand characters, of its beginning and its end."""
    (message,) = _wire.messages_from_json({"jobMessages": [{"messageText": "a" * 50_000 + "z" * 50_000}]})
    assert len(message.text) == 10_000
    assert message.text.strip("a").strip("z") == "\n…\n"


def test_scaling_events_are_read_with_their_counts() -> None:
    """Worker counts arrive as texts and are read as numbers; a description as a structure or a text."""
    page = {
        "autoscalingEvents": [
            {
                "eventType": "CURRENT_NUM_WORKERS_CHANGED",
                "currentNumWorkers": "1",
                "targetNumWorkers": "4",
                "description": {"messageText": "Raised", "messageKey": "k"},
                "time": "2026-11-29T21:45:12Z",
            },
            {"eventType": "ACTUATION_FAILURE", "description": "no stock", "time": "2026-11-29T21:45:13Z"},
        ]
    }
    at = datetime(2026, 11, 29, 21, 45, 12, tzinfo=UTC)
    assert _wire.scaling_from_json(page) == (
        ScalingEvent(
            kind="current_num_workers_changed", at=at, current_workers=1, target_workers=4, description="Raised"
        ),
        ScalingEvent(kind="actuation_failure", at=at + timedelta(seconds=1), description="no stock"),
    )


def test_a_worker_is_read_by_the_last_segments_of_its_urls() -> None:
    """Machine type, zone and accelerator types are the last segments of Compute's addresses."""
    assert _wire.worker_from_json(INSTANCE) == Worker(
        name="score-11291345-x1y2-harness-ab12",
        status="running",
        machine_type="g2-standard-8",
        zone="us-central1-a",
        accelerators=(("nvidia-l4", 1),),
    )


def test_a_worker_without_accelerators_has_none() -> None:
    """A VM that shows no guestAccelerators has no accelerator."""
    bare = {key: value for key, value in INSTANCE.items() if key != "guestAccelerators"}
    assert _wire.worker_from_json(bare).accelerators == ()


def test_instances_of_all_zones_are_found() -> None:
    """Zones with nothing but a warning hold no instance, and hide none."""
    page = {
        "items": {
            "zones/us-central1-a": {"instances": [INSTANCE]},
            "zones/us-central1-b": {"warning": {"code": "NO_RESULTS_ON_PAGE"}},
        }
    }
    assert list(_wire.instances_from_json(page)) == [INSTANCE]
    assert list(_wire.instances_from_json({})) == []


def test_quotas_are_read_by_metric() -> None:
    """A quota's limit and usage are read as they stand; a metric that is not listed is not there."""
    region = {"quotas": [{"metric": "NVIDIA_L4_GPUS", "limit": 4, "usage": 1.0}, {"metric": "CPUS", "limit": 72.0}]}
    assert _wire_supply.quotas_from_json(region) == {
        "NVIDIA_L4_GPUS": Quota(limit=4.0, usage=1.0),
        "CPUS": Quota(limit=72.0, usage=0.0),
    }


@pytest.mark.parametrize(
    "region",
    [{}, {"quotas": [{"metric": "CPUS", "limit": 0.0}], "quotaStatusWarning": {"code": "QUOTA_INFO_UNAVAILABLE"}}],
)
def test_quotas_the_service_does_not_know_are_unknown(region: dict[str, object]) -> None:
    """Missing quotas, and figures that the service warns of, are unknown rather than zero."""
    assert _wire_supply.quotas_from_json(region) is None
