"""Dataflow v1b3: launches of templates, of Flex Templates and of classic ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_accel_provider.emulator.compute.tables import ZONES
from airflow_accel_provider.emulator.dataflow import texts
from airflow_accel_provider.emulator.dataflow.admission import admit, require_launchable
from airflow_accel_provider.emulator.dataflow.classic import filled
from airflow_accel_provider.emulator.dataflow.launches import Launch, default_bucket, flags_of, folders
from airflow_accel_provider.emulator.dataflow.methods import location_of, project_of
from airflow_accel_provider.emulator.dataflow.reading import read_message
from airflow_accel_provider.emulator.dataflow.specs import check_parameters, read_json, read_spec
from airflow_accel_provider.emulator.dataflow.views import DESCRIPTION, job_json
from airflow_accel_provider.emulator.dataflow.workers import DEFAULT_LAUNCHER
from airflow_accel_provider.emulator.shapes import form_problems
from airflow_accel_provider.emulator.wire import Call, GoogleError, Method

if TYPE_CHECKING:
    from collections.abc import Mapping


def launch_flex_template(call: Call) -> dict[str, Any]:
    """Answer ``flexTemplates.launch``: a queued job, or nothing where the launch is to be validated only."""
    project, location = project_of(call), location_of(call)
    body = read_message(call.json(), "LaunchFlexTemplateRequest")
    parameter: Mapping[str, Any] = body.get("launchParameter", {})
    spec = _spec(call, parameter)
    environment = {**spec.get("defaultEnvironment", {}), **parameter.get("environment", {})}
    labels = environment.get("additionalUserLabels", {})
    name, parameters = parameter.get("jobName", ""), parameter.get("parameters", {})
    require_launchable(name=name, labels=labels, environment=environment, location=location)
    check_parameters(spec, parameters)
    if parameter.get("update"):
        raise GoogleError(501, "The emulator does not update running jobs.")
    if body.get("validateOnly"):
        return {}
    bucket = default_bucket(location, call.google.project_number)
    staging, temp = folders(environment, bucket=bucket)
    if f"gs://{bucket}/" in f"{staging}/ {temp}/":
        _make_bucket(call, bucket, location)

    def prepare(job_id: str) -> Launch:
        folder = f"{staging}/template_launches/{job_id}"
        flags = flags_of(
            project=project,
            location=location,
            job_name=name,
            endpoint=call.google.url,
            staging=staging,
            temp=temp,
            job_object=f"{folder}/job_object",
            environment=environment,
            parameters=parameters,
        )
        return Launch(
            image=spec["image"],
            file=call.google.dataflow.templates.find(spec["image"]),
            flags=flags,
            staging=folder,
            machine_type=environment.get("launcherMachineType") or DEFAULT_LAUNCHER,
            zone=environment.get("workerZone") or environment.get("zone") or ZONES[location][0],
        )

    request = {
        "name": name,
        "labels": labels,
        "environment": {
            key: environment[key] for key in ("serviceAccountEmail", "workerZone", "workerRegion") if key in environment
        },
    }
    job = call.google.dataflow.launch(
        request, prepare, project=project, location=location, principal=call.principal or ""
    )
    return {"job": job_json(job, DESCRIPTION)}


def launch_classic_template(call: Call) -> dict[str, Any]:
    """Answer ``templates.launch``: a job, or nothing where the launch is to be validated only."""
    project, location = project_of(call), location_of(call)
    launch = read_message(call.json(), "LaunchTemplateParameters")
    if call.first("dynamicTemplate.gcsPath") or launch.get("update"):
        raise GoogleError(501, "The emulator launches neither dynamic templates nor updates of running jobs.")
    url, buckets = call.first("gcsPath") or "", call.google.buckets
    template, metadata = read_json(buckets, url), _metadata(call, f"{url}_metadata")
    if "environment" not in template or form_problems("Job", template):
        raise GoogleError(400, texts.template_unreadable(url, "it describes no job"))
    check_parameters({"metadata": metadata} if metadata else {}, launch.get("parameters", {}))
    request = filled(read_message(template, "Job"), launch)
    if (call.first("validateOnly") or "").lower() == "true":
        admit(request, location=location)
        return {}
    principal = call.principal or ""
    job = call.google.dataflow.create(request, project=project, location=location, principal=principal, is_new=True)
    return {"job": job_json(job, DESCRIPTION)}


def _metadata(call: Call, url: str) -> Mapping[str, Any]:
    try:
        return read_json(call.google.buckets, url)
    except GoogleError:
        # It is not obliged to be there.
        return {}


def _make_bucket(call: Call, name: str, location: str) -> None:
    buckets = call.google.buckets
    if all(bucket.name != name for bucket in buckets.buckets(name)):
        buckets.create(name, project_number=call.google.project_number, settings={"location": location.upper()})


def _spec(call: Call, parameter: Mapping[str, Any]) -> Mapping[str, Any]:
    path, inline = parameter.get("containerSpecGcsPath"), parameter.get("containerSpec")
    if bool(path) == bool(inline):
        raise GoogleError(400, "Exactly one of container_spec_gcs_path and container_spec must be given.")
    return read_spec(call.google.buckets, path) if path else inline or {}


METHODS = (
    Method(
        id="dataflow.projects.locations.flexTemplates.launch",
        verb="POST",
        path="/v1b3/projects/{projectId}/locations/{location}/flexTemplates:launch",
        handler=launch_flex_template,
    ),
    Method(
        id="dataflow.projects.locations.templates.launch",
        verb="POST",
        path="/v1b3/projects/{projectId}/locations/{location}/templates:launch",
        handler=launch_classic_template,
    ),
)
