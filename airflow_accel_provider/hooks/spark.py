"""Batches of managed Spark: create, find, read, cancel."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, cast

from airflow_accel_provider.core.jobs import Importance, Job, JobState, Message, Snapshot
from airflow_accel_provider.exceptions import GoogleApiError
from airflow_accel_provider.hooks._fields import Fields, unreadable
from airflow_accel_provider.hooks._wire_spark import batch_from_json, batches_from_json, created_at

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from airflow_accel_provider.core.failures import Failure
    from airflow_accel_provider.core.record import Attempt
    from airflow_accel_provider.hooks.session import GoogleSession

_NOT_FOUND = 404
_OPERATION = re.compile(r"projects/[^/]+/(?:regions|locations)/[^/]+/operations/[^/]+")
_CALL_SECONDS = 60.0
_CREATE_SECONDS = 90.0
_ACTIVE = "state = PENDING OR state = RUNNING OR state = CANCELLING"


class SparkHook:
    """Managed Spark as the core sees it. Every method raises :class:`GoogleApiError` when the service can't answer."""

    def __init__(self, session: GoogleSession) -> None:
        self._session = session

    def create(
        self,
        batch_id: str,
        region: str,
        body: Mapping[str, Any],
        *,
        request_id: str,
        headers: Mapping[str, str] | None = None,
    ) -> Job:
        """Ask for a batch and return it as far as it is known.

        An answer that was lost is asked for again under the same request id, to which the service gives the operation
        of the first, never a second batch. A batch of this id that another request made is refused with status 409.
        """
        answer = self._session.request(
            "dataproc",
            "POST",
            self._batches(region),
            params={"batchId": batch_id, "requestId": request_id},
            body=body,
            headers=headers,
            timeout=_CALL_SECONDS,
            retry_seconds=_CREATE_SECONDS,
            idempotent=True,
        )
        return Job(id=batch_id, name=batch_id, region=region, state=JobState.PENDING, created_at=created_at(answer))

    def get(self, batch_id: str, region: str) -> Snapshot:
        """Return all that a batch shows; its ``job`` is ``None`` when the service doesn't know it."""
        value = self._get(batch_id, region)
        return batch_from_json(value) if value is not None else Snapshot(job=None)

    def list_active(self, region: str) -> tuple[Snapshot, ...]:
        """Return all batches of a region that haven't ended."""
        return self._list(region, {"filter": _ACTIVE})

    def list_all(self, region: str) -> tuple[Snapshot, ...]:
        """Return all batches of a region that the service still knows, ended ones too."""
        return self._list(region, {})

    def cancel(self, batch_id: str, region: str) -> None:
        """Ask for a batch's cancellation through its operation, also while it waits for machines.

        One that has ended, is being cancelled, or isn't known, needs none.
        """
        value = self._get(batch_id, region)
        if value is None or _is_ending(value):
            return
        operation = Fields(value, "dataproc", "batch").text("operation")
        if not _OPERATION.fullmatch(operation):
            raise unreadable("dataproc", "batch", "it has no operation")
        try:
            self._session.request("dataproc", "POST", f"{operation}:cancel", body={}, idempotent=True)
        except GoogleApiError as error:
            if error.status not in {400, 404, 409, 412}:
                raise
            value = self._get(batch_id, region)
            if value is not None and not _is_ending(value):
                raise

    def _list(self, region: str, params: Mapping[str, str]) -> tuple[Snapshot, ...]:
        pages = self._session.pages("dataproc", self._batches(region), params={**params, "pageSize": 1000})
        return tuple(batch for page in pages for batch in batches_from_json(page))

    def _get(self, batch_id: str, region: str) -> dict[str, Any] | None:
        path = f"{self._batches(region)}/{batch_id}"
        try:
            value = self._session.request("dataproc", "GET", path)
        except GoogleApiError as error:
            if error.status == _NOT_FOUND:
                return None
            raise
        # What was asked for by its name is that, whether the answer repeats it or not.
        return {**value, "name": path}

    def _batches(self, region: str) -> str:
        return f"projects/{self._session.project}/locations/{region}/batches"


def look(session: GoogleSession, region: str, wanted: Mapping[str, bool]) -> dict[str, Snapshot]:
    """Return what the service shows of each wanted batch of a region.

    One is asked for by id; several are taken from one listing of the active ones, and only those that left it are asked
    for. A batch shows its usage in either, so that proving costs no call of its own.
    """
    hook = SparkHook(session)
    active = hook.list_active(region) if len(wanted) > 1 else ()
    listed = {each.job.id: each for each in active if each.job}
    return {id_: listed.get(id_) or hook.get(id_, region) for id_ in wanted}


def end(session: GoogleSession, attempt: Attempt) -> None:
    """Ask the service to end the attempt's batch; its end is for the caller to see. Raises :class:`GoogleApiError`."""
    if attempt.job_id is not None:
        SparkHook(session).cancel(attempt.job_id, attempt.placement.region)


def refusal(refused: GoogleApiError, region: str, hide: Callable[[str], str]) -> Failure:
    """Return what it means that a batch was refused; ``hide`` takes secrets out of what the service repeats."""
    from airflow_accel_provider.core.classification import Signals, classify

    said = Message(text=hide(refused.message), importance=Importance.ERROR, at=datetime.now(UTC))
    signals = Signals(service="dataproc", messages=(said,), http_status=refused.status or None, region=region)
    # A refused call is always a failure.
    return cast("Failure", classify(signals))


def _is_ending(value: Mapping[str, Any]) -> bool:
    job = batch_from_json(value).job
    return job is not None and (job.state.is_terminal or job.state is JobState.CANCELLING)
