"""What a sensor's question is answered with, and how long it is asked."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from airflow_accel_provider.core.catalog import load_catalog
from airflow_accel_provider.core.failures import FailureKind
from airflow_accel_provider.core.jobs import Job, JobState, Worker
from airflow_accel_provider.core.quota import GLOBAL, Quota, Readings
from airflow_accel_provider.core.reservations import Reservation, ReservationState
from airflow_accel_provider.core.waiting.answers import Answer, Met, Never, NotYet
from airflow_accel_provider.core.waiting.jobs import JobFacts, JobQuestion, chosen
from airflow_accel_provider.core.waiting.pace import Pace
from airflow_accel_provider.core.waiting.proof import ProofQuestion, answer_proof
from airflow_accel_provider.core.waiting.questions import Question, question_from_json, question_to_json
from airflow_accel_provider.core.waiting.quota import QuotaQuestion, answer_quota
from airflow_accel_provider.core.waiting.reservation import ReservationQuestion, answer_reservation
from airflow_accel_provider.core.waiting.utilization import Use, UtilizationQuestion, answer_utilization
from airflow_accel_provider.exceptions import AcceleratorConfigurationError, AcceleratorError, GoogleApiError
from airflow_accel_provider.triggers._follow import PATIENCE
from airflow_accel_provider.triggers._wait import Listener, Settled, TimedOut, wait
from airflow_accel_provider.triggers.sensor import event, read_event

NOW = datetime(2026, 3, 2, 4, 5, 6, tzinfo=UTC)
L4, T4 = "nvidia-l4 on g2-standard-8 in us-central1", "nvidia-tesla-t4 on n1-standard-8 in europe-west4"
TPU = "tpu-v6e-slice:2x2 on ct6e-standard-4t in us-east5"
PLENTY = Quota(64, 0)


def failure_of(answer: Answer) -> tuple[FailureKind, str]:
    assert isinstance(answer, Never)
    return answer.failure.kind, answer.failure.explanation


# Quota.


def readings(**metrics: Quota) -> Readings:
    regional = {"NVIDIA_L4_GPUS": PLENTY, "NVIDIA_T4_GPUS": PLENTY, "CPUS": Quota(1000, 0), **metrics}
    return {"us-central1": regional, "europe-west4": regional, GLOBAL: {"GPUS_ALL_REGIONS": PLENTY}}


def room(read: Readings, *placements: str, **said: Any) -> Answer:
    return answer_quota(QuotaQuestion(placements=placements or (L4, T4), **said), read, load_catalog())


def test_the_first_place_with_room_is_met() -> None:
    """Of several places with room the first in the user's order is the answer, with what it needs and what is left."""
    answer = room(readings(NVIDIA_L4_GPUS=Quota(8, 5)), num_workers=2)
    assert isinstance(answer, Met)
    assert (answer.value["placement"], answer.value["known"], answer.remark) == (L4, True, "")
    figures = {each["metric"]: each for each in answer.value["quotas"]}
    assert figures["NVIDIA_L4_GPUS"] == {
        "metric": "NVIDIA_L4_GPUS",
        "location": "us-central1",
        "needed": 2,
        "left": 3,
        "limit": 8,
        "is_estimate": False,
    }


def test_a_full_place_is_passed_over() -> None:
    """A place without quota leaves the next one."""
    answer = room(readings(NVIDIA_L4_GPUS=Quota(8, 8)))
    assert isinstance(answer, Met)
    assert answer.value["placement"] == T4


def test_no_room_is_waited_for_and_every_place_has_its_reason() -> None:
    """While no place has room, the reason names each place with the quota that is short."""
    answer = room(readings(NVIDIA_L4_GPUS=Quota(8, 8), NVIDIA_T4_GPUS=Quota(0, 0)))
    assert isinstance(answer, NotYet)
    assert f"{L4}: needs at least 1 of NVIDIA_L4_GPUS; 0 of 8 left; {T4}: needs" in answer.reason


def test_an_unknown_quota_is_room_and_said_so() -> None:
    """A quota that could not be read counts as room, which the value and a remark say."""
    answer = room({"us-central1": None, GLOBAL: None}, L4)
    assert isinstance(answer, Met)
    assert answer.value["known"] is False
    assert answer.remark == "NVIDIA_L4_GPUS and GPUS_ALL_REGIONS could not be read, which counts as room"


def test_an_unknown_quota_can_be_waited_for() -> None:
    """Where unknown is no room, the sensor waits until the quota can be read."""
    answer = room({"us-central1": None, GLOBAL: None}, L4, unknown_is_room=False)
    assert isinstance(answer, NotYet)
    assert "could not be read" in answer.reason


def test_a_tpu_of_which_only_the_limit_is_known_is_unknown() -> None:
    """A limit without usage can refuse a place, and does not say that it has room."""
    metric = "TPUS_PER_TPU_FAMILY (tpu_family CT6E)"
    told = room({"us-east5": {metric: Quota(64, None, is_estimate=True)}}, TPU)
    assert isinstance(told, Met)
    assert told.value["known"] is False
    assert isinstance(room({"us-east5": {metric: Quota(0, None, is_estimate=True)}}, TPU), NotYet)


def test_places_that_lack_the_accelerator_are_not_waited_for() -> None:
    """Where the catalogue has the accelerator in none of the places, there will be no room."""
    kind, text = failure_of(room(readings(), "nvidia-l4 on g2-standard-8 in us-east5"))
    assert kind is FailureKind.NOT_OFFERED
    assert "not offered there" in text


# Jobs and proof.

JOB = Job(id="2026-03-02_01_02_03-4", name="nightly", region="us-central1", state=JobState.RUNNING)
G2 = Worker(
    name="w", status="running", machine_type="g2-standard-8", zone="us-central1-a", accelerators=(("nvidia-l4", 1),)
)
BARE = replace(G2, accelerators=())
TPU_HOST = Worker(name="t", status="running", machine_type="ct6e-standard-4t", zone="us-east5-b")


def proof(job: Job | None, *workers: Worker, others: tuple[Job, ...] = (), **said: Any) -> Answer:
    question = ProofQuestion(**{"region": "us-central1", "job_id": JOB.id, **said})
    return answer_proof(question, JobFacts(project="acme", job=job, workers=workers, others=others), NOW)


@pytest.mark.parametrize("accelerator", [None, "nvidia-l4"])
def test_a_gpu_that_is_seen_is_met(accelerator: str | None) -> None:
    """A worker that is up with the GPU proves it, whether it was named or not."""
    answer = proof(JOB, BARE, G2, accelerator=accelerator)
    assert isinstance(answer, Met)
    seen = answer.value["proof"]
    assert (seen["status"], seen["accelerator"], seen["count"], seen["zone"]) == (
        "seen",
        "nvidia-l4",
        1,
        "us-central1-a",
    )
    assert JOB.id in answer.value["url"]


@pytest.mark.parametrize("accelerator", [None, "tpu-v6e-slice:2x2"])
def test_a_tpu_that_is_seen_is_met(accelerator: str | None) -> None:
    """A worker that is up on a TPU's machine proves the TPU."""
    answer = proof(JOB, TPU_HOST, accelerator=accelerator)
    assert isinstance(answer, Met)
    assert answer.value["proof"]["machine_type"] == "ct6e-standard-4t"


@pytest.mark.parametrize(
    ("workers", "accelerator", "said"),
    [
        ((), None, "is running and none of its workers is up"),
        ((replace(G2, status="staging"),), None, "none of its workers is up"),
        ((BARE,), None, "in us-central1-a runs without a GPU or TPU"),
        ((G2,), "nvidia-l4:2", "runs without nvidia-l4:2"),
        ((G2,), "nvidia-tesla-t4", "runs without nvidia-tesla-t4"),
        ((G2,), "tpu-v6e-slice:2x2", "runs without tpu-v6e-slice:2x2"),
    ],
)
def test_what_is_not_seen_is_waited_for(workers: tuple[Worker, ...], accelerator: str | None, said: str) -> None:
    """While a job runs, workers that are not up or lack the accelerator are waited for."""
    answer = proof(JOB, *workers, accelerator=accelerator)
    assert isinstance(answer, NotYet)
    assert said in answer.reason


@pytest.mark.parametrize("state", [state for state in JobState if state.is_terminal])
def test_a_job_that_ended_unseen_is_never_proven(state: JobState) -> None:
    """However a job ended, it will show no accelerator any more."""
    kind, text = failure_of(proof(replace(JOB, state=state), accelerator="nvidia-l4"))
    assert kind is FailureKind.ACCELERATOR_MISSING
    assert text == f"job {JOB.id} in us-central1 ended ({state}) and nvidia-l4 was never seen on a worker"


@pytest.mark.parametrize(
    ("said", "others", "hint"),
    [
        ({"job_id": "2026-03-02_01_02_03-9"}, (JOB,), f"did you mean {JOB.id}?"),
        ({"job_id": "nightly"}, (JOB,), f"that is the name of job {JOB.id}, so give it as job_name="),
        ({"job_id": None, "job_name": JOB.id}, (JOB,), "that is the id of a job, so give it as job_id="),
        ({"job_id": None, "job_name": "nihgtly"}, (JOB,), "did you mean nightly?"),
        ({"job_id": None, "job_name": "x"}, (JOB,), "active there: nightly"),
        ({}, (), "no job is active there"),
    ],
)
def test_a_job_that_does_not_exist_is_one_clear_error(said: dict[str, Any], others: tuple[Job, ...], hint: str) -> None:
    """A job that is not there fails with its region, its project and what may have been meant."""
    kind, text = failure_of(proof(None, others=others, **said))
    assert kind is FailureKind.CONFIGURATION
    assert text.startswith("us-central1 has no job ")
    assert " in project acme; " in text
    assert text.endswith(hint)


def test_a_job_can_be_awaited() -> None:
    """A job that is waited for is no mistake while it is not there."""
    assert isinstance(proof(None, awaited_since=NOW.isoformat()), NotYet)


def test_of_several_jobs_of_a_name_the_active_one_is_meant() -> None:
    """The active job of a name is meant, else the newest; a sensor that waits for one passes over those of the past."""
    old = replace(JOB, id="old", state=JobState.DONE, state_at=NOW - timedelta(days=1))
    new = replace(JOB, id="new", state=JobState.FAILED, state_at=NOW + timedelta(minutes=1))
    now, awaiting = JobQuestion(region="r", job_name="n"), JobQuestion(region="r", job_name="n", awaited_since=str(NOW))
    assert chosen([new, JOB, old], now) == chosen([new, JOB, old], awaiting) == JOB
    assert chosen([new, old], now) == chosen([new, old], awaiting) == new
    assert chosen([old], now) == old
    assert chosen([old], awaiting) is None
    assert chosen([], now) is None


# Reservations.

RESERVED = ReservationState(
    reservation=Reservation(project="acme", zone="us-east5-b", name="tpu-night"),
    machine_type="ct6e-standard-4t",
    accelerator="ct6e",
    accelerators_each=4,
    count=4,
    in_use=3,
    status="ready",
    is_specific=True,
)
NIGHT = "projects/acme/zones/us-east5-b/reservations/tpu-night"


def reserved(state: ReservationState | None, count: int = 1) -> Answer:
    return answer_reservation(ReservationQuestion(reservation=NIGHT, count=count), state, project="acme")


def test_free_capacity_is_met() -> None:
    """Enough free machines are the answer, with the figures."""
    answer = reserved(RESERVED)
    assert isinstance(answer, Met)
    assert (answer.value["free"], answer.value["in_use"], answer.value["count"], answer.value["needed"]) == (1, 3, 4, 1)


@pytest.mark.parametrize(
    ("state", "count", "said"),
    [
        (RESERVED, 2, "1 of 4 free"),
        (RESERVED, 5, "holds 4 in all, and 5 must be free"),
        (replace(RESERVED, status="creating", in_use=0), 1, "is creating, not ready"),
    ],
)
def test_a_full_reservation_is_waited_for(state: ReservationState, count: int, said: str) -> None:
    """Too little free capacity, or a reservation that is not ready, is waited for, saying which."""
    answer = reserved(state, count)
    assert isinstance(answer, NotYet)
    assert said in answer.reason


def test_a_reservation_that_does_not_exist_is_never_free() -> None:
    """A reservation that is not there is an error that names it."""
    kind, text = failure_of(reserved(None))
    assert kind is FailureKind.CONFIGURATION
    assert NIGHT in text


def test_a_reservation_that_does_not_exist_has_its_nearest_told() -> None:
    """Of one that is not there its namesakes in other zones are told, else the one whose name is nearest."""
    here, there = (Reservation(project="acme", zone=zone, name="tpu-night") for zone in ("us-east5-a", "us-east1-d"))
    misspelt = Reservation(project="acme", zone="us-east5-b", name="tpu-nigth")
    question = ReservationQuestion(reservation=NIGHT)
    for others, meant in (
        ([here, there, misspelt], "; did you mean tpu-night in us-east1-d or tpu-night in us-east5-a?"),
        ([misspelt], "; did you mean tpu-nigth in us-east5-b?"),
        ([Reservation(project="acme", zone="us-east5-b", name="gpus")], "for project acme"),
    ):
        _, text = failure_of(answer_reservation(question, None, project="acme", others=others))
        assert text.endswith(meant)


# Utilisation.

IDLE, BUSY = (Use(mean=mean, highest=mean, points=4, newest_at=NOW) for mean in (0.0, 80.0))
ENDED = replace(JOB, state=JobState.DONE, state_at=NOW - timedelta(seconds=100))


def used(job: Job | None, use: Use | None, *, delay: float = 60) -> Answer:
    question = UtilizationQuestion(region="us-central1", job_id=JOB.id, threshold=50, window=300, delay=delay)
    return answer_utilization(question, JobFacts(project="acme", job=job), use, NOW)


@pytest.mark.parametrize("job", [JOB, ENDED])
def test_enough_use_is_met(job: Job) -> None:
    """A mean of at least the threshold is the answer, also of a job that has ended meanwhile."""
    answer = used(job, BUSY)
    assert isinstance(answer, Met)
    assert (answer.value["mean"], answer.value["threshold"], answer.value["points"]) == (80, 50, 4)
    assert isinstance(used(job, replace(BUSY, mean=50)), Met)


def test_no_figure_is_not_zero() -> None:
    """A running job of which nothing was recorded is waited for in other words than an idle one."""
    nothing, idle = used(JOB, None), used(JOB, IDLE)
    assert isinstance(nothing, NotYet)
    assert isinstance(idle, NotYet)
    assert nothing.reason.endswith("nothing was recorded of any GPU")
    assert "used 0 % on average and 0 % at most (4 figures), not the 50 %" in idle.reason


@pytest.mark.parametrize(
    ("use", "kind", "said"),
    [
        (None, FailureKind.ACCELERATOR_MISSING, "nothing was recorded of any GPU"),
        (IDLE, FailureKind.USER_CODE, "used 0 % on average"),
    ],
)
def test_a_job_that_ended_is_waited_for_no_longer_than_figures_may_come(
    use: Use | None, kind: FailureKind, said: str
) -> None:
    """After a job's end its last figures are waited for, and then it has failed, saying what was recorded."""
    assert isinstance(used(ENDED, use, delay=101), NotYet)
    found, text = failure_of(used(ENDED, use, delay=99))
    assert found is kind
    assert text.startswith(f"job {JOB.id} in us-central1 ended (done) and ")
    assert said in text
    assert failure_of(used(None, None))[0] is FailureKind.CONFIGURATION


def test_the_window_follows_the_job() -> None:
    """The window ends with the job; while that runs it reaches back by as much as figures may be late."""
    question = UtilizationQuestion(region="us-central1", job_id="j", threshold=50, window=300, delay=60)
    assert question.since(JOB, NOW) == NOW - timedelta(seconds=360)
    assert question.since(ENDED, NOW) == NOW - timedelta(seconds=400)


# Questions and events as they are stored.


@pytest.mark.parametrize(
    "question",
    [
        QuotaQuestion(placements=(L4, T4), num_workers=3, use_public_ips=False, unknown_is_room=False),
        ProofQuestion(region="us-central1", job_name="n", accelerator="nvidia-l4", awaited_since=NOW.isoformat()),
        ReservationQuestion(reservation=NIGHT, count=2),
        UtilizationQuestion(region="us-central1", job_id="j", threshold=50, window=300, delay=60),
    ],
)
def test_questions_are_read_as_they_were_written(question: Question) -> None:
    """A question that was stored is asked as it was meant."""
    assert question_from_json(question_to_json(question)) == question


@pytest.mark.parametrize("settled", [Met({"v": 1}, "remark"), proof(None), TimedOut("late")])
def test_events_are_read_as_they_were_written(settled: Settled) -> None:
    """How a wait ended reaches the worker whole."""
    assert read_event(event(settled)) == settled


# The loop.


@pytest.mark.parametrize(
    ("pace", "pauses"),
    [
        (Pace(seconds=10), [10, 10, 10, 10]),
        (Pace(seconds=10, grows=True), [10, 20, 40, 80]),
        (Pace(seconds=10, grows=True, longest=25), [10, 20, 25, 25]),
    ],
)
def test_pauses(pace: Pace, pauses: list[float]) -> None:
    """Pauses stay the same or double, up to the longest."""
    assert [pace.pause(looks) for looks in range(1, 5)] == pauses
    assert pace.pause(10_000) >= pauses[-1]


@dataclass
class Matter:
    """Something that is looked at; each look takes a minute of its own clock, and gives what comes next."""

    comes: list[Answer | AcceleratorError]
    now: datetime = NOW
    looks: int = 0
    reasons: list[str] = field(default_factory=list)

    async def look(self) -> Answer:
        """Return, or raise, what comes next; the last goes on for ever."""
        self.looks += 1
        self.now += timedelta(minutes=1)
        next_ = self.comes.pop(0) if len(self.comes) > 1 else self.comes[0]
        if isinstance(next_, AcceleratorError):
            raise next_
        return next_

    def wait(self, *, minutes: float = 60, patience: timedelta | None = PATIENCE) -> Settled:
        """Wait for so many minutes at most, without any real pause."""
        deadline = self.now + timedelta(minutes=minutes)
        waiting = wait(
            self.look,
            Listener(patience),
            pace=Pace(seconds=0.001),
            deadline=deadline,
            now=lambda: self.now,
            log=logging.getLogger("matter"),
        )
        return asyncio.run(waiting)


DONE = Met({"v": 1})
BUSY_SERVICE = GoogleApiError(503, "backendError", "try later", "compute", "GET x")
FORBIDDEN = GoogleApiError(403, "forbidden", "you lack compute.reservations.get", "compute", "GET x")


def test_waits_until_it_is_so() -> None:
    """A wait ends with the first answer that settles the question."""
    matter = Matter([NotYet("a"), NotYet("a"), DONE])
    assert matter.wait() == DONE
    assert matter.looks == 3


def test_the_deadline_ends_the_wait_with_the_last_reason() -> None:
    """When the time is over, the wait ends with why it is not so; with no time at all there is one look."""
    assert Matter([NotYet("a"), NotYet("b")]).wait(minutes=5) == TimedOut("b")
    matter = Matter([NotYet("a")])
    assert matter.wait(minutes=0) == TimedOut("a")
    assert matter.looks == 1


def test_a_busy_service_is_waited_out() -> None:
    """Errors that may pass are waited out for a quarter of an hour at a time."""
    errors: list[Answer | AcceleratorError] = [BUSY_SERVICE] * 14
    assert Matter([*errors, NotYet("a"), *errors, DONE]).wait() == DONE
    kind, text = failure_of_settled(Matter([BUSY_SERVICE]).wait())
    assert kind is FailureKind.SERVICE
    assert "503" in text


def test_a_refusal_ends_the_wait_at_once() -> None:
    """A missing permission, or an unusable connection, is told at once."""
    matter = Matter([FORBIDDEN])
    kind, text = failure_of_settled(matter.wait())
    assert kind is FailureKind.PERMISSION
    assert "you lack compute.reservations.get" in text
    assert matter.looks == 1
    kind, text = failure_of_settled(Matter([AcceleratorConfigurationError("no connection.")]).wait())
    assert (kind, text) == (FailureKind.CONFIGURATION, "nobody could be asked: no connection")


def test_a_patient_sensor_waits_out_everything() -> None:
    """Without a limit to its patience a wait goes on through refusals until its deadline."""
    assert Matter([FORBIDDEN, BUSY_SERVICE, DONE]).wait(patience=None) == DONE
    ended = Matter([FORBIDDEN]).wait(minutes=30, patience=None)
    assert isinstance(ended, TimedOut)
    assert ended.reason.startswith("nobody could be asked: compute GET x: 403")


def failure_of_settled(settled: Settled) -> tuple[FailureKind, str]:
    assert isinstance(settled, Never)
    return settled.failure.kind, settled.failure.explanation
