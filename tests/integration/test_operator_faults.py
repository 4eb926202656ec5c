"""Whatever goes wrong once with any call that a task makes, it succeeds with one job; what goes on is told."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from airflow_accel_provider.exceptions import (
    AcceleratorConfigurationError,
    AcceleratorLaunchError,
    AcceleratorPermissionError,
    AcceleratorServiceError,
)
from airflow_accel_provider.hooks._retry import retrying
from airflow_accel_provider.hooks.dataflow import DataflowHook
from demo.processes import Processes
from tests.integration.batches import etl_run
from tests.integration.endless import LAUNCH, REGION, endless_run
from tests.integration.local_google import LocalGoogle

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from airflow_accel_provider.exceptions import AcceleratorError

FIND, LOOK = "dataflow.projects.locations.jobs.list", "dataflow.projects.locations.jobs.get"
ONCE: dict[str, dict[str, Any]] = {
    "asks to wait": {"status": 429, "retry_after": 1},
    "500": {"status": 500},
    "502 in HTML": {"status": 502, "html": "<html><title>502</title><h1>Bad Gateway</h1></html>"},
    "503": {"status": 503, "message": "The service is currently unavailable."},
    "504": {"status": 504},
    "cut before": {"reset": "before"},
    "cut after": {"reset": "after"},
    "slow": {"delay": 1},
    "half an answer": {"truncate": True},
    "token expired": {"status": 401},
    "names and ids alone": {"missing": "optional"},
    "a clock ahead": {"skew": 3600},
    "a clock behind": {"skew": -3600},
}
HURRY: dict[str, timedelta | float] = {
    "triggers._follow.PATIENCE": timedelta(seconds=2),
    "hooks.dataflow._LIST_SECONDS": 2.0,
    "hooks.submission._templates._RETRY_SECONDS": 2.0,
    "hooks.submission._templates._SETTLE_SECONDS": 1.0,
}
MODES = pytest.mark.parametrize("deferrable", [True, False], ids=["deferrable", "synchronous"])


@pytest.fixture(scope="module")
def started_google(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalGoogle]:
    """Start an emulator in which hours pass quickly."""
    directory = tmp_path_factory.mktemp("faults")
    processes = Processes(directory)
    try:
        yield LocalGoogle.start(processes, directory / "emulator", time_scale="300")
    finally:
        processes.stop()


@pytest.fixture(autouse=True)
def _nothing_left(google: LocalGoogle) -> Iterator[None]:
    """End what a test left running."""
    yield
    google.heal()
    hook = DataflowHook(google.session())
    for job in hook.list_active(REGION):
        hook.cancel(job.id, REGION)


def methods_of(google: LocalGoogle, *, since: int) -> list[str]:
    """Return what a task called, each once; the test's own calls carry no token."""
    calls = google.emulator.ledger(since=since)["calls"]
    return sorted({call["method"] for call in calls if call["principal"] or call["method"] == "oauth2.token"})


def unmet(google: LocalGoogle) -> list[str]:
    """Return the methods whose fault nobody met."""
    faults = httpx.get(f"{google.emulator.url}/_emulator/faults", trust_env=False).json()["faults"]
    return [each["method"] for each in faults if each["used"] < each["times"]]


@pytest.fixture(scope="module")
def pipeline_methods(started_google: LocalGoogle) -> Iterator[list[str]]:
    """Return what a pipeline's task calls when all goes well."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in started_google.environment.items():
            patch.setenv(name, value)
        since = started_google.mark()
        endless_run(started_google, deferrable=False).run()
        yield methods_of(started_google, since=since)


@MODES
@pytest.mark.parametrize("fault", ONCE)
def test_one_fault_in_every_call(
    google: LocalGoogle, pipeline_methods: list[str], fault: str, *, deferrable: bool
) -> None:
    """When each call that a task makes goes wrong once in this way, the task still succeeds, with exactly one job."""
    run = endless_run(google, deferrable=deferrable)
    since = google.mark()
    for method in pipeline_methods:
        # Whom the token endpoint refuses is refused; a token that it gave may end early.
        if (fault, method) != ("token expired", "oauth2.token"):
            google.fail(method, **ONCE[fault])
    assert run.run()["state"] == "running"
    assert len(google.created(since=since)) == 1
    assert unmet(google) == []


@MODES
def test_one_fault_in_every_call_for_spark(google: LocalGoogle, *, deferrable: bool) -> None:
    """A batch's task survives faults of all kinds in its calls as well, with exactly one batch."""
    methods = [
        "compute.projects.get",
        "compute.regions.get",
        "dataproc.projects.locations.batches.get",
        "oauth2.token",
        "storage.objects.get",
    ]
    run = etl_run(google, deferrable=deferrable, poll_interval=0.2)
    since = google.mark()
    kinds = [name for name in ONCE if name != "token expired"]
    for method, fault in zip(methods, kinds if deferrable else kinds[::-1], strict=False):
        google.fail(method, **ONCE[fault])
    lost = ONCE["cut after" if deferrable else "half an answer"]
    google.fail("dataproc.projects.locations.batches.create", **lost)
    assert run.run()["state"] == "done"
    assert len(google.events("dataproc.batch.created", since=since)) == 1
    assert unmet(google) == []


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a task lose its patience in seconds."""

    def impatient(call: Callable[[], Any], *, seconds: float) -> Any:
        return retrying(call, seconds=min(seconds, 2))

    for path, value in HURRY.items():
        monkeypatch.setattr(f"airflow_accel_provider.{path}", value)
    monkeypatch.setattr("airflow_accel_provider.hooks.session.retrying", impatient)


@MODES
@pytest.mark.usefixtures("hurried")
@pytest.mark.parametrize(
    ("method", "status", "error", "words"),
    [
        (FIND, 503, AcceleratorServiceError, "score failed, service: dataflow GET "),
        (FIND, 403, AcceleratorPermissionError, "score failed, permission: dataflow GET "),
        (LAUNCH, 503, AcceleratorLaunchError, "was launched; the next try looks for it"),
        (LAUNCH, 403, AcceleratorPermissionError, "permission: the service refused the caller"),
        (LOOK, 503, AcceleratorServiceError, "which may go on; nothing was cancelled"),
        (LOOK, 403, AcceleratorPermissionError, "which may go on; nothing was cancelled"),
        ("oauth2.token", 503, AcceleratorServiceError, "score failed, service: storage GET "),
        ("oauth2.token", 400, AcceleratorConfigurationError, "connection 'google_cloud_default' no access token"),
    ],
)
def test_what_goes_on_is_one_failure(
    google: LocalGoogle, method: str, status: int, error: type[AcceleratorError], words: str, *, deferrable: bool
) -> None:
    """A fault that does not pass is one failure that says what was asked; the next try makes no second job."""
    run = endless_run(google, deferrable=deferrable)
    since = google.mark()
    google.fail(method, times=10_000, status=status, message="It is not to be.")
    with pytest.raises(error) as failed:
        run.run()
    assert words in str(failed.value)
    assert "It is not to be" in str(failed.value)
    is_repeated = status == 503 and method != LAUNCH
    assert bool(re.search(r"\(asked \d+ times in \d+ s\)", str(failed.value))) is is_repeated
    google.heal()
    assert run.run()["state"] == "running"
    assert len(google.created(since=since)) == 1


@MODES
@pytest.mark.parametrize("status", [403, 404])
def test_parts_may_be_missing(google: LocalGoogle, status: int, *, deferrable: bool) -> None:
    """Quotas and messages that nobody may read, or that are not there, stop no task."""
    run = endless_run(google, deferrable=deferrable)
    for method in ("compute.regions.get", "compute.projects.get", "dataflow.projects.locations.jobs.messages.list"):
        google.fail(method, times=10_000, status=status)
    assert run.run()["state"] == "running"
