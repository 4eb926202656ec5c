"""What the service shows of a job, in the core's own words."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from airflow_accel_provider.core.usage import InUse, Spent

Service = Literal["dataflow", "dataproc"]
"""What runs a job: Dataflow, or managed Spark, whose jobs are called batches."""


class JobState(StrEnum):
    """States of a job, in lower case; a state that is not in this list reads as ``unknown`` and is not terminal."""

    UNKNOWN = "unknown"
    STOPPED = "stopped"
    QUEUED = "queued"
    PENDING = "pending"
    RUNNING = "running"
    PAUSING = "pausing"
    PAUSED = "paused"
    DRAINING = "draining"
    CANCELLING = "cancelling"
    RESOURCE_CLEANING_UP = "resource_cleaning_up"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"
    UPDATED = "updated"
    DRAINED = "drained"

    @property
    def is_terminal(self) -> bool:
        """Tell whether the job has ended for good."""
        return self in TERMINAL_STATES


class JobType(StrEnum):
    """Whether a job ends by itself; ``unknown`` where the service doesn't say."""

    UNKNOWN = "unknown"
    BATCH = "batch"
    STREAMING = "streaming"


TERMINAL_STATES = frozenset(
    {JobState.DONE, JobState.FAILED, JobState.CANCELLED, JobState.UPDATED, JobState.DRAINED},
)


class Importance(StrEnum):
    """Importance of a job message, in the service's order from least to most."""

    DEBUG = "debug"
    DETAILED = "detailed"
    BASIC = "basic"
    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One job message of the service (user code's output can stand inside its text)."""

    text: str
    importance: Importance
    at: datetime
    id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalingEvent:
    """One autoscaling event: ``kind`` is ``actuation_failure``, ``current_num_workers_changed``, … in lower case."""

    kind: str
    at: datetime
    current_workers: int | None = None
    target_workers: int | None = None
    description: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Worker:
    """One worker VM as Compute Engine shows it.

    ``accelerators`` maps Compute's accelerator type (``nvidia-l4``, ``ct6e``) to the number attached. ``status`` is in
    lower case (``provisioning``, ``staging``, ``running``, …). A VM that is not ``is_legible`` is there, and what it
    carries is not known.
    """

    name: str
    status: str
    machine_type: str
    zone: str
    accelerators: tuple[tuple[str, int], ...] = ()
    is_legible: bool = True

    @property
    def is_running(self) -> bool:
        """Tell whether the VM is up, so that what it lacks will not still come."""
        return self.status == "running"


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One job as the service describes it.

    ``labels`` is ``None`` where the view asked for does not carry them. ``zones`` are those the service says it used.
    ``runtime_version`` is a Spark batch's, ``None`` for other jobs.
    """

    id: str
    name: str
    region: str
    state: JobState
    labels: tuple[tuple[str, str], ...] | None = None
    zones: tuple[str, ...] = ()
    created_at: datetime | None = None
    state_at: datetime | None = None
    type: JobType = JobType.UNKNOWN
    runtime_version: str | None = None

    @property
    def is_streaming(self) -> bool:
        """Tell whether the service says that the job goes on until somebody ends it."""
        return self.type is JobType.STREAMING

    def label(self, name: str) -> str | None:
        """Return the value of a label, or ``None`` when it is absent or labels were not read."""
        return dict(self.labels or ()).get(name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """All that one poll saw of a job.

    ``job`` is ``None`` when the service does not know it; ``workers`` is ``None`` when they could not be read, which is
    not the same as none, and ``messages_read`` tells the same of messages and scaling events. ``at`` is when the
    service answered, by its own clock, where it says. Of a Spark batch, whose workers nobody sees, ``has_run`` tells
    whether it ever began to run, ``in_use`` what it has at the moment, ``spent`` what it used until its end, each as
    far as the service says.
    """

    job: Job | None
    messages: tuple[Message, ...] = ()
    scaling: tuple[ScalingEvent, ...] = ()
    workers: tuple[Worker, ...] | None = None
    has_run: bool = False
    in_use: InUse | None = None
    spent: Spent | None = None
    messages_read: bool = True
    at: datetime | None = None

    @property
    def age(self) -> timedelta | None:
        """How long ago the job was created, by the service's clock alone, as far as that is known."""
        created_at = self.job.created_at if self.job else None
        return self.at - created_at if self.at and created_at else None

    @property
    def are_workers_unknown(self) -> bool:
        """Tell whether nothing was read from which workers would be known, so that none seen are not none."""
        return self.workers is None and not self.messages_read

    @property
    def workers_seen(self) -> bool:
        """Tell whether any worker ever came up, by VMs, the autoscaler's own count, or a batch's state."""
        return self.has_run or bool(self.workers) or any((event.current_workers or 0) > 0 for event in self.scaling)
