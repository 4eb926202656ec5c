"""Classic templates: a job that Beam described once, filled in by each launch.

Source: https://cloud.google.com/dataflow/docs/reference/rest/v1b3/RuntimeEnvironment, read 2026-11-30.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

_POOL = ("machineType", "numWorkers", "diskSizeGb", "network", "subnetwork", "ipConfiguration", "zone")
_ENVIRONMENT: Mapping[str, str] = {
    "workerRegion": "workerRegion",
    "workerZone": "workerZone",
    "serviceAccountEmail": "serviceAccountEmail",
    "kmsKeyName": "serviceKmsKeyName",
}


def filled(job: Mapping[str, Any], launch: Mapping[str, Any]) -> dict[str, Any]:
    """Return the job that a launch makes of a template's: ``launch`` is a LaunchTemplateParameters.

    Beam writes the id of one request into a template, which is launched by many.
    """
    runtime, environment = launch.get("environment", {}), job.get("environment", {})
    return {
        **{name: value for name, value in job.items() if name != "clientRequestId"},
        "name": launch.get("jobName", ""),
        "labels": {**job.get("labels", {}), **runtime.get("additionalUserLabels", {})},
        "environment": {
            **environment,
            **{own: runtime[field] for field, own in _ENVIRONMENT.items() if runtime.get(field)},
            **_temp(runtime),
            "experiments": [*environment.get("experiments", ()), *runtime.get("additionalExperiments", ())],
            "workerPools": [_pool(environment, runtime)],
            "sdkPipelineOptions": {
                **environment.get("sdkPipelineOptions", {}),
                "options": _options(environment, runtime, launch.get("parameters", {})),
            },
        },
    }


def _pool(environment: Mapping[str, Any], runtime: Mapping[str, Any]) -> dict[str, Any]:
    pools = environment.get("workerPools") or [{}]
    pool = {**pools[0], **{field: runtime[field] for field in _POOL if runtime.get(field)}}
    if most := runtime.get("maxWorkers"):
        pool["autoscalingSettings"] = {**pool.get("autoscalingSettings", {}), "maxNumWorkers": most}
    return pool


def _temp(runtime: Mapping[str, Any]) -> dict[str, str]:
    temp = runtime.get("tempLocation")
    return {"tempStoragePrefix": f"storage.googleapis.com/{temp.removeprefix('gs://')}"} if temp else {}


def _options(
    environment: Mapping[str, Any], runtime: Mapping[str, Any], parameters: Mapping[str, str]
) -> dict[str, Any]:
    """Return the options that the pipeline reads when it runs, where its value providers look."""
    built = environment.get("sdkPipelineOptions", {}).get("options", {})
    given = (option.removeprefix("--").partition("=") for option in runtime.get("additionalPipelineOptions", ()))
    temp = {"temp_location": runtime["tempLocation"]} if runtime.get("tempLocation") else {}
    return {**built, **temp, **{name: value for name, _, value in given}, **parameters}
