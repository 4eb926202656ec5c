"""A launcher without Beam: it sends what Beam's runner sends, as that was recorded, with the values of its flags.

It runs in a twentieth of the time. ``recorded/`` beside it holds a job as Beam made it from as few flags as it takes,
and what was staged with it.
"""

from __future__ import annotations

import json
import os
import sys
import time
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

RECORDED = Path(__file__).with_name("recorded")
PAUSE = "LIGHT_LAUNCHER_PAUSE"
"""The variable that says for how many seconds it hangs between its token and its job."""
LISTS = ("labels", "dataflow_service_options", "experiments")
NUMBERS = ("disk_size_gb", "num_workers", "max_num_workers", "number_of_worker_harness_threads")
STAGED = ("submission_environment_dependencies.txt", "pipeline.pb")
POOL = {
    "machine_type": "machineType",
    "disk_size_gb": "diskSizeGb",
    "num_workers": "numWorkers",
    "network": "network",
    "subnetwork": "subnetwork",
    "number_of_worker_harness_threads": "numThreadsPerWorker",
    "sdk_container_image": "workerHarnessContainerImage",
}
ENVIRONMENT = {
    "service_account_email": "serviceAccountEmail",
    "dataflow_kms_key": "serviceKmsKeyName",
    "worker_zone": "workerZone",
    "dataflow_service_options": "serviceOptions",
}


def main() -> None:
    """Stage and submit one job."""
    options = read(sys.argv[1:])
    token = bearer()
    time.sleep(float(os.environ.get(PAUSE, "0")))
    options["temp_location"] = f"{options['temp_location']}/{options['job_name']}.{time.time():.6f}"
    stage(options["temp_location"], token)
    recorded = json.loads((RECORDED / "job.json").read_text(encoding="utf-8"))
    url = f"{options['dataflow_endpoint']}/v1b3/projects/{options['project']}/locations/{options['region']}/jobs"
    answer = json.loads(post(url, json.dumps(job_of(recorded, options)).encode(), token))
    print(f"INFO:root:Created job with id: [{answer['id']}]", file=sys.stderr)  # noqa: T201


def read(flags: Sequence[str]) -> dict[str, Any]:
    """Return the options that flags say, as Beam's parser reads them."""
    options: dict[str, Any] = {}
    for flag in flags:
        name, _, value = flag.removeprefix("--").partition("=")
        if name in LISTS:
            options.setdefault(name, []).append(value)
        elif name == "no_use_public_ips":
            options["use_public_ips"] = False
        else:
            options[name] = float(value) if name in NUMBERS else value
    return options


def job_of(recorded: Mapping[str, Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the job that Beam makes of these options."""
    job: dict[str, Any] = json.loads(json.dumps(recorded))
    environment = job["environment"]
    said = {**options, "staging_location": options["temp_location"]}
    own = [each for each in environment["experiments"] if each != "use_multiple_sdk_containers"]
    said["experiments"] = [*options.get("experiments", ()), *own]
    if "sdk_container_image" in options:
        said["worker_harness_container_image"] = options["sdk_container_image"]
    job.update(name=options["job_name"], clientRequestId=f"light-{time.time_ns()}")
    if "labels" in options:
        job["labels"] = dict(label.split("=", 1) for label in options["labels"])
    if "upload_graph" in said["experiments"]:
        job["stepsLocation"] = f"{options['temp_location']}/dataflow_graph.json"
    fill_environment(environment, said)
    fill_pool(environment["workerPools"][0], said)
    fill_options(environment["sdkPipelineOptions"], said)
    return job


def fill_environment(environment: dict[str, Any], said: Mapping[str, Any]) -> None:
    """Put in what holds for the whole job."""
    environment.update({field: said[name] for name, field in ENVIRONMENT.items() if name in said})
    environment["experiments"] = said["experiments"]
    environment["tempStoragePrefix"] = f"storage.googleapis.com/{said['temp_location'].removeprefix('gs://')}"


def fill_pool(pool: dict[str, Any], said: Mapping[str, Any]) -> None:
    """Put in what holds for its workers."""
    whole = {name: int(value) if name in NUMBERS else value for name, value in said.items()}
    pool.update({field: whole[name] for name, field in POOL.items() if name in said})
    if "max_num_workers" in whole:
        pool["autoscalingSettings"]["maxNumWorkers"] = whole["max_num_workers"]
    if said.get("use_public_ips") is False:
        pool["ipConfiguration"] = "WORKER_IP_PRIVATE"
    if "sdk_container_image" in said:
        pool["sdkHarnessContainerImages"][0]["containerImage"] = said["sdk_container_image"]
    for package in pool["packages"]:
        package["location"] = f"storage.googleapis.com/{said['temp_location'].removeprefix('gs://')}/{package['name']}"
    pool["taskrunnerSettings"]["parallelWorkerSettings"]["servicePath"] = said["dataflow_endpoint"]


def fill_options(told: dict[str, Any], said: Mapping[str, Any]) -> None:
    """Put in the options themselves, and how they are shown."""
    told["options"].update(said, pipelineUrl=f"{said['temp_location']}/pipeline.pb")
    shown = {entry["key"]: entry for entry in told["display_data"]}
    for name, value in said.items():
        shown[name] = {"key": name, "namespace": NAMESPACE, **typed(value)}
    told["display_data"] = list(shown.values())


NAMESPACE = "apache_beam.options.pipeline_options.PipelineOptions"


def typed(value: object) -> dict[str, object]:
    """Return a value as display data say it."""
    if isinstance(value, bool):
        return {"type": "BOOLEAN", "value": value}
    if isinstance(value, float):
        return {"type": "INTEGER", "value": value}
    return {"type": "STRING", "value": value if isinstance(value, str) else str(value)}


def stage(folder: str, token: str) -> None:
    """Upload what the workers need."""
    bucket, _, prefix = folder.removeprefix("gs://").partition("/")
    root = os.environ["STORAGE_EMULATOR_HOST"]
    for name in STAGED:
        where = urlencode({"uploadType": "media", "name": f"{prefix}/{name}"})
        content = (RECORDED / name).read_bytes()
        post(f"{root}/upload/storage/v1/b/{quote(bucket)}/o?{where}", content, token, kind="application/octet-stream")


def bearer() -> str:
    """Return an access token of whoever launches, from the credentials that were lent."""
    lent = json.loads(Path(os.environ["GOOGLE_APPLICATION_CREDENTIALS"]).read_text(encoding="utf-8"))
    subject = Path(lent["credential_source"]["file"]).read_text(encoding="utf-8")
    form = urlencode({"subject_token": subject}).encode()
    answer = json.loads(post(lent["token_url"], form, None, kind="application/x-www-form-urlencoded"))
    return str(answer["access_token"])


def post(url: str, body: bytes, token: str | None, *, kind: str = "application/json") -> bytes:
    """Return what is answered to a request."""
    headers = {"Content-Type": kind, **({"Authorization": f"Bearer {token}"} if token else {})}
    request = urllib.request.Request(url, data=body, headers=headers)  # noqa: S310 - loopback alone
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=20) as answer:
        content: bytes = answer.read()
    return content


if __name__ == "__main__":
    main()
