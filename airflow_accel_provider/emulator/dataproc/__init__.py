"""Dataproc: takes Spark batches, gives them machines if the world has any, and runs them on local PySpark.

Events in the ledger, each with ``batch_id``, ``uuid`` and ``location``: ``dataproc.batch.created`` (``principal``,
``labels``), ``dataproc.batch.returned`` (a request id was repeated), ``dataproc.batch.state`` (``state``,
``message``), ``dataproc.batch.requested`` (``state``, ``principal``), ``dataproc.batch.deleted`` (``principal``),
``dataproc.machines.given`` (``zones``, and the ``accelerator`` and ``count`` of all executors) and
``dataproc.machines.refused`` (``reason``, ``text``).
"""

from __future__ import annotations

import logging
import uuid
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from airflow_accel_provider.emulator.dataflow.executions import Executions, Surroundings
from airflow_accel_provider.emulator.dataproc import texts
from airflow_accel_provider.emulator.dataproc.admission import FailedPreconditionError, admit
from airflow_accel_provider.emulator.dataproc.batches import Batch, Batches
from airflow_accel_provider.emulator.dataproc.commands import Run, lost, worker_command
from airflow_accel_provider.emulator.dataproc.lifecycle import Lifecycle
from airflow_accel_provider.emulator.dataproc.wishes import execution_of
from airflow_accel_provider.emulator.ledger import rfc3339
from airflow_accel_provider.emulator.passing import Passing
from airflow_accel_provider.emulator.wire import GoogleError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow_accel_provider.emulator.state import Google

log = logging.getLogger(__name__)

WORKER_ACCOUNT = "pipeline"
"""Whose key a batch gets when it names no known service account."""


class Dataproc:
    """The service: its store, and the thread that lets time pass for batches between ``start`` and ``stop``."""

    def __init__(self, google: Google) -> None:
        self.google = google
        self.batches = Batches(google.database)
        self.executions: Executions[Run] = Executions(
            google.directory / "batches",
            command=worker_command,
            surroundings=self._surroundings,
            on_exit=self._wake,
            lost=lost,
        )
        self._lifecycle = Lifecycle(self)
        cycle = self._lifecycle
        self._passing = Passing("dataproc", self.batches, step=cycle.step, broken=cycle.broken, now=google.now)
        self._changed = self._passing.changed

    def start(self) -> None:
        """Let time pass. Batches that were executing when an earlier emulator ended are executed anew."""
        self._passing.start()

    def stop(self) -> None:
        """Let time stand still and end what executes; batches stay as they are."""
        self._passing.stop(self.executions.close)

    def create(
        self, request: Mapping[str, Any], *, location: str, batch_id: str, request_id: str, principal: str
    ) -> Batch:
        """Take a new batch, or return the one that the same request made before.

        Raises GoogleError: 400 for what is wrong with the request, 404 for its region, 409 for an id that is in use.
        """
        new = str(uuid.uuid4())
        batch_id = batch_id or new
        admit(request, location=location, batch_id=batch_id, request_id=request_id)
        project = self.google.project
        with self._changed:
            first = self.batches.requested(project, location, request_id) if request_id else None
            if first:
                self._event("dataproc.batch.returned", first, principal=principal)
                return first
            namesake = self.batches.get(project, location, batch_id)
            if namesake:
                raise GoogleError(409, texts.already_exists(namesake.name))
            now = rfc3339(self.google.now())
            batch = Batch(
                id=batch_id,
                project=project,
                location=location,
                uuid=new,
                operation=str(uuid.uuid4()),
                principal=principal,
                request_id=request_id,
                request=request,
                output_uri=f"gs://{self._bucket(request, location)}/{_output_path(new)}",
                created=now,
                state="PENDING",
                state_time=now,
            )
            batch = self._lifecycle.created(batch)
            self.batches.add(batch)
            self._event("dataproc.batch.created", batch, principal=principal, labels=dict(request.get("labels", {})))
            self._changed.notify_all()
        return batch

    def cancel(self, batch: Batch, *, principal: str) -> None:
        """Begin to cancel a batch; nothing happens to one that is over, or is being cancelled."""
        with self._changed:
            current = self.batches.by_uuid(batch.uuid) or batch
            if current.is_over or current.state == "CANCELLING":
                return
            self._event("dataproc.batch.requested", current, state="CANCELLED", principal=principal)
            self.batches.save(self._lifecycle.cancel(current, texts.CANCEL_REQUESTED))
            self._changed.notify_all()

    def delete(self, batch: Batch, *, principal: str) -> None:
        """Forget a batch that is over. Raises GoogleError 400 (FAILED_PRECONDITION) for one that is not."""
        with self._changed:
            current = self.batches.by_uuid(batch.uuid) or batch
            if not current.is_over:
                message = (
                    f"Batch {current.name} is in state {current.state}; only batches that have ended can be deleted."
                )
                raise FailedPreconditionError(400, message)
            self.batches.save(replace(current, is_deleted=True))
            self._event("dataproc.batch.deleted", current, principal=principal)

    def run(self, batch: Batch) -> None:
        """Execute a batch, now or when a slot is free."""
        self.executions.start(Run(id=batch.uuid, batch=batch))

    def _bucket(self, request: Mapping[str, Any], location: str) -> str:
        """Return the bucket that a batch's output goes to; the service makes one for each region."""
        own = execution_of(request).get("stagingBucket")
        if own:
            self.google.buckets.bucket(own)
            return str(own)
        name = f"dataproc-staging-{location}-{self.google.project_number}-{self.google.project_number % 0xFFFFFFFF:08x}"
        with suppress(GoogleError):
            settings = {"location": location.upper()}
            self.google.buckets.create(name, project_number=self.google.project_number, settings=settings)
        return name

    def _surroundings(self, run: Run) -> Surroundings:
        accounts = self.google.identities.accounts
        wanted = str(execution_of(run.batch.request).get("serviceAccount", ""))
        email = wanted if wanted in accounts else self.google.identities.email(WORKER_ACCOUNT)
        return Surroundings(key_file=accounts[email].key_file, url=self.google.url, project=run.batch.project)

    def _event(self, kind: str, batch: Batch, **fields: Any) -> None:
        self.google.ledger.event(kind, batch_id=batch.id, uuid=batch.uuid, location=batch.location, **fields)

    def _wake(self, batch_uuid: str) -> None:
        self._passing.wake(lambda: self.batches.by_uuid(batch_uuid))


def _output_path(batch_uuid: str) -> str:
    cluster = uuid.uuid4()
    return f"google-cloud-dataproc-metainfo/{cluster}/jobs/srvls-batch-{batch_uuid}/driveroutput"
