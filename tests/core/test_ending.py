"""How a job is asked to end: drained where that is wished and possible, else cancelled."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from airflow_accel_provider.core.record import Attempt, Outcome
from airflow_accel_provider.exceptions import GoogleApiError
from airflow_accel_provider.hooks.ending import end
from tests.core.test_fallback import running
from tests.core.test_streaming import left_running

VM = {
    "name": "w",
    "status": "RUNNING",
    "zone": "zones/us-central1-a",
    "labels": {"goog-dataflow-job-id": "job-1"},
}


@dataclass
class OneJob:
    """A session that knows one job, its workers (``None``: they may not be seen), and what it was asked to become."""

    state: str = "RUNNING"
    type: str = "STREAMING"
    workers: tuple[dict[str, Any], ...] | None = (VM,)
    refuses: int | None = None
    project: str = "acme-ml-prod"
    wishes: list[str] = field(default_factory=list)
    looks: int = 0

    def request(self, service: str, verb: str, path: str, *, body: Any = None, **_: Any) -> dict[str, Any]:
        """Answer with the job, or take a wish."""
        assert (service, path.rpartition("/")[2]) == ("dataflow", "job-1")
        if verb == "PUT":
            self.wishes.append(body["requestedState"])
            if self.refuses:
                raise GoogleApiError(self.refuses, "why", "The service's words.", service, verb)
        if self.state == "GONE":
            raise GoogleApiError(404, "notFound", "No such job.", service, verb)
        return {"id": "job-1", "currentState": f"JOB_STATE_{self.state}", "type": f"JOB_TYPE_{self.type}"}

    def pages(self, service: str, path: str, **_: Any) -> Iterator[dict[str, Any]]:
        """Answer with the workers, or refuse to."""
        assert service == "compute"
        self.looks += 1
        if self.workers is None:
            raise GoogleApiError(403, "forbidden", "You may not.", service, path)
        yield {"items": {"zones/us-central1-a": {"instances": list(self.workers)}}}


def attempt(outcome: Outcome, *, proven: bool = False) -> Attempt:
    record = left_running() if proven else running()
    return replace(record.attempts[-1], outcome=outcome)


def asked(job: OneJob, wanted: Attempt) -> str:
    """Return the state that the job was asked to take."""
    end(job, wanted)  # type: ignore[arg-type]
    (wish,) = job.wishes
    return wish.removeprefix("JOB_STATE_")


DRAINING: list[tuple[str, OneJob, str]] = [
    ("a streaming job with workers", OneJob(), "DRAINED"),
    ("one that drains already", OneJob(state="DRAINING", workers=()), "DRAINED"),
    ("one whose workers nobody may see", OneJob(workers=None), "DRAINED"),
    ("one that has no workers", OneJob(workers=()), "CANCELLED"),
    ("one that has not begun", OneJob(state="PENDING"), "CANCELLED"),
    ("one that is being cancelled", OneJob(state="CANCELLING"), "CANCELLED"),
    ("one that is paused", OneJob(state="PAUSED"), "CANCELLED"),
    ("a batch job", OneJob(type="BATCH"), "CANCELLED"),
    ("a job of a type that nobody knows", OneJob(type="UNKNOWN"), "CANCELLED"),
    ("a job that is gone", OneJob(state="GONE"), "CANCELLED"),
]


@pytest.mark.parametrize(("job", "wish"), [row[1:] for row in DRAINING], ids=[row[0] for row in DRAINING])
def test_a_draining_attempt(job: OneJob, wish: str) -> None:
    """A job that is to drain is asked to, if there is anything to drain, else to cancel."""
    assert asked(replace(job, wishes=[]), attempt(Outcome.DRAINING)) == wish


def test_a_proven_job_drains_without_another_look() -> None:
    """The workers of a job that was proven are not looked for again."""
    job = OneJob(workers=None)
    assert asked(job, attempt(Outcome.DRAINING, proven=True)) == "DRAINED"
    assert job.looks == 0


@pytest.mark.parametrize("outcome", [each for each in Outcome if each is not Outcome.DRAINING])
def test_any_other_attempt(outcome: Outcome) -> None:
    """A job of which nobody wished that it drains is cancelled."""
    assert asked(OneJob(), attempt(outcome)) == "CANCELLED"


def test_no_job_is_nothing_to_end() -> None:
    """An attempt whose job is not known asks nothing of anybody."""
    job = OneJob()
    end(job, replace(attempt(Outcome.CANCELLING), job_id=None))  # type: ignore[arg-type]
    assert job.wishes == []


@pytest.mark.parametrize(("status", "state"), [(400, "DRAINING"), (409, "DRAINING"), (412, "DRAINING")])
def test_a_refusal_by_what_is_ending_is_no_error(status: int, state: str) -> None:
    """A drain that is refused since the job already drains is no error."""
    assert asked(OneJob(state=state, refuses=status), attempt(Outcome.DRAINING, proven=True)) == "DRAINED"


@pytest.mark.parametrize("status", [400, 403, 500])
def test_any_other_refusal_is_an_error(status: int) -> None:
    """A drain that a running job refuses is told."""
    with pytest.raises(GoogleApiError, match="The service's words"):
        asked(OneJob(refuses=status), attempt(Outcome.DRAINING, proven=True))
