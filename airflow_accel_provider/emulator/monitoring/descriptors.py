"""The metric types that the emulator has, with the names, units and labels that Google gives them.

Sources: https://cloud.google.com/monitoring/api/metrics_gcp_d_h (dataflow),
https://cloud.google.com/monitoring/api/metrics_gcp_p_z (serviceruntime), read 2026-11-30. All are gauges of whole
numbers; GPU utilisation is in percent, 0 to 100.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

MINUTE, DAY = 60, 86_400


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricType:
    """One metric type. ``sample_period`` and ``delay`` (until a sample can be read) are Google's seconds."""

    type: str
    display_name: str
    description: str
    stage: str
    unit: str
    labels: Mapping[str, str]
    resource_type: str
    sample_period: int
    delay: int

    def to_json(self, project: str) -> dict[str, Any]:
        """Return the metric descriptor."""
        return {
            "name": f"projects/{project}/metricDescriptors/{self.type}",
            "type": self.type,
            "displayName": self.display_name,
            "description": self.description,
            "metricKind": "GAUGE",
            "valueType": "INT64",
            "unit": self.unit,
            "labels": [{"key": key, "description": text} for key, text in self.labels.items()],
            "launchStage": self.stage,
            "monitoredResourceTypes": [self.resource_type],
            "metadata": {"samplePeriod": f"{self.sample_period}s", "ingestDelay": f"{self.delay}s"},
        }


RESOURCE_LABELS: Mapping[str, tuple[str, ...]] = {
    "dataflow_job": ("project_id", "job_name", "region"),
    "consumer_quota": ("project_id", "service", "location"),
}
"""The labels of each monitored resource."""

_JOB_ID = {"job_id": "The ID of the current run of this pipeline."}
_QUOTA_METRIC = {"quota_metric": "The name of quota metric or quota group."}

GPU_UTILIZATION = MetricType(
    type="dataflow.googleapis.com/job/gpu_utilization",
    display_name="GPU utilization",
    description=(
        "Percent of time over the past sample period during which one or more kernels was executing on the GPU."
    ),
    stage="BETA",
    unit="%",
    labels=_JOB_ID,
    resource_type="dataflow_job",
    sample_period=MINUTE,
    delay=240,
)
GPU_MEMORY_UTILIZATION = MetricType(
    type="dataflow.googleapis.com/job/gpu_memory_utilization",
    display_name="GPU memory utilization",
    description=(
        "Percent of time over the past sample period during which global (device) memory was being read or written."
    ),
    stage="BETA",
    unit="%",
    labels=_JOB_ID,
    resource_type="dataflow_job",
    sample_period=MINUTE,
    delay=240,
)
QUOTA_USAGE = MetricType(
    type="serviceruntime.googleapis.com/quota/allocation/usage",
    display_name="Allocation quota usage",
    description=(
        "The total consumed allocation quota. Values reported more than 1/min are dropped. If no changes are received "
        "in quota usage, the last value is repeated at least every 24 hours."
    ),
    stage="GA",
    unit="1",
    labels=_QUOTA_METRIC,
    resource_type="consumer_quota",
    sample_period=MINUTE,
    delay=180,
)
QUOTA_LIMIT = MetricType(
    type="serviceruntime.googleapis.com/quota/limit",
    display_name="Quota limit",
    description="The limit for the quota.",
    stage="GA",
    unit="1",
    labels={**_QUOTA_METRIC, "limit_name": "The quota limit name."},
    resource_type="consumer_quota",
    sample_period=DAY,
    delay=180,
)

METRIC_TYPES: Mapping[str, MetricType] = {
    metric.type: metric for metric in (GPU_MEMORY_UTILIZATION, GPU_UTILIZATION, QUOTA_USAGE, QUOTA_LIMIT)
}
