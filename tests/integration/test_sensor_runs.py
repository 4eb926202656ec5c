"""Sensors step by step: how they are told off, how they come back, and what reaches the wire."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from airflow.sdk import BaseHook
from airflow.sdk.exceptions import (
    AirflowRescheduleException,
    AirflowSensorTimeout,
    AirflowSkipException,
    TaskDeferred,
)

from airflow_accel_provider.core.record import UnknownVersionError
from airflow_accel_provider.exceptions import (
    AcceleratorConfigurationError,
    AcceleratorPermissionError,
    AcceleratorWarning,
)
from airflow_accel_provider.sensors.proof import AcceleratorProofSensor
from airflow_accel_provider.sensors.quota import AcceleratorQuotaSensor
from airflow_accel_provider.sensors.reservation import AcceleratorReservationSensor
from airflow_accel_provider.sensors.utilization import AcceleratorUtilizationSensor
from tests.integration.local_google import PROJECT
from tests.integration.task_run import TaskRun

if TYPE_CHECKING:
    from tests.integration.local_google import LocalGoogle

L4 = "nvidia-l4 on g2-standard-8 in us-central1"
RESERVATION = "projects/acme-ml-prod/zones/us-east5-b/reservations/tpu-night"
GET_RESERVATION = "compute.reservations.get"


@dataclass(kw_only=True)
class SensorRun(TaskRun):
    """A sensor's task instance, with what Airflow tells it of its start and of the times it came back."""

    start_date: datetime
    first_reschedule_date: datetime | None = None
    came_back: int = 0

    def get_first_reschedule_date(self, context: Any) -> datetime | None:  # noqa: ARG002 - Airflow gives it
        """Return when it was rescheduled first, as ``ti`` does."""
        return self.first_reschedule_date

    @property
    def context(self) -> dict[str, Any]:
        """Return what a task is told about itself."""
        return {**super().context, "task_reschedule_count": self.came_back}


def run_of(kind: type, *, ago: float = 0, first: float | None = None, **said: Any) -> SensorRun:
    """Return a run of a sensor that began so many seconds ago, and was first rescheduled ``first`` seconds ago."""
    now = datetime.now(UTC)
    params = said.pop("params", {})
    usual = {"task_id": "wait", "poke_interval": 0.2, "timeout": 30}
    return SensorRun(
        make=lambda: kind(**{**usual, **said}),
        start_date=now - timedelta(seconds=ago),
        ago=timedelta(seconds=ago),
        first_reschedule_date=None if first is None else now - timedelta(seconds=first),
        came_back=0 if first is None else 1,
        params=params,
    )


MODES = [{"deferrable": True}, {"deferrable": False}, {"deferrable": False, "mode": "reschedule"}]


def test_a_rescheduled_sensor_comes_back(google: LocalGoogle) -> None:
    """In reschedule mode every look frees the worker, until the look that finds room."""
    google.emulator.set_world("no-quota")
    run = run_of(AcceleratorQuotaSensor, placements=[L4], deferrable=False, mode="reschedule", poke_interval=20)
    with pytest.raises(AirflowRescheduleException) as later:
        run.execute()
    assert timedelta(seconds=15) < later.value.reschedule_date - datetime.now(UTC) <= timedelta(seconds=20)
    google.emulator.set_world("plenty")
    assert run.execute()["placement"] == L4


def test_a_rescheduled_sensor_times_out(google: LocalGoogle) -> None:
    """In reschedule mode the time counts from the first time, and the text is that of the other modes."""
    google.emulator.set_world("no-quota")
    rescheduled = run_of(AcceleratorQuotaSensor, placements=[L4], deferrable=False, mode="reschedule", first=31)
    held = run_of(AcceleratorQuotaSensor, placements=[L4], deferrable=False, ago=31)
    with pytest.raises(AirflowSensorTimeout) as first:
        rescheduled.execute()
    with pytest.raises(AirflowSensorTimeout) as second:
        held.execute()
    assert str(first.value) == str(second.value)
    assert str(first.value).startswith(f"wait timed out after 30 s: no place has room: {L4}: needs")


def test_time_counts_from_the_tasks_start(google: LocalGoogle) -> None:
    """A deferred sensor gets what is left of its time, and of an execution_timeout that is shorter."""
    google.emulator.set_world("no-quota")
    said: dict[str, Any] = {"placements": [L4], "deferrable": True, "timeout": 1000}
    for more, left in (({}, 900), ({"execution_timeout": timedelta(seconds=400)}, 300)):
        run = run_of(AcceleratorQuotaSensor, ago=100, **said, **more)
        with pytest.raises(TaskDeferred) as deferred:
            run.execute()
        _, trigger = deferred.value.trigger.serialize()
        until = datetime.fromisoformat(trigger["deadline"]) - datetime.now(UTC)
        assert timedelta(seconds=left - 60) < until <= timedelta(seconds=left)
        assert until < deferred.value.timeout < until + timedelta(minutes=5)


def test_a_triggerer_that_is_not_there_is_told(google: LocalGoogle) -> None:
    """When Airflow ends a deferral itself, the sensor has timed out, or is skipped where that is asked for."""
    late = {"error": "Trigger timeout"}
    run = run_of(AcceleratorQuotaSensor, placements=[L4])
    with pytest.raises(AirflowSensorTimeout, match="wait was not heard of by its deadline"):
        run.operator().resume_execution("__fail__", late, run.context)  # type: ignore[arg-type]
    soft = run_of(AcceleratorQuotaSensor, placements=[L4], soft_fail=True)
    with pytest.raises(AirflowSkipException, match="wait was not heard of by its deadline"):
        soft.operator().resume_execution("__fail__", late, soft.context)  # type: ignore[arg-type]
    with pytest.raises(UnknownVersionError):
        run.operator().resume_execution("resume", {"event": {"v": 99}}, run.context)  # type: ignore[arg-type]


@pytest.mark.parametrize("mode", MODES, ids=["deferrable", "poke", "reschedule"])
def test_a_refusal_fails_in_every_mode(google: LocalGoogle, mode: dict[str, Any]) -> None:
    """A missing permission fails the task at once with the service's sentence, and skips it with soft_fail."""
    denied = "Required 'compute.reservations.get' permission"
    google.fail(GET_RESERVATION, times=2, status=403, message=denied)
    with pytest.raises(AcceleratorPermissionError, match=denied):
        run_of(AcceleratorReservationSensor, reservation=RESERVATION, **mode).run()
    with pytest.raises(AirflowSkipException, match=denied):
        run_of(AcceleratorReservationSensor, reservation=RESERVATION, soft_fail=True, **mode).run()


NO_JOB: list[tuple[type, dict[str, Any], str]] = [
    (
        AcceleratorProofSensor,
        {"job_id": "2026-03-02_01_02_03-4"},
        r"wait failed: us-central1 has no job 2026-03-02_01_02_03-4 in project acme-ml-prod; ",
    ),
    (
        AcceleratorUtilizationSensor,
        {"job_id": "2026-03-02_01_02_03-4"},
        r"wait failed: us-central1 has no job 2026-03-02_01_02_03-4 in project acme-ml-prod; ",
    ),
    (
        AcceleratorProofSensor,
        {"job_name": "no-such-job"},
        r"wait failed: us-central1 has no job named no-such-job in project acme-ml-prod; ",
    ),
]


@pytest.mark.parametrize(("kind", "said", "told"), NO_JOB)
@pytest.mark.parametrize("mode", MODES, ids=["deferrable", "poke", "reschedule"])
def test_a_job_that_is_not_there(
    google: LocalGoogle, kind: type, said: dict[str, Any], told: str, mode: dict[str, Any]
) -> None:
    """A sensor for a job that does not exist is one error in every mode, at the first look, and nothing is started."""
    since = google.mark()
    with pytest.raises(AcceleratorConfigurationError, match=told):
        run_of(kind, region="us-central1", **said, **mode).run()
    assert google.created(since=since) == []


def test_a_triggers_refusal_is_the_tasks(google: LocalGoogle) -> None:
    """A permission that is taken away while a sensor is deferred fails it with the same text."""
    google.emulator.set_world("reserved-tpu")
    run = run_of(AcceleratorReservationSensor, reservation=RESERVATION, count=3, deferrable=True)
    with pytest.raises(TaskDeferred) as deferred:
        run.execute()
    google.fail(GET_RESERVATION, times=1, status=403, message="taken away")
    resume = run._resumed(deferred.value)
    with pytest.raises(AcceleratorPermissionError, match=r"wait failed: nobody could be asked: .*taken away"):
        resume()


@pytest.mark.parametrize("mode", MODES, ids=["deferrable", "poke", "reschedule"])
def test_an_unknown_quota(google: LocalGoogle, mode: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    """A quota that may not be read counts as room and is logged, or is waited for, as asked."""
    google.fail("compute.regions.get", times=50, status=403, message="no")
    value = run_of(AcceleratorQuotaSensor, placements=[L4], **mode).run()
    assert value["known"] is False
    assert "NVIDIA_L4_GPUS could not be read, which counts as room" in capsys.readouterr().out
    with pytest.raises(AirflowSensorTimeout, match="NVIDIA_L4_GPUS could not be read"):
        run_of(AcceleratorQuotaSensor, placements=[L4], on_unknown="wait", timeout=0, **mode).run()


def test_parameters_reach_the_wire(google: LocalGoogle, monkeypatch: pytest.MonkeyPatch) -> None:
    """Identity, question, pace and deadline of a deferred sensor are those that were said, and hold no secret."""
    google.emulator.set_world("reserved-tpu")
    monkeypatch.setenv("AIRFLOW_CONN_ACCELERATORS", google.connection(project="acme-other"))
    account = f"pipeline@{PROJECT}.iam.gserviceaccount.com"
    since = google.mark()
    run = run_of(
        AcceleratorReservationSensor,
        reservation="tpu-night",
        zone="us-east5-b",
        count=3,
        project_id=PROJECT,
        gcp_conn_id="accelerators",
        impersonation_chain=account,
        quota_project_id="acme-billing",
        deferrable=True,
        exponential_backoff=True,
        max_wait=45,
        silent_fail=True,
        timeout=1,
    )
    with pytest.raises(AirflowSensorTimeout):
        run.run()
    (row,) = run.triggers
    wanted = {"about": "reservation", "reservation": "zones/us-east5-b/reservations/tpu-night", "count": 3}
    assert row["question"] == wanted
    assert row["pace"] == {"seconds": 0.2, "grows": True, "longest": 45}
    assert row["is_patient"] is True
    calls = google.calls(GET_RESERVATION, since=since)
    assert {(call["principal"], call["path"]["project"]) for call in calls} == {(account, PROJECT)}
    assert len(calls) >= 3
    secret = json.loads(BaseHook.get_connection("accelerators").extra)["keyfile_dict"]
    assert json.loads(secret)["private_key"][40:80] not in json.dumps(row)


QUESTIONS: list[tuple[type, dict[str, Any], dict[str, Any]]] = [
    (
        AcceleratorQuotaSensor,
        {"placements": ["nvidia-l4"], "region": "us-central1", "num_workers": 3, "on_unknown": "wait"},
        {"placements": ["nvidia-l4 on g2-standard-4 in us-central1"], "num_workers": 3, "unknown_is_room": False},
    ),
    (AcceleratorQuotaSensor, {"placements": [L4], "use_public_ips": False}, {"use_public_ips": False}),
    (
        AcceleratorProofSensor,
        {"region": "us-east1", "job_name": "nightly", "accelerator": "nvidia-l4:2", "wait_for_job": True},
        {"region": "us-east1", "job_name": "nightly", "job_id": None, "accelerator": "nvidia-l4:2"},
    ),
    (
        AcceleratorUtilizationSensor,
        {
            "region": "us-east1",
            "job_id": "2026-03-02_1",
            "threshold": 30,
            "window": timedelta(minutes=2),
            "delay": 5,
            "wait_for_job": True,
        },
        {"job_id": "2026-03-02_1", "threshold": 30, "window": 120, "delay": 5},
    ),
]


@pytest.mark.parametrize(("kind", "said", "asked"), QUESTIONS)
def test_parameters_are_asked_as_said(
    google: LocalGoogle, kind: type, said: dict[str, Any], asked: dict[str, Any]
) -> None:
    """Every parameter of a sensor is in the question that its trigger asks."""
    google.emulator.set_world("no-quota")
    run = run_of(kind, deferrable=True, **said)
    with pytest.raises(TaskDeferred) as deferred:
        run.execute()
    _, trigger = deferred.value.trigger.serialize()
    question = trigger["question"]
    assert {name: question[name] for name in asked} == asked
    if said.get("wait_for_job"):
        assert datetime.fromisoformat(question["awaited_since"]) == run.start_date


WRONG: list[tuple[type, dict[str, Any], str]] = [
    (AcceleratorQuotaSensor, {"placements": ["nvidia-l5 in us-central1"]}, r"placements\[0\]: nvidia-l5 is not an acc"),
    (AcceleratorQuotaSensor, {"placements": L4}, r"placements: .* give a list of placements"),
    (AcceleratorQuotaSensor, {"placements": []}, r"placements: \[\] does not do"),
    (AcceleratorQuotaSensor, {"placements": ["tpu-v6e-slice:3x2 in us-east5"]}, r"comes as 1x1, 2x2, 2x4, not 3x2"),
    (AcceleratorQuotaSensor, {"placements": [L4], "num_workers": 0}, r"num_workers: 0 does not do; give a whole"),
    (AcceleratorQuotaSensor, {"placements": [L4], "on_unknown": "waits"}, r"on_unknown: .*Did you mean 'wait'\?"),
    (AcceleratorProofSensor, {"region": "us-central1"}, r"There is no job; give job_id=, job_name= or batch_id="),
    (AcceleratorProofSensor, {"region": "us-central1", "job_id": "a", "job_name": "b"}, r"There are two jobs"),
    (
        AcceleratorProofSensor,
        {"region": "us-central1-a", "job_id": "a"},
        r"is a zone; jobs are found by .* us-central1\.",
    ),
    (
        AcceleratorProofSensor,
        {"region": "us-centrl1", "job_id": "a"},
        r"no region us-centrl1\. Did you mean us-central1",
    ),
    (
        AcceleratorProofSensor,
        {"region": "us-central1", "job_id": "a", "accelerator": "nvidia-l5"},
        r"no accelerator nvidia-l5\. Did you mean nvidia-l4\?",
    ),
    (AcceleratorProofSensor, {"region": "us-central1", "job_id": "a", "accelerator": "cpu"}, r"A cpu needs no proof"),
    (AcceleratorReservationSensor, {"reservation": "tpu-night"}, r"does not say the reservation's zone.*zone="),
    (AcceleratorReservationSensor, {"reservation": "tpu night", "zone": "us-east5-b"}, r"is not a reservation"),
    (AcceleratorReservationSensor, {"reservation": "tpu-night", "zone": "us-east5"}, r"'us-east5' is not a zone"),
    (
        AcceleratorReservationSensor,
        {"reservation": RESERVATION, "zone": "us-east5-a"},
        r"is in us-east5-b, not in zone",
    ),
    (AcceleratorReservationSensor, {"reservation": RESERVATION, "count": -1}, r"count: -1 does not do"),
    (
        AcceleratorUtilizationSensor,
        {"region": "us-east1", "job_id": "a", "threshold": 101},
        r"threshold: 101 does not do",
    ),
    (AcceleratorUtilizationSensor, {"region": "us-east1", "job_id": "a", "window": 0}, r"window: 0 does not do"),
    (AcceleratorReservationSensor, {"reservation": RESERVATION, "mode": "pok"}, r"mode: 'pok' does not do"),
    (AcceleratorReservationSensor, {"reservation": RESERVATION, "poke_interval": 0}, r"poke_interval: 0 does not do"),
    (AcceleratorReservationSensor, {"reservation": RESERVATION, "timeout": "1h"}, r"timeout: '1h' does not do"),
    (AcceleratorReservationSensor, {"reservation": RESERVATION, "gcp_conn_id": 5}, r"gcp_conn_id: 5 does not do"),
]


@pytest.mark.parametrize(("kind", "said", "told"), WRONG)
def test_is_refused_at_parse(kind: type, said: dict[str, Any], told: str) -> None:
    """What cannot be asked is refused when the sensor is made, in one line that says what could."""
    with pytest.raises(AcceleratorConfigurationError) as refused:
        kind(task_id="wait", **said)
    head, line = str(refused.value).splitlines()
    assert head == "wait cannot run, 1 error:"
    assert re.search(told, line)


def test_all_mistakes_are_told_at_once() -> None:
    """Mistakes in places, waiting and identity are named in one error."""
    with pytest.raises(AcceleratorConfigurationError) as refused:
        AcceleratorQuotaSensor(
            task_id="wait",
            placements=["nvidia-l5 in us-central1", "nvidia-l4"],
            num_workers=0,
            mode="pok",
            timeout=-1,
            soft_fail=True,
            never_fail=True,
            deferrable="yes",  # type: ignore[arg-type]
        )
    head, *lines = str(refused.value).splitlines()
    told = {line.removeprefix("- ").partition(":")[0] for line in lines}
    assert told == {"placements[0]", "placements[1]", "num_workers", "mode", "timeout", "soft_fail", "deferrable"}
    assert head == f"wait cannot run, {len(lines)} errors:"


def test_a_place_without_the_accelerator_warns() -> None:
    """A place that the catalogue does not have the accelerator in is warned about at parse."""
    with pytest.warns(AcceleratorWarning, match="nvidia-l4 is not offered in us-east5"):
        AcceleratorQuotaSensor(task_id="wait", placements=[L4, "nvidia-l4 in us-east5"])


def test_templates_are_judged_at_start(google: LocalGoogle) -> None:
    """What a template turns out to be is judged before anything is asked."""
    since = google.mark()
    params = {"region": "us-centrl1", "place": "nvidia-l5 in us-central1", "none": ""}
    wrong: list[tuple[type, dict[str, Any], str]] = [
        (AcceleratorProofSensor, {"region": "{{ params.region }}", "job_id": "a"}, "no region us-centrl1"),
        (AcceleratorProofSensor, {"region": "us-east1", "job_id": "{{ params.none }}"}, "There is no job"),
        (AcceleratorQuotaSensor, {"placements": ["{{ params.place }}"]}, "nvidia-l5 is not an accelerator"),
        (AcceleratorReservationSensor, {"reservation": "{{ params.place }}"}, "is not a reservation"),
    ]
    for kind, said, told in wrong:
        with pytest.raises(AcceleratorConfigurationError, match=told):
            run_of(kind, params=params, **said).execute()
    assert google.emulator.ledger(since=since)["calls"] == []


def test_no_connection(google: LocalGoogle) -> None:
    """A connection that Airflow does not have is named."""
    with pytest.raises(AcceleratorConfigurationError, match="gcp_conn_id: Airflow has no connection 'nowhere'"):
        run_of(AcceleratorReservationSensor, reservation=RESERVATION, gcp_conn_id="nowhere").execute()


def test_poke_is_one_look(google: LocalGoogle) -> None:
    """Code that pokes a sensor by itself gets one look and the value."""
    google.emulator.set_world("reserved-tpu")
    run = run_of(AcceleratorReservationSensor, reservation=RESERVATION)
    done = run.operator().poke(run.context)  # type: ignore[attr-defined]
    assert (done.is_done, done.xcom_value["free"]) == (True, 2)
    more = run_of(AcceleratorReservationSensor, reservation=RESERVATION, count=3)
    assert not more.operator().poke(more.context)  # type: ignore[attr-defined]
