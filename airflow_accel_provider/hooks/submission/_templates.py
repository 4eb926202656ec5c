"""Templates: the service starts the job, and one call asks for it."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, cast

from airflow_accel_provider.core.classification import Signals, classify
from airflow_accel_provider.core.jobs import Importance, Message
from airflow_accel_provider.core.options import classic_template_launch, flex_template_launch
from airflow_accel_provider.core.problems import Problem, error
from airflow_accel_provider.core.template_spec import (
    TemplateSpec,
    TemplateSpecError,
    check_spec,
    read_flex_spec,
    read_metadata,
)
from airflow_accel_provider.core.ways import sdk_of, way_of
from airflow_accel_provider.exceptions import AcceleratorLaunchError, GoogleApiError
from airflow_accel_provider.hooks import _wire
from airflow_accel_provider.hooks.submission._files import local, refusal, why_unreadable
from airflow_accel_provider.hooks.submission._pipeline import Place, Submission, Submitting, addresses

if TYPE_CHECKING:
    from airflow_accel_provider.core.failures import Failure
    from airflow_accel_provider.core.jobs import Job
    from airflow_accel_provider.core.request import BeamRequest
    from airflow_accel_provider.hooks.session import GoogleSession

_CONFLICT = 409
_NOT_FOUND = 404
_TOO_MANY = 429
_CALL_SECONDS = 60.0
# For how long a job is looked for whose launch may have gone through, and how long such launches are tried again.
_SETTLE_SECONDS = 6.0
# For how long a job is looked for that the service says is there; lists lag behind.
_LISTED_SECONDS = 60.0
_RETRY_SECONDS = 60.0
_STEP_SECONDS = 1.0


class TemplatePipeline(ABC):
    """A template in a bucket, started by a call of the API.

    An answer that was lost never leads to a second job: the job is looked for by its name, and only a launch of the
    same name, which the service refuses while there is such a job, is tried again.
    """

    def __init__(self, request: BeamRequest) -> None:
        """Take the request as the user said it; what differs in a place comes with the place."""
        self._request = request
        self._name = way_of(request).parameter

    def prepare(self, session: GoogleSession, place: Place) -> None:  # noqa: B027 - there is nothing to prepare
        """Do nothing: the template is where the service reads it."""

    def submit(self, session: GoogleSession, place: Place, submitting: Submitting) -> Submission:
        """Ask for the job, and look for it when nobody knows whether the call went through."""
        too_late = time.monotonic() + min(submitting.seconds, _RETRY_SECONDS)
        path, params, body = self.call(session, place, submitting)
        may_be_there = False
        while not submitting.stopped():
            try:
                answer = session.request(
                    "dataflow", "POST", path, params=params, body=body, timeout=_CALL_SECONDS, retry_seconds=0
                )
            except GoogleApiError as refused:
                job = _found(submitting, refused)
                if job:
                    return Submission(job=job)
                # Once a launch may have gone through, no refusal of a further one says that there is no job.
                may_be_there = may_be_there or _is_unclear(refused)
                if not refused.is_transient and not may_be_there:
                    return Submission(failure=_failure(refused, place, submitting))
                submitting.say(f"launch refused, trying again: {refused}")
                pause = max(_STEP_SECONDS, refused.retry_after or 0)
                if time.monotonic() + pause > too_late or not refused.is_transient:
                    return _given_up(refused, place, submitting, may_be_there=may_be_there)
                time.sleep(pause)
            else:
                return Submission(job=_job(answer, place, submitting))
        return Submission()

    def missing(self, session: GoogleSession, places: Sequence[Place]) -> Sequence[Problem]:
        """Return what is wrong with the template, and with what it would be given in each place."""
        by_address = addresses(self._request, self._name, places)
        found = [self.problems(session, address, those) for address, those in by_address.items()]
        return [problem for problems in found for problem in problems]

    @abstractmethod
    def problems(self, session: GoogleSession, address: str, places: Sequence[Place]) -> Sequence[Problem]:
        """Return what is wrong with the template of an address, and with what it would be given in its places."""

    @abstractmethod
    def call(
        self, session: GoogleSession, place: Place, submitting: Submitting
    ) -> tuple[str, Mapping[str, Any], Mapping[str, Any]]:
        """Return path, parameters and body of the call that starts a job."""


class FlexTemplate(TemplatePipeline):
    """A Flex template: a container spec in a bucket, whose image launches the pipeline."""

    def problems(self, session: GoogleSession, address: str, places: Sequence[Place]) -> Sequence[Problem]:
        """Return a problem for a spec that is missing or is none, and for parameters that do not fit it."""
        try:
            spec = read_flex_spec(_text(session, address))
        except GoogleApiError as refused:
            return [error("template-missing", refusal(address, refused), "flex_template")]
        except TemplateSpecError as wrong:
            return [error("template-spec", f"{address} is not a Flex template: {wrong}.", "flex_template")]
        return _misfits(spec, [(place, _flex(place, "", {})["parameters"]) for place in places])

    def call(
        self, session: GoogleSession, place: Place, submitting: Submitting
    ) -> tuple[str, Mapping[str, Any], Mapping[str, Any]]:
        """Return the call of ``flexTemplates.launch``."""
        body = {"launchParameter": _flex(place, submitting.job_name, submitting.labels)}
        return f"{_location(session, place)}/flexTemplates:launch", {}, body


class ClassicTemplate(TemplatePipeline):
    """A classic template: a pipeline that was staged once, and whose graph is fixed."""

    def problems(self, session: GoogleSession, address: str, places: Sequence[Place]) -> Sequence[Problem]:
        """Return a problem for a missing template, and for parameters that do not fit the metadata beside it."""
        reason = why_unreadable(session, address)
        if reason:
            return [error("template-missing", reason, "template")]
        try:
            spec = read_metadata(_text(session, f"{address}_metadata"))
        except GoogleApiError as refused:
            if refused.status == _NOT_FOUND:
                return ()
            raise
        except TemplateSpecError as wrong:
            return [error("template-spec", f"{address}_metadata does not describe the template: {wrong}.", "template")]
        return _misfits(spec, [(place, place.request.parameters) for place in places])

    def call(
        self, session: GoogleSession, place: Place, submitting: Submitting
    ) -> tuple[str, Mapping[str, Any], Mapping[str, Any]]:
        """Return the call of ``templates.launch``."""
        body = classic_template_launch(
            place.request,
            place.placement,
            job_name=submitting.job_name,
            labels=submitting.labels,
            sdk=sdk_of(place.request),
        )
        return f"{_location(session, place)}/templates:launch", {"gcsPath": place.request.template}, body


def _flex(place: Place, job_name: str, labels: Mapping[str, str]) -> dict[str, Any]:
    body = flex_template_launch(
        place.request,
        place.placement,
        container_spec_gcs_path=str(place.request.flex_template),
        job_name=job_name,
        labels=labels,
        sdk=sdk_of(place.request),
    )
    launch: dict[str, Any] = body["launchParameter"]
    return launch


def _misfits(spec: TemplateSpec, given: Sequence[tuple[Place, Mapping[str, Any]]]) -> list[Problem]:
    """Return what does not fit in any of the places, each once."""
    problems = [
        problem
        for place, parameters in given
        for problem in check_spec(spec, parameters, own=place.request.parameters, sdk=sdk_of(place.request))
    ]
    return list(dict.fromkeys(problems))


def _text(session: GoogleSession, address: str) -> str:
    return local(session, address).read_text(encoding="utf-8", errors="replace")


def _location(session: GoogleSession, place: Place) -> str:
    return f"projects/{session.project}/locations/{place.placement.region}"


def _job(answer: Mapping[str, Any], place: Place, submitting: Submitting) -> Job | None:
    """Return the job of a launch's answer, which need not show everything; else the one of the name."""
    said = answer.get("job")
    if not isinstance(said, dict) or not isinstance(said.get("id"), str):
        return submitting.find()
    job = _wire.job_from_json(said)
    return replace(job, name=job.name or submitting.job_name, region=job.region or place.placement.region)


def _found(submitting: Submitting, refused: GoogleApiError) -> Job | None:
    """Look for the job of a call that may have gone through; it may take a moment to be listed."""
    if not _is_unclear(refused):
        return None
    until = time.monotonic() + (_LISTED_SECONDS if refused.status == _CONFLICT else _SETTLE_SECONDS)
    while True:
        job = submitting.find()
        if job or submitting.stopped() or time.monotonic() > until:
            return job
        time.sleep(_STEP_SECONDS)


def _is_unclear(refused: GoogleApiError) -> bool:
    """Tell whether there may be a job all the same: this call's own, or that of one whose answer was lost."""
    return refused.status == _CONFLICT or (refused.is_transient and refused.status != _TOO_MANY)


def _given_up(refused: GoogleApiError, place: Place, submitting: Submitting, *, may_be_there: bool) -> Submission:
    """Return why there is no job, where that is certain; raise where a job may still turn up."""
    if not may_be_there:
        return Submission(failure=_failure(refused, place, submitting))
    said = submitting.hide(str(refused))
    raise AcceleratorLaunchError(
        f"Nobody can tell whether job {submitting.job_name} was launched; the next try looks for it. {said}"
    )


def _failure(refused: GoogleApiError, place: Place, submitting: Submitting) -> Failure:
    """Return what it means that the service refused the call."""
    said = Message(text=submitting.hide(refused.message), importance=Importance.ERROR, at=datetime.now(UTC))
    signals = Signals(messages=(said,), http_status=refused.status or None, region=place.placement.region)
    # A refused call is always a failure.
    return cast("Failure", classify(signals))
