"""Launches of templates, over a service that keeps jobs by name and loses answers when told to."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from airflow_accel_provider.core.catalog import load_catalog
from airflow_accel_provider.core.failures import FailureKind
from airflow_accel_provider.core.jobs import Job
from airflow_accel_provider.core.request import BeamRequest, Candidate
from airflow_accel_provider.core.validation import resolve
from airflow_accel_provider.exceptions import AcceleratorLaunchError, GoogleApiError
from airflow_accel_provider.hooks import _wire
from airflow_accel_provider.hooks.submission import Place, Submission, Submitting, _templates, pipeline_of

CLASSIC = BeamRequest(
    template="gs://acme-ml/templates/score",
    parameters={"inputFile": "gs://acme-ml/{region}/in"},
    pipeline_options={"tempLocation": "gs://acme-ml/tmp"},
    reservation="any",
)
FLEX = BeamRequest(flex_template="gs://acme-ml/templates/score.json", parameters={"input": "gs://acme-ml/in"})
METADATA = '{"name": "Score", "parameters": [{"name": "inputFile"}, {"name": "top", "isOptional": true}]}'


class Service:
    """Dataflow as a launch sees it. ``trouble`` says what becomes of the next calls, one each."""

    project = "acme-ml-prod"

    def __init__(self, *trouble: Callable[[Service, str], None], files: Mapping[str, str] | None = None) -> None:
        self.trouble = list(trouble)
        self.files = dict(files or {})
        self.jobs: dict[str, dict[str, Any]] = {}
        self.calls: list[tuple[str, Mapping[str, Any], Mapping[str, Any]]] = []

    def request(self, service: str, verb: str, path: str, **said: Any) -> dict[str, Any]:
        """Answer one call."""
        if service == "storage":
            return self._file(path)
        assert (service, verb, said["retry_seconds"]) == ("dataflow", "POST", 0)
        self.calls.append((path, said["params"], said["body"]))
        name = said["body"].get("launchParameter", said["body"])["jobName"]
        trouble = self.trouble.pop(0) if self.trouble else create
        trouble(self, name)
        return {"job": self.jobs[name]}

    def download(self, gs_uri: str, local_path: Path) -> None:
        """Write the content of an object."""
        local_path.write_text(self.files[gs_uri])

    def endpoint(self, _: str) -> None:
        """Name no other root."""

    def find(self, name: str) -> Job | None:
        """Return the job of a name."""
        job = self.jobs.get(name)
        return _wire.job_from_json(job) if job else None

    def _file(self, path: str) -> dict[str, Any]:
        bucket, name = path.removeprefix("b/").split("/o/")
        address = f"gs://{bucket}/{name.replace('%2F', '/')}"
        if address not in self.files:
            raise GoogleApiError(404, "notFound", "no such object", "storage", "GET")
        return {"name": name, "generation": "1"}


def create(service: Service, name: str) -> None:
    """Make the job, unless there is one of this name."""
    if name in service.jobs:
        raise GoogleApiError(409, "alreadyExists", f"The job {name} already exists.", "dataflow", "POST")
    service.jobs[name] = {"id": f"job-{len(service.jobs) + 1}", "name": name, "location": "us-central1"}


def lost(service: Service, name: str) -> None:
    """Make the job and lose the answer."""
    create(service, name)
    raise GoogleApiError(0, "ConnectionError", "the connection was cut", "dataflow", "POST")


def refused(status: int, message: str = "It is not to be.") -> Callable[[Service, str], None]:
    """Return what refuses a launch and makes nothing."""

    def refuse(_: Service, __: str) -> None:
        raise GoogleApiError(status, "refused", message, "dataflow", "POST")

    return refuse


@pytest.fixture(autouse=True)
def hurried(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Try again soon and give up early, and keep files in a folder of the test's own."""
    short = {"_SETTLE_SECONDS": 0.02, "_LISTED_SECONDS": 0.05, "_RETRY_SECONDS": 0.3, "_STEP_SECONDS": 0.02}
    for name, seconds in short.items():
        monkeypatch.setattr(_templates, name, seconds)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


def place(request: BeamRequest, text: str = "nvidia-l4 in us-central1") -> Place:
    candidate = resolve(Candidate.parse(text), load_catalog())
    return Place(request=request.for_candidate(candidate), placement=candidate.placement)


def launch(service: Any, request: BeamRequest = FLEX, *, stopped: bool = False) -> Submission:
    submitting = Submitting(
        job_name="score-1a2b",
        labels={"accel-owner": "o-1"},
        find=lambda: service.find("score-1a2b"),
        say=lambda _: None,
        hide=str,
        stopped=lambda: stopped,
        seconds=5,
    )
    pipeline = pipeline_of(request)
    there = place(request)
    pipeline.prepare(service, there)
    return pipeline.submit(service, there, submitting)


def test_a_classic_template_is_launched_with_its_address_beside_the_body() -> None:
    """A classic template's address is a parameter of the call, and its options have Java's names."""
    service = Service()
    submission = launch(service, CLASSIC)
    ((path, params, body),) = service.calls
    assert submission.job == service.find("score-1a2b")
    assert path == "projects/acme-ml-prod/locations/us-central1/templates:launch"
    assert params == {"gcsPath": "gs://acme-ml/templates/score"}
    assert body["parameters"] == {"inputFile": "gs://acme-ml/us-central1/in"}
    assert body["environment"]["additionalExperiments"] == [
        "worker_accelerator=type:nvidia-l4;count:1;install-nvidia-driver",
        "automatically_use_created_reservation",
    ]
    assert body["environment"]["additionalUserLabels"] == {"accel-owner": "o-1"}


def test_a_flex_template_is_launched_where_the_place_is() -> None:
    """A Flex template is launched in the region of its place, and its job is the answer's."""
    service = Service()
    submission = launch(service)
    ((path, params, body),) = service.calls
    assert (path, params) == ("projects/acme-ml-prod/locations/us-central1/flexTemplates:launch", {})
    assert body["launchParameter"]["containerSpecGcsPath"] == "gs://acme-ml/templates/score.json"
    assert submission.job
    assert submission.job.id == "job-1"


@pytest.mark.parametrize(
    ("trouble", "calls"),
    [
        ([lost], 1),
        ([refused(503), create], 2),
        ([refused(429), create], 2),
        ([refused(0), refused(500), lost], 3),
    ],
    ids=["lost", "503", "429", "several"],
)
def test_what_passes_ends_in_one_job(trouble: list[Callable[[Service, str], None]], calls: int) -> None:
    """Lost answers and refusals that pass end in exactly one job, with no call more than that takes."""
    service = Service(*trouble)
    submission = launch(service)
    assert submission.job == service.find("score-1a2b")
    assert (len(service.jobs), len(service.calls)) == (1, calls)


def test_a_job_that_turns_up_late_is_the_one() -> None:
    """A lost launch whose job is seen only when the name is refused is not launched a second time."""

    class Late(Service):
        """Shows a job only once a launch was refused for it."""

        def find(self, name: str) -> Job | None:
            return super().find(name) if len(self.calls) > 1 else None

    service = Late(lost)
    assert launch(service).job == service.find("score-1a2b")
    assert (len(service.jobs), len(service.calls)) == (1, 2)


def test_a_launch_of_which_nobody_knows_leaves_the_name_to_be_found() -> None:
    """When the service goes on failing nobody can tell whether there is a job, and no failure is settled on."""
    with pytest.raises(AcceleratorLaunchError, match="the next try looks for it"):
        launch(Service(*[refused(503)] * 100))


@pytest.mark.parametrize("last", [409, 429, 403])
def test_a_lost_launch_is_not_forgotten_for_a_later_refusal(last: int) -> None:
    """When the answer to a launch was lost and its job is not listed, no later refusal says that there is none."""

    class Unlisted(Service):
        """Has jobs that no list shows yet."""

        def find(self, _: str) -> Job | None:
            return None

    with pytest.raises(AcceleratorLaunchError, match="score-1a2b"):
        launch(Unlisted(lost, *[refused(last)] * 100))


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, FailureKind.CONFIGURATION),
        (403, FailureKind.PERMISSION),
        (404, FailureKind.CONFIGURATION),
        (429, FailureKind.SERVICE),
    ],
)
def test_a_refusal_has_a_meaning(status: int, kind: FailureKind) -> None:
    """A launch that the service refuses for good is a failure of the kind that its status tells."""
    submission = launch(Service(*[refused(status)] * 100))
    assert submission.failure
    assert (submission.job, submission.failure.kind) == (None, kind)


def test_a_shortage_in_the_refusal_is_read() -> None:
    """A refusal whose text names a quota is of that kind, whatever its status."""
    text = "Quota 'NVIDIA_L4_GPUS' exceeded. Limit: 1.0 in region us-central1."
    submission = launch(Service(refused(400, text)))
    assert submission.failure
    assert (submission.failure.kind, submission.failure.metric) == (FailureKind.QUOTA, "NVIDIA_L4_GPUS")


def test_what_is_not_wanted_any_more_is_not_launched() -> None:
    """A task that was killed meanwhile launches nothing."""
    service = Service()
    assert launch(service, stopped=True) == Submission()
    assert service.calls == []


@pytest.mark.parametrize(
    ("files", "parameters", "codes"),
    [
        ({}, {}, ["template-missing"]),
        ({"gs://acme-ml/templates/score": "{}"}, {"anything": 1}, []),
        ({"gs://acme-ml/templates/score": "{}", "gs://acme-ml/templates/score_metadata": METADATA}, {"top": 3}, []),
        (
            {"gs://acme-ml/templates/score": "{}", "gs://acme-ml/templates/score_metadata": METADATA},
            {"tip": 3},
            ["template-parameter-unknown"],
        ),
        (
            {"gs://acme-ml/templates/score": "{}", "gs://acme-ml/templates/score_metadata": "no JSON"},
            {},
            ["template-spec"],
        ),
    ],
    ids=["missing", "silent", "right", "unknown", "no JSON"],
)
def test_a_classic_templates_metadata_is_read(
    files: dict[str, str], parameters: dict[str, Any], codes: list[str]
) -> None:
    """A classic template must be there; where it has metadata beside it, its parameters must fit that."""
    request = BeamRequest(template=CLASSIC.template, parameters={"inputFile": "x", **parameters})
    service: Any = Service(files=files)
    problems = pipeline_of(request).missing(service, [place(request)])
    assert [problem.code for problem in problems] == codes
