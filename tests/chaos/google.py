"""A Google in memory: as much of the services' HTTP surface as the hooks use, with a ledger of all jobs."""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from email.utils import format_datetime
from functools import partial
from typing import Any
from urllib.parse import unquote

from requests import ConnectionError  # noqa: A004 - as requests names it

from tests.chaos.access import Tokens
from tests.chaos.clock import Clock
from tests.chaos.jobs import TERMINAL, Script, SimJob

PROJECT = "acme-ml"
SPEC = {"image": "us-docker.pkg.dev/acme-ml/beam/score:1", "sdkInfo": {"language": "PYTHON"}}
_BATCH_STATES = {"DONE": "SUCCEEDED", "QUEUED": "PENDING", "DRAINED": "CANCELLED", "UPDATED": "CANCELLED"}
_STOCKOUT = (
    "Startup of the worker pool in zone {region}-a failed to bring up any of the desired 1 workers. "
    "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS: Instance 'w' creation failed: The zone "
    "'projects/acme-ml/zones/{region}-a' does not have enough resources available to fulfill the request."
)
_USER_CODE = 'Traceback (most recent call last):\n  File "score.py", line 7, in process\nValueError: bad row'


@dataclass(slots=True)
class Answer:
    """An HTTP answer as the session reads it."""

    status_code: int
    text: str
    headers: Mapping[str, str] = field(default_factory=dict)
    encoding: str = ""

    def __enter__(self) -> Answer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Do nothing: there is no connection."""


class Refused(Exception):  # noqa: N818 - an answer, not a mistake
    """The service refuses a call."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


class SimGoogle:
    """The services, their jobs, and what goes wrong on the way to them."""

    def __init__(self, clock: Clock, luck: random.Random, script: Callable[[], Script]) -> None:
        self.clock = clock
        self.luck = luck
        self.jobs: list[SimJob] = []
        self.script = script
        self.tokens = Tokens(clock)
        self.tokens.fails = lambda: self._fault() is not None
        self.on_create: Callable[[SimJob], None] = lambda _: None
        self.on_end: Callable[[SimJob, Any], None] = lambda *_: None
        """What hears of each request to end a job, and of the process it comes from, before it is taken."""
        self.item: str | None = None
        """What the task stands for."""
        self.fault_rate = 0.0
        self.outage: tuple[float, float] = (0.0, 0.0)
        self.forbidden: frozenset[str] = frozenset()
        self.calls: Counter[str] = Counter()
        self._routes = _ROUTES
        self._caller: Any = None

    # What happens on the way.

    def call(  # noqa: PLR0917 - an HTTP request has so many parts
        self,
        caller: Any,
        token: str,
        service: str,
        verb: str,
        path: str,
        params: Mapping[str, Any],
        body: Mapping[str, Any],
    ) -> Answer:
        """Answer one call of a process, unless something happens to it before or after it takes effect."""
        self.clock.advance(self.luck.uniform(0.05, 0.4))
        self._caller = caller
        answer = self._on_the_way(token, partial(self._answer, service, verb, path, params, body))
        answer.headers = {"Date": format_datetime(self.clock.at(), usegmt=True), **answer.headers}
        return answer

    def _on_the_way(self, token: str, answered: Callable[[], Answer]) -> Answer:
        if not self.tokens.accepts(token):
            self.calls["401"] += 1
            return Answer(401, _error(401, "Request had invalid authentication credentials."))
        fault = self._fault()
        if fault and fault.startswith("before:"):
            return self._failed(fault, "")
        answer = answered()
        if fault and answer.status_code < 300:
            return self._failed(fault, answer.text)
        return answer

    def _fault(self) -> str | None:
        rate = 0.95 if self.outage[0] <= self.clock.seconds < self.outage[1] else self.fault_rate
        return self.luck.choice(_FAULTS) if self.luck.random() < rate else None

    def _failed(self, fault: str, text: str) -> Answer:
        kind = fault.partition(":")[2]
        if kind in {"reset", "slow"}:
            self.clock.advance(20.0 if kind == "slow" else 0.0)
            raise ConnectionError(f"{kind} connection")
        if kind == "truncated":
            return Answer(200, text[: len(text) // 2] or "{")
        if kind == "html":
            return Answer(200, "<html><body>Sign in to the hotel's network</body></html>")
        if kind == "429":
            after = {"Retry-After": str(self.luck.choice([1, 5, 60]))} if self.luck.random() < 0.5 else {}
            return Answer(429, _error(429, "Quota of requests exceeded"), after)
        page = "<html>Bad gateway</html>" if self.luck.random() < 0.5 else _error(int(kind), "try again later")
        return Answer(int(kind), page)

    def _answer(self, service: str, verb: str, path: str, params: Mapping[str, Any], body: Mapping[str, Any]) -> Answer:
        for method, form, name in self._routes:
            if method == verb and (found := re.fullmatch(form, f"{service}/{path}")):
                self.calls[name] += 1
                if name in self.forbidden:
                    return Answer(403, _error(403, f"Permission to {name} denied"))
                try:
                    said = {key: unquote(text) for key, text in found.groupdict().items()}
                    return Answer(200, json.dumps(getattr(self, name)(**said, params=params, body=body)))
                except Refused as refused:
                    return Answer(refused.status, _error(refused.status, str(refused)))
        raise AssertionError(f"the simulation has no {verb} {service}/{path}")

    # The ledger.

    def ours(self) -> list[SimJob]:
        """Return the jobs that came from the task under test."""
        return [job for job in self.jobs if not job.is_foreign]

    def live(self) -> list[SimJob]:
        """Return those of them that are alive."""
        return [job for job in self.ours() if job.is_live(self.clock.seconds)]

    def add(self, **said: Any) -> SimJob:
        """Make a job."""
        made = {"id": f"2026-{len(self.jobs):04d}", "created": self.clock.seconds, "item": self.item, **said}
        made["script"] = made.get("script") or self.script()
        job = SimJob(**made)
        if not job.is_foreign:
            self.on_create(job)
        self.jobs.append(job)
        return job

    def _find(self, service: str, region: str, job_id: str) -> SimJob:
        for job in self.jobs:
            if (job.service, job.region, job.id) == (service, region, job_id):
                return job
        raise Refused(404, f"no {job_id} in {region}")

    # Dataflow.

    def launch(self, *, region: str, body: Mapping[str, Any], **_: Any) -> dict[str, Any]:
        """Start a job from a Flex template; a name that is in use is refused."""
        launch = body["launchParameter"]
        name, environment = launch["jobName"], launch["environment"]
        now = self.clock.seconds
        if any(job.name == name and job.region == region and job.is_live(now) for job in self.jobs):
            raise Refused(
                409, f"The workflow could not be created. Causes: There is already an active job named {name}."
            )
        labels = dict(environment["additionalUserLabels"])
        job = self.add(
            service="dataflow", name=name, region=region, labels=labels, machine_type=environment.get("machineType", "")
        )
        return {"job": {"id": job.id, "name": name, "location": region, "projectId": PROJECT}}

    def list_jobs(self, *, region: str, params: Mapping[str, Any], **_: Any) -> dict[str, Any]:
        """List jobs, those that are shown already."""
        now = self.clock.seconds
        if self.fault_rate and self.luck.random() < self.fault_rate / 2:
            return {"failedLocation": [{"name": region}]}
        wanted = params.get("name")
        return {
            "jobs": [
                self._dataflow(job, full=False)
                for job in self.jobs
                if (job.service, job.region) == ("dataflow", region)
                and now - job.created >= job.script.listed_after
                and (wanted is None or job.name == wanted)
                and (params.get("filter") != "ACTIVE" or job.is_live(now))
            ]
        }

    def get_job(self, *, region: str, job: str, **_: Any) -> dict[str, Any]:
        """Show a job in full."""
        return self._dataflow(self._find("dataflow", region, job), full=True)

    def end_job(self, *, region: str, job: str, **_: Any) -> dict[str, Any]:
        """Take a request to end a job."""
        found = self._find("dataflow", region, job)
        if not found.is_live(self.clock.seconds):
            raise Refused(400, f"Job {job} is already in terminal state.")
        self.on_end(found, self._caller)
        found.ask_to_end(self.clock.seconds)
        return {}

    def messages(self, *, region: str, job: str, **_: Any) -> dict[str, Any]:
        """Say what the service says of a job."""
        found, now = self._find("dataflow", region, job), self.clock.seconds
        texts = []
        if found.is_short(now):
            texts.append(("JOB_MESSAGE_ERROR", _STOCKOUT.format(region=region)))
        if found.script.ending == "user_code" and found.state(now) == "FAILED":
            texts.append(("JOB_MESSAGE_ERROR", _USER_CODE))
        at = _time(self.clock, now)
        said = [
            {"id": str(n), "messageText": text, "messageImportance": importance, "time": at}
            for n, (importance, text) in enumerate(texts)
        ]
        workers = [{"currentNumWorkers": "1", "targetNumWorkers": "1", "eventType": "CURRENT_NUM_WORKERS_CHANGED"}]
        return {"jobMessages": said, "autoscalingEvents": workers if found.has_run(now) else []}

    def _dataflow(self, job: SimJob, *, full: bool) -> dict[str, Any]:
        now = self.clock.seconds
        state = job.shown(now, self.luck)
        streaming = job.script.ending == "streaming"
        value: dict[str, Any] = {
            "id": job.id,
            "name": job.name,
            "location": job.region,
            "type": "JOB_TYPE_STREAMING" if streaming else "JOB_TYPE_BATCH",
            "createTime": _time(self.clock, job.created),
        }
        if state:
            value["currentState"] = f"JOB_STATE_{state}"
        return value | ({"labels": job.labels} if full else {})

    # Dataproc.

    def create_batch(self, *, region: str, params: Mapping[str, Any], body: Mapping[str, Any]) -> dict[str, Any]:
        """Make a batch, unless this request or another made it."""
        batch_id, request_id = params["batchId"], params["requestId"]
        there = [job for job in self.jobs if (job.service, job.region, job.id) == ("dataproc", region, batch_id)]
        same = [job for job in self.jobs if job.request_id == request_id]
        if there and not same:
            raise Refused(409, f"Already exists: Failed to create batch: Batch {batch_id}")
        job = (
            same[0]
            if same
            else self.add(
                service="dataproc",
                id=batch_id,
                name=batch_id,
                region=region,
                labels=dict(body["labels"]),
                request_id=request_id,
            )
        )
        return {"name": self._operation(job), "metadata": {"createTime": _time(self.clock, job.created)}}

    def list_batches(self, *, region: str, **_: Any) -> dict[str, Any]:
        """List the batches that have not ended."""
        live = [job for job in self.jobs if job.service == "dataproc" and job.is_live(self.clock.seconds)]
        return {"batches": [self._batch(job) for job in live if job.region == region]}

    def get_batch(self, *, region: str, job: str, **_: Any) -> dict[str, Any]:
        """Show a batch."""
        return self._batch(self._find("dataproc", region, job))

    def cancel_batch(self, *, region: str, operation: str, **_: Any) -> dict[str, Any]:
        """Take a request to end a batch."""
        found = self._find("dataproc", region, operation)
        if found.is_live(self.clock.seconds):
            self.on_end(found, self._caller)
            found.ask_to_end(self.clock.seconds)
        return {}

    def _operation(self, job: SimJob) -> str:
        return f"projects/{PROJECT}/regions/{job.region}/operations/{job.id}"

    def _batch(self, job: SimJob) -> dict[str, Any]:
        now = self.clock.seconds
        shown, is_over = job.shown(now, self.luck), not job.is_live(now)
        value: dict[str, Any] = {
            "name": f"projects/{PROJECT}/locations/{job.region}/batches/{job.id}",
            "labels": job.labels,
            "operation": self._operation(job),
            "createTime": _time(self.clock, job.created),
            "stateTime": _time(self.clock, job.ended_at(now) if is_over else job.created + job.script.workers),
            "runtimeConfig": {"version": "2.3"},
        }
        if shown:
            value["state"] = _BATCH_STATES.get(shown, shown)
        if job.has_run(now):
            value["stateHistory"] = [{"state": "RUNNING", "stateStartTime": _time(self.clock, job.created)}]
        if shown == "FAILED":
            value["stateMessage"] = (
                f"The zone 'projects/{PROJECT}/zones/{job.region}-a' does not have enough resources available to "
                "fulfill the request.  Try a different zone, or try again later."
                if job.script.ending == "stockout"
                else _USER_CODE
            )
        gpus = 0 if job.script.ending == "bare" else 2000
        if job.has_workers(now):
            usage = {"milliAccelerator": str(gpus), "acceleratorType": "l4", "snapshotTime": _time(self.clock, now - 5)}
            value["runtimeInfo"] = {"currentUsage": usage}
        elif is_over and shown in TERMINAL and job.has_run(now):
            value["runtimeInfo"] = {
                "approximateUsage": {"milliAcceleratorSeconds": str(gpus * 60), "acceleratorType": "l4"}
            }
        return value

    # Compute Engine and storage.

    def read_project(self, **_: Any) -> dict[str, Any]:
        """Say nothing of quotas."""
        return {}

    def read_region(self, **_: Any) -> dict[str, Any]:
        """Say nothing of quotas."""
        return {}

    def read_quota(self, **_: Any) -> dict[str, Any]:
        """Say nothing of a quota."""
        return {}

    def list_instances(self, *, params: Mapping[str, Any], **_: Any) -> dict[str, Any]:
        """List worker VMs."""
        wanted = re.fullmatch(r"labels\.goog-dataflow-job-id[=:](.+)", params["filter"])
        now = self.clock.seconds
        found = [
            _instance(job)
            for job in self.jobs
            if wanted and job.service == "dataflow" and job.has_workers(now) and wanted[1] in {job.id, "*"}
        ]
        return {"items": {"zones/x": {"instances": found}}} if found else {}

    def read_object(self, *, name: str, params: Mapping[str, Any], **_: Any) -> dict[str, Any]:
        """Give the template's spec, or say that it is there."""
        return SPEC if params.get("alt") == "media" else {"name": name, "generation": "1"}


def _instance(job: SimJob) -> dict[str, Any]:
    is_tpu, is_bare = job.machine_type.startswith("ct"), job.script.ending == "bare"
    machine = "n1-standard-4" if is_tpu and is_bare else job.machine_type
    attached = (
        [] if is_tpu or is_bare else [{"acceleratorType": "zones/z/acceleratorTypes/nvidia-l4", "acceleratorCount": 1}]
    )
    return {
        "name": f"w-{job.id}",
        "status": "RUNNING",
        "machineType": f"zones/z/machineTypes/{machine}",
        "zone": f"zones/{job.region}-a",
        "labels": {"goog-dataflow-job-id": job.id},
        "guestAccelerators": attached,
    }


def _error(status: int, text: str) -> str:
    return json.dumps({"error": {"code": status, "message": text, "status": "REFUSED"}})


def _time(clock: Clock, seconds: float) -> str:
    return clock.at(seconds).isoformat().replace("+00:00", "Z")


_FAULTS = (
    *("before:429", "before:500", "before:503", "before:502", "before:reset", "before:slow", "before:html"),
    *("after:reset", "after:504", "after:502", "after:slow", "after:truncated", "after:html"),
)
_AT = r"projects/[^/]+/locations/(?P<region>[^/]+)"
_ROUTES = (
    ("POST", rf"dataflow/{_AT}/flexTemplates:launch", "launch"),
    ("GET", rf"dataflow/{_AT}/jobs", "list_jobs"),
    ("GET", rf"dataflow/{_AT}/jobs/(?P<job>[^/]+)", "get_job"),
    ("PUT", rf"dataflow/{_AT}/jobs/(?P<job>[^/]+)", "end_job"),
    ("GET", rf"dataflow/{_AT}/jobs/(?P<job>[^/]+)/messages", "messages"),
    ("POST", rf"dataproc/{_AT}/batches", "create_batch"),
    ("GET", rf"dataproc/{_AT}/batches", "list_batches"),
    ("GET", rf"dataproc/{_AT}/batches/(?P<job>[^/]+)", "get_batch"),
    (
        "POST",
        r"dataproc/projects/[^/]+/regions/(?P<region>[^/]+)/operations/(?P<operation>[^/:]+):cancel",
        "cancel_batch",
    ),
    ("GET", r"compute/projects/[^/]+", "read_project"),
    ("GET", r"compute/projects/[^/]+/regions/(?P<region>[^/]+)", "read_region"),
    ("GET", r"compute/projects/[^/]+/aggregated/instances", "list_instances"),
    ("GET", r"cloudquotas/.+/quotaInfos/(?P<quota>[^/]+)", "read_quota"),
    ("GET", r"storage/b/[^/]+/o/(?P<name>[^/]+)", "read_object"),
)
