"""Addresses of Google Cloud's console pages about one job."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING
from urllib.parse import quote

if TYPE_CHECKING:
    from airflow_accel_provider.core.jobs import Service

_CONSOLE = "https://console.cloud.google.com"


def job_url(*, project: str, region: str, job_id: str) -> str:
    """Return the page of a Dataflow job."""
    return f"{_CONSOLE}/dataflow/jobs/{region}/{quote(job_id)}?project={quote(project)}"


def batch_url(*, project: str, region: str, job_id: str) -> str:
    """Return the page of a Spark batch, with its metrics."""
    return f"{_CONSOLE}/dataproc/batches/{region}/{quote(job_id)}/monitoring?project={quote(project)}"


def batch_logs_url(*, project: str, region: str, job_id: str) -> str:
    """Return the log explorer over everything a Spark batch wrote."""
    query = (
        'resource.type="cloud_dataproc_batch"\n'
        f'resource.labels.batch_id="{job_id}"\nresource.labels.location="{region}"'
    )
    return f"{_CONSOLE}/logs/query;query={quote(query, safe='')}?project={quote(project)}"


def metrics_url(*, project: str, region: str, job_id: str) -> str:
    """Return the metrics tab of a Dataflow job, where GPU utilisation is drawn."""
    return f"{_CONSOLE}/dataflow/jobs/{region}/{quote(job_id)};mainTab=JOB_METRICS?project={quote(project)}"


def logs_url(*, project: str, job_id: str) -> str:
    """Return the log explorer over everything a Dataflow job wrote."""
    query = f'resource.type="dataflow_step"\nresource.labels.job_id="{job_id}"'
    return f"{_CONSOLE}/logs/query;query={quote(query, safe='')}?project={quote(project)}"


def workers_url(*, project: str, job_id: str) -> str:
    """Return the list of VM instances, filtered to the workers of a Dataflow job.

    The console keeps its filters in ``pageState``: brackets URL-encoded twice, other signs with ``_`` for ``%``.
    """
    filters = json.dumps([{"k": "", "t": 10, "v": json.dumps(job_id)}], separators=(",", ":"))
    inner = re.sub(r"[^A-Za-z0-9.-]", lambda sign: f"{'%25' if sign[0] in '[]{}' else '_'}{ord(sign[0]):02X}", filters)
    return f'{_CONSOLE}/compute/instances?project={quote(project)}&pageState=("instances":("f":"{inner}"))'


def page_of(*, service: Service, project: str, region: str, job_id: str) -> str:
    """Return the page of a job, whichever service runs it."""
    of_service = batch_url if service == "dataproc" else job_url
    return of_service(project=project, region=region, job_id=job_id)


def urls(*, service: Service = "dataflow", project: str, region: str, job_id: str) -> Mapping[str, str]:
    """Return every page about one job, by the name of its link. Nobody sees the VMs of a Spark batch."""
    if service == "dataproc":
        return {
            "job": batch_url(project=project, region=region, job_id=job_id),
            "logs": batch_logs_url(project=project, region=region, job_id=job_id),
        }
    return {
        "job": job_url(project=project, region=region, job_id=job_id),
        "workers": workers_url(project=project, job_id=job_id),
        "metrics": metrics_url(project=project, region=region, job_id=job_id),
        "logs": logs_url(project=project, job_id=job_id),
    }
